//! The effects of a unit of work outside the store. They are collected while the unit runs and announced after its
//! commit.

use std::collections::BTreeSet;

use super::{ApiKeyId, Caller, JobId, OrganizationId, PlatformId, SessionId, UserId};

/// One effect of a unit of work.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[non_exhaustive]
pub enum Effect {
    /// A job can be claimed: it was queued or woken, or what held it back has ended.
    JobReady,
    /// The history of a job has new events.
    JobProgressed(JobId),
    /// A message was added to the outbox.
    MessageQueued,
    /// A mail was added to the outbox.
    MailQueued,
    /// An audit entry was written and must be sealed.
    AuditWritten,
    /// Audit entries were sealed, so the change feed has new entries.
    AuditSealed,
    /// A message to a webhook was queued.
    WebhookQueued,
    /// A session ended or acts for another organization. Cached data about it is invalid.
    SessionChanged(SessionId),
    /// An API key was changed or deleted. Cached data about it is invalid.
    ApiKeyChanged(ApiKeyId),
    /// The permissions of a user changed, or the user can no longer sign in.
    UserAccessChanged(UserId),
    /// The permissions of the members of an organization changed.
    OrganizationAccessChanged(OrganizationId),
    /// Access to a platform changed: it was suspended, restored or removed.
    PlatformAccessChanged(PlatformId),
}

impl Effect {
    /// Returns whether the effect can change what this caller may do, on this platform if one is given.
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
            | Self::JobProgressed(_)
            | Self::MessageQueued
            | Self::MailQueued
            | Self::AuditWritten
            | Self::AuditSealed
            | Self::WebhookQueued => false,
        }
    }
}

/// The effects of a unit of work, without duplicates. They are announced only if the unit was committed, or may have
/// been committed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Effects {
    announced: BTreeSet<Effect>,
    needs_fresh_proof: bool,
}

impl Effects {
    /// Adds an effect.
    pub fn add(&mut self, effect: Effect) {
        self.announced.insert(effect);
    }

    /// Returns whether there are no effects to announce.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.announced.is_empty()
    }

    /// Returns whether the effect is in the set.
    #[must_use]
    pub fn contains(&self, effect: &Effect) -> bool {
        self.announced.contains(effect)
    }

    /// Iterates over the effects to announce.
    pub fn iter(&self) -> impl Iterator<Item = &Effect> {
        self.announced.iter()
    }

    /// Records that the unit required a recent proof of identity from its caller. The mark is not announced. It is
    /// stored with an idempotent response, so that a replay requires such a proof as well.
    pub fn mark_fresh_proof(&mut self) {
        self.needs_fresh_proof = true;
    }

    /// Returns whether the unit required a recent proof of identity from its caller.
    #[must_use]
    pub const fn needs_fresh_proof(&self) -> bool {
        self.needs_fresh_proof
    }
}
