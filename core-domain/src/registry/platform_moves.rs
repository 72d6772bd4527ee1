//! How a platform moves, and why it does not.

use std::time::Duration;

use PlatformStatus::{Active, Cancelled, Deleted, Suspended};

use super::{Platform, PlatformEvent, PlatformStatus, SettableStatus};
use crate::kernel::{Code, Error, IllegalMove, Machine, Reason, Timestamp};

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

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::kernel::{Name, PlatformId, Slug, assert_only_table_moves};
    use crate::registry::{CreatePlatform, PlatformOwner, Tier};

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
