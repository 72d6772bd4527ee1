//! Platforms and their lifecycle (interface: "Platform (registry)").

use std::time::Duration;

use PlatformStatus::{Active, Cancelled, Deleted, Suspended};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

#[cfg(any(test, feature = "proptest"))]
use crate::kernel::strategy::json;
use crate::kernel::{
    Code, Error, IllegalTransition, LifecycleId, Line, Machine, Name, OrganizationId, PlatformId,
    Reason, Slug, Timestamp, UserId, record, state_machine, text_enum, update_command,
};

text_enum! {
    /// The tier of a platform, which limits how much it may use.
    pub enum Tier {
        /// The entry tier.
        Starter = "starter",
        /// The middle tier.
        Growth = "growth",
        /// The highest tier.
        Scale = "scale",
    }
}

impl Tier {
    /// Returns the tier of a platform for which neither billing nor an operator has set another one.
    #[must_use]
    pub const fn starter() -> Self {
        Self::Starter
    }
}

/// The id of an account at the infrastructure provider. 1 to 255 characters.
pub type AccountName = Line<1, 255>;

/// A platform of a customer, with its own entities, resources and configuration.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[cfg_attr(any(test, feature = "proptest"), derive(proptest_derive::Arbitrary))]
pub struct Platform {
    /// The id of the platform. It never changes.
    pub id: PlatformId,
    /// The display name of the platform.
    pub name: Name,
    /// The name of the platform in addresses. It never changes, and is unique among platforms that are not deleted.
    pub slug: Slug,
    /// The status of the platform.
    pub status: PlatformStatus,
    /// The tier of the platform, which limits how much it may use.
    pub tier: Tier,
    /// The platform's account at the infrastructure provider. `null` means the account of the installation.
    pub cf_account_id: Option<AccountName>,
    /// The repository that contains the platform's code. `null` if none is set.
    pub repo_name: Option<Line<1, 255>>,
    /// The id of the platform's customer at the payment provider. `null` if there is none.
    pub payment_customer_id: Option<String>,
    /// The user who created the platform. `null` if no user did.
    pub owner_user_id: Option<UserId>,
    /// The organization that owns the platform. It decides which callers can access the platform.
    #[serde(skip)]
    pub organization_id: Option<OrganizationId>,
    /// When the platform was cancelled. `null` if it was not. A deletion keeps it; a restoration or suspension clears
    /// it.
    pub cancelled_at: Option<Timestamp>,
    /// The reason for the cancellation. `null` if none was given.
    pub cancellation_reason: Option<Reason>,
    /// When the platform was suspended. Requests have been refused since then. Kept if the platform is cancelled or
    /// deleted, until it is restored.
    pub suspended_at: Option<Timestamp>,
    /// The reason for the suspension. `null` if none was given.
    pub suspension_reason: Option<Reason>,
    /// When the trial of the platform ends. `null` if there is none.
    pub trial_ends_at: Option<Timestamp>,
    /// When the platform was created.
    pub created_at: Timestamp,
    /// When the platform was last changed.
    pub updated_at: Timestamp,
    /// When the platform was deleted. `null` if it is not deleted.
    pub deleted_at: Option<Timestamp>,
    /// Whether the platform is being removed permanently. No further event is allowed.
    #[serde(skip)]
    pub purging: bool,
}

record! {
    Platform as "platform" by id, asked PlatformQuery;
    audited in |platform| Some(&platform.id), touched updated_at;
    changes audited as "platform";
}

impl Platform {
    /// Returns whether requests of the platform's callers are refused.
    #[must_use]
    pub const fn is_suspended(&self) -> bool {
        self.suspended_at.is_some()
    }

    /// Creates an active platform.
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

/// The owner of a platform.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PlatformOwner {
    /// The user who created the platform.
    pub user_id: Option<UserId>,
    /// The organization that owns the platform.
    pub organization_id: Option<OrganizationId>,
}

