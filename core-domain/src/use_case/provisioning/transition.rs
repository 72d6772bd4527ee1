//! One move of a job with everything that follows from it, in the caller's unit of work.

use super::kinds::{AnyKind, Kinds};
use super::lane::{lane_of, put_lane, refresh_lane};
use crate::access::{unaudited, unowned};
use crate::kernel::{Context, DlqEntryId, Error, JobEventId, JobId, Result, Stored, Timestamp};
use crate::port::UnitOfWork;
use crate::provisioning::{
    Actor, DlqEntry, DlqQuery, DlqStatus, Job, JobEvent, JobLease, JobStatus, LEASE, LanePlace,
    Moved, Trigger, apply,
};

/// Who moves a job, and with what knowledge of its kinds.
#[derive(Clone, Copy, Debug)]
pub(super) struct TransitionContext<'a> {
    /// Who.
    pub actor: &'a Actor,
    /// The kinds whose hooks run in the unit.
    pub kinds: &'a Kinds,
    /// Whether a holder the job is taken from can no longer act, so that the lane need not rest.
    pub holder_is_gone: bool,
}

/// Writes the move: job, lease, lane, history, dead letter, and what the job's kind adds.
pub(super) async fn apply_transition(
    cx: &Context,
    uow: &mut dyn UnitOfWork,
    before: &Stored<Job>,
    moved: Moved,
    by: TransitionContext<'_>,
) -> Result<Stored<Job>> {
    let now = uow.now().await?;
    let mut job = moved.job;
    let old_lease = update_lease(uow, before, &job, by.actor, now).await?;
    if let Some(place) = moved.lane_place {
        let mut lane = lane_of(uow, &job.lane).await?;
        job.lane_position = match place_of(place, &job, by.kinds) {
            LanePlace::Front => lane.front_position(),
            LanePlace::Tail | LanePlace::AsNew => lane.tail_position(),
        };
        put_lane(uow, lane).await?;
    }
    let reason = match run_hooks(cx, uow, before, &job, by.kinds).await? {
        Some(refusal) => Some(refusal),
        None => moved.reason,
    };
    update_dlq(cx, uow, before, &mut job, by.actor, now).await?;
    job.event_count += 1;
    let event = JobEvent {
        id: JobEventId::generate(now, cx.entropy.as_ref()),
        job_id: job.id.clone(),
        seq: job.event_count,
        at: now,
        event_type: moved.by.as_str().to_owned(),
        from_status: Some(before.status),
        to_status: job.status,
        step: moved.step,
        fence: job.fence,
        actor: by.actor.clone(),
        reason,
        request_id: Some(cx.request.request_id.clone()).filter(|id| !id.is_empty()),
    };
    unaudited::insert(uow, event).await?;
    let stored = unaudited::replace(uow, before, job).await?;
    if moved.by.fences() {
        // Whoever held the job may not have heard yet: the lane rests until its lease would have ended.
        let taken_away =
            !by.actor.is_worker() && before.status == JobStatus::Running && !by.holder_is_gone;
        let rest = old_lease
            .filter(|_| taken_away)
            .map(|lease| lease.lease_until);
        update_lane(uow, &stored, rest, now).await?;
    }
    let parent = stored.parent_job_id.as_ref();
    if let Some(parent) = parent.filter(|_| stored.status.is_terminal()) {
        wake_parent(cx, uow, parent, by.kinds).await?;
    }
    Ok(stored)
}

/// A job that waits for one it queued looks again when that one has ended.
async fn wake_parent(
    cx: &Context,
    uow: &mut dyn UnitOfWork,
    parent: &JobId,
    kinds: &Kinds,
) -> Result<()> {
    let Some(parent) = unowned::<Job>(uow).find(parent).await? else {
        return Ok(());
    };
    if parent.status != JobStatus::Waiting {
        return Ok(());
    }
    let now = uow.now().await?;
    let wake = Trigger::Wake { signalled: true };
    let moved = apply(&parent, &wake, now, cx.entropy.as_ref())?;
    let by = TransitionContext {
        actor: &Actor::system(),
        kinds,
        holder_is_gone: false,
    };
    // A job has one parent, and parents were queued before their children: this ends.
    Box::pin(apply_transition(cx, uow, &parent, moved, by)).await?;
    Ok(())
}

