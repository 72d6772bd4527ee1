//! One move of a job with everything that follows from it, in the caller's unit of work.

use super::any_kind::AnyKind;
use super::change::{Change, write_changes};
use super::kind::Writing;
use super::kinds::Kinds;
use super::lane::{Lanes, announce};
use super::undo;
use crate::access::{unaudited, unowned};
use crate::kernel::{Context, DlqEntryId, Error, JobId, Result, Stored, Timestamp};
use crate::port::UnitOfWork;
use crate::provisioning::{
    Actor, DlqEntry, DlqQuery, DlqStatus, FailureKind, Job, JobLease, JobStatus, LanePlace, Trigger,
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
    /// Whether a job of an unknown kind is moved past its hooks. True while its platform is removed: nobody needs their records.
    pub skips_unknown_hooks: bool,
}

impl<'a> TransitionContext<'a> {
    /// Creates the context of a move whose holder may still act and whose hooks all run.
    pub(super) const fn new(actor: &'a Actor, kinds: &'a Kinds) -> Self {
        Self {
            actor,
            kinds,
            holder_is_gone: false,
            skips_unknown_hooks: false,
        }
    }
}

/// Makes the moves that the triggers ask for, see [`write_transition`].
///
/// # Errors
/// The refusal of the state machine, or when something could not be written.
pub(super) async fn transition(
    cx: &Context,
    uow: &mut dyn UnitOfWork,
    before: Stored<Job>,
    triggers: &[Trigger],
    by: TransitionContext<'_>,
) -> Result<Stored<Job>> {
    let now = uow.now().await?;
    let change = Change::plan(cx, by.actor, before, triggers, now)?;
    write_transition(cx, uow, change, by).await
}

/// Writes the moves of one job: job, lease, lane, history, dead letter, what the job's kind adds, what it means for the job
/// it undoes, and the wake-up of the job that queued it.
pub(super) async fn write_transition(
    cx: &Context,
    uow: &mut dyn UnitOfWork,
    mut change: Change,
    by: TransitionContext<'_>,
) -> Result<Stored<Job>> {
    let now = uow.now().await?;
    let rest = rest_of_lane(uow, &change, by).await?;
    let undone = undo::change_of_undone(cx, uow, &change, by.actor).await?;
    if let Some(place) = change.lane_place {
        take_place(uow, &mut change.after, place, by.kinds, now).await?;
    }
    if hook_of(change.before.status, change.after.status) == Some(Hook::Resumed)
        && let Some(kind) = by.kinds.get(&change.after.kind)
    {
        change.after.deadline_at = now.plus(kind.deadline());
    }
    if let Some(refusal) = run_hooks(cx, uow, &change.before, &change.after, by).await?
        && let Some(event) = change.events.last_mut()
    {
        event.reason = Some(refusal);
    }
    update_dlq(cx, uow, &change.before, &mut change.after, by.actor, now).await?;
    let lane = change.after.lane.clone();
    let mut lanes = Lanes::load(uow, change.fences().then_some(lane.clone())).await?;
    if let Some((lane, until)) = lanes.get_mut(&lane).zip(rest) {
        lane.not_before = lane.not_before.max(until);
    }
    let mut changes = vec![change];
    changes.extend(undone);
    let written = write_changes(uow, changes, lanes, now).await?;
    announce(uow, &written.ready);
    let stored = written.jobs.into_iter().next();
    let stored = stored.ok_or_else(|| Error::Internal("a job was not written".to_owned()))?;
    let parent = stored.parent_job_id.as_ref();
    if let Some(parent) = parent.filter(|_| stored.status.is_terminal()) {
        wake_parent(cx, uow, parent, by.kinds).await?;
    }
    Ok(stored)
}

/// Until when the lane rests: whoever holds a job that is taken away may not have heard before its lease would have
/// ended.
async fn rest_of_lane(
    uow: &mut dyn UnitOfWork,
    change: &Change,
    by: TransitionContext<'_>,
) -> Result<Option<Timestamp>> {
    let running = change.before.status == JobStatus::Running;
    if !running || !change.fences() || by.actor.is_worker() || by.holder_is_gone {
        return Ok(None);
    }
    let lease = unowned::<JobLease>(uow).find(&change.before.id).await?;
    Ok(lease.map(|lease| lease.lease_until))
}

/// Gives the job a new position in its lane.
async fn take_place(
    uow: &mut dyn UnitOfWork,
    job: &mut Job,
    place: LanePlace,
    kinds: &Kinds,
    now: Timestamp,
) -> Result<()> {
    let mut lanes = Lanes::load(uow, [job.lane.clone()]).await?;
    if let Some(lane) = lanes.get_mut(&job.lane) {
        job.lane_position = lane.position_at(place_of(place, job, kinds));
    }
    // The move itself announces the lane.
    lanes.store(uow, now).await?;
    Ok(())
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
    let wake = Trigger::Wake { signalled: true };
    let actor = Actor::system();
    let by = TransitionContext::new(&actor, kinds);
    // A job has one parent, and parents were queued before their children: this ends.
    Box::pin(transition(cx, uow, parent, &[wake], by)).await?;
    Ok(())
}

/// Where in its lane the job goes, by what its kind says of new jobs.
fn place_of(place: LanePlace, job: &Job, kinds: &Kinds) -> LanePlace {
    match place {
        LanePlace::AsNew => kinds.get(&job.kind).map_or(LanePlace::Tail, AnyKind::place),
        place => place,
    }
}

/// What of its kind a move lets a job do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
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

/// Runs the hook of the job's kind for the move. Returns the refusal of a hook that cannot stop the move. A job of an unknown
/// kind is moved past its hooks only if its deadline is over or nobody needs the hooks. Its history then says that they did
/// not run.
async fn run_hooks(
    cx: &Context,
    uow: &mut dyn UnitOfWork,
    before: &Job,
    after: &Job,
    by: TransitionContext<'_>,
) -> Result<Option<String>> {
    let Some(hook) = hook_of(before.status, after.status) else {
        return Ok(None);
    };
    let Some(kind) = by.kinds.get(&after.kind) else {
        let is_overdue = after.failure_kind == Some(FailureKind::DeadlineExceeded);
        if is_overdue || by.skips_unknown_hooks {
            return Ok(Some("not recorded: the kind is not known".to_owned()));
        }
        return Err(Error::Unavailable(format!(
            "no kind of jobs is called {} here",
            after.kind
        )));
    };
    if !kind.has_hooks() {
        return Ok(None);
    }
    let (cx, opened) = (
        Writing {
            cx,
            canceller: by.kinds,
        },
        kind.open(after),
    );
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
    // A job that has never stopped has no entry.
    let open = match before.dlq_entry_id {
        Some(_) => {
            let query = DlqQuery::OpenOf(after.id.clone());
            unowned::<DlqEntry>(uow).first(&query).await?
        }
        None => None,
    };
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
