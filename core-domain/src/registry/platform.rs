//! Platforms (interface: "Platform (registry)").

use std::time::Duration;

use PlatformStatus::{Active, Cancelled, Deleted, Suspended};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

#[cfg(any(test, feature = "proptest"))]
use crate::kernel::strategy::json;
use crate::kernel::{
    Code, Error, IllegalMove, LifecycleId, Line, Machine, Name, OrganizationId, PlatformId, Reason,
    Slug, Timestamp, UserId, record, state_machine, text_enum, update_command,
};

text_enum! {
    /// How much a platform may use.
    pub enum Tier {
        /// To begin with.
        Starter = "starter",
        /// More.
        Growth = "growth",
        /// Most.
        Scale = "scale",
    }
}

impl Tier {
    /// What a platform has until billing or an operator says otherwise.
    #[must_use]
    pub const fn starter() -> Self {
        Self::Starter
    }
}

/// The id of an account at the infrastructure provider.
pub type AccountName = Line<1, 255>;

/// A platform: the tenant of the suite.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[cfg_attr(any(test, feature = "proptest"), derive(proptest_derive::Arbitrary))]
pub struct Platform {
    /// The platform's id; never changes.
    pub id: PlatformId,
    /// What people call it.
    pub name: Name,
    /// Its name in addresses; no two platforms that are not deleted share one. Never changes.
    pub slug: Slug,
    /// Where it stands.
    pub status: PlatformStatus,
    /// How much it may use.
    pub tier: Tier,
    /// Its account at the infrastructure provider; the installation's own when there is none.
    pub cf_account_id: Option<AccountName>,
    /// The repository its code is in.
    pub repo_name: Option<Line<1, 255>>,
    /// Its customer at the payment provider.
    pub payment_customer_id: Option<String>,
    /// Who set it up.
    pub owner_user_id: Option<UserId>,
    /// The organization it belongs to; decides which callers reach it.
    #[serde(skip)]
    pub organization_id: Option<OrganizationId>,
    /// Since when it is cancelled.
    pub cancelled_at: Option<Timestamp>,
    /// Why.
    pub cancellation_reason: Option<Reason>,
    /// Since when its callers are refused. Kept while it is cancelled or deleted, until it is restored.
    pub suspended_at: Option<Timestamp>,
    /// Why.
    pub suspension_reason: Option<Reason>,
    /// When its trial ends.
    pub trial_ends_at: Option<Timestamp>,
    /// When it was created.
    pub created_at: Timestamp,
    /// When it was last changed.
    pub updated_at: Timestamp,
    /// When it was deleted.
    pub deleted_at: Option<Timestamp>,
    /// Whether everything of it is being removed for good. Nothing of it changes any more.
    #[serde(skip)]
    pub purging: bool,
}

record! {
    Platform as "platform" by id, asked PlatformQuery;
    audited in |platform| Some(&platform.id), touched updated_at;
}

impl Platform {
    /// Tells whether its callers are refused.
    #[must_use]
    pub const fn is_suspended(&self) -> bool {
        self.suspended_at.is_some()
    }

    /// A new platform.
    #[must_use]
    pub fn create(
        id: PlatformId,
        owner: PlatformOwner,
        command: CreatePlatform,
        now: Timestamp,
    ) -> Self {
        Self {
            id,
            name: command.name,
            slug: command.slug,
            status: PlatformStatus::Active,
            tier: command.tier,
            cf_account_id: command.cf_account_id,
            repo_name: command.repo_name,
            payment_customer_id: None,
            owner_user_id: owner.user_id,
            organization_id: owner.organization_id,
            cancelled_at: None,
            cancellation_reason: None,
            suspended_at: None,
            suspension_reason: None,
            trial_ends_at: None,
            created_at: now,
            updated_at: now,
            deleted_at: None,
            purging: false,
        }
    }
}

/// Whose a platform is.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PlatformOwner {
    /// Who set it up.
    pub user_id: Option<UserId>,
    /// The organization it belongs to.
    pub organization_id: Option<OrganizationId>,
}

/// Questions about platforms; newest first.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PlatformQuery {
    /// All.
    All {
        /// Deleted ones too.
        deleted: bool,
    },
    /// Those of an organization that are not deleted.
    Of(OrganizationId),
    /// The one with this id, provided it is not deleted.
    WithId(PlatformId),
    /// Those that belong to an organization, deleted ones too.
    BelongingTo(OrganizationId),
    /// The one with this slug that is not deleted.
    WithSlug(Slug),
}

/// Creates a platform.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct CreatePlatform {
    /// What people call it.
    pub name: Name,
    /// Its name in addresses.
    pub slug: Slug,
    /// How much it may use; operators and billing give more than `starter`.
    #[serde(default = "Tier::starter")]
    pub tier: Tier,
    /// Its account at the infrastructure provider.
    pub cf_account_id: Option<AccountName>,
    /// The repository its code is in.
    pub repo_name: Option<Line<1, 255>>,
}

