//! The messages of a tail: one JSON object per request, with the lines of the console, the exceptions and the request.

use core_domain::cli::{LogContent, LogLevel};
use core_domain::kernel::Timestamp;
use http::Uri;
use serde::Deserialize;
use serde_json::Value;

/// Maximum number of console lines and exceptions of one message. Cloudflare reports at most 256 KB per request.
const MAX_LINES: usize = 1_000;
/// The status of a request without a response, for example because of an exception.
const NO_RESPONSE: u16 = 500;

/// The known fields of a message.
#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct TailMessage {
    exceptions: Vec<Exception>,
    logs: Vec<ConsoleCall>,
    /// The time of the request, in milliseconds since the Unix epoch.
    event_timestamp: Option<f64>,
    event: Option<TailEvent>,
    /// The duration of the request, in milliseconds.
    wall_time: Option<f64>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Exception {
    name: String,
    message: Value,
    stack: Option<String>,
    timestamp: Option<f64>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct ConsoleCall {
    message: Value,
    level: String,
    timestamp: Option<f64>,
}

#[derive(Debug, Deserialize)]
struct TailEvent {
    request: Option<TailRequest>,
    response: Option<TailResponse>,
}

#[derive(Debug, Deserialize)]
struct TailRequest {
    url: String,
    method: String,
}

#[derive(Debug, Deserialize)]
struct TailResponse {
    status: u16,
}

/// Returns the lines of a message with their times: the console, the exceptions, and then the request. Times that are
/// missing are `now`. Returns `None` if the message is not valid.
pub(super) fn parse(text: &str, now: Timestamp) -> Option<Vec<(Timestamp, LogContent)>> {
    let message: TailMessage = serde_json::from_str(text).ok()?;
    let time = |millis: Option<f64>| millis.map_or(now, timestamp);
    let console = message.logs.iter().map(|call| {
        let content = LogContent::console(level(&call.level), &console_text(&call.message));
        (time(call.timestamp), content)
    });
    let exceptions = message.exceptions.iter().map(|exception| {
        let content = LogContent::console(LogLevel::Error, &exception_text(exception));
        (time(exception.timestamp), content)
    });
    let mut lines: Vec<_> = console.chain(exceptions).take(MAX_LINES).collect();
    let event = message.event.as_ref();
    if let Some(request) = event.and_then(|event| event.request.as_ref()) {
        let response = event.and_then(|event| event.response.as_ref());
        let status = response.map_or(NO_RESPONSE, |response| response.status);
        let url: Option<Uri> = request.url.parse().ok();
        let path = url.as_ref().map_or("/", Uri::path);
        let duration = message.wall_time.unwrap_or_default().max(0.0);
        let content = LogContent::request(&request.method, path, status, whole(duration), None);
        lines.push((time(message.event_timestamp), content));
    }
    Some(lines)
}

/// Returns the level for a method of `console`.
fn level(method: &str) -> LogLevel {
    let mut levels = LogLevel::ALL.iter();
    let level = levels.find(|level| level.as_str() == method);
    level.copied().unwrap_or(LogLevel::Log)
}

/// Returns the arguments of a console call as one text.
fn console_text(message: &Value) -> String {
    match message {
        Value::Array(arguments) => {
            let arguments: Vec<_> = arguments.iter().map(text_of).collect();
            arguments.join(" ")
        }
        other => text_of(other),
    }
}

fn exception_text(exception: &Exception) -> String {
    let message = text_of(&exception.message);
    let text = format!("Uncaught {}: {message}", exception.name);
    match &exception.stack {
        Some(stack) if !stack.is_empty() => format!("{text}\n{stack}"),
        _ => text,
    }
}

fn text_of(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        other => other.to_string(),
    }
}

fn timestamp(millis: f64) -> Timestamp {
    Timestamp::from_millis(i64::try_from(whole(millis.max(0.0))).unwrap_or(i64::MAX))
}

/// Returns the whole part of a number that is not negative.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "the cast saturates, and no caller passes a negative number"
)]
const fn whole(number: f64) -> u64 {
    number as u64
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    const NOW: Timestamp = Timestamp::from_millis(9);

    fn at(millis: i64) -> Timestamp {
        Timestamp::from_millis(millis)
    }

    #[test]
    fn message_becomes_console_lines_exceptions_and_a_request() {
        let message = json!({
            "outcome": "exception", "scriptName": "acme-api", "wallTime": 12.7,
            "logs": [
                { "message": ["a", { "b": 1 }, 2], "level": "warn", "timestamp": 5 },
                { "message": ["d"], "level": "debug" },
            ],
            "exceptions": [{ "name": "Error", "message": "boom", "stack": "    at fetch (w.js:1:2)", "timestamp": 6 }],
            "eventTimestamp": 4,
            "event": { "request": { "url": "https://acme.example/a/b?token=x", "method": "POST",
                "headers": {}, "cf": {} } },
        });
        let lines = parse(&message.to_string(), NOW).unwrap();
        let wanted = [
            (at(5), LogContent::console(LogLevel::Warn, r#"a {"b":1} 2"#)),
            (NOW, LogContent::console(LogLevel::Debug, "d")),
            (
                at(6),
                LogContent::console(
                    LogLevel::Error,
                    "Uncaught Error: boom\n    at fetch (w.js:1:2)",
                ),
            ),
            (at(4), LogContent::request("POST", "/a/b", 500, 12, None)),
        ];
        assert_eq!(lines, wanted);
    }

    #[test]
    fn events_without_a_request_and_unknown_fields_are_accepted() {
        let scheduled = json!({ "outcome": "ok", "event": { "cron": "* * * * *" }, "logs": [] });
        assert_eq!(parse(&scheduled.to_string(), NOW), Some(Vec::new()));
        assert_eq!(parse("{}", NOW), Some(Vec::new()));
        let response = json!({ "event": { "request": { "url": "x y", "method": "GET" }, "response": { "status": 204 } } });
        let wanted = (NOW, LogContent::request("GET", "/", 204, 0, None));
        assert_eq!(parse(&response.to_string(), NOW), Some(vec![wanted]));
        assert_eq!(parse("pong", NOW), None);
    }

    proptest! {
        #[test]
        fn arbitrary_times_never_panic(time in any::<f64>(), text in ".*") {
            let message = json!({ "wallTime": time, "eventTimestamp": time, "logs": [{ "message": text, "timestamp": time }] });
            prop_assert!(parse(&message.to_string(), NOW).is_some());
        }
    }
}
