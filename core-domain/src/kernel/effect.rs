//! What follows from a unit of work outside the store, collected while it runs and announced after its commit.

use std::collections::BTreeSet;

use super::{ApiKeyId, Caller, OrganizationId, PlatformId, SessionId, UserId};

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

impl Effect {
    /// Tells whether what this caller may do, on this platform if there is one, is perhaps no longer what it was.
    #[must_use]
    pub fn changes_access_of(&self, caller: &Caller, platform: Option<&PlatformId>) -> bool {
        match self {
            Self::SessionChanged(id) => caller.session_id() == Some(id),
            Self::ApiKeyChanged(id) => caller.api_key_id() == Some(id),
            Self::UserAccessChanged(id) => caller.user_id() == Some(id),
            Self::OrganizationAccessChanged(id) => caller
                .membership()
                .is_some_and(|membership| membership.organization_id == *id),
            Self::PlatformAccessChanged(id) => {
                platform == Some(id) || caller.platform_id() == Some(id)
            }
            Self::JobReady
            | Self::MessageQueued
            | Self::MailQueued
            | Self::AuditWritten
            | Self::AuditSealed
            | Self::WebhookQueued => false,
        }
    }
}

/// What follows from a unit of work, each thing once. Announced exactly when the unit was committed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Effects {
    announced: BTreeSet<Effect>,
    needs_fresh_proof: bool,
}

impl Effects {
    /// Adds a thing that follows.
    pub fn add(&mut self, effect: Effect) {
        self.announced.insert(effect);
    }

    /// Tells whether nothing follows.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.announced.is_empty()
    }

    /// Tells whether this follows.
    #[must_use]
    pub fn contains(&self, effect: &Effect) -> bool {
        self.announced.contains(effect)
    }

    /// Everything that follows.
    pub fn iter(&self) -> impl Iterator<Item = &Effect> {
        self.announced.iter()
    }

    /// Notes that the unit asked its caller for a fresh proof. The mark is not announced: it is for whoever stores the answer.
    pub fn mark_fresh_proof(&mut self) {
        self.needs_fresh_proof = true;
    }

    /// Tells whether the unit asked its caller for a fresh proof.
    #[must_use]
    pub const fn needs_fresh_proof(&self) -> bool {
        self.needs_fresh_proof
    }
}
