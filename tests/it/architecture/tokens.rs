//! Finds the imports, definitions and names in the text of one source file, without its tests.

use std::collections::BTreeSet;

use proc_macro2::{Delimiter, Group, TokenStream, TokenTree};

/// A path of identifiers: `crate::kernel::Id` without the colons.
pub(super) type Path = Vec<String>;

/// One name that a `use` imports.
#[derive(Debug)]
pub(super) struct Use {
    /// The imported path. Its last part is the original name, or `*` for all names.
    pub(super) path: Path,
    /// The name in this file.
    pub(super) name: String,
    /// True if the name is re-exported (`pub use`).
    pub(super) public: bool,
}

/// The imports, definitions and names of a source file.
#[derive(Debug, Default)]
pub(super) struct Tokens {
    /// The imported names.
    pub(super) uses: Vec<Use>,
    /// The names of its items, including items inside macro calls.
    pub(super) defines: BTreeSet<String>,
    /// Every identifier outside of `use`.
    pub(super) idents: BTreeSet<String>,
    /// The paths in its code.
    pub(super) paths: Vec<Path>,
}

const ITEMS: [&str; 8] = [
    "struct", "enum", "trait", "type", "fn", "const", "static", "union",
];

impl Tokens {
    /// Parses a source file.
    pub(super) fn of(text: &str) -> Self {
        let mut tokens = Self::default();
        tokens.read(&text.parse::<TokenStream>().unwrap());
        tokens
    }

    fn read(&mut self, stream: &TokenStream) {
        let trees: Vec<TokenTree> = stream.clone().into_iter().collect();
        let mut at = 0;
        while at < trees.len() {
            at = self.step(&trees, at);
        }
    }

    /// Reads the token at an index. Returns the index of the next token to read.
    fn step(&mut self, trees: &[TokenTree], at: usize) -> usize {
        match &trees[at] {
            TokenTree::Punct(hash) if hash.as_char() == '#' && is_test(trees.get(at + 1)) => {
                end_of_item(trees, at + 2)
            }
            // The path is expanded in another file, so it is not an import of this one.
            TokenTree::Punct(dollar) if dollar.as_char() == '$' => at + 1 + path(trees, at + 1).1,
            TokenTree::Group(group) => {
                self.read(&group.stream());
                at + 1
            }
            TokenTree::Ident(ident) if ident == "use" => {
                let end = end_of_item(trees, at);
                let public = is_public(&trees[..at]);
                let mut paths = Vec::new();
                tree(&trees[at + 1..end - 1], &[], &mut paths);
                let uses = paths.into_iter();
                self.uses
                    .extend(uses.map(|(path, name)| Use { path, name, public }));
                end
            }
            TokenTree::Ident(ident) => self.ident(&ident.to_string(), trees, at),
            _ => at + 1,
        }
    }

    fn ident(&mut self, ident: &str, trees: &[TokenTree], at: usize) -> usize {
        if let (true, Some(TokenTree::Ident(name))) = (ITEMS.contains(&ident), trees.get(at + 1)) {
            self.defines.insert(name.to_string());
            return at + 2;
        }
        if ident == "macro_rules"
            && let Some(TokenTree::Ident(name)) = trees.get(at + 2)
        {
            self.defines.insert(name.to_string());
            return at + 3;
        }
        if ident == "mod" {
            return at + 2;
        }
        let (path, length) = path(trees, at);
        self.idents.extend(path.iter().cloned());
        if path.len() > 1 {
            self.paths.push(path);
        }
        at + length.max(1)
    }
}

/// Returns whether an attribute is `#[cfg(test)]`.
pub(super) fn is_test(attribute: Option<&TokenTree>) -> bool {
    matches!(attribute, Some(TokenTree::Group(group)) if group.to_string().replace(' ', "") == "[cfg(test)]")
}

/// Returns whether the item that starts after these tokens is public: `pub`, `pub(crate)`.
fn is_public(before: &[TokenTree]) -> bool {
    let is_pub = |tree: &TokenTree| matches!(tree, TokenTree::Ident(ident) if ident == "pub");
    match before {
        [.., one, TokenTree::Group(group)] if group.delimiter() == Delimiter::Parenthesis => {
            is_pub(one)
        }
        [.., one] => is_pub(one),
        [] => false,
    }
}

/// Returns the index after an item, which ends with a semicolon or braces.
pub(super) fn end_of_item(trees: &[TokenTree], from: usize) -> usize {
    let is_use = matches!(&trees[from], TokenTree::Ident(ident) if ident == "use");
    let ends = |tree: &TokenTree| match tree {
        TokenTree::Punct(punct) => punct.as_char() == ';',
        TokenTree::Group(group) => !is_use && group.delimiter() == Delimiter::Brace,
        _ => false,
    };
    let length = trees[from..].iter().position(ends);
    length.map_or(trees.len(), |length| from + length + 1)
}

/// Returns the path that starts at an index, and its number of tokens.
fn path(trees: &[TokenTree], from: usize) -> (Path, usize) {
    let mut path = Vec::new();
    let mut at = from;
    while let Some(TokenTree::Ident(ident)) = trees.get(at) {
        path.push(ident.to_string());
        at += 1;
        if !is_colons(trees, at) || !matches!(trees.get(at + 2), Some(TokenTree::Ident(_))) {
            break;
        }
        at += 2;
    }
    (path, at - from)
}

fn is_colons(trees: &[TokenTree], at: usize) -> bool {
    let colon = |at: usize| matches!(trees.get(at), Some(TokenTree::Punct(punct)) if punct.as_char() == ':');
    colon(at) && colon(at + 1)
}

/// Collects the leaves of a `use` tree, each with its name in this file.
fn tree(trees: &[TokenTree], above: &[String], found: &mut Vec<(Path, String)>) {
    let branches = trees.split(|tree| matches!(tree, TokenTree::Punct(p) if p.as_char() == ','));
    // Nothing follows the comma after the last name.
    for branch in branches.filter(|branch| !branch.is_empty()) {
        let (below, length) = path(branch, 0);
        let full = [above, &below].concat();
        let rest = &branch[length..];
        let last = full.last().cloned().unwrap_or_default();
        match rest.iter().find(|tree| !is_colon(tree)) {
            Some(TokenTree::Group(group)) => collect_group(group, &full, found),
            Some(TokenTree::Punct(_)) => {
                found.push(([&full[..], &["*".to_owned()]].concat(), "*".to_owned()))
            }
            Some(TokenTree::Ident(_)) => {
                let alias = rest.last().map(ToString::to_string);
                found.push((full, alias.unwrap_or(last)));
            }
            _ if full.is_empty() => {}
            _ => found.push((full, last)),
        }
    }
}

fn collect_group(group: &Group, above: &[String], found: &mut Vec<(Path, String)>) {
    let inside: Vec<_> = group.stream().into_iter().collect();
    tree(&inside, above, found);
}

fn is_colon(tree: &TokenTree) -> bool {
    matches!(tree, TokenTree::Punct(punct) if punct.as_char() == ':')
}
