//! An error of the gateway, with the headers of its answer.

use core_domain::gateway::{CredentialError, PathError};
use core_domain::kernel::{Code, Error};
use http::header::{ALLOW, CONNECTION, RETRY_AFTER, WWW_AUTHENTICATE};
use http::{HeaderMap, HeaderName, HeaderValue};

/// A request that is refused. The errors step turns it into an envelope; until then the layers add headers to it as they
/// would to an answer.
#[derive(Debug)]
pub(crate) struct Refusal {
    pub(crate) error: Error,
    // Boxed to keep every result of the gateway small.
    pub(crate) headers: Box<HeaderMap>,
}

impl Refusal {
    pub(crate) fn new(code: Code, message: impl Into<String>) -> Self {
        Error::refused(code, message).into()
    }

    pub(crate) fn with(mut self, name: HeaderName, value: HeaderValue) -> Self {
        self.headers.insert(name, value);
        self
    }

    /// Closes the connection as well: where its next request begins is not certain.
    pub(crate) fn closing(self) -> Self {
        self.with(CONNECTION, HeaderValue::from_static("close"))
    }

    pub(crate) fn bad_request(message: impl Into<String>) -> Self {
        Self::new(Code::BadRequest, message)
    }

    pub(crate) fn unauthorized() -> Self {
        Self::from(Error::Unauthorized).with(WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"))
    }

    pub(crate) fn not_found() -> Self {
        Self::new(Code::NotFound, "There is nothing here.")
    }

    pub(crate) fn method_not_allowed(allow: &'static str) -> Self {
        Self::new(Code::MethodNotAllowed, "This method is not possible here.")
            .with(ALLOW, HeaderValue::from_static(allow))
    }

    /// The text is for the log alone.
    pub(crate) fn unavailable(cause: impl Into<String>) -> Self {
        Self::from(Error::Unavailable(cause.into()))
            .with(RETRY_AFTER, HeaderValue::from_static("1"))
    }
}

impl From<Error> for Refusal {
    fn from(error: Error) -> Self {
        Self {
            error,
            headers: Box::default(),
        }
    }
}

impl From<PathError> for Refusal {
    fn from(error: PathError) -> Self {
        Self::bad_request(error.to_string())
    }
}

impl From<CredentialError> for Refusal {
    fn from(error: CredentialError) -> Self {
        match error {
            CredentialError::Repeated => Self::bad_request(error.to_string()),
            CredentialError::Malformed => Self::unauthorized(),
        }
    }
}
