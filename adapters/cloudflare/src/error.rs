//! How a call of the API fails, and what that means to the job engine.

use std::fmt;
use std::time::Duration;

use core_domain::port::{Cause, ProviderError};
use http::StatusCode;

/// The token is not one, or lacks a permission.
const ACCESS: [u32; 4] = [10_000, 9_109, 6_003, 6_111];

/// The path names no object: our mistake, and no answer about one.
const NO_ROUTE: u32 = 7_003;

/// Codes after which the same request may work, by the product that gives them.
const TRANSIENT: [(&str, u32); 2] = [("d1", 7_500), ("pages", 8_000_000)];

/// What tenants are told of other codes, by the product that gives them.
const EXPLAINED: [(&str, u32, &str); 4] = [
    ("d1", 7_406, "its account has no room for another database"),
    ("r2", 10_042, "its account has no R2"),
    ("worker", 10_027, "the script is too large"),
    ("hostname", 1_407, "it does not take the hostname"),
];

/// The codes of a script that was refused for what is in it: its author has to be told.
const SCRIPT_REFUSED: (&str, u32) = ("worker", 10_021);

/// The longest text of the API that is repeated.
const LONGEST_MESSAGE: usize = 500;

/// How a call failed.
#[derive(Clone, Debug, thiserror::Error)]
pub(crate) enum CallError {
    /// It was not sent.
    #[error("the request was not sent")]
    Unsent(#[source] Cause),
    /// It is not the time to send.
    #[error("the API asks to wait {} s", .0.as_secs())]
    Throttled(Duration),
    /// It was sent, and what came back says nothing.
    #[error("there was no answer that makes sense")]
    Unanswered {
        /// Whether it would have changed nothing.
        reads: bool,
        /// What came back.
        #[source]
        cause: Cause,
    },
    /// The API says no.
    #[error("the API refused: {0}")]
    Refused(Box<Refusal>),
}

/// An answer that says no.
#[derive(Clone, Debug)]
pub(crate) struct Refusal {
    /// `product.verb`.
    pub(crate) operation: &'static str,
    pub(crate) status: StatusCode,
    /// Codes, with what they say.
    pub(crate) errors: Vec<(u32, String)>,
    /// Cloudflare's id of the request.
    pub(crate) ray: String,
    /// Whether it would have changed nothing.
    pub(crate) reads: bool,
    /// Whether the request held something that its answer might repeat.
    pub(crate) is_confidential: bool,
}

impl Refusal {
    fn has(&self, code: u32) -> bool {
        self.errors.iter().any(|(of, _)| *of == code)
    }

    fn product(&self) -> &'static str {
        self.operation.split('.').next().unwrap_or_default()
    }

    /// Whether nobody knows if it happened, or it may work the next time.
    fn is_ambiguous(&self) -> bool {
        let mut known = TRANSIENT.iter();
        let transient = known.any(|(product, code)| *product == self.product() && self.has(*code));
        let unexplained = self.status.is_success() && self.errors.is_empty();
        let patience = [StatusCode::REQUEST_TIMEOUT, StatusCode::TOO_EARLY];
        transient || unexplained || self.status.is_server_error() || patience.contains(&self.status)
    }

    fn is_access(&self) -> bool {
        let statuses = [StatusCode::UNAUTHORIZED, StatusCode::FORBIDDEN];
        statuses.contains(&self.status) || ACCESS.iter().any(|code| self.has(*code))
    }

    /// What tenants are told.
    fn public_message(&self) -> String {
        if self.is_access() {
            return "its operator has to renew the access to it".to_owned();
        }
        let product = self.product();
        let explained = EXPLAINED
            .iter()
            .find(|(of, code, _)| *of == product && self.has(*code));
        if let Some((_, _, text)) = explained {
            return (*text).to_owned();
        }
        let script = self
            .errors
            .iter()
            .find(|(code, _)| (product, *code) == SCRIPT_REFUSED);
        if let Some((_, message)) = script {
            return format!("the script is not valid: {}", shortened(message));
        }
        match self.errors.first() {
            Some((code, _)) => format!("it does not take the request (code {code})"),
            None => format!(
                "it does not take the request (status {})",
                self.status.as_u16()
            ),
        }
    }
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{} was answered {}",
            self.operation,
            self.status.as_u16()
        )?;
        for (code, message) in &self.errors {
            write!(f, ", {code}")?;
            if !self.is_confidential {
                write!(f, " {}", shortened(message))?;
            }
        }
        write!(f, " (ray {})", self.ray)
    }
}

/// The text on one line, and not too long.
pub(crate) fn shortened(text: &str) -> String {
    let fits = text.chars().take(LONGEST_MESSAGE);
    fits.map(|c| if c.is_control() { ' ' } else { c }).collect()
}

impl CallError {
    /// Whether the API gave this code.
    pub(crate) fn has(&self, code: u32) -> bool {
        matches!(self, Self::Refused(refusal) if refusal.has(code))
    }

    /// Whether the API says that the object does not exist: by this code, or by the status alone.
    pub(crate) fn is_missing(&self, code: u32) -> bool {
        let Self::Refused(refusal) = self else {
            return false;
        };
        let by_status = refusal.status == StatusCode::NOT_FOUND && !refusal.has(NO_ROUTE);
        refusal.has(code) || by_status
    }

    /// Whether nobody knows if it happened.
    pub(crate) fn is_ambiguous(&self) -> bool {
        match self {
            Self::Unanswered { .. } => true,
            Self::Refused(refusal) => refusal.is_ambiguous(),
            Self::Unsent(_) | Self::Throttled(_) => false,
        }
    }

    /// Whether the same call may work a moment later.
    pub(crate) fn may_work_soon(&self) -> bool {
        self.is_ambiguous() || matches!(self, Self::Unsent(_))
    }
}

impl From<CallError> for ProviderError {
    fn from(error: CallError) -> Self {
        let unsure = |reads, cause| {
            if reads {
                Self::Transient(cause)
            } else {
                Self::OutcomeUnknown(cause)
            }
        };
        match error {
            CallError::Unsent(cause) => Self::Transient(cause),
            CallError::Throttled(wait) => Self::Throttled {
                retry_after_seconds: wait
                    .as_millis()
                    .div_ceil(1_000)
                    .try_into()
                    .unwrap_or(u64::MAX),
            },
            CallError::Unanswered { reads, cause } => unsure(reads, cause),
            CallError::Refused(refusal) if refusal.is_ambiguous() => {
                unsure(refusal.reads, Cause::new(refusal.to_string()))
            }
            CallError::Refused(refusal) => {
                if refusal.is_access() {
                    tracing::error!(%refusal, "the token is not accepted: renew it, or give it the permission");
                } else {
                    tracing::warn!(%refusal, "Cloudflare refused a request");
                }
                Self::Permanent(refusal.public_message())
            }
        }
    }
}
