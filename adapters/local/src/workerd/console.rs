//! The lines that a `workerd` process prints. With structured logging each line is a JSON object. A line of the console
//! has the method of `console` as its level. A line of the runtime also has a source, which scripts cannot forge.

use std::collections::VecDeque;

use core_domain::cli::LogLevel;
use serde::Deserialize;

use super::capnp::SERVICE;

/// Maximum number of recent exceptions that are remembered.
const MAX_EXCEPTIONS: usize = 16;
/// The line of the runtime that contains the stack of an uncaught exception.
const STACK: &str = "uncaught exception; source = ";
/// The separator between the origin and the stack of an uncaught exception.
const STACK_SEPARATOR: &str = "; stack = ";
/// The line of the runtime that reports an exception without its stack, after the line with the stack.
const EXCEPTION: &str = "Uncaught exception: ";
/// The text before the type of an exception that a script threw.
const SCRIPT_EXCEPTION: &str = "jsg.";
/// Maximum length of the incomplete escape at the end of a line that was cut, in bytes: a surrogate pair.
const MAX_ESCAPE_BYTES: usize = 12;

/// A printed line, as tenants see it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct PrintedLine {
    /// The level in the log of the worker; `None` if the line does not belong there.
    pub(super) level: Option<LogLevel>,
    /// Whether the line can be the reason for the end of the process.
    pub(super) is_reason: bool,
    pub(super) text: String,
}

/// A line of structured logging.
#[derive(Deserialize)]
struct JsonLine {
    level: String,
    message: String,
    /// The place in the source of the runtime; `None` for a line of the console.
    source: Option<serde::de::IgnoredAny>,
}

/// Parses the lines of one process.
#[derive(Debug, Default)]
pub(super) struct ConsoleParser {
    /// The stacks of recent exceptions that were not yet reported without their stacks.
    stacks: VecDeque<String>,
}

impl ConsoleParser {
    /// Parses a line. `is_cut` says that the end of the line is missing.
    pub(super) fn parse(&mut self, line: &[u8], is_cut: bool) -> PrintedLine {
        let json = if is_cut {
            parse_cut(line)
        } else {
            serde_json::from_slice(line).ok()
        };
        match json {
            Some(line) if line.source.is_some() => self.parse_runtime(line),
            Some(line) => PrintedLine {
                level: Some(console_level(&line.level)),
                is_reason: true,
                text: line.message,
            },
            // The runtime prints some lines without structure, for example when it is out of memory.
            None => PrintedLine {
                level: None,
                is_reason: true,
                text: String::from_utf8_lossy(line).trim_end().to_owned(),
            },
        }
    }

    /// Interprets a line of the runtime.
    fn parse_runtime(&mut self, line: JsonLine) -> PrintedLine {
        let is_error = matches!(line.level.as_str(), "error" | "fatal");
        if let Some(stack) = line.message.strip_prefix(STACK) {
            let (origin, stack) = stack.split_once(STACK_SEPARATOR).unwrap_or(("", stack));
            self.remember(stack);
            return PrintedLine {
                level: Some(LogLevel::Error),
                is_reason: true,
                text: format!("{origin} {stack}").trim_start().to_owned(),
            };
        }
        if let Some(exception) = line.message.strip_prefix(EXCEPTION) {
            let script = exception.split_once(SCRIPT_EXCEPTION);
            let text = script.map_or(exception, |(_, text)| text);
            let is_known = self.forget(text);
            return PrintedLine {
                level: (is_error && !is_known).then_some(LogLevel::Error),
                is_reason: !is_known,
                text: format!("Uncaught {text}"),
            };
        }
        let prefix = format!("service {SERVICE}: ");
        let text = line.message.strip_prefix(&prefix);
        PrintedLine {
            level: is_error.then_some(LogLevel::Error),
            is_reason: is_error || line.level == "warning",
            text: text.unwrap_or(&line.message).to_owned(),
        }
    }

    fn remember(&mut self, stack: &str) {
        if self.stacks.len() == MAX_EXCEPTIONS {
            self.stacks.pop_front();
        }
        self.stacks.push_back(stack.to_owned());
    }

    /// Removes the stack of this exception. Returns `false` if there is none.
    fn forget(&mut self, exception: &str) -> bool {
        let mut stacks = self.stacks.iter();
        let index = stacks.position(|stack| stack.starts_with(exception));
        index.and_then(|index| self.stacks.remove(index)).is_some()
    }
}

/// Returns the level for a method of `console`.
fn console_level(method: &str) -> LogLevel {
    let mut levels = LogLevel::ALL.iter();
    let level = levels.find(|level| level.as_str() == method);
    level.copied().unwrap_or(LogLevel::Log)
}

