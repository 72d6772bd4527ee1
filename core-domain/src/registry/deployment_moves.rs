//! How a deployment moves.

use super::{Deployment, DeploymentEvent, DeploymentStatus};
use crate::kernel::{IllegalMove, Machine, Timestamp};
use DeploymentStatus::Queued;

/// What changes about a deployment; `None` stays as it is.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DeploymentChange {
    /// Where it stands.
    pub status: Option<DeploymentStatus>,
    /// Its id at the provider.
    pub cf_deployment_id: Option<String>,
    /// Where it is served.
    pub url: Option<String>,
    /// Why it did not work.
    pub error_message: Option<String>,
    /// How many files it has.
    pub file_count: Option<i64>,
    /// How large they are in all.
    pub total_bytes: Option<i64>,
}

impl Deployment {
    /// The deployment after a change, and the event that was. When work begins and when it ends is noted by itself.
    ///
    /// # Errors
    /// [`IllegalMove`] for a change of one that has ended, and for a move that is not in the table.
    pub fn after(
        &self,
        change: &DeploymentChange,
        now: Timestamp,
    ) -> Result<(Self, Option<DeploymentEvent>), IllegalMove> {
        let status = change.status.unwrap_or(self.status);
        let event = DeploymentEvent::between(self.status, status)?;
        let mut next = self.clone();
        next.status = status;
        set(&mut next.cf_deployment_id, &change.cf_deployment_id);
        set(&mut next.url, &change.url);
        set(&mut next.error_message, &change.error_message);
        set(&mut next.file_count, &change.file_count);
        set(&mut next.total_bytes, &change.total_bytes);
        if next == *self {
            return Ok((next, None));
        }
        if self.status.is_terminal() {
            let in_flight = DeploymentStatus::IN_FLIGHT.iter().copied();
            return Err(IllegalMove::new(self.status, in_flight));
        }
        if status != Queued {
            next.started_at = next.started_at.or(Some(now));
        }
        if status.is_terminal() {
            next.completed_at = Some(now);
        }
        Ok((next, event))
    }
}

fn set<T: Clone>(field: &mut Option<T>, wanted: &Option<T>) {
    if wanted.is_some() {
        field.clone_from(wanted);
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::kernel::{DeploymentId, PlatformId, assert_only_table_moves};

    fn asked_for() -> Deployment {
        Deployment {
            id: DeploymentId::parse("d1").unwrap(),
            idempotency_key: "k".into(),
            platform_id: PlatformId::parse("p1").unwrap(),
            user_id: "ada".into(),
            cf_deployment_id: None,
            project_name: "engines-site".into(),
            branch: "production".into(),
            url: None,
            error_message: None,
            status: Queued,
            file_count: None,
            total_bytes: None,
            started_at: None,
            completed_at: None,
            created_at: Timestamp::EPOCH,
            updated_at: Timestamp::EPOCH,
            content_hash: None,
            job_id: None,
        }
    }

    fn rank(status: DeploymentStatus) -> usize {
        DeploymentStatus::ALL
            .iter()
            .position(|s| *s == status)
            .unwrap()
            .min(3)
    }

    proptest! {
        #[test]
        fn any_sequence_of_events_makes_only_the_moves_of_the_table(
            events in prop::collection::vec(prop::sample::select(DeploymentEvent::ALL), 1..30),
        ) {
            assert_only_table_moves(Queued, &events);
        }

        #[test]
        fn a_deployment_goes_forward_alone_and_never_changes_once_it_has_ended(
            wishes in prop::collection::vec((prop::option::of(prop::sample::select(DeploymentStatus::ALL)), prop::option::of("[a-z]{3}")), 1..30),
        ) {
            let mut deployment = asked_for();
            for (second, (status, url)) in wishes.into_iter().enumerate() {
                let now = Timestamp::from_seconds(i64::try_from(second).unwrap() + 1);
                let change = DeploymentChange { status, url, ..DeploymentChange::default() };
                let outcome = deployment.after(&change, now);
                if deployment.status.is_terminal() {
                    prop_assert!(outcome.is_err() || outcome.unwrap().0 == deployment);
                    continue;
                }
                let Ok((next, _)) = outcome else {
                    prop_assert!(status.is_some_and(|to| rank(to) < rank(deployment.status)));
                    continue;
                };
                prop_assert!(rank(next.status) >= rank(deployment.status));
                prop_assert_eq!(next.completed_at.is_some(), next.status.is_terminal());
                prop_assert_eq!(next.started_at.is_some(), next.status != Queued);
                prop_assert!(deployment.started_at.is_none() || next.started_at == deployment.started_at);
                deployment = next;
            }
        }
    }
}
