//! The values of every option and argument: at least one that is accepted, and those that are refused.

use std::collections::BTreeSet;

use super::{assert_refused, commands, is_own, label, takes_value};
use crate::program::{PLATFORM, Program};

/// The values of an option or argument.
struct Case {
    /// The words that call the command; empty for global options.
    command: &'static str,
    /// The option, or the name of the argument.
    argument: &'static str,
    good: &'static str,
    bad: Vec<String>,
}

fn case(
    command: &'static str,
    argument: &'static str,
    good: &'static str,
    bad: Vec<String>,
) -> Case {
    Case {
        command,
        argument,
        good,
        bad,
    }
}

fn texts(bad: &[&str]) -> Vec<String> {
    bad.iter().map(|text| (*text).to_owned()).collect()
}

fn with_long(bad: &[&str], max: usize) -> Vec<String> {
    texts(&[bad, &["x".repeat(max + 1).as_str()]].concat())
}

fn ids() -> Vec<String> {
    with_long(
        &["", " ", "a b", "a/b", "..", ".", "\u{e4}", "a\nb", "a%2fb"],
        128,
    )
}

fn branches() -> Vec<String> {
    with_long(
        &["", "a b", "a\\b", "feature#1", "\u{e4}", "a\nb", "a~1"],
        255,
    )
}

fn urls() -> Vec<String> {
    texts(&[
        "",
        "api.example.org",
        "localhost:8080",
        "ftp://api.example.org",
        "file:///etc/passwd",
        "http://",
        "http://:8080",
        "http://a:",
        "http://a:99999",
        "http://a b",
        "https://api.example.org?x=1",
        "https://api.example.org#x",
        "https://ada@api.example.org",
    ])
}

fn lines(max: usize) -> Vec<String> {
    with_long(&["", "  ", "a\nb", "a\u{1b}[2J", "a\u{202e}b"], max)
}

fn hostnames() -> Vec<String> {
    let long = format!("{}example.org", "label.".repeat(45));
    let mut bad = texts(&[
        "",
        "localhost",
        "https://www.example.org",
        "www.example.org/x",
        "www.example.org:443",
        "me@example.org",
        "www..example.org",
        ".example.org",
        "-a.example.org",
        "a-.example.org",
        "a_b.example.org",
        "a b.example.org",
        "*.*.example.org",
        "*.org",
        "127.0.0.1",
        "[::1]",
        "1.2.3",
        &format!("{}.example.org", "x".repeat(64)),
    ]);
    bad.push(long);
    bad
}

fn statuses() -> Vec<String> {
    texts(&["", "late", "active,failed"])
}

/// The id of a record.
const ID: &str = "019a5b1e-7c20-7d3e-9b4a-5f6c7d8e9f02";

/// Returns the cases of all options and arguments that the parser checks.
fn cases() -> Vec<Case> {
    let limits = || texts(&["", "0", "101", "-1", "1.5", "x"]);
    vec![
        case(
            "",
            "--profile",
            "default",
            with_long(&["", "../x", "a b", "a/b", "a.b", "\u{e4}"], 64),
        ),
        case("", "--platform", PLATFORM, ids()),
        case("", "--api-url", "http://127.0.0.1:1", urls()),
        case("login", "--iam-url", "http://127.0.0.1:1", urls()),
        case("link", "PLATFORM", "engines", ids()),
        case("deploy", "--branch", "redesign", branches()),
        case("deploy", "--message", "Fix the footer", lines(384)),
        case("deployments", "--branch", "redesign", branches()),
        case("deployments", "--status", "active", statuses()),
        case("deployments", "--limit", "20", limits()),
        case("open", "ID", ID, ids()),
        case("open", "--branch", "redesign", branches()),
        case("rollback", "ID", ID, ids()),
        case("promote", "ID", ID, ids()),
        case("pin", "ID", ID, ids()),
        case("unpin", "ID", ID, ids()),
        case("secrets set", "--resource", ID, ids()),
        case("secrets list", "--resource", ID, ids()),
        case("secrets delete", "--resource", ID, ids()),
        case(
            "features activate",
            "FEATURE",
            "search",
            with_long(&["", " ", "a/b", "a\\b", "a\nb"], 100),
        ),
        case("features activate", "VERSION", "1.2.0", lines(100)),
        case("features deactivate", "FEATURE", "search", lines(100)),
        case("domains add", "HOSTNAME", "www.example.org", hostnames()),
        case("domains add", "--target", "www.example.org", hostnames()),
        case("domains check", "HOSTNAME", "www.example.org", hostnames()),
        case("jobs list", "--status", "failed", statuses()),
        case("jobs list", "--limit", "20", limits()),
        case("jobs watch", "JOB", ID, ids()),
        case("jobs retry", "JOB", ID, ids()),
        case("logs", "--resource", "api", lines(64)),
        case("logs", "--tail", "100", texts(&["", "1001", "-1", "x"])),
        case(
            "stacks activate",
            "STACK",
            "web",
            with_long(&["", " ", "..", "a\nb"], 128),
        ),
        case(
            "stacks activate",
            "--stack-version",
            "1.2.0",
            texts(&["", "latest", "1", "1.2", "v1.2.0", "1.2.0+b"]),
        ),
        case(
            "stacks activate",
            "--environment",
            "prod",
            texts(&["", "production", "PROD", "test"]),
        ),
        case("stacks activate", "--entity", ID, ids()),
        case("completions", "SHELL", "bash", texts(&["", "cmd", "BASH"])),
    ]
}

