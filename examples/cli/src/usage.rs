//! Errors of the command line, in the format that the person asked for.

use std::ffi::OsString;
use std::io::{self, Write};
use std::process::ExitCode;

use clap::error::ErrorKind;

use crate::args::OutputFormat;
use crate::failure::Failure;
use crate::output::Output;

/// The next step if the parser has no better one.
const HINT: &str = "`core-cli help` lists the commands, and `core-cli help COMMAND` its options.";

/// Prints what the parser has to say: help on standard output, or an error on standard error.
pub(crate) fn report(error: &clap::Error) -> ExitCode {
    let text = hide_passwords(&error.to_string());
    if !error.use_stderr() || !wants_json(std::env::args_os()) {
        // Without a reader, the exit code alone tells. Colours are lost if a password is hidden.
        let _ = match text == error.to_string() {
            true => error.print(),
            false => write!(io::stderr(), "{text}"),
        };
        return ExitCode::from(u8::try_from(error.exit_code()).unwrap_or(2));
    }
    let failure = match error.kind() {
        ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand => {
            Failure::usage("The command is incomplete.").hint(HINT)
        }
        _ => to_failure(&text),
    };
    Output::new(OutputFormat::Json).failure(&failure);
    failure.exit_code()
}

/// Returns a message with `***` for the user name and password of every address in it.
fn hide_passwords(text: &str) -> String {
    let mut pieces = text.split("://");
    let mut hidden = pieces.next().unwrap_or_default().to_owned();
    for piece in pieces {
        hidden.push_str("://");
        // The parser quotes the address.
        let address = piece.split('\'').next().unwrap_or_default();
        match address.rfind('@') {
            Some(at) => hidden.push_str(&format!("***{}", &piece[at..])),
            None => hidden.push_str(piece),
        }
    }
    hidden
}

/// Returns whether the command line asks for JSON. The parser does not tell, because it stopped at the error.
fn wants_json(arguments: impl Iterator<Item = OsString>) -> bool {
    let mut is_value = false;
    for argument in arguments.skip(1).take_while(|argument| argument != "--") {
        if argument == "--output=json" || (is_value && argument == "json") {
            return true;
        }
        is_value = argument == "--output";
    }
    false
}

/// Returns the failure for a message of the parser, whose paragraphs are the error, tips and the usage.
fn to_failure(text: &str) -> Failure {
    let mut paragraphs = text.split("\n\n").map(str::trim);
    let message = paragraphs.next().unwrap_or_default();
    let message = message.strip_prefix("error: ").unwrap_or(message);
    let tip = paragraphs.find_map(|paragraph| paragraph.strip_prefix("tip: "));
    Failure::usage(message).hint(tip.unwrap_or(HINT))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn json_is_recognized_in_both_spellings_before_the_separator() {
        let wants = |line: &str| wants_json(line.split(' ').map(OsString::from));
        assert!(wants("core-cli --output json deploy"));
        assert!(wants("core-cli deploy --brunch x --output=json"));
        assert!(!wants("core-cli deploy json --output table"));
        assert!(!wants("core-cli deploy -- --output json"));
    }

    #[test]
    fn passwords_in_addresses_are_not_repeated() {
        assert_eq!(
            hide_passwords("invalid value 'https://ada:p/w@x@a.example' for '--api-url'"),
            "invalid value 'https://***@a.example' for '--api-url'"
        );
        let text = "an address is like https://api.example.org; mail ada@example.org";
        assert_eq!(hide_passwords(text).matches("***").count(), 1);
        let text = "an address is like https://api.example.org";
        assert_eq!(hide_passwords(text), text);
    }

    #[test]
    fn the_tip_of_the_parser_is_the_hint() {
        let text = "error: unexpected argument '--brunch' found\n\n  tip: a similar argument exists: '--branch'\n\nUsage: x\n";
        let failure = to_failure(text).to_json();
        assert_eq!(
            failure["error"]["message"],
            "unexpected argument '--brunch' found"
        );
        assert_eq!(
            failure["error"]["hint"],
            "a similar argument exists: '--branch'"
        );
    }
}
