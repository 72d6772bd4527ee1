//! How a deployment moves.

use super::{Deployment, DeploymentEvent, DeploymentStatus};
use crate::kernel::{IllegalMove, Machine, Timestamp, update_command};
use DeploymentStatus::Queued;

update_command! {
    /// Changes a deployment that has not ended.
    pub struct DeploymentChange for Deployment {
        also {
            /// Where it stands.
            status: Option<DeploymentStatus>,
        }
        optional {
            /// Its id at the provider; `null` takes it away.
            #[schemars(length(max = 255))]
            cf_deployment_id: String,
            /// Where it is served; `null` takes it away.
            #[schemars(length(max = 2048))]
            url: String,
            /// Why it did not work; `null` takes it away.
            #[schemars(length(max = 2048))]
            error_message: String,
            /// How many files it has; `null` takes it away.
            #[schemars(range(min = 0))]
            file_count: i64,
            /// How large they are in all, in bytes; `null` takes it away.
            #[schemars(range(min = 0))]
            total_bytes: i64,
        }
    }
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
        change.clone().apply_to(&mut next);
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

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::kernel::{DeploymentId, Line, Patch, PlatformId, assert_only_table_moves};
    use crate::registry::{Branch, CreateDeployment};

    fn asked_for() -> Deployment {
        let command = CreateDeployment {
            idempotency_key: Line::parse("k").unwrap(),
            user_id: Line::parse("ada").unwrap(),
            project_name: Line::parse("engines-site").unwrap(),
            branch: Branch::production(),
        };
        let (id, platform) = (DeploymentId::parse("d1"), PlatformId::parse("p1"));
        Deployment::create(id.unwrap(), &platform.unwrap(), command, Timestamp::EPOCH)
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
                let url = url.map_or(Patch::Keep, Patch::Set);
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
