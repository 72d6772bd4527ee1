//! Lines of the logs of workers and sites.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::kernel::{Timestamp, text_enum};

/// Maximum length of the text of a console line, in bytes.
pub const MAX_LOG_TEXT_BYTES: usize = 8 * 1024;
/// Maximum length of the path of a request line, in bytes.
pub const MAX_LOG_PATH_BYTES: usize = 2 * 1024;
/// Maximum length of the method of a request line, in bytes.
const MAX_METHOD_BYTES: usize = 32;
/// Maximum number of existing lines with which a log can start.
pub const MAX_LOG_TAIL: u32 = 1_000;

/// The end of a shortened text.
const ELLIPSIS: &str = "…";

/// The position of a line among the lines of all objects of a provider: a number that grows with every line. Its JSON
/// form is a text of decimal digits.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct LogId(pub u64);

impl LogId {
    /// Parses an id. Returns `None` if the text does not consist of digits only.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        let digits = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
        digits.then(|| text.parse().ok().map(Self)).flatten()
    }
}

impl std::fmt::Display for LogId {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.0.fmt(f)
    }
}

impl Serialize for LogId {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl JsonSchema for LogId {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "LogId".into()
    }

    fn json_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
        schemars::json_schema!({ "type": "string", "pattern": "^[0-9]{1,20}$" })
    }
}

text_enum! {
    /// The severity of a console line: the method of `console` that wrote it.
    pub enum LogLevel {
        /// `console.debug`
        Debug = "debug",
        /// `console.log`
        Log = "log",
        /// `console.info`
        Info = "info",
        /// `console.warn`, and notes of the provider about omitted lines.
        Warn = "warn",
        /// `console.error`, uncaught exceptions, and the reasons why a worker could not start or has ended.
        Error = "error",
    }
}

/// A line of the log of a worker or a site.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct LogLine {
    /// The position of the line among all lines of the provider. It grows with every line.
    pub id: LogId,
    /// The time at which the line was written.
    pub at: Timestamp,
    /// The name of the worker or the pages project.
    pub resource: String,
    /// The content of the line.
    #[serde(flatten)]
    pub content: LogContent,
}

/// The content of a line.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(
    tag = "kind",
    rename_all = "camelCase",
    rename_all_fields = "camelCase"
)]
pub enum LogContent {
    /// A text that a worker wrote to its console, or an uncaught exception with its stack.
    Console {
        /// The severity of the text.
        level: LogLevel,
        /// The text, which can have several lines. A text of more than 8 KiB is cut. Control characters other than line
        /// feeds and tabs are replaced by U+FFFD.
        text: String,
    },
    /// A request to a worker or a site.
    Request {
        /// The HTTP method of the request.
        method: String,
        /// The path of the request inside the worker or site, percent-encoded and without the query string. A path of
        /// more than 2 KiB is cut.
        path: String,
        /// The HTTP status of the response.
        status: u16,
        /// The time until the response started, in milliseconds.
        duration_ms: u64,
        /// The IP address of the client. Absent unless the installation records client addresses.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        client_address: Option<String>,
    },
}

impl LogContent {
    /// Creates a console line. Shortens the text to its maximum length and replaces control characters, which could
    /// change the terminal of a reader.
    #[must_use]
    pub fn console(level: LogLevel, text: &str) -> Self {
        Self::Console {
            level,
            text: to_plain_text(text, MAX_LOG_TEXT_BYTES),
        }
    }

    /// Creates the line that stands for omitted lines.
    #[must_use]
    pub fn omission(count: u64) -> Self {
        let text = match count {
            1 => "1 line was left out".to_owned(),
            count => format!("{count} lines were left out"),
        };
        Self::Console {
            level: LogLevel::Warn,
            text,
        }
    }

    /// Creates the line of a request. Removes a query string from the path, and shortens path and method to their
    /// maximum lengths.
    #[must_use]
    pub fn request(
        method: &str,
        path: &str,
        status: u16,
        duration_ms: u64,
        client_address: Option<String>,
    ) -> Self {
        let path = path.split(['?', '#']).next().unwrap_or_default();
        Self::Request {
            method: truncate(method, MAX_METHOD_BYTES),
            path: to_plain_text(path, MAX_LOG_PATH_BYTES),
            status,
            duration_ms,
            client_address,
        }
    }

