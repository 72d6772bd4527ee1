//! One move of a job with everything that follows from it, in the caller's unit of work.

use crate::kernel::{Context, DlqEntryId, Error, JobEventId, Result, Timestamp};
use crate::port::{Stored, UnitOfWork};
use crate::provisioning::{
    Actor, DlqEntry, DlqQuery, DlqStatus, Job, JobEvent, JobHoldQuery, JobLane, JobLease, JobQuery,
    JobStatus, Kinds, LEASE, LaneKey, Moved,
};

/// Who moves a job, and with what knowledge of its kinds.
#[derive(Clone, Copy, Debug)]
pub(super) struct By<'a> {
    /// Who.
    pub actor: &'a Actor,
    /// The kinds whose hooks run in the unit.
    pub kinds: &'a Kinds,
    /// Whether a holder the job is taken from can no longer act, so that the lane need not rest.
    pub holder_is_gone: bool,
}

/// Writes the move: job, lease, lane, history, dead letter, and what the job's kind adds.
pub(super) async fn carry_out(
    cx: &Context,
    uow: &mut dyn UnitOfWork,
    before: &Stored<Job>,
    moved: Moved,
    by: By<'_>,
) -> Result<Stored<Job>> {
    let now = uow.now().await?;
    let mut job = moved.job;
    let old_lease = follow_lease(uow, before, &job, by.actor, now).await?;
    if moved.to_tail {
        let mut lane = lane_of(uow, &job.lane).await?;
        job.lane_position = lane.next_place();
        put_lane(uow, lane).await?;
    }
    let reason = match run_hooks(cx, uow, before, &job, by.kinds).await? {
        Some(refusal) => Some(refusal),
        None => moved.reason,
    };
    follow_dlq(cx, uow, before, &mut job, by.actor, now).await?;
    job.event_count += 1;
    let event = JobEvent {
        id: JobEventId::generate(now, cx.entropy.as_ref()),
        job_id: job.id.clone(),
        seq: job.event_count,
        at: now,
        event_type: moved.by.name.as_str().to_owned(),
        from_status: Some(before.status),
        to_status: job.status,
        step: moved.step,
        fence: job.fence,
        actor: by.actor.clone(),
        reason,
        request_id: Some(cx.request.request_id.clone()).filter(|id| !id.is_empty()),
    };
    uow.job_events().insert(event).await?;
    let stored = uow.jobs().replace(before, job).await?;
    if moved.by.fences {
        // Whoever held the job may not have heard yet: the lane rests until its lease would have ended.
        let taken_away =
            !by.actor.is_worker() && before.status == JobStatus::Running && !by.holder_is_gone;
        let rest = old_lease
            .filter(|_| taken_away)
            .map(|lease| lease.lease_until);
        follow_lane(uow, &stored, rest, now).await?;
    }
    Ok(stored)
}

/// A lease exists exactly while the job runs, with the job's fence. Answers the lease there was before.
async fn follow_lease(
    uow: &mut dyn UnitOfWork,
    before: &Job,
    after: &Job,
    actor: &Actor,
    now: Timestamp,
) -> Result<Option<JobLease>> {
    if before.fence == after.fence {
        return Ok(None);
    }
    let mut old = None;
    if before.status == JobStatus::Running
        && let Some(lease) = uow.job_leases().get(before.id.as_str()).await?
    {
        uow.job_leases().remove(&lease).await?;
        old = Some(lease.into_inner());
    }
    if after.status == JobStatus::Running {
        let lease = JobLease {
            job_id: after.id.clone(),
            fence: after.fence,
            owner: actor.id.clone(),
            lease_until: now.plus(LEASE),
        };
        uow.job_leases().insert(lease).await?;
    }
    Ok(old)
}

/// Lets the kind write what the move means. Answers the refusal of a hook that cannot stop the move.
async fn run_hooks(
    cx: &Context,
    uow: &mut dyn UnitOfWork,
    before: &Job,
    after: &Job,
    kinds: &Kinds,
) -> Result<Option<String>> {
    let Some(kind) = kinds.get(&after.kind) else {
        return Ok(None);
    };
    match (before.status, after.status) {
        (_, JobStatus::Completed) => kind.completed(cx, uow, after).await?,
        (JobStatus::Failed, JobStatus::Queued) => kind.resumed(cx, uow, after).await?,
        (from, JobStatus::Failed) if from != JobStatus::Failed => {
            match kind.failed(cx, uow, after).await {
                Ok(()) => {}
                Err(Error::Store(error)) => return Err(error.into()),
                Err(refusal) => return Ok(Some(format!("not recorded: {}", refusal.code()))),
            }
        }
        _ => {}
    }
    Ok(None)
}

