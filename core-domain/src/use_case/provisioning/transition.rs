//! Writes the transitions of a job with all their consequences, in the caller's unit of work.

use super::job_change::{JobChange, write_changes};
use super::kind::{Hook, WriteCall};
use super::kinds::Kinds;
use super::lane::{Lanes, notify_ready};
use super::undo;
use crate::access::{unaudited, unowned_records};
use crate::kernel::{Context, DlqEntryId, Error, JobId, Result, Stored, Timestamp};
use crate::port::UnitOfWork;
use crate::provisioning::{
    Actor, DeadLetter, DlqQuery, DlqStatus, FailureKind, Job, JobLease, JobStatus, LanePlace,
    Trigger,
};

/// The originator of a transition, and the job kinds it depends on.
#[derive(Clone, Copy, Debug)]
pub(super) struct TransitionContext<'a> {
    /// The actor to record in the history.
    pub actor: &'a Actor,
    /// The registered kinds. Their hooks run in the unit of work.
    pub kinds: &'a Kinds,
    /// `true` if the holder of a running job cannot act any more. The lane can then be claimed at once.
    pub holder_is_gone: bool,
    /// `true` if the hooks of a job of an unknown kind are skipped. This is the case while its platform is removed,
    /// because the records that the hooks write are deleted as well.
    pub skips_unknown_hooks: bool,
}

impl<'a> TransitionContext<'a> {
    /// Creates a context in which the holder may still act and hooks are not skipped.
    pub(super) const fn new(actor: &'a Actor, kinds: &'a Kinds) -> Self {
        Self {
            actor,
            kinds,
            holder_is_gone: false,
            skips_unknown_hooks: false,
        }
    }
}

/// Makes the transitions that the triggers request; see [`write_transition`].
///
/// # Errors
/// The refusal of the state machine, or the error of a hook.
pub(super) async fn transition(
    cx: &Context,
    uow: &mut dyn UnitOfWork,
    before: Stored<Job>,
    triggers: &[Trigger],
    by: TransitionContext<'_>,
) -> Result<Stored<Job>> {
    let now = uow.now().await?;
    let change = JobChange::plan(cx, by.actor, before, triggers, now)?;
    write_transition(cx, uow, change, by).await
}

/// Writes the transitions of one job: the job, its lease, lane, history and dead letter. Runs the hook of its kind,
/// updates the job that it undoes, and wakes the job that queued it.
pub(super) async fn write_transition(
    cx: &Context,
    uow: &mut dyn UnitOfWork,
    mut change: JobChange,
    by: TransitionContext<'_>,
) -> Result<Stored<Job>> {
    let now = uow.now().await?;
    let rest = lane_blocked_until(uow, &change, by).await?;
    let undone = undo::plan_undone_change(cx, uow, &change, by.actor).await?;
    if let Some(place) = change.lane_place {
        assign_position(uow, &mut change.after, place, by.kinds, now).await?;
    }
    if hook_of(change.before.status, change.after.status) == Some(Hook::Resumed)
        && let Some(kind) = by.kinds.get(&change.after.kind)
    {
        change.after.deadline_at = now.plus(kind.deadline);
    }
    if let Some(refusal) = run_hooks(cx, uow, &change.before, &change.after, by).await?
        && let Some(event) = change.events.last_mut()
    {
        event.reason = Some(refusal);
    }
    update_dlq(cx, uow, &change.before, &mut change.after, by.actor, now).await?;
    let lane = change.after.lane.clone();
    let mut lanes = Lanes::load(uow, change.changes_fence().then_some(lane.clone())).await?;
    if let Some((lane, until)) = lanes.get_mut(&lane).zip(rest) {
        lane.not_before = lane.not_before.max(until);
    }
    let mut changes = vec![change];
    changes.extend(undone);
    let written = write_changes(uow, changes, lanes, now).await?;
    notify_ready(uow, &written.ready);
    let stored = written.jobs.into_iter().next();
    let stored = stored.ok_or_else(|| Error::Internal("a job was not written".to_owned()))?;
    let parent = stored.parent_job_id.as_ref();
    if let Some(parent) = parent.filter(|_| stored.status.is_terminal()) {
        wake_parent(cx, uow, parent, by.kinds).await?;
    }
    Ok(stored)
}

/// Returns the time until which the lane must not be claimed, if the job is taken from its holder. Until its lease
/// would have expired, the holder may not know that it lost the job.
async fn lane_blocked_until(
    uow: &mut dyn UnitOfWork,
    change: &JobChange,
    by: TransitionContext<'_>,
) -> Result<Option<Timestamp>> {
    let running = change.before.status == JobStatus::Running;
    if !running || !change.changes_fence() || by.actor.is_worker() || by.holder_is_gone {
        return Ok(None);
    }
    let lease = unowned_records::<JobLease>(uow)
        .find(&change.before.id)
        .await?;
    Ok(lease.map(|lease| lease.lease_until))
}

