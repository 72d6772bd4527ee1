//! The progress of a deployment as a feed: the events of its job, or its status changes if it has no job.

use crate::access::{PlatformScope, authorize};
use crate::kernel::{Context, DeploymentId, Effect, Error, PlatformId, Result, Stored, permission};
use crate::port::{Mode, Store, UnitOfWork};
use crate::provisioning::JobEvent;
use crate::registry::Deployment;
use crate::use_case::iam;
use crate::use_case::provisioning::{EVENTS_PER_READ, events_after};
use crate::use_case::registry::deployment;

type Reads = PlatformScope<permission::DeploymentRead>;

/// A step of the progress of a deployment.
#[derive(Clone, Debug)]
pub struct DeploymentEvent {
    /// The number of the event. It grows with every event of the deployment.
    pub id: i64,
    /// The deployment at the time of the read.
    pub deployment: Stored<Deployment>,
    /// The event of the deployment's job; `None` if the deployment has no job.
    pub job_event: Option<JobEvent>,
}

/// A position among the events of a deployment, for following new ones.
#[derive(Clone, Debug)]
pub struct DeploymentFeed {
    cx: Context,
    platform: PlatformId,
    deployment: DeploymentId,
    /// The number of the last event that was read.
    position: i64,
}

/// The result of one read of the feed.
#[derive(Clone, Debug)]
pub struct DeploymentFeedPage {
    /// The events after the position of the feed, oldest first.
    pub events: Vec<DeploymentEvent>,
    /// `true` if more events may be available immediately.
    pub has_more: bool,
    /// `true` if the deployment has ended and these were its last events.
    pub has_ended: bool,
}

/// Creates a feed that starts after the event with this number; without a number, at the first event.
///
/// # Errors
/// `VALIDATION_ERROR` if `last` is not the number of an event.
pub fn open_deployment_feed(
    cx: &Context,
    scope: &Reads,
    deployment: &DeploymentId,
    last: Option<&str>,
) -> Result<DeploymentFeed> {
    let parse = |text: &str| {
        let is_number = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
        let number = text.parse().ok().filter(|_| is_number);
        number.ok_or_else(|| Error::invalid("lastEventId", "unknown", "is not the id of an event"))
    };
    Ok(DeploymentFeed {
        cx: cx.without_conditions(),
        platform: scope.id().clone(),
        deployment: deployment.clone(),
        position: last.map_or(Ok(0), parse)?,
    })
}

impl DeploymentFeed {
    /// Returns the next events and moves the position after them. Authorizes the caller again, in the same snapshot of
    /// the store from which the events are read.
    ///
    /// # Errors
    /// Those of [`Self::authorize_again`], and `NOT_FOUND` if the platform has no such deployment.
    pub async fn next(&mut self, store: &dyn Store) -> Result<DeploymentFeedPage> {
        let mut uow = store.begin(Mode::Read).await?;
        let scope = self.authorize(uow.as_mut()).await?;
        let seen = deployment::get(&scope, uow.as_mut(), &self.deployment).await?;
        let events = match seen.job_id.clone() {
            Some(job) => {
                let job_events = events_after(uow.as_mut(), &job, self.position).await?;
                if job_events.is_empty() && self.position == 0 && seen.status.is_terminal() {
                    // The job and its events were removed because of their age.
                    let last = self.status_change(&seen).into_iter().collect();
                    return Ok(self.page(&seen, last));
                }
                let job_events = job_events.into_iter();
                let of_job = job_events.map(|event| DeploymentEvent {
                    id: event.seq,
                    deployment: seen.clone(),
                    job_event: Some(event.into_inner()),
                });
                of_job.collect()
            }
            None => self.status_change(&seen).into_iter().collect(),
        };
        Ok(self.page(&seen, events))
    }

    /// Returns the current status as an event, unless it was read before.
    fn status_change(&self, seen: &Stored<Deployment>) -> Option<DeploymentEvent> {
        let id = seen.version();
        (id > self.position).then(|| DeploymentEvent {
            id,
            deployment: seen.clone(),
            job_event: None,
        })
    }

    fn page(&mut self, seen: &Deployment, events: Vec<DeploymentEvent>) -> DeploymentFeedPage {
        let has_more = events.len() >= EVENTS_PER_READ as usize;
        self.position = events.last().map_or(self.position, |last| last.id);
        DeploymentFeedPage {
            has_ended: !has_more && seen.status.is_terminal(),
            has_more,
            events,
        }
    }

    /// Authorizes the caller again, with the caller's current permissions.
    ///
    /// # Errors
    /// - `UNAUTHORIZED` if the session or API key has expired or was revoked.
    /// - The errors of [`authorize`].
    pub async fn authorize_again(&self, store: &dyn Store) -> Result<()> {
        let mut uow = store.begin(Mode::Read).await?;
        self.authorize(uow.as_mut()).await.map(drop)
    }

    async fn authorize(&self, uow: &mut dyn UnitOfWork) -> Result<Reads> {
        let caller = iam::current_caller(&self.cx, uow).await?;
        let cx = Context {
            caller,
            ..self.cx.clone()
        };
        authorize(&cx, uow, &self.platform).await
    }

    /// Returns whether the effect may have changed the caller's access, so that [`Self::authorize_again`] must be
    /// called.
    #[must_use]
    pub fn must_reauthorize_after(&self, effect: &Effect) -> bool {
        effect.changes_access_of(&self.cx.caller, Some(&self.platform))
    }
}