/// A job that stopped has exactly one open entry; one that goes on or ends otherwise has none pending.
async fn follow_dlq(
    cx: &Context,
    uow: &mut dyn UnitOfWork,
    before: &Job,
    after: &mut Job,
    actor: &Actor,
    now: Timestamp,
) -> Result<()> {
    let left_failed = before.status == JobStatus::Failed && after.status != JobStatus::Failed;
    if !left_failed && !after.status.is_terminal() {
        return Ok(());
    }
    let query = DlqQuery::OpenOf(after.id.clone());
    let open = uow.dlq_entries().first(&query).await?;
    let stopped = after
        .failure_kind
        .filter(|kind| after.status == JobStatus::Failed && kind.opens_dlq_entry());
    if let Some(failure) = stopped {
        let id = DlqEntryId::generate(now, cx.entropy.as_ref());
        let entry = DlqEntry::stopped(id, after, failure, open.as_deref(), now);
        after.dlq_entry_id = Some(entry.id.clone());
        match &open {
            Some(open) => uow.dlq_entries().replace(open, entry).await?,
            None => uow.dlq_entries().insert(entry).await?,
        };
        return Ok(());
    }
    let Some(open) = open else {
        return Ok(());
    };
    let mut entry = open.clone().into_inner();
    entry.updated_at = now;
    match after.status {
        JobStatus::Completed => entry.status = DlqStatus::Resolved,
        JobStatus::Failed => entry.status = DlqStatus::Discarded,
        _ => {
            entry.status = DlqStatus::Replayed;
            entry.replay_count = after.replay_count;
            entry.replayed_at = Some(now);
            entry.replayed_by = Some(actor.id.clone());
        }
    }
    if !entry.status.is_open() {
        entry.resolved_at = Some(now);
    }
    uow.dlq_entries().replace(&open, entry).await?;
    Ok(())
}

/// Brings a lane up to date after one of its jobs moved.
async fn follow_lane(
    uow: &mut dyn UnitOfWork,
    job: &Job,
    rest_until: Option<Timestamp>,
    now: Timestamp,
) -> Result<()> {
    let mut lane = lane_of(uow, &job.lane).await?;
    lane.follow(job, now);
    if let Some(until) = rest_until {
        lane.not_before = lane.not_before.max(until);
    }
    refresh_lane(uow, lane).await
}

/// The lane as it stands, or a new one.
pub(super) async fn lane_of(uow: &mut dyn UnitOfWork, key: &LaneKey) -> Result<JobLane> {
    let stored = uow.job_lanes().get(key.as_str()).await?;
    Ok(stored.map_or_else(|| JobLane::new(key.clone()), Stored::into_inner))
}

/// Puts the right head in front of the lane and stores it.
pub(super) async fn refresh_lane(uow: &mut dyn UnitOfWork, mut lane: JobLane) -> Result<()> {
    let head = uow
        .jobs()
        .first(&JobQuery::QueuedInLane(lane.lane.clone()))
        .await?;
    let held = match &head {
        Some(head) => uow
            .job_holds()
            .list(&JobHoldQuery::OnLane(lane.lane.clone()), 10)
            .await?
            .iter()
            .any(|hold| hold.holds(&lane.lane, &head.kind)),
        None => false,
    };
    lane.set_head(head.as_deref(), held);
    put_lane(uow, lane).await
}

/// Stores the lane, new or changed.
async fn put_lane(uow: &mut dyn UnitOfWork, lane: JobLane) -> Result<()> {
    match uow.job_lanes().get(lane.lane.as_str()).await? {
        Some(stored) if *stored == lane => {}
        Some(stored) => {
            uow.job_lanes().replace(&stored, lane).await?;
        }
        None => {
            uow.job_lanes().insert(lane).await?;
        }
    }
    Ok(())
}
