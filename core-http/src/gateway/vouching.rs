//! The credential with which a gateway authenticates itself to a service over HTTP. The service then trusts the headers
//! about the caller.

use core_domain::kernel::Secret;
use http::HeaderValue;

use super::config::ConfigError;
use crate::kernel::ServiceKey;

/// The service key or a service token, as header values.
#[derive(Clone)]
pub(super) struct UpstreamCredential {
    /// The value for `Authorization`, with the scheme `Bearer`.
    pub(super) authorization: HeaderValue,
    /// The value for `X-Core-Service-Key`, without a scheme.
    pub(super) plain: HeaderValue,
}

impl UpstreamCredential {
    /// Creates the header values for the service key.
    ///
    /// # Errors
    /// [`ConfigError`] if the text is not a valid service key.
    pub(super) fn from_service_key(key: &Secret) -> Result<Self, ConfigError> {
        ServiceKey::new(key.expose())
            .map_err(|problem| error(format!("the service key {problem}")))?;
        Self::from_secret(key.expose())
    }

    /// Creates the header values for a key or a token of any form.
    ///
    /// # Errors
    /// [`ConfigError`] if the text is not a valid header value.
    pub(super) fn from_secret(secret: &str) -> Result<Self, ConfigError> {
        let header = |text: &str| {
            let mut value = HeaderValue::from_str(text)
                .map_err(|_| error("the service key or token is not a valid header value"))?;
            value.set_sensitive(true);
            Ok(value)
        };
        Ok(Self {
            authorization: header(&format!("Bearer {secret}"))?,
            plain: header(secret)?,
        })
    }
}

/// Returns an error about the setting of an upstream.
pub(super) fn error(problem: impl Into<String>) -> ConfigError {
    ConfigError {
        setting: "upstream",
        problem: problem.into(),
    }
}
