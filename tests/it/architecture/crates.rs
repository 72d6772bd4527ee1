//! The allowed dependencies of each crate.

use std::collections::BTreeSet;
use std::fs;

use serde_json::Value;

use super::sources::{members, relative, root, rust_files};

/// Returns the names of a crate's `[dependencies]`, without its development dependencies.
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
fn the_domain_depends_on_no_other_workspace_crate_and_on_no_runtime_driver_or_http() {
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
        "crc32fast",
        "data-encoding",
        "ipnet",
        "percent-encoding",
        "secrecy",
        "totp-rs",
        "chacha20poly1305",
        "ed25519-dalek",
        "schemars",
        "unicode-normalization",
        "json-patch",
        "idna",
        "iso_country",
        "iso_currency",
        // Optional dependencies for tests only.
        "mockall",
        "proptest",
        "proptest-derive",
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
fn workspace_crates_depend_only_on_lower_ones() {
    let allowed = [
        ("core-domain", &[][..]),
        ("core-storage", &["core-domain"]),
        ("core-http", &["core-domain"]),
        ("core-client", &[]),
        ("adapters/cloudflare", &["core-domain"]),
        ("adapters/cloudflare-fake", &["core-fake-kit"]),
        ("adapters/dns", &["core-domain"]),
        ("adapters/fake-kit", &[]),
        ("adapters/local", &["core-domain"]),
        ("adapters/otel", &["core-domain"]),
        ("adapters/redis", &["core-domain"]),
        ("adapters/s3", &["core-domain"]),
        ("adapters/smtp", &["core-domain"]),
        ("adapters/sqlx", &["core-domain", "core-storage"]),
        ("adapters/stripe", &["core-domain"]),
        ("adapters/stripe-fake", &["core-fake-kit"]),
        (
            "adapters/suite",
            &[
                "core-domain",
                "core-storage",
                "core-http",
                "core-cloudflare",
                "core-dns",
                "core-local",
                "core-otel",
                "core-redis",
                "core-s3",
                "core-smtp",
                "core-sqlx",
                "core-stripe",
                "core-webauthn",
                "core-webhooks",
            ],
        ),
        ("adapters/webauthn", &["core-domain"]),
        ("adapters/webhooks", &["core-domain"]),
        ("examples/server", &["core-suite"]),
        ("examples/cli", &["core-client"]),
        ("examples/tour", &[]),
        ("examples/embed", &["core-domain", "core-suite"]),
        ("examples/jobs", &["core-suite"]),
        ("examples/rules", &["core-domain"]),
        ("examples/own_backend", &["core-domain", "core-storage"]),
        ("tests", &[]),
        (
            "tests/fuzz",
            &["core-domain", "core-http", "core-stripe", "core-suite"],
        ),
        ("tests/kit", &["core-domain", "core-storage", "core-sqlx"]),
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

#[test]
fn no_crate_depends_on_the_unused_dependencies_of_core_tests() {
    let beside = dependencies("tests");
    for krate in members().iter().filter(|krate| *krate != "tests") {
        let named: Vec<_> = dependencies(krate).intersection(&beside).cloned().collect();
        assert!(
            named.is_empty(),
            "{krate} names {named:?}; take them out of tests/Cargo.toml"
        );
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

/// Returns the targets of a manifest with `test = false`: `[lib]` and the binaries.
fn targets_without_harness(manifest: &str) -> Vec<&str> {
    let sections = manifest
        .split("\n[")
        .map(|section| section.trim_start_matches('['));
    sections
        .filter(|section| section.lines().any(|line| line == "test = false"))
        .collect()
}

#[test]
fn a_target_without_test_harness_has_no_unit_tests() {
    let mut checked = 0;
    for member in members() {
        let source = root().join(&member).join("src");
        let manifest = fs::read_to_string(root().join(&member).join("Cargo.toml")).unwrap();
        for target in targets_without_harness(&manifest) {
            let is_library = target.starts_with("lib]");
            for file in rust_files(&source) {
                let name = relative(&file, &source);
                let is_binary = name == "main.rs" || name.starts_with("bin/");
                if is_binary == is_library {
                    continue;
                }
                let text = fs::read_to_string(&file).unwrap();
                assert!(
                    !text.contains("#[cfg(test)]"),
                    "{member}/src/{name} has tests that never run: remove `test = false`"
                );
            }
            checked += 1;
        }
    }
    assert_eq!(checked, 17);
}

/// Parses the minor version of a Rust release: 94 for `1.94` and `1.94.1`.
fn minor_version(rust: &str) -> u32 {
    let minor = rust.split('.').nth(1).unwrap_or("0");
    minor.parse().unwrap()
}

/// Clippy's `incompatible_msrv` checks our own code.
#[test]
fn every_dependency_supports_the_oldest_rust_that_the_suite_supports() {
    let mut command = core_tests::cargo();
    command.args([
        "metadata",
        "--locked",
        "--format-version=1",
        "--all-features",
    ]);
    // The dependencies of other systems may not be on this machine.
    command.arg("--filter-platform=x86_64-unknown-linux-gnu");
    let metadata = command.output().unwrap();
    assert!(metadata.status.success(), "{metadata:?}");
    let metadata: Value = serde_json::from_slice(&metadata.stdout).unwrap();
    let (ours, theirs): (Vec<_>, Vec<_>) = metadata["packages"]
        .as_array()
        .unwrap()
        .iter()
        .partition(|package| package["source"].is_null());
    let oldest = ours[0]["rust_version"].as_str().unwrap();
    let newer: Vec<_> = theirs
        .into_iter()
        .filter(|package| {
            let needed = package["rust_version"].as_str();
            needed.is_some_and(|needed| minor_version(needed) > minor_version(oldest))
        })
        .map(|package| (&package["name"], &package["rust_version"]))
        .collect();
    assert!(newer.is_empty(), "Rust {oldest} cannot compile {newer:?}");
}
