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

/// The path of a file below a folder, as text.
fn relative(file: &Path, folder: &Path) -> String {
    file.strip_prefix(folder)
        .unwrap()
        .to_string_lossy()
        .into_owned()
}

/// The crates of the workspace.
fn members() -> Vec<String> {
    let manifest = fs::read_to_string(root().join("Cargo.toml")).unwrap();
    let list = manifest.split_once("members = [").unwrap().1;
    let list = list.split_once(']').unwrap().0;
    let members = list.split('"').skip(1).step_by(2);
    members.map(str::to_owned).collect()
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
    let allowed = [
        ("core-domain", &[][..]),
        ("core-storage", &["core-domain"]),
        ("core-http", &["core-domain"]),
        ("adapters/local", &["core-domain"]),
        (
            "adapters/suite",
            &["core-domain", "core-storage", "core-http", "core-local"],
        ),
        ("examples/server", &["core-suite"]),
        ("examples/tour", &[]),
        ("examples/embed", &["core-suite"]),
        ("tests", &[]),
    ];
    assert_eq!(allowed.map(|(krate, _)| krate.to_owned()), *members());
    for (krate, may_import) in allowed {
        for name in dependencies(krate) {
            assert!(
                !name.starts_with("core-") || may_import.contains(&name.as_str()),
                "{krate} must not import {name}; move the shared part down into core-domain"
            );
        }
    }
}

/// A module's own code, without its tests.
fn code_of(file: &Path) -> String {
    let text = fs::read_to_string(file).unwrap();
    assert!(!text.contains("use crate::{"), "{}", file.display());
    let code = text.split("#[cfg(test)]").next().unwrap();
    code.to_owned()
}

/// The modules a text names as `crate::module` or, of use cases, `crate::use_case::module`.
fn modules_named(code: &str) -> BTreeSet<String> {
    let word = |text: &str| {
        let rest = text.split(|c: char| !(c.is_alphanumeric() || c == '_'));
        rest.take(1).collect::<String>()
    };
    let name = |at: usize| {
        let path = &code[at + "crate::".len()..];
        match path.strip_prefix("use_case::") {
            Some(below) => format!("use_case/{}", word(below)),
            None => word(path),
        }
    };
    let found = code.match_indices("crate::");
    found.map(|(at, _)| name(at)).collect()
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
        "use_case/stacks",
        "use_case/iam",
        "use_case/provisioning",
        "use_case/registry",
        "use_case/cli",
    ];
    let rank = |module: &str| order.iter().position(|m| *m == module);
    let src = root().join("core-domain/src");
    for file in rust_files(&src) {
        let relative = relative(&file, &src);
        let Some(home) = order
            .iter()
            .rposition(|m| relative.starts_with(&format!("{m}/")))
        else {
            continue;
        };
        for imported in modules_named(&code_of(&file)) {
            let Some(imported_rank) = rank(&imported) else {
                continue;
            };
            // Records implement `port::Record` and ports speak of records, so these two know each other.
            let exempt = imported == "port" && order[home] != "kernel";
            assert!(
                exempt || imported_rank <= home,
                "{relative} imports {imported}, which stands above it"
            );
        }
    }
}

#[test]
fn services_over_http_know_the_kernel_and_not_each_other() {
    let allowed = [
        ("kernel", &[][..]),
        ("gateway", &["kernel"]),
        // IAM answers the gateway's question in process.
        ("iam", &["kernel", "platform_status", "gateway"]),
        ("registry", &["kernel"]),
        ("provisioning", &["kernel", "platform_status"]),
        ("cli", &["kernel"]),
        ("stacks", &["kernel"]),
    ];
    let src = root().join("core-http/src");
    for (home, may_import) in allowed {
        for file in rust_files(&src.join(home)) {
            let relative = relative(&file, &src);
            if relative.contains("/tests/") {
                continue;
            }
            for imported in modules_named(&code_of(&file)) {
                assert!(
                    imported == home || may_import.contains(&imported.as_str()),
                    "{relative} imports {imported}"
                );
            }
        }
    }
}

#[test]
fn the_clock_and_randomness_are_read_in_their_adapters_alone() {
    let adapters = ["suite/src/clock.rs", "suite/src/entropy.rs"];
    for folder in ["core-domain/src", "core-http/src", "adapters", "examples"] {
        let folder = root().join(folder);
        for file in rust_files(&folder) {
            let relative = relative(&file, &folder);
            let exempt = adapters.contains(&relative.as_str()) || relative.contains("tests/");
            let text = fs::read_to_string(&file).unwrap();
            assert!(
                exempt || !text.contains("clippy::disallowed_methods"),
                "{relative} must take clock, entropy and settings from its caller"
            );
        }
    }
}

/// The accessors of the records, with the service they stand under in the one list of records.
fn records() -> Vec<(String, String)> {
    let list = fs::read_to_string(root().join("core-domain/src/port/store.rs")).unwrap();
    let start = list.find("$callback! {").unwrap();
    let list = &list[start..start + list[start..].find("\n        }").unwrap()];
    let mut service = String::new();
    let mut found = Vec::new();
    for line in list.lines().map(str::trim) {
        if let Some(name) = line.strip_prefix("// ") {
            service = name.to_owned();
        } else if let Some((accessor, _)) = line.split_once(": $crate::") {
            found.push((accessor.to_owned(), service.clone()));
        }
    }
    assert!(found.len() > 20, "{found:?}");
    found
}

#[test]
fn a_use_case_touches_the_records_of_its_own_service_alone() {
    let folder = root().join("core-domain/src/use_case");
    for file in rust_files(&folder) {
        let relative = relative(&file, &folder);
        let home = relative.split('/').next().unwrap();
        let text = fs::read_to_string(&file).unwrap();
        for (accessor, service) in records() {
            let touches = text.contains(&format!(".{accessor}()"));
            assert!(
                !touches || service == home || service == "shared",
                "use_case/{relative} touches {accessor}; call a use case of {service}"
            );
        }
    }
}

#[test]
fn handlers_call_use_cases_and_touch_no_record() {
    let folder = root().join("core-http/src");
    for file in rust_files(&folder) {
        let relative = relative(&file, &folder);
        if relative.contains("/tests/") {
            continue;
        }
        let code = code_of(&file);
        for (accessor, _) in records() {
            let touches = code.contains(&format!("uow.{accessor}()"));
            // The answers of idempotency keys are the kernel's own.
            assert!(
                !touches || relative == "kernel/idempotency.rs",
                "{relative} touches {accessor}; call a use case"
            );
        }
    }
}

#[test]
fn no_source_file_is_longer_than_one_idea() {
    for folder in members() {
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
    for member in members() {
        let manifest = fs::read_to_string(root().join(&member).join("Cargo.toml")).unwrap();
        assert!(
            manifest.contains("[lints]\nworkspace = true"),
            "{member} does not take the workspace lints"
        );
    }
}
