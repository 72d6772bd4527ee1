//! The history of jobs: as a list, and followed while it goes on.

use schemars::JsonSchema;
use serde::Serialize;

use super::undo;
use crate::access::{JobScope, authorize_job, unowned};
use crate::kernel::{
    Context, Effect, Error, JobId, ListQuery, Page, PlatformId, Result, Stored, grant,
};
use crate::port::{Mode, Store, UnitOfWork};
use crate::provisioning::{Job, JobEvent, JobEventQuery, Progress};
use crate::use_case::iam;

/// How many entries are read at once.
const PAGE: u32 = 200;

/// An entry of a job's history, and how far the job was when it was told.
#[derive(Clone, Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct JobProgressEvent {
    /// The entry.
    #[serde(flatten)]
    pub event: JobEvent,
    /// How far the job is.
    pub progress: Progress,
}

/// The history of a job, newest first.
///
/// # Errors
/// `INVALID_CURSOR`.
pub async fn history(
    scope: &JobScope<grant::JobRead>,
    uow: &mut dyn UnitOfWork,
    query: &ListQuery,
) -> Result<Page<Stored<JobEvent>>> {
    let of_job = JobEventQuery::Of(scope.job().id.clone());
    unowned::<JobEvent>(uow).page(&of_job, &query.page()).await
}

/// A place in the history of a job.
#[derive(Clone, Debug)]
pub struct JobFeed {
    cx: Context,
    job: JobId,
    platform: Option<PlatformId>,
    position: i64,
}

/// What a feed told when it was asked.
#[derive(Clone, Debug)]
pub struct JobNews {
    /// The entries after the place of the feed, oldest first.
    pub events: Vec<JobProgressEvent>,
    /// Whether there may be more at once.
    pub more: bool,
    /// `true` if the job and its undo job have ended and these were the last events.
    pub ended: bool,
}

/// Opens the history of a job behind the entry with this number, as the caller saw it: from its beginning when none is
/// given.
///
/// # Errors
/// `VALIDATION_ERROR` for a number that no entry has yet.
pub fn follow(
    cx: &Context,
    scope: &JobScope<grant::JobRead>,
    last: Option<&str>,
) -> Result<JobFeed> {
    let job = scope.job();
    let known = |text: &str| {
        let digits = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
        let seq = text.parse().ok().filter(|seq| *seq <= job.event_count);
        let unknown = || Error::invalid("lastEventId", "unknown", "is no event's id");
        seq.filter(|_| digits).ok_or_else(unknown)
    };
    Ok(JobFeed {
        cx: cx.consequence(),
        job: job.id.clone(),
        platform: job.platform_id.clone(),
        position: last.map_or(Ok(0), known)?,
    })
}

/// Returns `true` if the job and its undo job have ended.
async fn has_come_to_rest(uow: &mut dyn UnitOfWork, job: &Job) -> Result<bool> {
    Ok(job.status.is_terminal() && !undo::is_being_undone(uow, job).await?)
}

impl JobFeed {
    /// What comes next; the place moves behind it. The caller is let in again in the state of the store that is told of.
    ///
    /// # Errors
    /// As [`Self::authorize_again`]; when the store failed.
    pub async fn next(&mut self, store: &dyn Store) -> Result<JobNews> {
        let mut uow = store.begin(Mode::Read).await?;
        let scope = self.authorize(uow.as_mut()).await?;
        let after = JobEventQuery::After(self.job.clone(), self.position);
        let entries = unowned::<JobEvent>(uow.as_mut()).list(&after, PAGE).await?;
        let more = entries.len() >= PAGE as usize;
        if let Some(last) = entries.last() {
            self.position = last.seq;
        }
        let progress = scope.job().progress();
        let ended = !more && has_come_to_rest(uow.as_mut(), scope.job()).await?;
        let told = |entry: Stored<JobEvent>| JobProgressEvent {
            event: entry.into_inner(),
            progress: progress.clone(),
        };
        Ok(JobNews {
            events: entries.into_iter().map(told).collect(),
            more,
            ended,
        })
    }

    /// Lets the caller in once more: what they are and may do now, not what they were when they came.
    ///
    /// # Errors
    /// `UNAUTHORIZED` when the session or key has ended; otherwise as [`authorize_job`].
    pub async fn authorize_again(&self, store: &dyn Store) -> Result<()> {
        let mut uow = store.begin(Mode::Read).await?;
        self.authorize(uow.as_mut()).await.map(drop)
    }

    async fn authorize(&self, uow: &mut dyn UnitOfWork) -> Result<JobScope<grant::JobRead>> {
        let caller = iam::current_caller(&self.cx, uow).await?;
        let cx = Context {
            caller,
            ..self.cx.clone()
        };
        authorize_job(&cx, uow, &self.job).await
    }

    /// Tells whether the caller may no longer be let in because of this.
    #[must_use]
    pub fn is_concerned_by(&self, effect: &Effect) -> bool {
        effect.changes_access_of(&self.cx.caller, self.platform.as_ref())
    }
}
