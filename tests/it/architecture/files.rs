//! Rules for every source file.

use std::fs;

use super::sources::{members, relative, root, rust_files};

/// A file has one subject. A longer one has two.
const MAX_FILE_LINES: usize = 800;

#[test]
fn only_the_adapters_read_the_clock_and_randomness() {
    let adapters = [
        "suite/src/clock.rs",
        "suite/src/entropy.rs",
        "testing/seeds.rs",
    ];
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

#[test]
fn no_source_file_exceeds_the_line_limit() {
    for folder in members() {
        for file in rust_files(&root().join(folder)) {
            let lines = fs::read_to_string(&file).unwrap().lines().count();
            assert!(
                lines <= MAX_FILE_LINES,
                "{} has {lines} lines; split it",
                file.display()
            );
        }
    }
}

#[test]
fn a_crate_has_one_test_binary() {
    for member in members()
        .iter()
        .filter(|member| !member.starts_with("examples/"))
    {
        let folder = root()
            .join(member)
            .join(if member == "tests" { "" } else { "tests" });
        let Ok(entries) = fs::read_dir(&folder) else {
            continue;
        };
        for entry in entries {
            let path = entry.unwrap().path();
            let is_binary =
                path.extension().is_some_and(|e| e == "rs") || path.join("main.rs").is_file();
            assert!(
                !is_binary || path.ends_with("it"),
                "{} belongs into `it`",
                path.display()
            );
        }
    }
}

#[test]
fn tests_of_tower_services_are_integration_tests() {
    let src = root().join("core-http/src");
    for file in rust_files(&src) {
        let relative = relative(&file, &src);
        let text = fs::read_to_string(&file).unwrap();
        let tests = text
            .split_once("#[cfg(test)]")
            .map_or("", |(_, tests)| tests);
        assert!(
            !relative.contains("tests/"),
            "{relative} belongs into core-http/tests/it"
        );
        assert!(
            !tests.contains("World::"),
            "{relative} belongs into core-http/tests/it"
        );
    }
}

/// The words with which floating-point numbers enter the code.
const FLOATS: [&str; 3] = ["f32", "f64", "as_f64"];

#[test]
fn no_file_of_billing_has_floating_point_numbers() {
    let mut checked = 0;
    for member in members() {
        let folder = root().join(member).join("src");
        for file in rust_files(&folder) {
            let relative = relative(&file, &folder);
            let is_billing = relative.contains("billing") || relative.contains("payments");
            if !is_billing {
                continue;
            }
            checked += 1;
            let text = fs::read_to_string(&file).unwrap();
            let mut words = text.split(|c: char| !c.is_alphanumeric() && c != '_');
            let found = words.find(|word| FLOATS.contains(word));
            assert_eq!(found, None, "{relative}");
        }
    }
    assert!(checked > 40, "{checked}");
}
