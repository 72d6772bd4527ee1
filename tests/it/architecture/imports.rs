//! Finds which file of a crate imports which other file. Names are followed through re-exports to the file that defines
//! them.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path as FilePath;

use super::sources::{relative, rust_files};
use super::tokens::{Path, Tokens};

/// The modules of a crate, by path below its root.
struct Modules {
    modules: BTreeMap<Path, (String, Tokens)>,
}

/// The imports of a crate: file, imported file, names.
pub(super) type Imports = BTreeMap<String, BTreeMap<String, BTreeSet<String>>>;

/// Reads the sources of a crate.
pub(super) fn imports(src: &FilePath) -> Imports {
    let modules = rust_files(src).into_iter().filter_map(|file| {
        let name = relative(&file, src);
        let path = module(&name)?;
        Some((
            path,
            (name, Tokens::of(&fs::read_to_string(&file).unwrap())),
        ))
    });
    let modules = Modules {
        modules: modules.collect(),
    };
    let mut imports = Imports::new();
    for (home, (file, tokens)) in &modules.modules {
        for path in modules.imported_paths(tokens) {
            if let Some(from) = modules.file_of(home, path, 0)
                && from != file
            {
                let names = imports.entry(file.clone()).or_default();
                let names = names.entry(from.to_owned()).or_default();
                names.insert(path.last().cloned().unwrap_or_default());
            }
        }
    }
    imports
}

/// Returns the module of a source file; `None` for binaries and tests.
fn module(file: &str) -> Option<Path> {
    let path = file.strip_suffix(".rs")?;
    let mut path: Path = path.split('/').map(str::to_owned).collect();
    if path.first().is_some_and(|first| first == "bin") || path.iter().any(|part| part == "tests") {
        return None;
    }
    if matches!(
        path.last().map(String::as_str),
        Some("mod" | "lib" | "main")
    ) {
        path.pop();
    }
    Some(path)
}

impl Modules {
    /// Returns the paths that a file imports. A name that is only re-exported is not an import.
    fn imported_paths<'a>(&self, tokens: &'a Tokens) -> Vec<&'a Path> {
        let needed = |name: &String| name == "*" || tokens.idents.contains(name);
        let uses = tokens.uses.iter();
        let uses = uses.filter(|used| !used.public || needed(&used.name));
        uses.map(|used| &used.path).chain(&tokens.paths).collect()
    }

    /// Returns the file that defines the name of a path, seen from a module; `None` for names of other crates.
    fn file_of(&self, home: &Path, path: &Path, depth: usize) -> Option<&str> {
        let (mut module, mut rest) = self.start(home, path)?;
        while let Some((first, below)) = rest.split_first() {
            let mut child = module.clone();
            child.push(first.clone());
            if !self.modules.contains_key(&child) {
                break;
            }
            (module, rest) = (child, below);
        }
        let (file, tokens) = self.modules.get(&module)?;
        let handed_on = rest
            .first()
            .filter(|name| depth < 8 && !tokens.defines.contains(*name))
            .and_then(|name| self.resolve_reexport(&module, tokens, name, depth));
        Some(handed_on.unwrap_or(file))
    }

    /// Returns the file that defines a name which a module re-exports.
    fn resolve_reexport(
        &self,
        module: &Path,
        tokens: &Tokens,
        name: &str,
        depth: usize,
    ) -> Option<&str> {
        let named = tokens.uses.iter().find(|used| used.name == name);
        if let Some(used) = named {
            return self.file_of(module, &used.path, depth + 1);
        }
        let globs = tokens.uses.iter().filter(|used| used.name == "*");
        globs.into_iter().find_map(|glob| {
            let mut path = glob.path.clone();
            path.pop();
            path.push(name.to_owned());
            let file = self.file_of(module, &path, depth + 1)?;
            let defines = self
                .modules
                .values()
                .any(|(of, tokens)| of == file && tokens.defines.contains(name));
            defines.then_some(file)
        })
    }

    /// Returns the module in which a path starts, and the remaining path.
    fn start<'a>(&self, home: &Path, path: &'a Path) -> Option<(Path, &'a [String])> {
        let mut module = home.clone();
        let mut rest = &path[..];
        match path.first()?.as_str() {
            "crate" => {
                module.clear();
                rest = &path[1..];
            }
            "self" => rest = &path[1..],
            "super" => {
                while let Some(("super", below)) = rest
                    .split_first()
                    .map(|(first, below)| (first.as_str(), below))
                {
                    module.pop()?;
                    rest = below;
                }
            }
            child => {
                module.push(child.to_owned());
                if !self.modules.contains_key(&module) {
                    return None;
                }
                rest = &path[1..];
            }
        }
        Some((module, rest))
    }
}

/// Returns the cycles of an import graph: groups of files that all reach each other.
pub(super) fn import_cycles(imports: &Imports) -> Vec<BTreeSet<&str>> {
    let reach: BTreeMap<&str, BTreeSet<&str>> = imports
        .keys()
        .map(|file| (file.as_str(), reachable_files(imports, file)))
        .collect();
    let mut circles: BTreeSet<BTreeSet<&str>> = BTreeSet::new();
    for (file, reached) in reach
        .iter()
        .filter(|(file, reached)| reached.contains(**file))
    {
        let back = reached
            .iter()
            .filter(|other| reach.get(**other).is_some_and(|back| back.contains(file)));
        circles.insert(back.copied().collect());
    }
    circles.into_iter().collect()
}

fn reachable_files<'a>(imports: &'a Imports, from: &str) -> BTreeSet<&'a str> {
    let mut found = BTreeSet::new();
    let mut open = vec![from];
    while let Some(file) = open.pop() {
        for next in imports.get(file).into_iter().flat_map(BTreeMap::keys) {
            if found.insert(next.as_str()) {
                open.push(next);
            }
        }
    }
    found
}
