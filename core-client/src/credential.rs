//! The credentials of requests, and where they come from.

use std::fmt;
use std::sync::Arc;

use async_trait::async_trait;

use crate::error::Result;
use crate::secret::Secret;

/// A credential of a request.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Credential {
    /// An access token, a session token or a service key, sent as `Authorization: Bearer`.
    Bearer(Secret),
    /// An API key, sent as `x-api-key`.
    ApiKey(Secret),
}

/// The text with which API keys begin.
const API_KEY_PREFIX: &str = "core_";

impl Credential {
    /// Returns the credential for a text: an API key if it begins with `core_`, and a bearer token otherwise.
    #[must_use]
    pub fn from_text(text: &str) -> Self {
        let secret = Secret::new(text);
        if text.starts_with(API_KEY_PREFIX) {
            Self::ApiKey(secret)
        } else {
            Self::Bearer(secret)
        }
    }
}

/// A source of credentials. The client asks it before every request, so that it can refresh tokens before they expire.
#[async_trait]
pub trait TokenSource: Send + Sync + fmt::Debug {
    /// Returns the credential for the next request; `None` for a request without credential.
    ///
    /// # Errors
    /// [`Error::Credential`](crate::Error::Credential) if there is no valid credential. The request is not sent.
    async fn credential(&self) -> Result<Option<Credential>>;

    /// Returns another credential after the server refused one with 401; `None` if there is no other. The client calls
    /// it at most once per request. Default: `None`.
    ///
    /// # Errors
    /// Those of [`TokenSource::credential`].
    async fn replace(&self, refused: &Credential) -> Result<Option<Credential>> {
        let _ = refused;
        Ok(None)
    }
}

#[async_trait]
impl TokenSource for Credential {
    async fn credential(&self) -> Result<Option<Credential>> {
        Ok(Some(self.clone()))
    }
}

/// A source without a credential.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Anonymous;

#[async_trait]
impl TokenSource for Anonymous {
    async fn credential(&self) -> Result<Option<Credential>> {
        Ok(None)
    }
}

#[async_trait]
impl<T: TokenSource + ?Sized> TokenSource for Arc<T> {
    async fn credential(&self) -> Result<Option<Credential>> {
        (**self).credential().await
    }

    async fn replace(&self, refused: &Credential) -> Result<Option<Credential>> {
        (**self).replace(refused).await
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn api_keys_are_told_apart_by_their_prefix() {
        assert!(matches!(
            Credential::from_text("core_abc"),
            Credential::ApiKey(_)
        ));
        assert!(matches!(
            Credential::from_text("cat_abc"),
            Credential::Bearer(_)
        ));
    }

    #[test]
    fn debug_output_does_not_contain_the_token() {
        assert!(!format!("{:?}", Credential::from_text("core_abc")).contains("abc"));
    }
}
