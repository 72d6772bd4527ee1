//! Planned changes of jobs, and the writes that store them with their lanes, leases and history.

use super::lane::Lanes;
use crate::access::{unaudited, unowned_records};
use crate::kernel::{Context, Effect, JobEventId, JobId, Result, Stored, Timestamp};
use crate::port::UnitOfWork;
use crate::provisioning::{
    Actor, Job, JobEvent, JobLease, JobLeaseQuery, JobStatus, LaneKey, LanePlace, Refusal,
    Transition, Trigger, apply,
};

/// A job before and after its transitions.
#[derive(Debug)]
pub(super) struct JobChange {
    /// The job as stored.
    pub before: Stored<Job>,
    /// The job as it will be written.
    pub after: Job,
    /// The events to add to its history, one per transition.
    pub events: Vec<JobEvent>,
    /// The new place of the job in its lane; `None` if it keeps its position.
    pub lane_place: Option<LanePlace>,
    /// The lease to create; only a claim has one.
    pub lease: Option<JobLease>,
}

impl JobChange {
    /// Makes the transitions that the triggers request, in order. Stops when the job has reached another status that is
    /// not `RUNNING`; the remaining triggers are ignored.
    ///
    /// # Errors
    /// The [`Refusal`] of the first transition that is not allowed. The caller must then write nothing.
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

    /// Returns whether the fence has changed. The lease and the lane must be updated in that case.
    pub(super) fn changes_fence(&self) -> bool {
        self.before.fence != self.after.fence
    }

    /// Updates the job's lane if the fence has changed.
    pub(super) fn update_lane(&self, lanes: &mut Lanes, now: Timestamp) {
        if !self.changes_fence() {
            return;
        }
        if let Some(lane) = lanes.get_mut(&self.after.lane) {
            lane.update_job(Some(&self.before), &self.after, now);
        }
    }

    fn ends_lease(&self) -> bool {
        self.changes_fence() && self.before.status == JobStatus::Running
    }
}

fn event_of(
    cx: &Context,
    actor: &Actor,
    from: JobStatus,
    moved: &mut Transition,
    now: Timestamp,
) -> JobEvent {
    JobEvent {
        id: JobEventId::generate(now, cx.entropy.as_ref()),
        job_id: moved.job.id.clone(),
        seq: moved.job.event_count,
        at: now,
        event_type: moved.job_move.as_str().to_owned(),
        from_status: Some(from),
        to_status: moved.job.status,
        step: moved.step.take(),
        fence: moved.job.fence,
        actor: actor.clone(),
        reason: moved.reason.take(),
        request_id: Some(cx.request.request_id.clone()).filter(|id| !id.is_empty()),
    }
}

/// The result of writing changes.
#[derive(Debug, Default)]
pub(super) struct WriteResult {
    /// The written jobs, in the order of the changes.
    pub jobs: Vec<Stored<Job>>,
    /// The lanes that can be claimed after the write.
    pub ready: Vec<LaneKey>,
}

/// Writes changed jobs with their lanes, leases and history, using one statement per table and kind of write. `lanes`
/// must contain the lane of every change of a fence. Removes the leases of jobs that stopped running.
///
/// # Errors
/// [`StoreError::Retry`](crate::kernel::StoreError::Retry) if another unit of work has changed a job or a lane in the
/// meantime.
pub(super) async fn write_changes(
    uow: &mut dyn UnitOfWork,
    changes: Vec<JobChange>,
    mut lanes: Lanes,
    now: Timestamp,
) -> Result<WriteResult> {
    for change in &changes {
        change.update_lane(&mut lanes, now);
    }
    lanes.update_states(now);
    write_with_updated_lanes(uow, changes, lanes).await
}

/// Works like [`write_changes`], but `lanes` must already be updated, including their states.
///
/// # Errors
/// [`StoreError::Retry`](crate::kernel::StoreError::Retry) if another unit of work has changed a job or a lane in the
/// meantime.
pub(super) async fn write_with_updated_lanes(
    uow: &mut dyn UnitOfWork,
    changes: Vec<JobChange>,
    lanes: Lanes,
) -> Result<WriteResult> {
    let ready = lanes.write(uow).await?;
    if changes.is_empty() {
        return Ok(WriteResult {
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
        if !change.events.is_empty() {
            uow.effects()
                .add(Effect::JobProgressed(change.after.id.clone()));
        }
        events.extend(change.events);
        jobs.push((change.before, change.after));
    }
    let jobs = unaudited::replace_many(uow, jobs).await?;
    end_leases(uow, ended).await?;
    if !begun.is_empty() {
        unaudited::append_many(uow, begun).await?;
    }
    unaudited::append_many(uow, events).await?;
    Ok(WriteResult { jobs, ready })
}

/// Removes the leases of these jobs without checking their versions, which every heartbeat changes.
async fn end_leases(uow: &mut dyn UnitOfWork, jobs: Vec<JobId>) -> Result<()> {
    if !jobs.is_empty() {
        let of_jobs = JobLeaseQuery::OfJobs(jobs);
        unowned_records::<JobLease>(uow)
            .remove_all(&of_jobs)
            .await?;
    }
    Ok(())
}