/// Queries for platforms, newest first.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PlatformQuery {
    /// All platforms of the installation.
    All {
        /// Includes deleted platforms.
        deleted: bool,
    },
    /// The platforms of an organization that are not deleted.
    Of(OrganizationId),
    /// The platform with this id, unless it is deleted.
    WithId(PlatformId),
    /// The platforms of an organization, including deleted ones.
    OfIncludingDeleted(OrganizationId),
    /// The platform with this slug that is not deleted.
    WithSlug(Slug),
}

/// Request body that creates a platform.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct CreatePlatform {
    /// The display name of the platform.
    pub name: Name,
    /// The name of the platform in addresses. It never changes.
    pub slug: Slug,
    /// The tier of the platform. Only operators can request a higher tier than `starter`. Default: `starter`.
    #[serde(default = "Tier::starter")]
    pub tier: Tier,
    /// The platform's account at the infrastructure provider. Default: the account of the installation.
    pub cf_account_id: Option<AccountName>,
    /// The repository that contains the platform's code. Default: none.
    pub repo_name: Option<Line<1, 255>>,
}

text_enum! {
    /// The statuses that an update can set.
    pub enum SettableStatus {
        /// The platform accepts requests.
        Active = "active",
        /// Requests are refused with 451.
        Suspended = "suspended",
        /// The platform is deleted.
        Deleted = "deleted",
    }
}

update_command! {
    /// Request body that updates a platform. Omitted fields stay unchanged.
    pub struct UpdatePlatform for Platform {
        set {
            /// The display name of the platform.
            name: Name,
        }
        also {
            /// The tier of the platform. Only operators can change it.
            tier: Option<Tier>,
            /// The new status of the platform. Requires the permission `platform:manage`.
            status: Option<SettableStatus>,
        }
        optional {
            /// The platform's account at the infrastructure provider. `null` means the account of the installation.
            cf_account_id: AccountName,
            /// The repository that contains the platform's code. `null` clears it.
            repo_name: Line<1, 255>,
        }
    }
}

text_enum! {
    /// The status of a platform.
    pub enum PlatformStatus {
        /// The platform accepts requests.
        Active = "active",
        /// Requests are refused with 451.
        Suspended = "suspended",
        /// The owner has cancelled the platform.
        Cancelled = "cancelled",
        /// The platform is deleted. Only operators can list it.
        Deleted = "deleted",
    }
}

state_machine! {
    /// Events of a platform, which is created `active`. No event is allowed while the platform is being removed
    /// permanently. A restoration is refused more than 30 days after the deletion; a `PATCH` of the status has no such
    /// limit.
    pub enum PlatformEvent moves PlatformStatus {
        /// Requests are refused from now on.
        Suspend = "suspend": [Active] => Suspended, "platform.suspended";
        /// The platform is used again.
        Restore = "restore": [Suspended, Cancelled, Deleted] => Active, "platform.restored";
        /// The owner cancels the platform.
        Cancel = "cancel": [Active, Suspended] => Cancelled, "platform.cancelled";
        /// The platform is deleted. It can be restored for 30 days.
        Delete = "delete": [Active, Suspended, Cancelled] => Deleted, "platform.deleted";
        /// The platform is removed permanently, with everything that belongs to it.
        HardDelete = "hard_delete": [Active, Suspended, Cancelled, Deleted] => Deleted, "platform.hard_deleted";
        /// A `PATCH` sets `active`.
        SetActive = "set_active": [Suspended, Cancelled, Deleted] => Active, "platform.restored";
        /// A `PATCH` sets `suspended`.
        SetSuspended = "set_suspended": [Active, Cancelled, Deleted] => Suspended, "platform.suspended";
        /// A `PATCH` sets `deleted`.
        SetDeleted = "set_deleted": [Active, Suspended, Cancelled] => Deleted, "platform.deleted";
    }
}

/// The time after a deletion during which a platform can be restored.
pub const RESTORE_PERIOD: Duration = Duration::from_secs(30 * 24 * 60 * 60);

impl SettableStatus {
    /// Returns the status and the event that sets it.
    #[must_use]
    pub const fn event(self) -> (PlatformStatus, PlatformEvent) {
        match self {
            Self::Active => (Active, PlatformEvent::SetActive),
            Self::Suspended => (Suspended, PlatformEvent::SetSuspended),
            Self::Deleted => (Deleted, PlatformEvent::SetDeleted),
        }
    }
}