/// A lease exists exactly while the job runs, with the job's fence. Answers the lease there was before.
async fn update_lease(
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
        && let Some(lease) = unowned::<JobLease>(uow).find(&before.id).await?
    {
        unaudited::remove(uow, &lease).await?;
        old = Some(lease.into_inner());
    }
    if after.status == JobStatus::Running {
        let lease = JobLease {
            job_id: after.id.clone(),
            fence: after.fence,
            owner: actor.id.clone(),
            lease_until: now.plus(LEASE),
        };
        unaudited::insert(uow, lease).await?;
    }
    Ok(old)
}

/// Where in its lane the job goes, by what its kind says of new jobs.
fn place_of(place: LanePlace, job: &Job, kinds: &Kinds) -> LanePlace {
    match place {
        LanePlace::AsNew => kinds.get(&job.kind).map_or(LanePlace::Tail, AnyKind::place),
        place => place,
    }
}

/// What of its kind a move lets a job do.
#[derive(Clone, Copy, Debug)]
enum Hook {
    Completed,
    Failed,
    Resumed,
}

fn hook_of(before: JobStatus, after: JobStatus) -> Option<Hook> {
    match (before, after) {
        (JobStatus::Completed, JobStatus::Completed) | (JobStatus::Failed, JobStatus::Failed) => {
            None
        }
        (_, JobStatus::Completed) => Some(Hook::Completed),
        (_, JobStatus::Failed) => Some(Hook::Failed),
        (JobStatus::Failed, JobStatus::Queued) => Some(Hook::Resumed),
        _ => None,
    }
}

/// Lets the kind write what the move means. Answers the refusal of a hook that cannot stop the move. A job of a kind
/// that is not known here is not moved past its hooks.
async fn run_hooks(
    cx: &Context,
    uow: &mut dyn UnitOfWork,
    before: &Job,
    after: &Job,
    kinds: &Kinds,
) -> Result<Option<String>> {
    let Some(hook) = hook_of(before.status, after.status) else {
        return Ok(None);
    };
    let Some(kind) = kinds.get(&after.kind) else {
        return Err(Error::Unavailable(format!(
            "no kind of jobs is called {} here",
            after.kind
        )));
    };
    let opened = kind.open(after);
    let outcome = match (&hook, opened) {
        (Hook::Completed, opened) => return opened?.completed(cx, uow).await.map(|()| None),
        (Hook::Resumed, opened) => return opened?.resumed(cx, uow).await.map(|()| None),
        (Hook::Failed, Ok(opened)) => opened.failed(cx, uow).await,
        (Hook::Failed, Err(error)) => Err(error),
    };
    match outcome {
        Ok(()) => Ok(None),
        Err(Error::Store(error)) => Err(error.into()),
        Err(refusal) => Ok(Some(format!("not recorded: {}", refusal.code()))),
    }
}

/// A job that stopped has exactly one open entry; one that goes on or ends otherwise has none pending.
async fn update_dlq(
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
    let open = unowned::<DlqEntry>(uow).first(&query).await?;
    let stopped = after
        .failure_kind
        .filter(|kind| after.status == JobStatus::Failed && kind.opens_dlq_entry());
    if let Some(failure) = stopped {
        let id = DlqEntryId::generate(now, cx.entropy.as_ref());
        let entry = DlqEntry::stopped(id, after, failure, open.as_deref(), now);
        after.dlq_entry_id = Some(entry.id.clone());
        match &open {
            Some(open) => unaudited::replace(uow, open, entry).await?,
            None => unaudited::insert(uow, entry).await?,
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
    unaudited::replace(uow, &open, entry).await?;
    Ok(())
}

/// Brings a lane up to date after one of its jobs moved.
async fn update_lane(
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
