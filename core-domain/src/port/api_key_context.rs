//! An API key with the records that say what it lets its holder do, in one read.

use async_trait::async_trait;

use crate::iam::{ApiKey, Member, Organization, PlatformSuspension, TokenHash, User};
use crate::kernel::{StoreError, Stored};

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