/// Assigns the job a new position in its lane.
async fn assign_position(
    uow: &mut dyn UnitOfWork,
    job: &mut Job,
    place: LanePlace,
    kinds: &Kinds,
    now: Timestamp,
) -> Result<()> {
    let mut lanes = Lanes::load(uow, [job.lane.clone()]).await?;
    if let Some(lane) = lanes.get_mut(&job.lane) {
        job.lane_position = lane.position_at(resolve_place(place, job, kinds));
    }
    // The caller announces the lane.
    lanes.store(uow, now).await?;
    Ok(())
}

/// Wakes a job that waits for a child job which has ended.
async fn wake_parent(
    cx: &Context,
    uow: &mut dyn UnitOfWork,
    parent: &JobId,
    kinds: &Kinds,
) -> Result<()> {
    let Some(parent) = unowned_records::<Job>(uow).find(parent).await? else {
        return Ok(());
    };
    if parent.status != JobStatus::Waiting {
        return Ok(());
    }
    let wake = Trigger::Wake { signalled: true };
    let actor = Actor::system();
    let by = TransitionContext::new(&actor, kinds);
    // The recursion ends: a job has at most one parent, which was created before it.
    Box::pin(transition(cx, uow, parent, &[wake], by)).await?;
    Ok(())
}

/// Returns the place in the lane. [`LanePlace::KindDefault`] becomes the place that the kind defines for new jobs.
fn resolve_place(place: LanePlace, job: &Job, kinds: &Kinds) -> LanePlace {
    match place {
        LanePlace::KindDefault => kinds
            .get(&job.kind)
            .map_or(LanePlace::Tail, |kind| kind.place),
        place => place,
    }
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

/// Runs the hook of the job's kind for the transition. Returns the reason to record if the hook was refused or skipped.
/// A refusal of the `failed` hook does not stop the transition. For a job of an unknown kind, hooks are skipped only if
/// its deadline has passed or [`TransitionContext::skips_unknown_hooks`] is set.
///
/// # Errors
/// `SERVICE_UNAVAILABLE` if the kind is unknown and its hooks must not be skipped; otherwise the errors of the hook.
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
            "this process does not know the job kind {}",
            after.kind
        )));
    };
    let Some(hooks) = &kind.hooks else {
        return Ok(None);
    };
    let call = WriteCall {
        job: after,
        step: None,
        cx,
        canceller: by.kinds,
    };
    match hooks.run(hook, call, uow).await {
        Ok(()) => Ok(None),
        Err(refusal) if hook == Hook::Failed && !matches!(refusal, Error::Store(_)) => {
            Ok(Some(format!("not recorded: {}", refusal.code())))
        }
        Err(error) => Err(error),
    }
}

/// Updates the dead letter of a job that has ended or has left `FAILED`. A job that stops gets an open dead letter; in
/// all other cases an open dead letter leaves the status `PENDING`.
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
    // A job that never stopped has no dead letter.
    let open = match before.dlq_entry_id {
        Some(_) => {
            let query = DlqQuery::OpenOf {
                job_id: after.id.clone(),
                platform_id: after.platform_id.clone(),
            };
            unowned_records::<DeadLetter>(uow).first(&query).await?
        }
        None => None,
    };
    let stopped = after
        .failure_kind
        .filter(|kind| after.status == JobStatus::Failed && kind.opens_dead_letter());
    if let Some(failure) = stopped {
        let id = DlqEntryId::generate(now, cx.entropy.as_ref());
        let dead_letter = DeadLetter::for_stopped_job(id, after, failure, open.as_deref(), now);
        after.dlq_entry_id = Some(dead_letter.id.clone());
        match &open {
            Some(open) => unaudited::replace(uow, open, dead_letter).await?,
            None => unaudited::insert(uow, dead_letter).await?,
        };
        return Ok(());
    }
    let Some(open) = open else {
        return Ok(());
    };
    let mut dead_letter = open.clone().into_inner();
    dead_letter.updated_at = now;
    match after.status {
        JobStatus::Completed => dead_letter.status = DlqStatus::Resolved,
        JobStatus::Failed => dead_letter.status = DlqStatus::Discarded,
        _ => {
            dead_letter.status = DlqStatus::Replayed;
            dead_letter.replay_count = after.replay_count;
            dead_letter.replayed_at = Some(now);
            dead_letter.replayed_by = Some(actor.id.clone());
        }
    }
    if !dead_letter.status.is_open() {
        dead_letter.resolved_at = Some(now);
    }
    unaudited::replace(uow, &open, dead_letter).await?;
    Ok(())
}