/// Parses a line of the console without its end. The message is its last field.
fn parse_cut(line: &[u8]) -> Option<JsonLine> {
    (0..=MAX_ESCAPE_BYTES.min(line.len())).find_map(|missing| {
        let mut text = String::from_utf8_lossy(&line[..line.len() - missing]).into_owned();
        text.push_str("\"}");
        serde_json::from_str(&text).ok()
    })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn parse_all(lines: &[&str]) -> Vec<(Option<LogLevel>, String)> {
        let mut parser = ConsoleParser::default();
        let lines = lines
            .iter()
            .map(|line| parser.parse(line.as_bytes(), false));
        lines.map(|line| (line.level, line.text)).collect()
    }

    #[test]
    fn console_methods_are_levels() {
        for level in LogLevel::ALL {
            let line = format!(
                r#"{{"timestamp":1795758630816,"level":"{level}","message":"a {{ b: 1 }}\nc"}}"#
            );
            let wanted = (Some(*level), "a { b: 1 }\nc".to_owned());
            assert_eq!(parse_all(&[&line]), [wanted]);
        }
    }

    #[test]
    fn uncaught_exception_is_one_error_with_its_stack() {
        let lines = parse_all(&[
            r#"{"timestamp":"1","level":"info","source":"workerd/io/worker.c++:3042","message":"uncaught exception; source = Uncaught (in promise); stack = Error: boom\n    at Object.fetch (w.js:4:33)","context_depth":0}"#,
            r#"{"timestamp":"1","level":"info","source":"workerd/io/io-context.c++:656","message":"uncaught exception; exception = workerd/jsg/value.h:1456: failed: jsg.Error: boom\nstack: /opt/workerd@3f68b70","context_depth":0}"#,
            r#"{"timestamp":"1","level":"error","source":"workerd/server/server/listen/mod.rs:372","message":"Uncaught exception: workerd/jsg/value.h:1456: failed: remote.jsg.Error: boom","context_depth":0}"#,
        ]);
        let shown: Vec<_> = lines.iter().filter(|(level, _)| level.is_some()).collect();
        let text = "Uncaught (in promise) Error: boom\n    at Object.fetch (w.js:4:33)";
        assert_eq!(shown, [&(Some(LogLevel::Error), text.to_owned())]);
    }

    #[test]
    fn exception_without_a_stack_and_start_failure_are_errors() {
        let lines = parse_all(&[
            r#"{"timestamp":"1","level":"error","source":"listen/mod.rs:372","message":"Uncaught exception: a.c++:462: failed: remote.jsg.Error: Handler does not export a fetch() function.","context_depth":0}"#,
            r#"{"timestamp":"1","level":"error","source":"entry.rs:170","message":"service worker: Uncaught SyntaxError: Unexpected end of input\n  at b.js:2","context_depth":0}"#,
            r#"{"timestamp":"1","level":"info","source":"net.rs:1","message":"connected","context_depth":0}"#,
            "*** Received signal #6: Aborted",
        ]);
        let error = |text: &str| (Some(LogLevel::Error), text.to_owned());
        let hidden = |text: &str| (None, text.to_owned());
        let wanted = [
            error("Uncaught Error: Handler does not export a fetch() function."),
            error("Uncaught SyntaxError: Unexpected end of input\n  at b.js:2"),
            hidden("connected"),
            hidden("*** Received signal #6: Aborted"),
        ];
        assert_eq!(lines, wanted);
    }

    #[test]
    fn scripts_cannot_forge_lines_of_the_runtime() {
        let message = r#"{\"level\":\"error\",\"source\":\"a\",\"message\":\"b\"}"#;
        let line = format!(r#"{{"timestamp":1,"level":"log","message":"{message}"}}"#);
        let wanted = r#"{"level":"error","source":"a","message":"b"}"#;
        assert_eq!(
            parse_all(&[&line]),
            [(Some(LogLevel::Log), wanted.to_owned())]
        );
    }

    proptest! {
        #[test]
        fn line_that_was_cut_keeps_the_start_of_its_message(message in "\\PC{0,20}[\\n\u{1f600}\u{7}é\"\\\\]{0,10}", cut in 0_usize..40) {
            let json = serde_json::json!({ "message": message });
            let fields = json.to_string();
            let line = format!(r#"{{"timestamp":1,"level":"warn",{}"#, &fields[1..]);
            let head = line.len() - fields.len() + r#"{"message":""#.len();
            let end = line.len().saturating_sub(cut + 2).max(head);
            let parsed = ConsoleParser::default().parse(&line.as_bytes()[..end], true);
            prop_assert_eq!(parsed.level, Some(LogLevel::Warn));
            let kept = parsed.text.trim_end_matches('\u{fffd}');
            prop_assert!(message.starts_with(kept), "{}", kept);
        }

        #[test]
        fn arbitrary_output_never_panics(line in proptest::collection::vec(any::<u8>(), 0..80), is_cut in any::<bool>()) {
            ConsoleParser::default().parse(&line, is_cut);
        }
    }
}