text_enum! {
    /// The statuses a change sets by name.
    pub enum SettableStatus {
        /// To be used again.
        Active = "active",
        /// Its callers are to be refused.
        Suspended = "suspended",
        /// To be deleted.
        Deleted = "deleted",
    }
}

update_command! {
    /// Changes a platform.
    pub struct UpdatePlatform for Platform {
        set {
            /// What people call it.
            name: Name,
        }
        also {
            /// How much it may use; for operators.
            tier: Option<Tier>,
            /// Where it stands; needs `platform:manage`.
            status: Option<SettableStatus>,
        }
        optional {
            /// Its account at the infrastructure provider; `null` takes it away.
            cf_account_id: AccountName,
            /// The repository its code is in; `null` takes it away.
            repo_name: Line<1, 255>,
        }
    }
}

text_enum! {
    /// Where a platform stands.
    pub enum PlatformStatus {
        /// In use.
        Active = "active",
        /// Its callers are refused.
        Suspended = "suspended",
        /// Given up by its owner.
        Cancelled = "cancelled",
        /// Gone from every list.
        Deleted = "deleted",
    }
}

state_machine! {
    /// What happens to a platform. It is created `active`. Besides, nothing moves while everything is being removed, and a
    /// restore comes too late 30 days after a deletion; a `PATCH` sets any status at any time.
    pub enum PlatformEvent moves PlatformStatus {
        /// Its callers are to be refused.
        Suspend = "suspend": [Active] => Suspended, "platform.suspended";
        /// It is to be used again.
        Restore = "restore": [Suspended, Cancelled, Deleted] => Active, "platform.restored";
        /// It is given up.
        Cancel = "cancel": [Active, Suspended] => Cancelled, "platform.cancelled";
        /// It is deleted, and can be restored for 30 days.
        Delete = "delete": [Active, Suspended, Cancelled] => Deleted, "platform.deleted";
        /// It is removed for good, with all it has.
        HardDelete = "hard_delete": [Active, Suspended, Cancelled, Deleted] => Deleted, "platform.hard_deleted";
        /// A `PATCH` sets `active`.
        SetActive = "set_active": [Suspended, Cancelled, Deleted] => Active, "platform.restored";
        /// A `PATCH` sets `suspended`.
        SetSuspended = "set_suspended": [Active, Cancelled, Deleted] => Suspended, "platform.suspended";
        /// A `PATCH` sets `deleted`.
        SetDeleted = "set_deleted": [Active, Suspended, Cancelled] => Deleted, "platform.deleted";
    }
}

/// How long a deleted platform can be restored.
pub const RESTORABLE_FOR: Duration = Duration::from_secs(30 * 24 * 60 * 60);

impl SettableStatus {
    /// The status, and the event that sets it.
    #[must_use]
    pub const fn event(self) -> (PlatformStatus, PlatformEvent) {
        match self {
            Self::Active => (Active, PlatformEvent::SetActive),
            Self::Suspended => (Suspended, PlatformEvent::SetSuspended),
            Self::Deleted => (Deleted, PlatformEvent::SetDeleted),
        }
    }
}

/// Why a platform does not move.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PlatformRefusal {
    /// Not from its status.
    Status(IllegalMove),
    /// Everything of it is being removed.
    Purging,
    /// It was deleted too long ago.
    TooLate,
}

impl From<PlatformRefusal> for Error {
    fn from(refusal: PlatformRefusal) -> Self {
        match refusal {
            PlatformRefusal::Status(illegal) => illegal.into(),
            PlatformRefusal::Purging => Self::refused(
                Code::InvalidState,
                "The platform is being removed for good.",
            ),
            PlatformRefusal::TooLate => Self::refused(
                Code::InvalidState,
                "The platform was deleted more than 30 days ago.",
            ),
        }
    }
}

impl Platform {
    /// The platform after an event.
    ///
    /// # Errors
    /// [`PlatformRefusal`] says why the event cannot happen to it.
    pub fn after(
        mut self,
        event: PlatformEvent,
        reason: Option<&Reason>,
        now: Timestamp,
    ) -> Result<Self, PlatformRefusal> {
        if self.purging {
            return Err(PlatformRefusal::Purging);
        }
        let status = event.next(self.status).map_err(PlatformRefusal::Status)?;
        let too_late = |deleted: Timestamp| now.since(deleted) > RESTORABLE_FOR;
        if event == PlatformEvent::Restore && self.deleted_at.is_some_and(too_late) {
            return Err(PlatformRefusal::TooLate);
        }
        self.status = status;
        self.purging = event == PlatformEvent::HardDelete;
        self.mark(reason.cloned(), now);
        Ok(self)
    }

