//! Finds the named fields of the types in a source file, without its tests.

use proc_macro2::{Delimiter, Spacing, TokenStream, TokenTree};

use super::tokens::{end_of_item, is_test};

/// A field of a struct, or of an enum's variant.
#[derive(Debug, Default)]
pub(super) struct Field {
    /// The name of the struct or enum.
    pub(super) owner: String,
    /// True if the struct or enum derives `Debug`.
    pub(super) derives_debug: bool,
    pub(super) name: String,
    /// The identifiers in its type, such as `Option` and `String`.
    pub(super) types: Vec<String>,
}

/// Returns the fields of a source file, including types inside functions, modules and macro calls.
pub(super) fn fields(text: &str) -> Vec<Field> {
    let mut found = Vec::new();
    read(text.parse().unwrap(), &mut found);
    found
}

fn read(stream: TokenStream, found: &mut Vec<Field>) {
    let trees: Vec<TokenTree> = stream.into_iter().collect();
    let (mut at, mut derives_debug) = (0, false);
    while at < trees.len() {
        match &trees[at] {
            tree if is_punct(tree, '#') && is_test(trees.get(at + 1)) => {
                at = end_of_item(&trees, at + 2);
                derives_debug = false;
                continue;
            }
            tree if is_punct(tree, '#') => {
                let attribute = trees.get(at + 1).map(idents).unwrap_or_default();
                derives_debug |= ["derive", "Debug"]
                    .iter()
                    .all(|word| attribute.iter().any(|ident| ident == word));
                at += 1;
            }
            TokenTree::Ident(keyword) if keyword == "struct" || keyword == "enum" => {
                let owner = Field {
                    owner: trees
                        .get(at + 1)
                        .map(ToString::to_string)
                        .unwrap_or_default(),
                    derives_debug,
                    ..Field::default()
                };
                at = end_of_item(&trees, at);
                if let TokenTree::Group(body) = &trees[at - 1] {
                    of_body(body.stream(), &owner, found);
                }
                derives_debug = false;
                continue;
            }
            TokenTree::Group(group) => read(group.stream(), found),
            _ => {}
        }
        at += 1;
    }
}

/// Finds the fields in the braces of a struct, or in the braces of an enum's variants.
fn of_body(stream: TokenStream, owner: &Field, found: &mut Vec<Field>) {
    let trees: Vec<TokenTree> = stream.into_iter().collect();
    // The comma in `Line<0, 64>` starts no field, because no colon follows.
    for part in trees.split(|tree| is_punct(tree, ',')) {
        let colon = part.iter().position(|tree| {
            matches!(tree, TokenTree::Punct(p) if p.as_char() == ':' && p.spacing() == Spacing::Alone)
        });
        match colon.and_then(|colon| Some((part.get(colon.checked_sub(1)?)?, &part[colon..]))) {
            Some((TokenTree::Ident(name), kind)) => found.push(Field {
                owner: owner.owner.clone(),
                derives_debug: owner.derives_debug,
                name: name.to_string(),
                types: kind.iter().flat_map(idents).collect(),
            }),
            _ => {
                for tree in part {
                    if let TokenTree::Group(variant) = tree
                        && variant.delimiter() == Delimiter::Brace
                    {
                        of_body(variant.stream(), owner, found);
                    }
                }
            }
        }
    }
}

/// Returns every identifier of a token, at any depth.
fn idents(tree: &TokenTree) -> Vec<String> {
    match tree {
        TokenTree::Ident(ident) => vec![ident.to_string()],
        TokenTree::Group(group) => group
            .stream()
            .into_iter()
            .flat_map(|tree| idents(&tree))
            .collect(),
        _ => Vec::new(),
    }
}

fn is_punct(tree: &TokenTree, wanted: char) -> bool {
    matches!(tree, TokenTree::Punct(punct) if punct.as_char() == wanted)
}