/// The options and arguments whose values have tests of their own, with a value that the parser accepts.
const OWN_TESTS: &[(&str, &str, &str)] = &[
    // In `parser`.
    ("", "--output", "json"),
    // In `environment`.
    ("", "--token", "core_key"),
    // In `sites`.
    ("deploy", "DIR", "dist"),
    // In `secrets`.
    ("secrets set", "NAME", "API_KEY"),
    ("secrets set", "--from-file", "value"),
    ("secrets set", "--env-file", "vars"),
    ("secrets delete", "NAME", "API_KEY"),
    ("features activate", "--config", "config.json"),
];

/// Returns a value that the parser accepts.
pub(super) fn good_value(command: &str, argument: &str) -> String {
    let own = OWN_TESTS.iter().copied();
    let cases = cases();
    let all = cases
        .iter()
        .map(|case| (case.command, case.argument, case.good))
        .chain(own);
    let mut found =
        all.filter(|(of, name, _)| (of.is_empty() || *of == command) && *name == argument);
    found
        .next()
        .unwrap_or_else(|| panic!("{command} {argument} has no case"))
        .2
        .to_owned()
}

#[test]
fn every_option_and_argument_has_a_case() {
    let global = |argument: &clap::Arg| argument.is_global_set();
    let mut expected = BTreeSet::new();
    for (path, command) in commands() {
        for argument in command.get_arguments().filter(|argument| is_own(argument)) {
            if takes_value(argument) {
                let command = if global(argument) {
                    String::new()
                } else {
                    path.join(" ")
                };
                expected.insert((command, label(argument)));
            }
        }
    }
    let cases = cases();
    let cases = cases.iter().map(|case| (case.command, case.argument));
    let own = OWN_TESTS
        .iter()
        .map(|(command, argument, _)| (*command, *argument));
    let tested = cases
        .chain(own)
        .map(|(command, argument)| (command.to_owned(), argument.to_owned()));
    assert_eq!(tested.collect::<BTreeSet<_>>(), expected);
}

/// Returns the command line that gives one argument a value, and good values to the other required ones.
fn line(command: &str, argument: &str, value: &str) -> Vec<String> {
    let words = if command.is_empty() {
        "platforms"
    } else {
        command
    };
    let mut line: Vec<_> = words.split(' ').map(str::to_owned).collect();
    let tree = commands();
    let (_, found) = tree
        .iter()
        .find(|(path, _)| path.join(" ") == words)
        .unwrap();
    if argument.starts_with("--") {
        line.push(format!("{argument}={value}"));
    }
    let positionals: Vec<_> = found.get_positionals().collect();
    let last = positionals
        .iter()
        .rposition(|positional| positional.is_required_set() || label(positional) == argument);
    line.push("--".to_owned());
    for positional in positionals.iter().take(last.map_or(0, |last| last + 1)) {
        let label = label(positional);
        line.push(match label == argument {
            true => value.to_owned(),
            false => good_value(words, &label),
        });
    }
    line
}

#[test]
fn invalid_values_are_refused_with_the_name_of_the_option() {
    let program = Program::new();
    for case in cases() {
        for bad in &case.bad {
            let line = line(case.command, case.argument, bad);
            let line: Vec<_> = line.iter().map(String::as_str).collect();
            assert_refused(&program, &line, &[&case.argument.replace("SHELL", "")]);
        }
    }
}

/// The server refuses every request, so a command that gets that far fails in another way.
#[test]
fn valid_values_are_accepted() {
    let program = Program::new();
    program.write("dist/index.html", "<h1>Hello</h1>");
    for case in cases() {
        let server = super::unused_server();
        let line = line(case.command, case.argument, case.good);
        let line: Vec<_> = line.iter().map(String::as_str).collect();
        let run = program.run_at(&server, &line);
        let is_parsed = !run.stderr.contains("invalid value");
        assert!(is_parsed, "{line:?}: {}", run.stderr);
    }
}

#[test]
fn a_deployment_and_a_branch_cannot_both_be_opened() {
    assert_refused(
        &Program::new(),
        &["open", ID, "--branch", "redesign"],
        &["--branch"],
    );
}

#[test]
fn the_password_of_an_address_is_not_repeated() {
    let program = Program::new();
    for option in ["--api-url", "--iam-url"] {
        for format in ["json", "table"] {
            let run = program.run(&[
                "login",
                option,
                "https://ada:hunter2@example.org",
                "--output",
                format,
            ]);
            let run = run.expect(2);
            assert!(
                run.stderr.contains(option) && run.stderr.contains("password"),
                "{}",
                run.stderr
            );
            assert!(!run.stderr.contains("hunter2"), "{}", run.stderr);
        }
    }
}
