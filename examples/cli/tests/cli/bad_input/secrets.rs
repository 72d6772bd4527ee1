//! Names and values of secrets, and the files that they are read from.

use std::fs;

use super::{assert_refused, error_of, unused_server};
use crate::program::Program;

#[test]
fn an_invalid_name_is_refused_without_repeating_it() {
    let program = Program::new();
    let long = "X".repeat(129);
    for name in [
        "", "api_key", "1KEY", "_KEY", "API-KEY", "API KEY", "\u{c4}", &long,
    ] {
        for command in ["set", "delete"] {
            assert_refused(
                &program,
                &["secrets", command, "--", name],
                &["NAME", "upper-case"],
            );
        }
    }
}

#[test]
fn a_value_after_the_name_is_refused_without_repeating_it() {
    let (program, server) = (Program::new(), unused_server());
    for format in ["json", "table"] {
        let arguments = ["secrets", "set", "API_KEY=hunter2", "--output", format];
        let run = program.run_at(&server, &arguments).expect(2);
        assert!(run.stderr.contains("standard input"), "{}", run.stderr);
        assert!(!run.stderr.contains("hunter2"), "{}", run.stderr);
    }
}

#[test]
fn an_empty_or_long_value_is_refused_without_repeating_it() {
    let (program, server) = (Program::new(), unused_server());
    let long = "hunter2".repeat(800);
    for (value, word) in [("", "empty"), ("\n", "empty"), (long.as_str(), "5120")] {
        let arguments = ["--output", "json", "secrets", "set", "API_KEY"];
        let message = error_of(&program.run_with_input(&server, &arguments, value));
        assert!(
            message.contains("API_KEY") && message.contains(word),
            "{message}"
        );
        assert!(!message.contains("hunter2"), "{message}");
    }
    assert!(server.requests().is_empty());
}

#[test]
fn the_longest_value_and_the_most_secrets_are_sent() {
    let (program, server) = (Program::new(), unused_server());
    let value = "x".repeat(5120);
    let arguments = ["secrets", "set", "API_KEY"];
    let _ = program
        .run_with_input(&server, &arguments, &value)
        .expect(1);
    assert!(!server.requests().is_empty());
    let many: String = (0..100).map(|number| format!("A{number}=x\n")).collect();
    program.write("vars", &many);
    let before = server.requests().len();
    let _ = program
        .run_at(&server, &["secrets", "set", "--env-file", "vars"])
        .expect(1);
    assert!(server.requests().len() > before);
}

#[test]
fn a_file_that_cannot_be_read_is_refused() {
    let program = Program::new();
    fs::create_dir(program.path("folder")).unwrap();
    fs::write(program.path("binary"), b"A=\xff").unwrap();
    program.write("large", &"x".repeat(1024 * 1024 + 1));
    for (file, word) in [
        ("missing", "missing"),
        ("folder", "it is a folder"),
        ("binary", "UTF-8"),
        ("large", "1 MiB"),
    ] {
        for arguments in [
            &["secrets", "set", "API_KEY", "--from-file", file][..],
            &["secrets", "set", "--env-file", file],
            &["features", "activate", "search", "1.0.0", "--config", file],
        ] {
            assert_refused(&program, arguments, &[file, word]);
        }
    }
}

#[test]
fn an_environment_file_is_refused_by_the_number_of_its_line() {
    let program = Program::new();
    for (content, words) in [
        ("A=1\nb=hunter2\n", &["Line 2", "upper-case"][..]),
        ("A=1\nhunter2\n", &["Line 2", "NAME=VALUE"]),
        ("A=1\nhunter2=\n", &["Line 2", "upper-case"]),
        ("A=\"hunter2\n", &["Line 1", "not closed"]),
        ("A='hunter2\n", &["Line 1", "not closed"]),
        ("A=\"x\" hunter2\n", &["Line 1", "after the closing quote"]),
        ("\nA=\n", &["Line 2", "empty"]),
        ("# nothing\n", &["no NAME=VALUE lines"]),
        ("", &["no NAME=VALUE lines"]),
    ] {
        program.write("vars", content);
        let arguments = ["secrets", "set", "--env-file", "vars"];
        assert_refused(&program, &arguments, words);
        let run = program.run_at(&unused_server(), &arguments);
        assert!(!run.stderr.contains("hunter2"), "{}", run.stderr);
    }
    let long = format!("A={}\n", "x".repeat(5121));
    program.write("vars", &long);
    assert_refused(
        &program,
        &["secrets", "set", "--env-file", "vars"],
        &["Line 1", "5120"],
    );
    let many: String = (0..101).map(|number| format!("A{number}=x\n")).collect();
    program.write("vars", &many);
    assert_refused(
        &program,
        &["secrets", "set", "--env-file", "vars"],
        &["100", "Split"],
    );
}

#[test]
fn sources_of_values_exclude_each_other() {
    let program = Program::new();
    program.write("vars", "A=1\n");
    for arguments in [
        &["secrets", "set", "API_KEY", "--env-file", "vars"][..],
        &[
            "secrets",
            "set",
            "--from-file",
            "vars",
            "--env-file",
            "vars",
        ],
    ] {
        assert_refused(&program, arguments, &["--env-file"]);
    }
    assert_refused(
        &program,
        &["secrets", "set", "--from-file", "vars"],
        &["NAME"],
    );
    assert_refused(&program, &["secrets", "set"], &["NAME"]);
}

#[test]
fn settings_of_a_feature_are_a_json_object() {
    let program = Program::new();
    for content in ["", "[]", "3", "{", "{} {}"] {
        program.write("config.json", content);
        let arguments = [
            "features",
            "activate",
            "search",
            "1.0.0",
            "--config",
            "config.json",
        ];
        assert_refused(&program, &arguments, &["config.json", "JSON object"]);
    }
}
