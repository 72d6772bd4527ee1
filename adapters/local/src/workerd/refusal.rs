//! Why a worker does not answer, and what is answered instead.

use std::fmt;

use http::StatusCode;

/// Why a worker does not answer.
#[derive(Clone, Debug)]
pub(crate) enum Refusal {
    /// There is no program that runs workers.
    NotInstalled,
    /// There is no such worker.
    Missing,
    /// The script cannot be started; says why.
    Rejected(String),
    /// The process ended before it answered; says why.
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
            Self::Rejected(_) | Self::Failed => StatusCode::INTERNAL_SERVER_ERROR,
            Self::Ended(_) => StatusCode::BAD_GATEWAY,
            Self::Silent => StatusCode::GATEWAY_TIMEOUT,
            Self::NotInstalled | Self::Busy => StatusCode::SERVICE_UNAVAILABLE,
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
            Self::Rejected(reason) => write!(f, "This worker cannot be started:\n{reason}"),
            Self::Ended(reason) => {
                write!(f, "This worker has ended before it answered:\n{reason}")
            }
            Self::Silent => f.write_str("This worker has not answered in time."),
            Self::Busy => f.write_str("Too many workers are at work; try again."),
            Self::Failed => f.write_str("This worker cannot be reached at the moment."),
        }
    }
}
