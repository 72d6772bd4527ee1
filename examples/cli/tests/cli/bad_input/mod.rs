//! Input that is refused: each with exit code 2, a message that names it, and without a request.

mod core_toml;
mod environment;
mod parser;
mod secrets;
mod sites;
mod values;

use clap::{Arg, Command, CommandFactory};
use serde_json::Value;

use crate::args;
use crate::fake::{FakeReply, FakeServer};
use crate::program::{Program, Run};

/// A server that must not receive a request.
fn unused_server() -> FakeServer {
    FakeServer::with_replies([FakeReply::error(500, "INTERNAL_ERROR")])
}

/// Checks that a command is refused with a message that has these words, as text and as JSON, and without a request.
#[track_caller]
fn assert_refused(program: &Program, arguments: &[&str], words: &[&str]) {
    let server = unused_server();
    let run = program.run_at(&server, arguments).expect(2);
    assert_message(&run.stderr, arguments, words);
    let json = [&["--output", "json"], arguments].concat();
    let message = error_of(&program.run_at(&server, &json));
    assert_message(&message, arguments, words);
    assert!(server.requests().is_empty(), "{arguments:?}");
}

#[track_caller]
fn assert_message(message: &str, arguments: &[&str], words: &[&str]) {
    for word in words {
        assert!(
            message.contains(word),
            "{arguments:?}: {word} is not in\n{message}"
        );
    }
}

/// Returns the message and the hint of an error in JSON. Checks its form.
#[track_caller]
fn error_of(run: &Run) -> String {
    assert_eq!(run.code, 2, "{run:?}");
    assert_eq!(run.stdout, "");
    let error: Value = serde_json::from_str(&run.stderr).unwrap();
    assert_eq!(error["error"]["code"], "USAGE", "{error}");
    let text = |name: &str| error["error"][name].as_str().unwrap_or_default().to_owned();
    format!("{}\n{}", text("message"), text("hint"))
}

/// Returns every command, with the words that call it. Global options are among the options of each.
fn commands() -> Vec<(Vec<String>, Command)> {
    fn visit(path: &[String], command: &Command, found: &mut Vec<(Vec<String>, Command)>) {
        found.push((path.to_owned(), command.clone()));
        for below in command.get_subcommands() {
            if below.get_name() != "help" {
                visit(
                    &[path, &[below.get_name().to_owned()]].concat(),
                    below,
                    found,
                );
            }
        }
    }
    let mut root = args::CommandLine::command();
    root.build();
    let mut found = Vec::new();
    visit(&[], &root, &mut found);
    found
}

/// Returns the commands that can be called without a further word.
fn leaves() -> impl Iterator<Item = (Vec<String>, Command)> {
    let has_own_work = |command: &Command| !command.is_subcommand_required_set();
    commands()
        .into_iter()
        .filter(move |(_, command)| has_own_work(command))
}

/// Returns how messages name an argument: `--branch` or `<ID>`.
fn label(argument: &Arg) -> String {
    match argument.get_long() {
        Some(long) => format!("--{long}"),
        None => {
            let names = argument.get_value_names().unwrap_or_default();
            names.first().unwrap().to_string()
        }
    }
}

/// Returns whether an argument is an option or value of the program, not one of the parser.
fn is_own(argument: &Arg) -> bool {
    !matches!(argument.get_id().as_str(), "help" | "version")
}

fn takes_value(argument: &Arg) -> bool {
    argument.get_action().takes_values()
}
