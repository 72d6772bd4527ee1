//! Environment variables, and profiles.

use super::{error_of, unused_server};
use crate::program::{Program, Run};

fn run_with(variables: &[(&str, &str)], arguments: &[&str]) -> (Run, usize) {
    let (program, server) = (Program::new(), unused_server());
    let mut command = program.command(arguments);
    command
        .env("CORE_TOKEN", "core_key")
        .env("CORE_API_URL", &server.url);
    let output = command.envs(variables.iter().copied()).output().unwrap();
    (Run::from(output), server.requests().len())
}

#[test]
fn variables_are_checked_like_their_options() {
    for (variable, option, bad) in [
        ("CORE_PROFILE", "--profile", "../x"),
        ("CORE_PROFILE", "--profile", ""),
        ("CORE_PLATFORM", "--platform", "a b"),
        ("CORE_PLATFORM", "--platform", ""),
        ("CORE_API_URL", "--api-url", "ftp://a"),
        ("CORE_API_URL", "--api-url", ""),
        ("CORE_IAM_URL", "--iam-url", "iam.example.org"),
    ] {
        let (run, requests) = run_with(&[(variable, bad)], &["login", "--output", "json"]);
        let message = error_of(&run);
        assert!(message.contains(option), "{variable}={bad}: {message}");
        assert_eq!(requests, 0);
    }
}

#[test]
fn an_invalid_token_is_refused_without_repeating_it() {
    for token in [
        "core_hunter2 x",
        "hunter2\nhunter2",
        "hunter2\u{e4}",
        "hunter2\u{1b}",
    ] {
        let (run, requests) =
            run_with(&[("CORE_TOKEN", token)], &["platforms", "--output", "json"]);
        let message = error_of(&run);
        assert!(
            message.contains("CORE_TOKEN") && !message.contains("hunter2"),
            "{message}"
        );
        assert_eq!(requests, 0);
    }
}

#[test]
fn an_empty_token_counts_as_none() {
    for token in ["", " ", "\n"] {
        let (run, requests) = run_with(&[("CORE_TOKEN", token)], &["platforms"]);
        let run = run.expect(4);
        assert!(run.stderr.contains("core-cli login"), "{}", run.stderr);
        assert_eq!(requests, 0);
    }
}

#[test]
fn spaces_around_a_token_are_ignored() {
    let (run, requests) = run_with(
        &[("CORE_TOKEN", " core_key\n")],
        &["pin", "d-1", "--platform", "p"],
    );
    let _ = run.expect(1);
    assert!(requests > 0);
}

#[test]
fn a_token_is_not_sent_to_the_default_address_because_of_an_unknown_profile() {
    let program = Program::new();
    let mut command = program.command(&["platforms", "--profile", "stagign", "--output", "json"]);
    let run: Run = command
        .env("CORE_TOKEN", "core_key")
        .output()
        .unwrap()
        .into();
    let message = error_of(&run);
    assert!(
        message.contains("stagign") && message.contains("core-cli login"),
        "{message}"
    );
}

#[test]
fn a_profile_needs_no_entry_if_the_address_is_given() {
    let (run, requests) = run_with(&[("CORE_PROFILE", "ci")], &["platforms"]);
    let _ = run.expect(1);
    assert!(requests > 0);
}

#[test]
fn a_damaged_list_of_profiles_is_explained() {
    for content in [
        &b"profiles = 3"[..],
        b"[profiles.default]\nurl = \"x\"\n",
        b"\xff",
    ] {
        let program = Program::new();
        std::fs::create_dir_all(program.config()).unwrap();
        std::fs::write(program.config().join("config.toml"), content).unwrap();
        let message = error_of(&program.run(&["platforms", "--output", "json"]));
        assert!(message.contains("config.toml"), "{message}");
    }
}