/// The reasons why an event cannot be applied to a platform.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PlatformRefusal {
    /// The event is not allowed in the current status.
    Status(IllegalTransition),
    /// The platform is being removed permanently.
    Purging,
    /// The platform was deleted more than 30 days ago.
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
    /// Applies an event, and updates the dates and reasons that depend on the status.
    ///
    /// # Errors
    /// [`PlatformRefusal`] with the reason why the event is not allowed.
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
        let too_late = |deleted: Timestamp| now.since(deleted) > RESTORE_PERIOD;
        if event == PlatformEvent::Restore && self.deleted_at.is_some_and(too_late) {
            return Err(PlatformRefusal::TooLate);
        }
        self.status = status;
        self.purging = event == PlatformEvent::HardDelete;
        self.update_dates_and_reasons(reason.cloned(), now);
        Ok(self)
    }

    /// Updates dates and reasons to match the new status.
    fn update_dates_and_reasons(&mut self, reason: Option<Reason>, now: Timestamp) {
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

/// A change of a platform's status.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[cfg_attr(any(test, feature = "proptest"), derive(proptest_derive::Arbitrary))]
pub struct LifecycleRecord {
    /// The id of the record.
    pub id: LifecycleId,
    /// The platform whose status changed.
    pub platform_id: PlatformId,
    /// The status before the change. `null` if the platform was created.
    pub from_status: Option<PlatformStatus>,
    /// The status after the change.
    pub to_status: PlatformStatus,
    /// The caller that changed the status: the id of a user or API key, or the name of a service.
    pub triggered_by: String,
    /// The kind of the caller: `user`, `api_key`, `service` or `system`.
    pub trigger_type: String,
    /// The reason that the caller gave. `null` if none was given.
    pub reason: Option<Reason>,
    /// The id of the request and the name of the event that changed the status.
    #[cfg_attr(any(test, feature = "proptest"), proptest(strategy = "json()"))]
    pub metadata: Value,
    /// When the status changed.
    pub created_at: Timestamp,
}

record! {
    LifecycleRecord as "lifecycle record" by id, asked LifecycleQuery;
    of platform_id;
}

/// Queries for lifecycle records.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LifecycleQuery {
    /// All records, newest first.
    All,
    /// The records that were created before this time, earliest first.
    CreatedBefore(Timestamp),
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use crate::kernel::{Name, PlatformId, Slug, assert_only_table_moves};

    use super::*;

    fn new_platform(now: Timestamp) -> Platform {
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
    fn a_deleted_platform_can_be_restored_for_exactly_thirty_days() {
        let start = Timestamp::from_seconds(1_800_000_000);
        let deleted = new_platform(start)
            .after(PlatformEvent::Delete, None, start)
            .unwrap();
        let last = start.plus(RESTORE_PERIOD);
        let restore = |at| deleted.clone().after(PlatformEvent::Restore, None, at);
        assert_eq!(restore(last).unwrap().status, Active);
        let late = restore(last.plus(Duration::from_millis(1)));
        assert_eq!(late, Err(PlatformRefusal::TooLate));
    }

    proptest! {
        #[test]
        fn random_events_follow_the_transition_table(
            events in prop::collection::vec(prop::sample::select(PlatformEvent::ALL), 1..40),
        ) {
            assert_only_table_moves(PlatformStatus::Active, &events);
        }

        #[test]
        fn dates_and_reasons_match_the_status_after_any_events(
            events in prop::collection::vec((prop::sample::select(PlatformEvent::ALL), 0_u64..40), 1..40),
        ) {
            let mut now = Timestamp::from_seconds(1_800_000_000);
            let mut platform = new_platform(now);
            for (event, days) in events {
                now = now.plus(Duration::from_secs(days * 86_400));
                let reason = Reason::parse("because").unwrap();
                let row = event.transition();
                let outcome = platform.clone().after(event, Some(&reason), now);
                let late = event == PlatformEvent::Restore
                    && platform.deleted_at.is_some_and(|at| now.since(at) > RESTORE_PERIOD);
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
