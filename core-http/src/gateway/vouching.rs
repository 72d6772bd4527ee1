//! What a gateway shows to a service behind HTTP, so that the service believes what the gateway says of the caller.

use core_domain::kernel::Secret;
use http::HeaderValue;

use super::config::ConfigError;
use crate::kernel::ServiceKey;

/// The service key or a service token, as it is sent.
#[derive(Clone)]
pub(super) struct Vouching {
    /// In `Authorization`.
    pub(super) authorization: HeaderValue,
    /// In `X-Core-Service-Key`.
    pub(super) plain: HeaderValue,
}

impl Vouching {
    /// By the service key.
    ///
    /// # Errors
    /// [`ConfigError`] when it is no service key.
    pub(super) fn by_key(key: &Secret) -> Result<Self, ConfigError> {
        ServiceKey::new(key.expose())
            .map_err(|problem| error(format!("the service key {problem}")))?;
        Self::by(key.expose())
    }

    /// By a key or token of any form.
    ///
    /// # Errors
    /// [`ConfigError`] when it is no header value.
    pub(super) fn by(secret: &str) -> Result<Self, ConfigError> {
        let header = |text: &str| {
            let mut value = HeaderValue::from_str(text)
                .map_err(|_| error("what vouches is not a header value"))?;
            value.set_sensitive(true);
            Ok(value)
        };
        Ok(Self {
            authorization: header(&format!("Bearer {secret}"))?,
            plain: header(secret)?,
        })
    }
}

/// A problem with the setting of an upstream.
pub(super) fn error(problem: impl Into<String>) -> ConfigError {
    ConfigError {
        setting: "upstream",
        problem: problem.into(),
    }
}
