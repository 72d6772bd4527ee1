//! What follows from a unit of work outside the store, collected while it runs and announced after its commit.

use std::collections::BTreeSet;

use super::{ApiKeyId, OrganizationId, PlatformId, SessionId, UserId};

/// One thing that follows.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[non_exhaustive]
pub enum Effect {
    /// A job may be claimed now: it was queued, woken, or what held it is gone.
    JobReady,
    /// A message waits in the outbox.
    MessageQueued,
    /// A mail waits in the outbox.
    MailQueued,
    /// An entry of the audit waits to be sealed.
    AuditWritten,
    /// Entries of the audit were sealed: the change feed goes on.
    AuditSealed,
    /// A message to a webhook waits.
    WebhookQueued,
    /// What was known of a session is no longer true: it ended, or acts for another organization.
    SessionChanged(SessionId),
    /// What was known of an API key is no longer true.
    ApiKeyChanged(ApiKeyId),
    /// What a user may do is no longer what it was, or they may sign in no more.
    UserAccessChanged(UserId),
    /// What the members of an organization may do is no longer what it was.
    OrganizationAccessChanged(OrganizationId),
    /// Who may call for a platform is no longer what it was: it was suspended, restored or removed.
    PlatformAccessChanged(PlatformId),
}

/// What follows from a unit of work, each thing once. Announced exactly when the unit was committed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Effects(BTreeSet<Effect>);

impl Effects {
    /// Adds a thing that follows.
    pub fn add(&mut self, effect: Effect) {
        self.0.insert(effect);
    }

    /// Tells whether nothing follows.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Tells whether this follows.
    #[must_use]
    pub fn contains(&self, effect: &Effect) -> bool {
        self.0.contains(effect)
    }

    /// Everything that follows.
    pub fn iter(&self) -> impl Iterator<Item = &Effect> {
        self.0.iter()
    }
}
