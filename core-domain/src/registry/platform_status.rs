//! The life of a platform.

use std::time::Duration;

use super::Platform;
use crate::kernel::{Code, Error, Reason, Timestamp, text_enum};

/// How long a deleted platform can be restored.
pub const RESTORABLE_FOR: Duration = Duration::from_secs(30 * 24 * 60 * 60);

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

use PlatformStatus::{Active, Cancelled, Deleted, Suspended};

text_enum! {
    /// What happens to a platform.
    pub enum PlatformEvent {
        /// Its callers are to be refused.
        Suspend = "suspend",
        /// It is to be used again.
        Restore = "restore",
        /// It is given up.
        Cancel = "cancel",
        /// It is deleted, and can be restored for 30 days.
        Delete = "delete",
        /// It is removed for good, with all it has.
        HardDelete = "hard_delete",
        /// A `PATCH` sets `active`.
        SetActive = "set_active",
        /// A `PATCH` sets `suspended`.
        SetSuspended = "set_suspended",
        /// A `PATCH` sets `deleted`.
        SetDeleted = "set_deleted",
    }
}

/// A move of a platform.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PlatformMove {
    /// What makes it.
    pub event: PlatformEvent,
    /// The statuses it can be made from.
    pub from: &'static [PlatformStatus],
    /// The status it leads to.
    pub to: PlatformStatus,
    /// What the audit calls it.
    pub action: &'static str,
}

const fn row(
    event: PlatformEvent,
    from: &'static [PlatformStatus],
    to: PlatformStatus,
    action: &'static str,
) -> PlatformMove {
    PlatformMove {
        event,
        from,
        to,
        action,
    }
}

/// All moves. A platform is made `active`. Besides, nothing moves while everything is being removed, and a restore comes
/// too late 30 days after a deletion; a `PATCH` sets any status at any time.
pub const PLATFORM_MOVES: &[PlatformMove] = &[
    row(
        PlatformEvent::Suspend,
        &[Active],
        Suspended,
        "platform.suspended",
    ),
    row(
        PlatformEvent::Restore,
        &[Suspended, Cancelled, Deleted],
        Active,
        "platform.restored",
    ),
    row(
        PlatformEvent::Cancel,
        &[Active, Suspended],
        Cancelled,
        "platform.cancelled",
    ),
    row(
        PlatformEvent::Delete,
        &[Active, Suspended, Cancelled],
        Deleted,
        "platform.deleted",
    ),
    row(
        PlatformEvent::HardDelete,
        &[Active, Suspended, Cancelled, Deleted],
        Deleted,
        "platform.hard_deleted",
    ),
    row(
        PlatformEvent::SetActive,
        &[Suspended, Cancelled, Deleted],
        Active,
        "platform.restored",
    ),
    row(
        PlatformEvent::SetSuspended,
        &[Active, Cancelled, Deleted],
        Suspended,
        "platform.suspended",
    ),
    row(
        PlatformEvent::SetDeleted,
        &[Active, Suspended, Cancelled],
        Deleted,
        "platform.deleted",
    ),
];

impl PlatformEvent {
    /// The row of the table.
    #[must_use]
    pub fn row(self) -> &'static PlatformMove {
        // Every event has a row: a test counts them. The first row is never taken for a missing one.
        PLATFORM_MOVES
            .iter()
            .find(|row| row.event == self)
            .unwrap_or(&PLATFORM_MOVES[0])
    }
}

/// Why a platform does not move.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refusal {
    /// Not from this status.
    Status(PlatformStatus, PlatformEvent),
    /// Everything of it is being removed.
    Purging,
    /// It was deleted too long ago.
    TooLate,
}

impl From<Refusal> for Error {
    fn from(refusal: Refusal) -> Self {
        match refusal {
            Refusal::Status(status, event) => Self::InvalidState {
                status: status.as_str(),
                allowed_from: event.row().from.iter().map(|s| s.as_str()).collect(),
            },
            Refusal::Purging => Self::refused(
                Code::InvalidState,
                "The platform is being removed for good.",
            ),
            Refusal::TooLate => Self::refused(
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
    /// [`Refusal`] says why the event cannot happen to it.
    pub fn after(
        &self,
        event: PlatformEvent,
        reason: Option<&Reason>,
        now: Timestamp,
    ) -> Result<Self, Refusal> {
        if self.purging {
            return Err(Refusal::Purging);
        }
        let row = event.row();
        if !row.from.contains(&self.status) {
            return Err(Refusal::Status(self.status, event));
        }
        let too_late = |deleted: Timestamp| now.since(deleted) > RESTORABLE_FOR;
        if event == PlatformEvent::Restore && self.deleted_at.is_some_and(too_late) {
            return Err(Refusal::TooLate);
        }
        let mut next = self.clone();
        next.status = row.to;
        next.updated_at = now;
        next.purging = event == PlatformEvent::HardDelete;
        next.mark(reason.cloned(), now);
        Ok(next)
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

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::kernel::{Name, PlatformId, Slug};
    use crate::registry::Tier;

    fn made(now: Timestamp) -> Platform {
        Platform {
            id: PlatformId::parse("p1").unwrap(),
            name: Name::parse("Engines").unwrap(),
            slug: Slug::parse("engines").unwrap(),
            status: Active,
            tier: Tier::Starter,
            cf_account_id: None,
            repo_name: None,
            payment_customer_id: None,
            owner_user_id: None,
            organization_id: None,
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

    #[test]
    fn every_event_has_exactly_one_row_and_no_row_stays_where_it_is() {
        for event in PlatformEvent::ALL {
            let rows = PLATFORM_MOVES.iter().filter(|row| row.event == *event);
            assert_eq!(rows.count(), 1, "{event}");
            let kept = event.row().from.contains(&event.row().to);
            assert!(!kept || *event == PlatformEvent::HardDelete, "{event}");
        }
    }

    #[test]
    fn a_deleted_platform_is_restored_within_thirty_days_and_not_a_millisecond_later() {
        let start = Timestamp::from_seconds(1_800_000_000);
        let deleted = made(start)
            .after(PlatformEvent::Delete, None, start)
            .unwrap();
        let last = start.plus(RESTORABLE_FOR);
        let restore = |at| deleted.after(PlatformEvent::Restore, None, at);
        assert_eq!(restore(last).unwrap().status, Active);
        let late = restore(last.plus(Duration::from_millis(1)));
        assert_eq!(late, Err(Refusal::TooLate));
    }

    proptest! {
        #[test]
        fn any_order_of_events_makes_only_the_moves_of_the_table(
            events in prop::collection::vec((prop::sample::select(PlatformEvent::ALL), 0_u64..40), 1..40),
        ) {
            let mut now = Timestamp::from_seconds(1_800_000_000);
            let mut platform = made(now);
            for (event, days) in events {
                now = now.plus(Duration::from_secs(days * 86_400));
                let reason = Reason::parse("because").unwrap();
                let row = PLATFORM_MOVES.iter().find(|row| row.event == event).unwrap();
                let outcome = platform.after(event, Some(&reason), now);
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
