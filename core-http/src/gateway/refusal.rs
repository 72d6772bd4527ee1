//! An error response of the gateway, with its headers.

use core_domain::gateway::{CredentialError, PathError};
use core_domain::kernel::{Code, Error};
use http::header::{ALLOW, CONNECTION, RETRY_AFTER, WWW_AUTHENTICATE};
use http::{HeaderMap, HeaderName, HeaderValue};

/// The reason why a request is refused. The errors step turns it into an envelope. Until then, the steps add headers to
/// it as they would to a response.
#[derive(Debug)]
pub(crate) struct Refusal {
    pub(crate) error: Error,
    // Boxed, so that every `Result` of the gateway stays small.
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

    /// Also closes the connection, because the start of the next request on it is uncertain.
    pub(crate) fn closing(self) -> Self {
        self.with(CONNECTION, HeaderValue::from_static("close"))
    }

    pub(crate) fn bad_request(message: impl Into<String>) -> Self {
        Self::new(Code::BadRequest, message)
    }

    pub(crate) fn unauthorized() -> Self {
        Self::from(Error::Unauthorized).with(WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"))
    }

    /// Replaces the challenge of a 401 by one that names the metadata of the gateway (RFC 9728, section 5.1).
    pub(crate) fn name_metadata(&mut self, challenge: &HeaderValue) {
        if let Some(value) = self.headers.get_mut(WWW_AUTHENTICATE) {
            value.clone_from(challenge);
        }
    }

    pub(crate) fn not_found() -> Self {
        Self::new(Code::NotFound, "There is no endpoint at this path.")
    }

    pub(crate) fn method_not_allowed(allow: &'static str) -> Self {
        Self::new(Code::MethodNotAllowed, "This method is not allowed here.")
            .with(ALLOW, HeaderValue::from_static(allow))
    }

    /// Returns a 503 with `Retry-After`. The cause is only logged.
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
