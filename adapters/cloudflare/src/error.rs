//! Errors of API calls, and their meaning for the job engine.

use std::fmt;
use std::time::Duration;

use core_domain::port::{Cause, ProviderError};
use http::StatusCode;

/// Error codes of an invalid token or a missing permission.
const ACCESS_CODES: [u32; 4] = [10_000, 9_109, 6_003, 6_111];

/// The error code of an invalid path. It is an error of this adapter and does not prove that an object is missing.
const NO_ROUTE: u32 = 7_003;

/// Error codes after which the same request can succeed, with the product that returns them.
const TRANSIENT: [(&str, u32); 2] = [("d1", 7_500), ("pages", 8_000_000)];

/// Explanations of other error codes for tenants, with the product that returns them.
const EXPLANATIONS: [(&str, u32, &str); 4] = [
    ("d1", 7_406, "the account cannot have more databases"),
    ("r2", 10_042, "R2 is not enabled for the account"),
    ("worker", 10_027, "the script is too large"),
    ("hostname", 1_407, "the hostname is not accepted"),
];

/// The error code of an invalid script. Its message is shown to the author of the script.
const SCRIPT_REFUSED: (&str, u32) = ("worker", 10_021);

/// Maximum length of a message of the API that is repeated, in characters.
const MAX_MESSAGE_CHARS: usize = 500;

/// The error of an API call.
#[derive(Clone, Debug, thiserror::Error)]
pub(crate) enum CallError {
    /// The request was not sent.
    #[error("the request was not sent")]
    Unsent(#[source] Cause),
    /// The rate limit is exhausted; contains the time to wait.
    #[error("the API asks to wait {} s", .0.as_secs())]
    Throttled(Duration),
    /// The request was sent, but no usable response was received.
    #[error("no usable response was received")]
    NoResponse {
        /// Whether the request only reads.
        reads: bool,
        /// The reason, or the unusable response.
        #[source]
        cause: Cause,
    },
    /// The API refused the request.
    #[error("the API refused: {0}")]
    Refused(Box<Refusal>),
}

/// The details of a refused request.
#[derive(Clone, Debug)]
pub(crate) struct Refusal {
    /// The operation as `product.verb`.
    pub(crate) operation: &'static str,
    pub(crate) status: StatusCode,
    /// The error codes with their messages.
    pub(crate) errors: Vec<(u32, String)>,
    /// The request id of Cloudflare (`cf-ray`).
    pub(crate) ray: String,
    /// Whether the request only reads.
    pub(crate) reads: bool,
    /// Whether the response could repeat confidential values of the request.
    pub(crate) is_confidential: bool,
}

impl Refusal {
    fn has(&self, code: u32) -> bool {
        self.errors.iter().any(|(of, _)| *of == code)
    }

    fn product(&self) -> &'static str {
        self.operation.split('.').next().unwrap_or_default()
    }

    /// Returns whether the outcome is unknown, or the request can succeed later.
    fn is_ambiguous(&self) -> bool {
        let mut known = TRANSIENT.iter();
        let transient = known.any(|(product, code)| *product == self.product() && self.has(*code));
        let unexplained = self.status.is_success() && self.errors.is_empty();
        let patience = [StatusCode::REQUEST_TIMEOUT, StatusCode::TOO_EARLY];
        transient || unexplained || self.status.is_server_error() || patience.contains(&self.status)
    }

    fn is_access(&self) -> bool {
        let statuses = [StatusCode::UNAUTHORIZED, StatusCode::FORBIDDEN];
        statuses.contains(&self.status) || ACCESS_CODES.iter().any(|code| self.has(*code))
    }

    /// Returns the message for tenants.
    fn public_message(&self) -> String {
        if self.is_access() {
            return "the operator must renew the API token or its permissions".to_owned();
        }
        let product = self.product();
        let explained = EXPLANATIONS
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
            return format!("the script is not valid: {}", shorten(message));
        }
        match self.errors.first() {
            Some((code, _)) => format!("the request was not accepted (code {code})"),
            None => format!(
                "the request was not accepted (status {})",
                self.status.as_u16()
            ),
        }
    }
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{} responded with {}",
            self.operation,
            self.status.as_u16()
        )?;
        for (code, message) in &self.errors {
            write!(f, ", {code}")?;
            if !self.is_confidential {
                write!(f, " {}", shorten(message))?;
            }
        }
        write!(f, " (ray {})", self.ray)
    }
}

/// Returns the text on one line, shortened to the maximum length.
pub(crate) fn shorten(text: &str) -> String {
    let fits = text.chars().take(MAX_MESSAGE_CHARS);
    fits.map(|c| if c.is_control() { ' ' } else { c }).collect()
}

impl CallError {
    /// Returns whether the API responded with this code.
    pub(crate) fn has(&self, code: u32) -> bool {
        matches!(self, Self::Refused(refusal) if refusal.has(code))
    }

    /// Returns whether the API responded that the object does not exist: with this code, or with status 404.
    pub(crate) fn is_missing(&self, code: u32) -> bool {
        let Self::Refused(refusal) = self else {
            return false;
        };
        let by_status = refusal.status == StatusCode::NOT_FOUND && !refusal.has(NO_ROUTE);
        refusal.has(code) || by_status
    }

    /// Returns whether the outcome of the request is unknown.
    pub(crate) fn is_ambiguous(&self) -> bool {
        match self {
            Self::NoResponse { .. } => true,
            Self::Refused(refusal) => refusal.is_ambiguous(),
            Self::Unsent(_) | Self::Throttled(_) => false,
        }
    }

    /// Returns whether the same call can succeed a moment later.
    pub(crate) fn is_retryable(&self) -> bool {
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
            CallError::NoResponse { reads, cause } => unsure(reads, cause),
            CallError::Refused(refusal) if refusal.is_ambiguous() => {
                unsure(refusal.reads, Cause::new(refusal.to_string()))
            }
            CallError::Refused(refusal) => {
                if refusal.is_access() {
                    tracing::error!(%refusal, "Cloudflare rejected the API token: renew it or add the missing permission");
                } else {
                    tracing::warn!(%refusal, "Cloudflare refused a request");
                }
                Self::Permanent(refusal.public_message())
            }
        }
    }
}
