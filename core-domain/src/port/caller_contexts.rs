//! Sessions and API keys together with the records that decide what their holder may do, in one read. Every
//! authenticated request needs such a read.

use async_trait::async_trait;

use crate::iam::{ApiKey, Member, Organization, PlatformSuspension, Session, TokenHash, User};
use crate::kernel::{PlatformId, SessionId, StoreError, Stored};

/// Identifies a session.
#[derive(Clone, Copy, Debug)]
pub enum SessionKey<'a> {
    /// The hash of the session token.
    Token(&'a TokenHash),
    /// The id of the session.
    Id(&'a SessionId),
}

/// A session, valid or not, and the records that belong to it.
#[derive(Clone, Debug, PartialEq)]
pub struct SessionContext {
    /// The session itself.
    pub session: Stored<Session>,
    /// The user of the session; `None` if the user no longer exists.
    pub user: Option<Stored<User>>,
    /// The user's membership in the organization that the session acts for.
    pub member: Option<Stored<Member>>,
    /// The organization that the session acts for, if the user is a member of it.
    pub organization: Option<Stored<Organization>>,
    /// The suspension of the organization's platform; `None` if it is not suspended.
    pub suspension: Option<Stored<PlatformSuspension>>,
}

/// Reads sessions with the records that belong to them.
#[async_trait]
pub trait SessionContexts: Send {
    /// Returns the session with the records that belong to it, all from one state of the store.
    ///
    /// # Errors
    /// Only those of the store.
    async fn session_context(
        &mut self,
        key: SessionKey<'_>,
    ) -> Result<Option<SessionContext>, StoreError>;
}

/// Identifies an API key by one of its secrets.
#[derive(Clone, Copy, Debug)]
pub enum ApiKeySecretKey<'a> {
    /// The hash of the current secret.
    Current(&'a TokenHash),
    /// The hash of the secret before the last rotation.
    Previous(&'a TokenHash),
}

/// An API key, accepted or not, and the records that belong to it.
#[derive(Clone, Debug, PartialEq)]
pub struct ApiKeyContext {
    /// The API key itself.
    pub key: Stored<ApiKey>,
    /// The owner of the key; `None` for a key of an organization.
    pub user: Option<Stored<User>>,
    /// The owner's membership in the organization that the key acts for.
    pub member: Option<Stored<Member>>,
    /// The organization that the key acts for; `None` for a personal key.
    pub organization: Option<Stored<Organization>>,
    /// The suspension of the platform of the key; `None` if it is not suspended.
    pub suspension: Option<Stored<PlatformSuspension>>,
}

/// Reads API keys with the records that belong to them.
#[async_trait]
pub trait ApiKeyContexts: Send {
    /// Returns the API key with the records that belong to it, all from one state of the store.
    ///
    /// # Errors
    /// Only those of the store.
    async fn api_key_context(
        &mut self,
        secret: ApiKeySecretKey<'_>,
    ) -> Result<Option<ApiKeyContext>, StoreError>;
}

/// The store failed, and no recent state of the suspension of the platform is cached.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the suspension state of the platform is unknown")]
pub struct SuspensionUnknown;

/// Reports which platforms are suspended. A result is at most one second older than the store, unless the store fails.
#[cfg_attr(any(test, feature = "testing"), mockall::automock)]
#[async_trait]
pub trait PlatformSuspensions: Send + Sync + std::fmt::Debug {
    /// Returns whether a platform is suspended; `false` for a platform that does not exist.
    ///
    /// # Errors
    /// [`SuspensionUnknown`] if the store fails and no recent state is cached. Callers must then refuse the request.
    async fn is_suspended(&self, platform: &PlatformId) -> Result<bool, SuspensionUnknown>;
}
