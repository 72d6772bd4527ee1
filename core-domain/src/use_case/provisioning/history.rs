//! The history of jobs, as a list and as a feed that follows new events.

use schemars::JsonSchema;
use serde::Serialize;

use super::undo;
use crate::access::{JobScope, authorize_job, unowned_records};
use crate::kernel::{
    Context, Effect, Error, JobId, ListQuery, Page, PlatformId, Result, Stored, permission,
};
use crate::port::{Mode, Store, UnitOfWork};
use crate::provisioning::{Job, JobEvent, JobEventQuery, Progress};
use crate::use_case::iam;

/// Maximum number of events that one read of a feed returns.
pub(in crate::use_case) const EVENTS_PER_READ: u32 = 200;

/// An event of a job's history, together with the progress of the job.
#[derive(Clone, Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct JobProgressEvent {
    /// The event of the history.
    #[serde(flatten)]
    pub event: JobEvent,
    /// The progress of the job when this event was sent, not when it happened.
    pub progress: Progress,
}

/// Returns the history of a job, newest event first.
///
/// # Errors
/// `INVALID_CURSOR` if the cursor is invalid.
pub async fn history(
    scope: &JobScope<permission::JobRead>,
    uow: &mut dyn UnitOfWork,
    query: &ListQuery,
) -> Result<Page<Stored<JobEvent>>> {
    let of_job = JobEventQuery::Of(scope.job().id.clone());
    unowned_records::<JobEvent>(uow)
        .page(&of_job, &query.uncounted_page())
        .await
}

/// Returns the next events of a job after a position, oldest first, at most [`EVENTS_PER_READ`].
pub(in crate::use_case) async fn events_after(
    uow: &mut dyn UnitOfWork,
    job: &JobId,
    position: i64,
) -> Result<Vec<Stored<JobEvent>>> {
    let after = JobEventQuery::After(job.clone(), position);
    let events = unowned_records::<JobEvent>(uow);
    events.list(&after, EVENTS_PER_READ).await
}

/// A position in the history of a job, for following new events.
#[derive(Clone, Debug)]
pub struct JobFeed {
    cx: Context,
    job: JobId,
    platform: Option<PlatformId>,
    position: i64,
}

/// The result of one read of a feed.
#[derive(Clone, Debug)]
pub struct JobFeedPage {
    /// The events after the position of the feed, oldest first.
    pub events: Vec<JobProgressEvent>,
    /// `true` if more events may be available immediately.
    pub has_more: bool,
    /// `true` if the job and its undo job have ended and these were the last events.
    pub has_ended: bool,
}

/// Creates a feed that starts after the event with this number; without a number, at the first event.
///
/// # Errors
/// `VALIDATION_ERROR` if `last` is not the number of an existing event.
pub fn open_feed(
    cx: &Context,
    scope: &JobScope<permission::JobRead>,
    last: Option<&str>,
) -> Result<JobFeed> {
    let job = scope.job();
    let known = |text: &str| {
        let digits = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
        let seq = text.parse().ok().filter(|seq| *seq <= job.event_count);
        let unknown = || Error::invalid("lastEventId", "unknown", "is not the id of an event");
        seq.filter(|_| digits).ok_or_else(unknown)
    };
    Ok(JobFeed {
        cx: cx.without_conditions(),
        job: job.id.clone(),
        platform: job.platform_id.clone(),
        position: last.map_or(Ok(0), known)?,
    })
}

/// Returns `true` if the job and its undo job have ended.
async fn has_ended(uow: &mut dyn UnitOfWork, job: &Job) -> Result<bool> {
    Ok(job.status.is_terminal() && !undo::is_being_undone(uow, job).await?)
}

impl JobFeed {
    /// Returns the next events and moves the position after them. Authorizes the caller again, in the same snapshot of
    /// the store from which the events are read.
    ///
    /// # Errors
    /// Those of [`Self::authorize_again`].
    pub async fn next(&mut self, store: &dyn Store) -> Result<JobFeedPage> {
        let mut uow = store.begin(Mode::Read).await?;
        let scope = self.authorize(uow.as_mut()).await?;
        let job_events = events_after(uow.as_mut(), &self.job, self.position).await?;
        let more = job_events.len() >= EVENTS_PER_READ as usize;
        if let Some(last) = job_events.last() {
            self.position = last.seq;
        }
        let progress = scope.job().progress();
        let ended = !more && has_ended(uow.as_mut(), scope.job()).await?;
        let with_progress = |job_event: Stored<JobEvent>| JobProgressEvent {
            event: job_event.into_inner(),
            progress: progress.clone(),
        };
        Ok(JobFeedPage {
            events: job_events.into_iter().map(with_progress).collect(),
            has_more: more,
            has_ended: ended,
        })
    }

    /// Authorizes the caller again, with the caller's current permissions.
    ///
    /// # Errors
    /// - `UNAUTHORIZED` if the session or API key has expired or was revoked.
    /// - The errors of [`authorize_job`].
    pub async fn authorize_again(&self, store: &dyn Store) -> Result<()> {
        let mut uow = store.begin(Mode::Read).await?;
        self.authorize(uow.as_mut()).await.map(drop)
    }

    async fn authorize(&self, uow: &mut dyn UnitOfWork) -> Result<JobScope<permission::JobRead>> {
        let caller = iam::current_caller(&self.cx, uow).await?;
        let cx = Context {
            caller,
            ..self.cx.clone()
        };
        authorize_job(&cx, uow, &self.job).await
    }

    /// Returns whether the effect may have changed the caller's access to the job, so that [`Self::authorize_again`]
    /// must be called.
    #[must_use]
    pub fn must_reauthorize_after(&self, effect: &Effect) -> bool {
        effect.changes_access_of(&self.cx.caller, self.platform.as_ref())
    }
}
