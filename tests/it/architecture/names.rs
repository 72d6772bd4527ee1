//! Rules for names. A function is named by a verb, or by the noun of what it returns; a type is named by a noun. A
//! participle or an adjective alone, such as "held" or "shown", tells the reader nothing about it.

use std::fs;

use proc_macro2::{TokenStream, TokenTree};

use super::sources::{members, relative, root, rust_files};

/// Participles without the ending "ed", and adjectives, that were used as names.
const REFUSED_NAMES: &[&str] = &[
    "alive",
    "begun",
    "bound",
    "broken",
    "built",
    "caught",
    "chosen",
    "dead",
    "done",
    "drawn",
    "forgotten",
    "found",
    "given",
    "gone",
    "held",
    "hidden",
    "kept",
    "known",
    "left",
    "lost",
    "made",
    "meant",
    "natural",
    "own",
    "rest",
    "said",
    "seen",
    "sent",
    "shown",
    "spoken",
    "taken",
    "then",
    "told",
    "woken",
    "written",
];

/// Verbs that end in "ed" in the infinitive.
const VERBS: &[&str] = &[
    "embed", "exceed", "feed", "need", "proceed", "seed", "succeed",
];

/// Names of this form that readers expect.
const ALLOWED_NAMES: &[&str] = &[
    // Constructors of errors, named after the variant or the status.
    "refused",
    "unauthorized",
    "unfinished",
    "unsupported",
    // Limits without a limit.
    "unlimited",
    // The owner of a record that belongs to no platform, beside `PlatformOwned`.
    "Unowned",
    // A method of the traits of log and tracing.
    "enabled",
];

/// A function or a type.
struct Item {
    keyword: String,
    name: String,
    /// True if the name qualifies the parameter of a generic type: `Stored<Platform>`.
    qualifies_parameter: bool,
}

/// Returns the functions and types of a source file, at any depth.
fn items(stream: TokenStream, found: &mut Vec<Item>) {
    let trees: Vec<TokenTree> = stream.into_iter().collect();
    for (at, tree) in trees.iter().enumerate() {
        match (tree, trees.get(at + 1)) {
            (TokenTree::Group(group), _) => items(group.stream(), found),
            (TokenTree::Ident(keyword), Some(TokenTree::Ident(name)))
                if ["fn", "struct", "enum", "type"]
                    .iter()
                    .any(|item| keyword == item) =>
            {
                found.push(Item {
                    keyword: keyword.to_string(),
                    name: name.to_string(),
                    qualifies_parameter: keyword != "fn" && has_type_parameter(&trees[at + 2..]),
                });
            }
            _ => {}
        }
    }
}

/// Returns whether a list of parameters follows that does not begin with a lifetime.
fn has_type_parameter(trees: &[TokenTree]) -> bool {
    let [TokenTree::Punct(open), first, ..] = trees else {
        return false;
    };
    open.as_char() == '<' && !matches!(first, TokenTree::Punct(tick) if tick.as_char() == '\'')
}

/// Returns whether a name is a single word that tells a state instead of an action or a thing.
fn is_refused(name: &str) -> bool {
    if ALLOWED_NAMES.contains(&name) {
        return false;
    }
    let is_one_word = !name.contains('_') && !name.chars().skip(1).any(char::is_uppercase);
    let name = name.to_lowercase();
    let is_participle = name.ends_with("ed") && !VERBS.contains(&&*name);
    is_one_word && (is_participle || REFUSED_NAMES.contains(&&*name))
}

#[test]
fn no_function_or_type_is_named_by_a_participle_alone() {
    let mut refused = Vec::new();
    for member in members() {
        for file in rust_files(&root().join(member)) {
            let mut found = Vec::new();
            items(
                fs::read_to_string(&file).unwrap().parse().unwrap(),
                &mut found,
            );
            for item in found {
                if is_refused(&item.name) && !item.qualifies_parameter {
                    refused.push(format!(
                        "{}: {} {}",
                        relative(&file, &root()),
                        item.keyword,
                        item.name
                    ));
                }
            }
        }
    }
    assert!(
        refused.is_empty(),
        "{} names:\n{}",
        refused.len(),
        refused.join("\n")
    );
}

#[test]
fn the_check_of_names_finds_participles_and_allows_verbs_nouns_and_qualified_parameters() {
    let source = "fn held() {} fn seed() {} fn held_lock() {} struct Opened<'a>(&'a u8); \
        struct Stored<T>(T); struct EventFeed; \
        mod inner { enum Shown {} type Bound = u8; fn is_done() {} }";
    let mut found = Vec::new();
    items(source.parse().unwrap(), &mut found);
    let refused = found
        .iter()
        .filter(|item| is_refused(&item.name) && !item.qualifies_parameter);
    let refused: Vec<&str> = refused.map(|item| item.name.as_str()).collect();
    assert_eq!(refused, ["held", "Opened", "Shown", "Bound"]);
}
