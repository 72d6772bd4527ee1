//! The reasons for which a worker does not respond, and the responses in its place. No response contains the worker's console.

use std::fmt;

use http::StatusCode;
use serde::{Deserialize, Serialize};

/// Why a worker does not answer.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) enum Refusal {
    /// There is no program that runs workers.
    NotInstalled,
    /// There is no such worker.
    Missing,
    /// The script cannot be started. Holds the reason, for the log.
    Rejected(String),
    /// The process ended before it responded. Holds the reason, for the log.
    Ended(String),
    /// No answer began in time.
    Silent,
    /// Too much is going on, or the provider is being stopped.
    Busy,
    /// Something else failed, which was logged.
    Failed,
}

impl Refusal {
    /// What a browser is answered.
    pub(crate) const fn status(&self) -> StatusCode {
        match self {
            Self::Missing => StatusCode::NOT_FOUND,
            Self::Failed => StatusCode::INTERNAL_SERVER_ERROR,
            Self::Rejected(_) | Self::Ended(_) => StatusCode::BAD_GATEWAY,
            Self::Silent => StatusCode::GATEWAY_TIMEOUT,
            Self::NotInstalled | Self::Busy => StatusCode::SERVICE_UNAVAILABLE,
        }
    }

    /// Writes the reason into the log if the worker itself is the reason.
    pub(crate) fn log(&self, worker: &str) {
        if let Self::Rejected(reason) | Self::Ended(reason) = self {
            tracing::warn!(worker, reason, "a worker is out of order");
        }
    }
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotInstalled => f.write_str(
                "This worker is stored and does not run: workerd was not found on this machine. \
                 Install it (npm install workerd), or name it in WORKERD_BIN.",
            ),
            Self::Missing => f.write_str("There is no such worker."),
            Self::Rejected(_) | Self::Ended(_) => {
                f.write_str("This worker is out of order. The log of the server says why.")
            }
            Self::Silent => f.write_str("This worker has not answered in time."),
            Self::Busy => f.write_str("Too many workers are at work; try again."),
            Self::Failed => f.write_str("This worker cannot be reached at the moment."),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn visitors_of_a_worker_that_has_crashed_see_a_plain_502() {
        let console = || "TypeError: a private line".to_owned();
        for refusal in [Refusal::Rejected(console()), Refusal::Ended(console())] {
            assert_eq!(refusal.status(), StatusCode::BAD_GATEWAY);
            assert!(!refusal.to_string().contains("private"), "{refusal}");
        }
    }
}
