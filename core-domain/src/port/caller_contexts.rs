//! A session with the records that say what it lets its holder do, in one read. Every request with a session asks for it.

use async_trait::async_trait;

use crate::iam::{ApiKey, Member, Organization, PlatformSuspension, Session, TokenHash, User};
use crate::kernel::{PlatformId, SessionId, StoreError, Stored};

/// What a session is found by.
#[derive(Clone, Copy, Debug)]
pub enum SessionKey<'a> {
    /// Its token.
    Token(&'a TokenHash),
    /// Its id.
    Id(&'a SessionId),
}

/// A session, valid or not, and what belongs to it.
#[derive(Clone, Debug, PartialEq)]
pub struct SessionContext {
    /// The session.
    pub session: Stored<Session>,
    /// Whose it is.
    pub user: Option<Stored<User>>,
    /// The user's membership in the organization that the session acts for.
    pub member: Option<Stored<Member>>,
    /// That organization, as long as the user is a member of it.
    pub organization: Option<Stored<Organization>>,
    /// The suspension of that organization's platform.
    pub suspension: Option<Stored<PlatformSuspension>>,
}

/// Reads session contexts.
#[async_trait]
pub trait SessionContexts: Send {
    /// The session with what belongs to it, as one state of the store has them.
    ///
    /// # Errors
    /// [`StoreError`] when the store failed.
    async fn session_context(
        &mut self,
        key: SessionKey<'_>,
    ) -> Result<Option<SessionContext>, StoreError>;
}

/// Which secret of a key is meant.
#[derive(Clone, Copy, Debug)]
pub enum ApiKeySecretKey<'a> {
    /// The one it has.
    Current(&'a TokenHash),
    /// The one it had before.
    Previous(&'a TokenHash),
}

/// A key, accepted or not, and what belongs to it.
#[derive(Clone, Debug, PartialEq)]
pub struct ApiKeyContext {
    /// The key.
    pub key: Stored<ApiKey>,
    /// Whose it is, unless it is the organization's own.
    pub user: Option<Stored<User>>,
    /// That user's membership in the organization that the key acts for.
    pub member: Option<Stored<Member>>,
    /// That organization, unless the key acts for none.
    pub organization: Option<Stored<Organization>>,
    /// The suspension of the key's platform.
    pub suspension: Option<Stored<PlatformSuspension>>,
}

/// Reads key contexts.
#[async_trait]
pub trait ApiKeyContexts: Send {
    /// The key with what belongs to it, as one state of the store has them.
    ///
    /// # Errors
    /// [`StoreError`] when the store failed.
    async fn api_key_context(
        &mut self,
        secret: ApiKeySecretKey<'_>,
    ) -> Result<Option<ApiKeyContext>, StoreError>;
}

/// The suspension state of a platform is unknown: the store failed, and no recent state is known.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the suspension state of the platform is unknown")]
pub struct SuspensionUnknown;

/// Tells which platforms are suspended. An answer is at most one second older than the store, unless the store fails.
#[cfg_attr(any(test, feature = "testing"), mockall::automock)]
#[async_trait]
pub trait PlatformSuspensions: Send + Sync + std::fmt::Debug {
    /// Tells whether a platform is suspended. A platform that does not exist is not suspended.
    ///
    /// # Errors
    /// [`SuspensionUnknown`] if the store failed and no recent state is known. Callers then serve nothing.
    async fn is_suspended(&self, platform: &PlatformId) -> Result<bool, SuspensionUnknown>;
}
