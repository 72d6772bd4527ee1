//! The rules that hold for every command and option.

use clap::{Arg, Command};

use super::values::good_value;
use super::{assert_refused, commands, is_own, label, leaves, takes_value};
use crate::program::Program;

/// Returns the words that call a command, followed by more.
fn line<'a>(path: &'a [String], more: &[&'a str]) -> Vec<&'a str> {
    let path = path.iter().map(String::as_str);
    path.chain(more.iter().copied()).collect()
}

fn options(command: &Command) -> impl Iterator<Item = &Arg> {
    command
        .get_arguments()
        .filter(|argument| is_own(argument) && !argument.is_positional())
}

#[test]
fn an_unknown_option_is_refused() {
    let program = Program::new();
    for (path, _) in commands() {
        assert_refused(
            &program,
            &line(&path, &["--no-such-option"]),
            &["--no-such-option"],
        );
    }
}

#[test]
fn an_unknown_command_is_refused() {
    let program = Program::new();
    for (path, command) in commands() {
        if command.has_subcommands() {
            assert_refused(
                &program,
                &line(&path, &["no-such-command"]),
                &["no-such-command"],
            );
        }
    }
}

#[test]
fn a_missing_command_is_refused() {
    let program = Program::new();
    for (path, command) in commands() {
        if command.is_subcommand_required_set() {
            assert_refused(&program, &line(&path, &[]), &["core-cli"]);
        }
    }
}

#[test]
fn an_option_without_its_value_is_refused() {
    let program = Program::new();
    for (path, command) in leaves() {
        for option in options(&command).filter(|option| takes_value(option)) {
            let label = label(option);
            // `--output` in front of the command is the test's own.
            if label != "--output" {
                assert_refused(&program, &line(&path, &[&label]), &[&label, "value"]);
            }
        }
    }
}

#[test]
fn an_option_that_is_given_twice_is_refused() {
    let program = Program::new();
    for (path, command) in leaves() {
        let command_name = path.join(" ");
        for option in options(&command) {
            let label = label(option);
            let given = match takes_value(option) {
                true => format!("{label}={}", good_value(&command_name, &label)),
                false => label.clone(),
            };
            if label != "--output" {
                let twice = line(&path, &[&given, &given]);
                assert_refused(&program, &twice, &[&label, "multiple times"]);
            }
        }
    }
}

#[test]
fn a_value_for_an_option_without_values_is_refused() {
    let program = Program::new();
    for (path, command) in leaves() {
        for option in options(&command).filter(|option| !takes_value(option)) {
            let label = label(option);
            let given = format!("{label}=yes");
            assert_refused(&program, &line(&path, &[&given]), &[&label, "value"]);
        }
    }
}

#[test]
fn a_missing_or_surplus_argument_is_refused() {
    let program = Program::new();
    for (path, command) in leaves().filter(|(path, _)| !path.is_empty()) {
        let name = path.join(" ");
        let positionals: Vec<_> = command.get_positionals().map(label).collect();
        let required = command
            .get_positionals()
            .filter(|argument| argument.is_required_set());
        let given: Vec<_> = positionals
            .iter()
            .map(|label| good_value(&name, label))
            .collect();
        let given: Vec<_> = given.iter().map(String::as_str).collect();
        for (at, argument) in required.enumerate() {
            let before = line(&path, &given[..at]);
            assert_refused(&program, &before, &[&format!("<{}>", label(argument))]);
        }
        let surplus = line(&path, &[&given[..], &["surplus"]].concat());
        assert_refused(&program, &surplus, &["surplus"]);
    }
}

#[test]
fn the_format_of_the_output_is_json_or_table() {
    let program = Program::new();
    for format in ["xml", "", "JSON", "json,table"] {
        let given = format!("--output={format}");
        let run = program.run(&["platforms", &given]).expect(2);
        assert!(run.stderr.contains("--output"), "{}", run.stderr);
    }
    for arguments in [
        &["platforms", "--output"][..],
        &["platforms", "--output", "json", "--output", "json"],
    ] {
        let run = program.run(arguments).expect(2);
        assert!(run.stderr.contains("--output"), "{}", run.stderr);
    }
}
