//! Rules for names. A function is named by a verb, or by the noun of what it returns; a type is named by a noun. A
//! participle or an adjective alone, such as "held" or "shown", tells the reader nothing about it.

use std::fs;

use proc_macro2::{Delimiter, TokenStream, TokenTree};

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
    /// True if it is a function with arguments that does not return `bool`, alone or in another type.
    returns_other_than_bool: bool,
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
                    returns_other_than_bool: keyword == "fn" && !returns_bool(&trees[at + 2..]),
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

/// Returns whether the function after whose name these tokens follow returns `bool`, or has no arguments, as a test.
fn returns_bool(trees: &[TokenTree]) -> bool {
    let mut signature = trees.iter().take_while(|tree| match tree {
        TokenTree::Group(group) => group.delimiter() != Delimiter::Brace,
        TokenTree::Punct(end) => end.as_char() != ';',
        _ => true,
    });
    let has_arguments =
        signature.any(|tree| matches!(tree, TokenTree::Group(group) if !group.stream().is_empty()));
    !has_arguments || signature.any(|tree| matches!(tree, TokenTree::Ident(name) if name == "bool"))
}

/// Returns whether a name begins like a predicate.
fn is_predicate(name: &str) -> bool {
    ["is_", "has_", "can_"]
        .iter()
        .any(|start| name.starts_with(start))
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

/// Returns the items of the workspace for which the function returns `true`, one per line.
fn items_that(is_wrong: fn(&Item) -> bool) -> Vec<String> {
    let mut wrong = Vec::new();
    for member in members() {
        for file in rust_files(&root().join(member)) {
            let mut found = Vec::new();
            let text = fs::read_to_string(&file).unwrap();
            items(text.parse().unwrap(), &mut found);
            for item in found.iter().filter(|item| is_wrong(item)) {
                let file = relative(&file, &root());
                wrong.push(format!("{file}: {} {}", item.keyword, item.name));
            }
        }
    }
    wrong
}

fn is_participle_alone(item: &Item) -> bool {
    is_refused(&item.name) && !item.qualifies_parameter
}

fn is_false_predicate(item: &Item) -> bool {
    is_predicate(&item.name) && item.returns_other_than_bool
}

#[test]
fn no_function_or_type_is_named_by_a_participle_alone() {
    assert_eq!(items_that(is_participle_alone), [""; 0]);
}

#[test]
fn a_function_named_like_a_predicate_returns_a_boolean() {
    assert_eq!(items_that(is_false_predicate), [""; 0]);
}

#[test]
fn the_checks_of_names_find_participles_and_false_predicates() {
    let source = "fn held() {} fn seed() {} fn held_lock() {} struct Opened<'a>(&'a u8); \
        struct Stored<T>(T); struct EventFeed; \
        mod inner { enum Shown {} type Bound = u8; fn is_done() {} } \
        trait Checks { fn is_open(&self) -> Result<bool>; fn has_rows(&self); } \
        fn can_read(file: &File) -> bool { true } fn is_equal<T: Eq>(a: T, b: T) { assert!(a == b) }";
    let mut found = Vec::new();
    items(source.parse().unwrap(), &mut found);
    let names = |is_wrong: fn(&Item) -> bool| -> Vec<&str> {
        let wrong = found.iter().filter(|item| is_wrong(item));
        wrong.map(|item| item.name.as_str()).collect()
    };
    assert_eq!(
        names(is_participle_alone),
        ["held", "Opened", "Shown", "Bound"]
    );
    assert_eq!(names(is_false_predicate), ["has_rows", "is_equal"]);
}
