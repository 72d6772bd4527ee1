//! The keys of `core.toml`.

use std::collections::BTreeMap;
use std::fs;

use super::assert_refused;
use crate::program::Program;

/// The values that are refused, by key.
fn cases() -> BTreeMap<&'static str, &'static [&'static str]> {
    BTreeMap::from([
        ("platform", &["", "a b", "a/b", ".."][..]),
        ("profile", &["", "../x", "a b"]),
        (
            "api_url",
            &[
                "",
                "api.example.org",
                "ftp://a",
                "https://a?x",
                "https://ada:hunter2@a",
            ],
        ),
        ("site", &[""]),
        ("production_branch", &["", "a b", "feature#1"]),
    ])
}

/// Returns the keys that the program knows, from its message about an unknown one.
fn known_keys() -> Vec<String> {
    let program = Program::new();
    program.write("core.toml", "no_such_key = 1\n");
    let run = program.run(&["platforms"]).expect(2);
    assert!(run.stderr.contains("no_such_key"), "{}", run.stderr);
    let list = run.stderr.split("expected one of ").nth(1).unwrap();
    let list = list.lines().next().unwrap();
    list.split(", ")
        .map(|key| key.trim_matches('`').to_owned())
        .collect()
}

/// Checks that a file is refused with these words.
#[track_caller]
fn assert_file_refused(content: &str, words: &[&str]) {
    let program = Program::new();
    program.write("core.toml", content);
    assert_refused(&program, &["platforms"], &[&["core.toml"], words].concat());
}

#[test]
fn every_key_has_a_case() {
    let mut known = known_keys();
    known.sort();
    let tested: Vec<_> = cases().into_keys().collect();
    assert_eq!(tested, known);
}

#[test]
fn a_value_of_another_type_is_refused() {
    for key in known_keys() {
        for value in ["1", "true", "[\"a\"]", "{ a = 1 }", "2026-01-15"] {
            assert_file_refused(&format!("{key} = {value}\n"), &[&key, "line 1"]);
        }
        assert_file_refused(&format!("[{key}]\n"), &[&key]);
    }
}

#[test]
fn an_unknown_or_repeated_key_is_refused_with_its_line() {
    for key in known_keys() {
        let line = format!("{key} = \"x\"\n");
        assert_file_refused(&format!("{line}{line}"), &[&key, "line 2"]);
        let upper = key.to_uppercase();
        assert_file_refused(&format!("\n{upper} = \"x\"\n"), &[&upper, "line 2"]);
    }
}

#[test]
fn an_invalid_value_is_refused_with_its_key() {
    for (key, values) in cases() {
        for value in values {
            assert_file_refused(
                &format!("{key} = \"{value}\"\n"),
                &[key, "Correct the value"],
            );
        }
    }
    let program = Program::new();
    program.write("core.toml", "api_url = \"https://ada:hunter2@a\"\n");
    let run = program.run(&["platforms"]).expect(2);
    assert!(!run.stderr.contains("hunter2"), "{}", run.stderr);
}

#[test]
fn a_file_that_is_no_toml_is_refused() {
    for content in ["platform", "= 1", "platform = \"", "{}"] {
        assert_file_refused(content, &["line 1"]);
    }
}

#[test]
fn a_file_that_cannot_be_read_is_refused() {
    let program = Program::new();
    fs::write(program.path("core.toml"), b"site = \"\xff\"").unwrap();
    assert_refused(&program, &["platforms"], &["core.toml", "UTF-8"]);
    let program = Program::new();
    fs::create_dir(program.path("core.toml")).unwrap();
    assert_refused(&program, &["platforms"], &["core.toml", "folder"]);
}

/// The tests may run as the superuser, who can read every file. A loop of links cannot be opened by anybody.
#[cfg(unix)]
#[test]
fn a_file_that_cannot_be_opened_is_refused() {
    let program = Program::new();
    std::os::unix::fs::symlink("core.toml", program.path("core.toml")).unwrap();
    assert_refused(&program, &["platforms"], &["core.toml"]);
}

#[test]
fn a_site_that_does_not_exist_is_refused() {
    let program = Program::new();
    program.write("core.toml", "site = \"missing\"\n");
    assert_refused(&program, &["deploy"], &["missing", "core-cli deploy DIR"]);
}

#[test]
fn an_unknown_profile_is_refused() {
    let program = Program::new();
    program.write("core.toml", "profile = \"stagign\"\n");
    let run = program.run(&["platforms"]).expect(2);
    assert!(run.stderr.contains("stagign"), "{}", run.stderr);
}
