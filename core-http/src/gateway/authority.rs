//! Resolves credentials: the questions that the gateway puts to IAM.

use std::sync::Arc;

use async_trait::async_trait;
use core_domain::gateway::Credential;
use core_domain::kernel::{Caller, Timestamp};

/// The caller that a credential belongs to, and how the credential may be used.
#[derive(Clone, Debug)]
pub struct ResolvedCredential {
    /// The caller that the credential identifies.
    pub caller: Arc<Caller>,
    /// Whether the caller's platform is suspended.
    pub suspended: bool,
    /// The time at which the credential expires; `None` if it does not. The result is not cached beyond this time.
    pub expires_at: Option<Timestamp>,
    /// Maximum number of requests per minute with this credential; `None` if it has no limit of its own. The gateway
    /// counts the requests, including those with a cached result.
    pub requests_per_minute: Option<u32>,
}

/// The reason why a credential was not resolved.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum AuthorityError {
    /// The credential is unknown, expired or revoked. The client gets 401.
    #[error("the credential is not valid")]
    Refused,
    /// IAM could not be reached, or its response could not be read. The client gets 503 and keeps its session. The text
    /// is for the log.
    #[error("the credential could not be checked: {0}")]
    Unavailable(String),
}

/// Resolves credentials to callers. The service key is never passed to it; the gateway checks that key itself.
#[async_trait]
pub trait Authority: Send + Sync + std::fmt::Debug {
    /// Resolves a session token or an API key.
    ///
    /// # Errors
    /// [`AuthorityError::Refused`] if the credential is not valid; [`AuthorityError::Unavailable`] if its validity
    /// could not be determined.
    async fn resolve(&self, credential: &Credential) -> Result<ResolvedCredential, AuthorityError>;

    /// Reports that the gateway has given up waiting for [`Self::resolve`]. The default does nothing.
    fn report_timeout(&self) {}
}
