//! Who may import whom, and how large a file may get.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

const LONGEST_FILE: usize = 600;

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .parent()
        .unwrap()
        .to_owned()
}

fn rust_files(folder: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    let mut folders = vec![folder.to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(&folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                if path.file_name().unwrap() != "target" {
                    folders.push(path);
                }
            } else if path.extension().is_some_and(|e| e == "rs") {
                found.push(path);
            }
        }
    }
    assert!(!found.is_empty(), "no sources below {}", folder.display());
    found
}

/// The names of a crate's `[dependencies]`, development ones left out.
fn dependencies(krate: &str) -> BTreeSet<String> {
    let manifest = fs::read_to_string(root().join(krate).join("Cargo.toml")).unwrap();
    let mut names = BTreeSet::new();
    let mut inside = false;
    for line in manifest.lines() {
        if line.starts_with('[') {
            inside = line == "[dependencies]";
        } else if inside && let Some((name, _)) = line.split_once('=') {
            names.insert(name.trim().trim_end_matches(".workspace").to_owned());
        }
    }
    names
}

#[test]
fn the_domain_depends_on_nothing_of_ours_and_on_no_runtime_driver_or_http() {
    let allowed = [
        "async-trait",
        "serde",
        "serde_json",
        "thiserror",
        "uuid",
        "jiff",
        "sha2",
        "hmac",
        "base64",
        "schemars",
        "unicode-normalization",
    ];
    let strangers: Vec<_> = dependencies("core-domain")
        .into_iter()
        .filter(|d| !allowed.contains(&d.as_str()))
        .collect();
    assert!(
        strangers.is_empty(),
        "core-domain must not depend on {strangers:?}"
    );
}

#[test]
fn crates_of_ours_are_imported_downwards_only() {
    let ours = [
        "core-domain",
        "core-storage",
        "core-http",
        "core-local",
        "core-suite",
    ];
    let allowed = [
        ("core-domain", &[][..]),
        ("core-storage", &["core-domain"]),
        ("core-http", &["core-domain"]),
        ("adapters/local", &["core-domain"]),
        (
            "adapters/suite",
            &["core-domain", "core-storage", "core-http", "core-local"],
        ),
    ];
    for (krate, may_import) in allowed {
        let imported = dependencies(krate);
        for name in ours {
            assert!(
                !imported.contains(name) || may_import.contains(&name),
                "{krate} must not import {name}; move the shared part down into core-domain"
            );
        }
    }
}

#[test]
fn modules_of_the_domain_import_downwards_only() {
    // A folder may import what stands before it in this list, and itself.
    let order = [
        "kernel",
        "shared",
        "iam",
        "provisioning",
        "registry",
        "cli",
        "stacks",
        "gateway",
        "port",
        "use_case/iam",
        "use_case/provisioning",
        "use_case/registry",
        "use_case/cli",
        "use_case/stacks",
    ];
    // Records implement the `Record` trait, so every records folder knows that one port; the kernel wraps its error.
    let rank = |module: &str| order.iter().position(|m| *m == module);
    let src = root().join("core-domain/src");
    for file in rust_files(&src) {
        let relative = file
            .strip_prefix(&src)
            .unwrap()
            .to_string_lossy()
            .into_owned();
        let Some(home) = order
            .iter()
            .rev()
            .find(|m| relative.starts_with(&format!("{m}/")))
        else {
            continue;
        };
        let text = fs::read_to_string(&file).unwrap();
        let code = text.split("#[cfg(test)]").next().unwrap();
        for (at, _) in code.match_indices("crate::") {
            let path = &code[at + "crate::".len()..];
            let segment = |p: &str| {
                p.split(|c: char| !(c.is_alphanumeric() || c == '_'))
                    .next()
                    .unwrap_or("")
                    .to_owned()
            };
            let first = segment(path);
            let imported = if first == "use_case" {
                format!(
                    "use_case/{}",
                    segment(path["use_case".len()..].trim_start_matches("::"))
                )
            } else {
                first
            };
            let Some(imported_rank) = rank(&imported) else {
                continue;
            };
            let exempt = imported == "port" && !home.starts_with("use_case");
            assert!(
                exempt || imported_rank <= rank(home).unwrap(),
                "{relative} imports {imported}, which stands above {home}"
            );
        }
    }
}

#[test]
fn no_source_file_is_longer_than_one_idea() {
    for folder in [
        "core-domain",
        "core-storage",
        "core-http",
        "adapters",
        "examples",
        "tests",
    ] {
        for file in rust_files(&root().join(folder)) {
            let lines = fs::read_to_string(&file).unwrap().lines().count();
            assert!(
                lines <= LONGEST_FILE,
                "{} has {lines} lines; split it",
                file.display()
            );
        }
    }
}

#[test]
fn every_crate_takes_the_workspace_lints() {
    let workspace = fs::read_to_string(root().join("Cargo.toml")).unwrap();
    assert!(workspace.contains("unsafe_code = \"forbid\""));
    for member in [
        "core-domain",
        "core-storage",
        "core-http",
        "adapters/local",
        "adapters/suite",
        "examples/server",
    ] {
        let manifest = fs::read_to_string(root().join(member).join("Cargo.toml")).unwrap();
        assert!(
            manifest.contains("[lints]\nworkspace = true"),
            "{member} does not take the workspace lints"
        );
    }
}
