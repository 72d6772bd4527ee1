//! A session with the records that say what it lets its holder do, in one read. Every request with a session asks for it.

use async_trait::async_trait;

use crate::iam::{Member, Organization, PlatformSuspension, Session, TokenHash, User};
use crate::kernel::{SessionId, StoreError, Stored};

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
