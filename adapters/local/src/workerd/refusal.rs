//! The reasons for which a worker does not respond, and the responses in its place. No response contains the output of
//! the worker.

use std::fmt;

use http::StatusCode;
use serde::{Deserialize, Serialize};

/// The reason for which a worker does not respond.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) enum Refusal {
    /// The `workerd` program is not installed.
    NotInstalled,
    /// The worker does not exist.
    Missing,
    /// The script cannot be started. Contains the reason, for the log.
    Rejected(String),
    /// The process ended before it responded. Contains the reason, for the log.
    Ended(String),
    /// No response started in time.
    Silent,
    /// Too many workers or requests are active, a restart is delayed, or the provider is being stopped.
    Busy,
    /// Another error, which was logged.
    Failed,
}

impl Refusal {
    /// Returns the status of the response to a visitor.
    pub(crate) const fn status(&self) -> StatusCode {
        match self {
            Self::Missing => StatusCode::NOT_FOUND,
            Self::Failed => StatusCode::INTERNAL_SERVER_ERROR,
            Self::Rejected(_) | Self::Ended(_) => StatusCode::BAD_GATEWAY,
            Self::Silent => StatusCode::GATEWAY_TIMEOUT,
            Self::NotInstalled | Self::Busy => StatusCode::SERVICE_UNAVAILABLE,
        }
    }

    /// Logs the reason if the worker itself caused the failure.
    pub(crate) fn log(&self, worker: &str) {
        if let Self::Rejected(reason) | Self::Ended(reason) = self {
            tracing::warn!(worker, reason, "a worker failed");
        }
    }
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotInstalled => f.write_str(
                "This worker is stored but cannot run: workerd was not found on this machine. \
                 Install it (npm install workerd) or set WORKERD_BIN to its path.",
            ),
            Self::Missing => f.write_str("This worker does not exist."),
            Self::Rejected(_) | Self::Ended(_) => {
                f.write_str("This worker failed. See the server log for the reason.")
            }
            Self::Silent => f.write_str("This worker did not respond in time."),
            Self::Busy => f.write_str("Too many workers are busy; try again."),
            Self::Failed => f.write_str("This worker is not available at the moment."),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn visitors_of_a_crashed_worker_see_a_plain_502() {
        let console = || "TypeError: a private line".to_owned();
        for refusal in [Refusal::Rejected(console()), Refusal::Ended(console())] {
            assert_eq!(refusal.status(), StatusCode::BAD_GATEWAY);
            assert!(!refusal.to_string().contains("private"), "{refusal}");
        }
    }
}
