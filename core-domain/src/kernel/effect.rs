//! The effects of a unit of work outside the store. They are collected while the unit runs and announced after its
//! commit.

use std::collections::BTreeSet;

use super::{ApiKeyId, Caller, JobId, OrganizationId, PlatformId, SessionId, TextValue, UserId};

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
    /// Returns whether other processes on the same store must react to the effect.
    ///
    /// Jobs that are ready have a channel of their own, see [`JobHints`](crate::port::JobHints). Queues need no notice:
    /// the process that queued something also works on the queue, and all processes look from time to time.
    #[must_use]
    pub const fn concerns_other_processes(&self) -> bool {
        match self {
            Self::JobProgressed(_)
            | Self::AuditSealed
            | Self::SessionChanged(_)
            | Self::ApiKeyChanged(_)
            | Self::UserAccessChanged(_)
            | Self::OrganizationAccessChanged(_)
            | Self::PlatformAccessChanged(_) => true,
            Self::JobReady
            | Self::MessageQueued
            | Self::MailQueued
            | Self::AuditWritten
            | Self::WebhookQueued => false,
        }
    }

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

/// Implements the text form of effects: a name, and for most effects a colon and an id.
macro_rules! effect_texts {
    ($($effect:ident $(($id:ident))? = $name:literal),+ $(,)?) => {
        impl Effect {
            /// Returns the text form, which other processes of the installation can read. It has only letters, digits
            /// and the characters `_.:-`.
            #[must_use]
            pub fn to_text(&self) -> String {
                match self {
                    $(Self::$effect $(($id))? => [$name $(, $id.as_str())?].join(":"),)+
                }
            }

            /// Parses the text form. Returns `None` if the text is not one, for example because a newer version has
            /// written it.
            #[must_use]
            pub fn from_text(text: &str) -> Option<Self> {
                let (name, id) = text.split_once(':').unwrap_or((text, ""));
                let effect = match name {
                    $($name => Self::$effect $(({
                        let $id = TextValue::from_text(id)?;
                        $id
                    }))?,)+
                    _ => return None,
                };
                (effect.to_text() == text).then_some(effect)
            }
        }
    };
}

// The names are stored nowhere. Processes of neighbouring versions exchange them, so a name must not change its
// meaning.
effect_texts! {
    JobReady = "job-ready",
    JobProgressed(job) = "job",
    MessageQueued = "message",
    MailQueued = "mail",
    AuditWritten = "audit-written",
    AuditSealed = "audit-sealed",
    WebhookQueued = "webhook",
    SessionChanged(session) = "session",
    ApiKeyChanged(key) = "api-key",
    UserAccessChanged(user) = "user",
    OrganizationAccessChanged(organization) = "organization",
    PlatformAccessChanged(platform) = "platform",
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

#[cfg(any(test, feature = "proptest"))]
impl proptest::arbitrary::Arbitrary for Effect {
    type Parameters = ();
    type Strategy = proptest::strategy::BoxedStrategy<Self>;

    fn arbitrary_with((): ()) -> Self::Strategy {
        use proptest::prelude::{Just, Strategy, any, prop_oneof};

        prop_oneof![
            Just(Self::JobReady),
            any::<JobId>().prop_map(Self::JobProgressed),
            Just(Self::MessageQueued),
            Just(Self::MailQueued),
            Just(Self::AuditWritten),
            Just(Self::AuditSealed),
            Just(Self::WebhookQueued),
            any::<SessionId>().prop_map(Self::SessionChanged),
            any::<ApiKeyId>().prop_map(Self::ApiKeyChanged),
            any::<UserId>().prop_map(Self::UserAccessChanged),
            any::<OrganizationId>().prop_map(Self::OrganizationAccessChanged),
            any::<PlatformId>().prop_map(Self::PlatformAccessChanged),
        ]
        .boxed()
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn an_effect_is_read_as_it_was_written(effect in any::<Effect>()) {
            let text = effect.to_text();
            let is_plain = |b: u8| b.is_ascii_alphanumeric() || b"_.:-".contains(&b);
            prop_assert!(text.bytes().all(is_plain), "{}", text);
            prop_assert_eq!(Effect::from_text(&text), Some(effect));
        }
    }

    #[test]
    fn a_text_that_no_effect_is_written_as_is_not_read() {
        for text in [
            "",
            "audit",
            "session",
            "session:",
            "session:a b",
            "audit-sealed:",
            "audit-sealed:1",
            "Session:1",
            "future:1",
        ] {
            assert_eq!(Effect::from_text(text), None, "{text}");
        }
    }
}
