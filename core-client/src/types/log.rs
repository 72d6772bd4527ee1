//! Log lines of a platform's workers and sites.

use serde::{Deserialize, Serialize};

use super::open_enum::open_enum;

open_enum! {
    /// The kind of a log line.
    pub enum LogKind {
        /// A line that a worker wrote.
        Console = "console",
        /// A request that a worker or site served.
        Request = "request",
    }
}

/// A log line. Lines of a worker have `level` and `text`, requests have the other optional fields.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct LogLine {
    /// The id of the line, with which a stream is resumed.
    pub id: String,
    /// The time of the line.
    pub at: String,
    /// The name of the worker or site.
    pub resource: String,
    /// The kind of the line.
    pub kind: LogKind,
    /// The level of the line, such as `error`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub level: Option<String>,
    /// The text of the line.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub text: Option<String>,
    /// The method of the request.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub method: Option<String>,
    /// The path of the request.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub path: Option<String>,
    /// The status code of the response.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub status: Option<u16>,
    /// The duration of the request in milliseconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub duration_ms: Option<u64>,
    /// The IP address of the client, if the installation records it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub client_address: Option<String>,
}

/// The log lines to read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LogQuery {
    /// The name of a worker or site. Default: all of the platform.
    pub resource: Option<String>,
    /// Whether the stream continues with new lines. Default: `true`.
    pub follow: bool,
    /// The number of earlier lines with which the stream begins, 0 to 1000. Default: 100.
    pub tail: u32,
}

impl Default for LogQuery {
    fn default() -> Self {
        Self {
            resource: None,
            follow: true,
            tail: 100,
        }
    }
}
