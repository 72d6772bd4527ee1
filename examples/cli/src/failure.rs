//! Failures of commands, with their exit codes and the next step for the person.

use std::error::Error as StdError;
use std::fmt;
use std::io;
use std::path::Path;
use std::process::ExitCode;

use core_client::{ApiError, Error};
use serde_json::{Value, json};

use crate::text::plain;

pub(crate) type Result<T> = std::result::Result<T, Failure>;

/// The kind of a failure. It determines the exit code.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum FailureKind {
    /// The reader of the output has closed it, which is no error.
    ClosedOutput = 0,
    /// A failure of any other kind.
    Other = 1,
    /// The command line, `core.toml` or an input is invalid.
    Usage = 2,
    /// The platform, deployment or other record does not exist.
    NotFound = 3,
    /// There is no credential, or it does not suffice.
    Auth = 4,
    /// The state of the platform does not allow the operation.
    Conflict = 5,
}

/// The failure of a command.
#[derive(Debug)]
pub(crate) struct Failure {
    pub(crate) kind: FailureKind,
    message: String,
    /// The next step for the person; `None` if there is no obvious one.
    hint: Option<String>,
    /// The error code of the server; `None` if the failure is a local one.
    api_code: Option<String>,
    request_id: Option<String>,
}

impl Failure {
    pub(crate) fn new(kind: FailureKind, message: impl Into<String>) -> Self {
        Self {
            kind,
            message: message.into(),
            hint: None,
            api_code: None,
            request_id: None,
        }
    }

    pub(crate) fn usage(message: impl Into<String>) -> Self {
        Self::new(FailureKind::Usage, message)
    }

    pub(crate) fn other(message: impl Into<String>) -> Self {
        Self::new(FailureKind::Other, message)
    }

    /// Creates the failure of a command that needs a signed-in person.
    pub(crate) fn signed_out(api_url: &str) -> Self {
        Self::new(
            FailureKind::Auth,
            format!("You are not signed in at {api_url}."),
        )
        .hint("Run `core-cli login`, or set CORE_TOKEN to an API key.")
    }

    /// Creates the failure of an operation on a file or folder.
    pub(crate) fn io(action: &str, error: &io::Error) -> Self {
        Self::other(format!("Failed to {action}: {error}."))
    }

    /// Creates the failure to read a file that the person named or wrote.
    pub(crate) fn unreadable(path: &Path, error: &io::Error) -> Self {
        let reason = match error.kind() {
            io::ErrorKind::InvalidData => "it is not UTF-8 text".to_owned(),
            io::ErrorKind::IsADirectory => "it is a folder".to_owned(),
            _ => error.to_string(),
        };
        Self::usage(format!("Failed to read {}: {reason}.", path.display()))
    }

    /// Sets the next step for the person.
    pub(crate) fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }

    pub(crate) fn exit_code(&self) -> ExitCode {
        ExitCode::from(self.kind as u8)
    }

    /// Returns the failure as JSON, in the form of the API's errors.
    pub(crate) fn to_json(&self) -> Value {
        let local = match self.kind {
            FailureKind::Usage => "USAGE",
            FailureKind::Auth => "UNAUTHORIZED",
            FailureKind::NotFound => "NOT_FOUND",
            FailureKind::Conflict => "CONFLICT",
            FailureKind::Other | FailureKind::ClosedOutput => "FAILED",
        };
        let code = self.api_code.as_deref().unwrap_or(local);
        json!({ "error": { "code": code, "message": self.message, "hint": self.hint, "requestId": self.request_id } })
    }

    fn of_api(error: &ApiError) -> Self {
        let (kind, hint) = match (error.status, error.code.as_str()) {
            (401, _) => (
                FailureKind::Auth,
                Some("Run `core-cli login`, or set CORE_TOKEN to a valid token."),
            ),
            (403, "STEP_UP_REQUIRED") => (
                FailureKind::Auth,
                Some("Confirm your identity in the browser, then try again."),
            ),
            (403, _) => (
                FailureKind::Auth,
                Some(
                    "Ask an owner of the organization for the permission, or use another API key.",
                ),
            ),
            (404, _) => (
                FailureKind::NotFound,
                Some("Check the id, --platform and --profile."),
            ),
            (400 | 422, "VALIDATION_ERROR") => (FailureKind::Usage, None),
            (409, _) | (412, _) => (FailureKind::Conflict, None),
            (429, _) => (FailureKind::Other, Some("Wait a moment, then try again.")),
            (451, _) => (
                FailureKind::Other,
                Some("An owner or operator can restore the platform."),
            ),
            (500.., _) => (
                FailureKind::Other,
                Some("Try again later; the operator finds the request by its id."),
            ),
            _ => (FailureKind::Other, None),
        };
        let mut message = plain(&error.message);
        for issue in error.issues().iter().take(MAX_ISSUES) {
            let line = format!("{}: {}", issue.path.join("."), issue.message);
            message.push_str("\n  ");
            message.push_str(&plain(&line));
        }
        Self {
            kind,
            message,
            hint: hint.map(str::to_owned),
            api_code: Some(error.code.clone()),
            request_id: error.request_id.clone(),
        }
    }
}

/// Maximum number of violations that are printed.
const MAX_ISSUES: usize = 20;

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)?;
        if let Some(hint) = &self.hint {
            write!(f, "\n{hint}")?;
        }
        if let Some(id) = &self.request_id {
            write!(f, "\n(request {id})")?;
        }
        Ok(())
    }
}

impl StdError for Failure {}

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        match error {
            Error::Api(error) => Self::of_api(&error),
            Error::Credential(source) => match source.downcast::<Self>() {
                Ok(failure) => *failure,
                Err(source) => Self::new(FailureKind::Auth, source.to_string()),
            },
            Error::Argument(what) => Self::usage(format!("{}.", capitalize(&what))),
            Error::Upload(source) => Self::other(format!("Failed to read the site: {source}."))
                .hint("Do not change the site while it is uploaded. Run the command again."),
            Error::Transport(error) => Self::other(format!("{}.", with_causes(&error)))
                .hint("Check the address (--api-url) and your connection."),
            Error::Discovery(what) => Self::usage(format!("{}.", capitalize(&what)))
                .hint("Pass the address of the identity service: core-cli login --iam-url URL"),
            Error::Setup(what) => Self::usage(format!("{}.", capitalize(&what))),
            other => Self::other(format!("{}.", capitalize(&with_causes(&other))))
                .hint("The server may be newer than this program; update core-cli."),
        }
    }
}

/// Returns the message of an error with the messages of its causes that add something.
fn with_causes(error: &(dyn StdError + 'static)) -> String {
    let mut text = capitalize(&error.to_string());
    let mut cause = error.source();
    while let Some(next) = cause {
        let message = next.to_string();
        if !text.contains(&message) {
            text.push_str(": ");
            text.push_str(&message);
        }
        cause = next.source();
    }
    text
}

fn capitalize(text: &str) -> String {
    let mut rest = text.chars();
    match rest.next() {
        Some(first) => first.to_uppercase().chain(rest).collect(),
        None => String::new(),
    }
}