    /// Makes dates and reasons fit the status that has just been entered.
    fn mark(&mut self, reason: Option<Reason>, now: Timestamp) {
        if self.status != Deleted {
            self.deleted_at = None;
        }
        if matches!(self.status, Active | Suspended) {
            self.cancelled_at = None;
            self.cancellation_reason = None;
        }
        match self.status {
            Active => {
                self.suspended_at = None;
                self.suspension_reason = None;
            }
            Suspended => {
                self.suspended_at = Some(now);
                self.suspension_reason = reason;
            }
            Cancelled => {
                self.cancelled_at = Some(now);
                self.cancellation_reason = reason;
            }
            Deleted => self.deleted_at = self.deleted_at.or(Some(now)),
        }
    }
}

/// A change of a platform's status (interface: "Platform lifecycle record").
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[cfg_attr(any(test, feature = "proptest"), derive(proptest_derive::Arbitrary))]
pub struct LifecycleRecord {
    /// The record's id.
    pub id: LifecycleId,
    /// The platform.
    pub platform_id: PlatformId,
    /// The status before; `None` when the platform was created.
    pub from_status: Option<PlatformStatus>,
    /// The status after.
    pub to_status: PlatformStatus,
    /// Who did it: a user's id or the name of a service.
    pub triggered_by: String,
    /// What kind of caller that is: `user`, `service` or `system`.
    pub trigger_type: String,
    /// Why, in their words.
    pub reason: Option<Reason>,
    /// The request behind it and the event.
    #[cfg_attr(any(test, feature = "proptest"), proptest(strategy = "json()"))]
    pub metadata: Value,
    /// When.
    pub created_at: Timestamp,
}

record! {
    LifecycleRecord as "lifecycle record" by id, asked LifecycleQuery;
    of platform_id;
}

/// Questions about the lifecycle records of a platform.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LifecycleQuery {
    /// All, newest first.
    All,
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use crate::kernel::{Name, PlatformId, Slug, assert_only_table_moves};

    use super::*;

    fn created(now: Timestamp) -> Platform {
        let command = CreatePlatform {
            name: Name::parse("Engines").unwrap(),
            slug: Slug::parse("engines").unwrap(),
            tier: Tier::Starter,
            cf_account_id: None,
            repo_name: None,
        };
        let id = PlatformId::parse("p1").unwrap();
        Platform::create(id, PlatformOwner::default(), command, now)
    }

    #[test]
    fn a_deleted_platform_is_restored_within_thirty_days_and_not_a_millisecond_later() {
        let start = Timestamp::from_seconds(1_800_000_000);
        let deleted = created(start)
            .after(PlatformEvent::Delete, None, start)
            .unwrap();
        let last = start.plus(RESTORABLE_FOR);
        let restore = |at| deleted.clone().after(PlatformEvent::Restore, None, at);
        assert_eq!(restore(last).unwrap().status, Active);
        let late = restore(last.plus(Duration::from_millis(1)));
        assert_eq!(late, Err(PlatformRefusal::TooLate));
    }

    proptest! {
        #[test]
        fn any_sequence_of_events_makes_only_the_moves_of_the_table(
            events in prop::collection::vec(prop::sample::select(PlatformEvent::ALL), 1..40),
        ) {
            assert_only_table_moves(PlatformStatus::Active, &events);
        }

        #[test]
        fn whatever_happens_dates_and_reasons_fit_the_status(
            events in prop::collection::vec((prop::sample::select(PlatformEvent::ALL), 0_u64..40), 1..40),
        ) {
            let mut now = Timestamp::from_seconds(1_800_000_000);
            let mut platform = created(now);
            for (event, days) in events {
                now = now.plus(Duration::from_secs(days * 86_400));
                let reason = Reason::parse("because").unwrap();
                let row = event.of_event();
                let outcome = platform.clone().after(event, Some(&reason), now);
                let late = event == PlatformEvent::Restore
                    && platform.deleted_at.is_some_and(|at| now.since(at) > RESTORABLE_FOR);
                let possible = !platform.purging && row.from.contains(&platform.status) && !late;
                prop_assert_eq!(outcome.is_ok(), possible);
                let Ok(next) = outcome else { continue };
                prop_assert_eq!(next.status, row.to);
                prop_assert_eq!((&next.id, &next.slug, next.created_at), (&platform.id, &platform.slug, platform.created_at));
                prop_assert_eq!(next.deleted_at.is_some(), next.status == Deleted);
                prop_assert!(next.status != Active || !next.is_suspended() && next.cancelled_at.is_none());
                prop_assert!(next.status != Suspended || next.suspended_at == Some(now));
                prop_assert!(next.status != Cancelled || next.cancellation_reason.is_some());
                prop_assert_eq!(next.suspended_at.is_some(), next.suspension_reason.is_some());
                prop_assert_eq!(next.purging, event == PlatformEvent::HardDelete);
                platform = next;
            }
        }
    }
}
