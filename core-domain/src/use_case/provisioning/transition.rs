//! One move of a job with everything that follows from it, in the caller's unit of work.

use super::kind::Writing;
use super::kinds::{AnyKind, Kinds};
use super::lane::{Lanes, announce};
use super::undo;
use crate::access::{unaudited, unowned};
use crate::kernel::{Context, DlqEntryId, Error, JobEventId, JobId, Result, Stored, Timestamp};
use crate::port::UnitOfWork;
use crate::provisioning::{
    Actor, DlqEntry, DlqQuery, DlqStatus, FailureKind, Job, JobEvent, JobLease, JobLeaseQuery,
    JobStatus, LaneKey, LanePlace, Moved, Refusal, Trigger, apply,
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
