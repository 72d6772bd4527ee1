//! Who a credential belongs to: the question the gateway asks IAM.

use async_trait::async_trait;
use core_domain::gateway::Credential;
use core_domain::kernel::{Caller, Timestamp};

/// What is known of the holder of a credential.
#[derive(Clone, Debug)]
pub struct Resolved {
    /// Who calls.
    pub caller: Caller,
    /// Whether the caller's platform is suspended.
    pub suspended: bool,
    /// When the credential ends by itself, if it does. No answer is remembered longer.
    pub expires_at: Option<Timestamp>,
}

/// Why there is no answer about a credential.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum AuthorityError {
    /// The credential is unknown, ended or revoked: the client gets 401.
    #[error("the credential is not valid")]
    Refused,
    /// IAM could not be asked or did not answer sensibly: the client gets 503 and keeps its session. For the log.
    #[error("no answer about a credential: {0}")]
    Unavailable(String),
}

/// Answers who a credential belongs to. It is never shown the service key; the gateway knows that one itself.
#[async_trait]
pub trait Authority: Send + Sync + std::fmt::Debug {
    /// Looks up a session token or an API key.
    ///
    /// # Errors
    /// [`AuthorityError::Refused`] when nobody is behind it; [`AuthorityError::Unavailable`] when that cannot be told.
    async fn resolve(&self, credential: &Credential) -> Result<Resolved, AuthorityError>;
}
