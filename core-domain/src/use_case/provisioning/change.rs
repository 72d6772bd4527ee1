//! What becomes of a job in a unit of work: one or several moves, written as one row with an entry of its history for
//! each.

use super::lane::Lanes;
use crate::access::{unaudited, unowned};
use crate::kernel::{Context, JobEventId, JobId, Result, Stored, Timestamp};
use crate::port::UnitOfWork;
use crate::provisioning::{
    Actor, Job, JobEvent, JobLease, JobLeaseQuery, JobStatus, LaneKey, LanePlace, Moved, Refusal,
    Trigger, apply,
};

/// A job before and after its moves.
#[derive(Debug)]
pub(super) struct Change {
    /// As it is stored.
    pub before: Stored<Job>,
    /// As it shall be.
    pub after: Job,
    /// One entry of its history for each move.
    pub events: Vec<JobEvent>,
    /// Where in its lane it goes, if it does not keep its position.
    pub lane_place: Option<LanePlace>,
    /// The lease that begins with it: a claim has one.
    pub lease: Option<JobLease>,
}

impl Change {
    /// Makes the moves that the triggers ask for, one after the other, until the job leaves its status for another one than
    /// `RUNNING`.
    ///
    /// # Errors
    /// [`Refusal`] of the first move that cannot be made; nothing is to be written then.
    pub(super) fn plan(
        cx: &Context,
        actor: &Actor,
        before: Stored<Job>,
        triggers: &[Trigger],
        now: Timestamp,
    ) -> Result<Self, Refusal> {
        let mut after: Option<Job> = None;
        let mut events = Vec::with_capacity(triggers.len());
        let mut lane_place = None;
        for trigger in triggers {
            let job = after.as_ref().unwrap_or(&before);
            let from = job.status;
            if before.status != from && from != JobStatus::Running {
                break;
            }
            let mut moved = apply(job, trigger, now, cx.entropy.as_ref())?;
            moved.job.event_count += 1;
            lane_place = lane_place.or(moved.lane_place);
            events.push(event_of(cx, actor, from, &mut moved, now));
            after = Some(moved.job);
        }
        Ok(Self {
            after: after.unwrap_or_else(|| (*before).clone()),
            before,
            events,
            lane_place,
            lease: None,
        })
    }

    /// Whether the job has changed hands or status: its lease and its lane follow then.
    pub(super) fn fences(&self) -> bool {
        self.before.fence != self.after.fence
    }

    /// Brings the job's lane up to date, when hands or status change.
    pub(super) fn update_lane(&self, lanes: &mut Lanes, now: Timestamp) {
        if !self.fences() {
            return;
        }
        if let Some(lane) = lanes.get_mut(&self.after.lane) {
            lane.follow(Some(&self.before), &self.after, now);
        }
    }

    fn ends_lease(&self) -> bool {
        self.fences() && self.before.status == JobStatus::Running
    }
}

fn event_of(
    cx: &Context,
    actor: &Actor,
    from: JobStatus,
    moved: &mut Moved,
    now: Timestamp,
) -> JobEvent {
    JobEvent {
        id: JobEventId::generate(now, cx.entropy.as_ref()),
        job_id: moved.job.id.clone(),
        seq: moved.job.event_count,
        at: now,
        event_type: moved.by.as_str().to_owned(),
        from_status: Some(from),
        to_status: moved.job.status,
        step: moved.step.take(),
        fence: moved.job.fence,
        actor: actor.clone(),
        reason: moved.reason.take(),
        request_id: Some(cx.request.request_id.clone()).filter(|id| !id.is_empty()),
    }
}

/// What was written.
#[derive(Debug, Default)]
pub(super) struct Written {
    /// The jobs, in the order of their changes.
    pub jobs: Vec<Stored<Job>>,
    /// The lanes that can be claimed now.
    pub ready: Vec<LaneKey>,
}

/// Writes jobs that moved, with their lanes, leases and history: one statement for each table and kind of write. The
/// lanes of all changes of hands or status are in `lanes`; a lease exists exactly while a job runs, with its fence.
///
/// # Errors
/// [`StoreError::Retry`](crate::kernel::StoreError::Retry) when somebody changed a job or a lane in between.
pub(super) async fn write_changes(
    uow: &mut dyn UnitOfWork,
    changes: Vec<Change>,
    mut lanes: Lanes,
    now: Timestamp,
) -> Result<Written> {
    for change in &changes {
        change.update_lane(&mut lanes, now);
    }
    lanes.settle(now);
    write_settled(uow, changes, lanes).await
}

/// As [`write_changes`], with lanes that have followed their jobs and were settled.
///
/// # Errors
/// As [`write_changes`].
pub(super) async fn write_settled(
    uow: &mut dyn UnitOfWork,
    changes: Vec<Change>,
    lanes: Lanes,
) -> Result<Written> {
    let ready = lanes.write(uow).await?;
    if changes.is_empty() {
        return Ok(Written {
            jobs: Vec::new(),
            ready,
        });
    }
    let (mut ended, mut begun) = (Vec::new(), Vec::new());
    let (mut events, mut jobs) = (Vec::new(), Vec::with_capacity(changes.len()));
    for change in changes {
        if change.ends_lease() {
            ended.push(change.before.id.clone());
        }
        begun.extend(change.lease);
        events.extend(change.events);
        jobs.push((change.before, change.after));
    }
    let jobs = unaudited::replace_many(uow, jobs).await?;
    end_leases(uow, ended).await?;
    if !begun.is_empty() {
        unaudited::append_many(uow, begun).await?;
    }
    unaudited::append_many(uow, events).await?;
    Ok(Written { jobs, ready })
}

/// Removes the leases of these jobs, however often they were prolonged: whoever has changed the job ends its lease.
async fn end_leases(uow: &mut dyn UnitOfWork, jobs: Vec<JobId>) -> Result<()> {
    if !jobs.is_empty() {
        let of_jobs = JobLeaseQuery::OfJobs(jobs);
        unowned::<JobLease>(uow).remove_all(&of_jobs).await?;
    }
    Ok(())
}
