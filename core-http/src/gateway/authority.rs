//! Resolving credentials: what the gateway asks IAM.

use std::sync::Arc;

use async_trait::async_trait;
use core_domain::gateway::Credential;
use core_domain::kernel::{Caller, Timestamp};

/// The holder of a credential.
#[derive(Clone, Debug)]
pub struct Resolved {
    /// Who calls.
    pub caller: Arc<Caller>,
    /// Whether the caller's platform is suspended.
    pub suspended: bool,
    /// When the credential expires, if it does. No answer is cached longer.
    pub expires_at: Option<Timestamp>,
    /// How many requests a minute the credential may be used for, if it has a limit of its own. The gateway counts them,
    /// whether it had to ask or not.
    pub requests_per_minute: Option<u32>,
}

/// Why a credential was not resolved.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum AuthorityError {
    /// The credential is unknown, expired or revoked: the client gets 401.
    #[error("the credential is not valid")]
    Refused,
    /// IAM could not be reached or its answer could not be read: the client gets 503 and keeps its session. The text is for
    /// the log.
    #[error("no answer about a credential: {0}")]
    Unavailable(String),
}

/// Resolves credentials to callers. It is never given the service key, which the gateway checks itself.
#[async_trait]
pub trait Authority: Send + Sync + std::fmt::Debug {
    /// Looks up a session token or an API key.
    ///
    /// # Errors
    /// [`AuthorityError::Refused`] when it is not valid; [`AuthorityError::Unavailable`] when that is not known.
    async fn resolve(&self, credential: &Credential) -> Result<Resolved, AuthorityError>;
}
