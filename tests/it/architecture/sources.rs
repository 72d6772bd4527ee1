//! The files and crates of the workspace.

use std::fs;
use std::path::{Path, PathBuf};

pub(super) fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .parent()
        .unwrap()
        .to_owned()
}

pub(super) fn rust_files(folder: &Path) -> Vec<PathBuf> {
    let found = files_with_extension(folder, "rs");
    assert!(!found.is_empty(), "no sources below {}", folder.display());
    found
}

/// Returns the Markdown pages of the repository.
pub(super) fn markdown_files() -> Vec<PathBuf> {
    files_with_extension(&root(), "md")
}

fn files_with_extension(folder: &Path, extension: &str) -> Vec<PathBuf> {
    let mut found = Vec::new();
    let mut folders = vec![folder.to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(&folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                let name = path.file_name().unwrap().to_string_lossy();
                let is_source =
                    !name.starts_with('.') && !matches!(&*name, "target" | "node_modules");
                if is_source {
                    folders.push(path);
                }
            } else if path.extension().is_some_and(|e| e == extension) {
                found.push(path);
            }
        }
    }
    found
}

/// Returns the path of a file below a folder, as text.
pub(super) fn relative(file: &Path, folder: &Path) -> String {
    file.strip_prefix(folder)
        .unwrap()
        .to_string_lossy()
        .into_owned()
}

/// Returns the crates of the workspace.
pub(super) fn members() -> Vec<String> {
    let manifest = fs::read_to_string(root().join("Cargo.toml")).unwrap();
    let list = manifest.split_once("members = [").unwrap().1;
    let list = list.split_once(']').unwrap().0;
    let members = list.split('"').skip(1).step_by(2);
    members.map(str::to_owned).collect()
}

/// Returns a file's code without its tests.
pub(super) fn code_of(file: &Path) -> String {
    let text = fs::read_to_string(file).unwrap();
    let code = text.split("#[cfg(test)]").next().unwrap();
    code.to_owned()
}