    /// Returns the length of the texts of the line, in bytes.
    #[must_use]
    pub fn text_bytes(&self) -> usize {
        match self {
            Self::Console { text, .. } => text.len(),
            Self::Request { method, path, .. } => method.len() + path.len(),
        }
    }
}

/// Returns at most `max` bytes of a text. A shortened text ends in an ellipsis.
fn truncate(text: &str, max: usize) -> String {
    if text.len() <= max {
        return text.to_owned();
    }
    let end = text.floor_char_boundary(max - ELLIPSIS.len());
    format!("{}{ELLIPSIS}", &text[..end])
}

/// Returns at most `max` bytes of a text, with U+FFFD in place of control characters other than line feeds and tabs.
fn to_plain_text(text: &str, max: usize) -> String {
    let is_refused = |c: char| c.is_control() && c != '\n' && c != '\t';
    // The whole text can be very long, so it is cut first.
    let text = truncate(text, max);
    if !text.contains(is_refused) {
        return text;
    }
    let replace = |c| if is_refused(c) { '\u{fffd}' } else { c };
    let replaced: String = text.chars().map(replace).collect();
    truncate(&replaced, max)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn text_of(content: &LogContent) -> &str {
        match content {
            LogContent::Console { text, .. } => text,
            LogContent::Request { path, .. } => path,
        }
    }

    #[test]
    fn console_text_is_bounded_and_has_no_control_characters() {
        for (text, bounded) in [
            ("two\nlines\t!", "two\nlines\t!".to_owned()),
            (
                "\u{1b}[31mred\r\u{9b}",
                "\u{fffd}[31mred\u{fffd}\u{fffd}".to_owned(),
            ),
            (
                &"a".repeat(MAX_LOG_TEXT_BYTES),
                "a".repeat(MAX_LOG_TEXT_BYTES),
            ),
            (
                &"ä".repeat(MAX_LOG_TEXT_BYTES),
                format!("{}…", "ä".repeat(MAX_LOG_TEXT_BYTES / 2 - 2)),
            ),
        ] {
            let line = LogContent::console(LogLevel::Log, text);
            assert_eq!(text_of(&line), bounded);
        }
        let line = LogContent::console(LogLevel::Log, &"\0".repeat(MAX_LOG_TEXT_BYTES));
        assert!(text_of(&line).len() <= MAX_LOG_TEXT_BYTES);
    }

    #[test]
    fn request_path_has_no_query_string_and_is_bounded() {
        let path = |path: &str| text_of(&LogContent::request("GET", path, 200, 1, None)).to_owned();
        assert_eq!(path("/a/b?token=secret"), "/a/b");
        assert_eq!(path("?x"), "");
        assert_eq!(path(&"/a".repeat(10_000)).len(), MAX_LOG_PATH_BYTES);
    }

    #[test]
    fn json_form_has_the_fields_of_its_kind_only() {
        let line = |content| LogLine {
            id: LogId(7),
            at: Timestamp::from_millis(1_500),
            resource: "acme-api".to_owned(),
            content,
        };
        let console = line(LogContent::omission(2));
        let wanted = json!({
            "id": "7", "at": "1970-01-01T00:00:01.500Z", "resource": "acme-api",
            "kind": "console", "level": "warn", "text": "2 lines were left out",
        });
        assert_eq!(serde_json::to_value(console).unwrap(), wanted);
        let request = line(LogContent::request("GET", "/a", 200, 12, None));
        let wanted = json!({
            "id": "7", "at": "1970-01-01T00:00:01.500Z", "resource": "acme-api",
            "kind": "request", "method": "GET", "path": "/a", "status": 200, "durationMs": 12,
        });
        assert_eq!(serde_json::to_value(request).unwrap(), wanted);
    }

    #[test]
    fn log_id_consists_of_digits() {
        assert_eq!(LogId::parse("0012"), Some(LogId(12)));
        for text in ["", "-1", "+1", "1a", "18446744073709551616"] {
            assert_eq!(LogId::parse(text), None, "{text}");
        }
    }
}
