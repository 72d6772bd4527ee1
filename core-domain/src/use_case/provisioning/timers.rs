//! Timer-driven transitions: waits end, leases end, deadlines pass. Any node may run them, as often as it likes.

use std::time::Duration;

use super::claim::promote;
use super::kinds::Kinds;
use super::operate;
use super::transition::Change;
use super::transition::{TransitionContext, transition, write_transition};
use crate::access::{Batches, JobScope, unaudited, unowned};
use crate::kernel::{Context, Error, JobId, Result, StoreError, Stored, Timestamp, grant};
use crate::port::{Mode, Store, UnitOfWork, transact, transact_in};
use crate::provisioning::{
    Actor, Job, JobLane, JobLaneQuery, JobLease, JobLeaseQuery, JobQuery, JobStatus, Refusal,
    Trigger,
};

/// How many jobs one run looks at for each reason.
const BATCH: u32 = 100;

/// Maximum number of unavailable answers of the store before a run ends.
const MOST_OUTAGES: usize = 3;

/// How long after its deadline a job of a kind that is not known here is left to a process that knows the kind and can run
/// its hooks. Nobody may know it any more, and it keeps its lane.
const LEFT_OVERDUE: Duration = Duration::from_secs(15 * 60);

/// What a run of the timers did, in jobs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TimerStats {
    /// Woken from a wait.
    pub woken: usize,
    /// Taken from a worker whose lease had ended.
    pub reaped: usize,
    /// Stopped at their deadline.
    pub overdue: usize,
    /// Lanes whose time had come, and which can be claimed from now on.
    pub promoted: usize,
}

/// Wakes what has waited long enough, takes back what a vanished worker held, stops what is overdue; each job in a
/// unit of work of its own.
///
/// # Errors
/// When something could not be done; all else was, or is at the next run.
pub(super) async fn run_timers(
    cx: &Context,
    store: &dyn Store,
    kinds: &Kinds,
) -> Result<TimerStats> {
    let due = due(store, kinds).await?;
    let wake = Trigger::Wake { signalled: false };
    let woken = move_all(cx, store, kinds, &due.to_wake, &wake, Lease::Irrelevant).await;
    let overdue = stop_overdue(cx, store, kinds, &due.overdue).await;
    let promoted = promote_lanes(store, due.has_lanes).await;
    let reap = Trigger::Reap;
    let ended = Lease::MustHaveEnded;
    let reaped = move_all(cx, store, kinds, &due.expired, &reap, ended).await;
    // What one of them could not do keeps no other from its own.
    Ok(TimerStats {
        woken: woken?,
        overdue: overdue?,
        promoted: promoted?,
        reaped: reaped?,
    })
}

/// How long it is until a wait ends or the time of a lane comes, when that is within this time. What is due and was left, to
/// a process that knows its kind for example, is not asked after.
///
/// # Errors
/// When the store failed.
pub(super) async fn next_due(store: &dyn Store, within: Duration) -> Result<Option<Duration>> {
    let mut uow = store.begin(Mode::Auto).await?;
    let now = uow.now().await?;
    let by = now.plus(within);
    let lane = unowned::<JobLane>(uow.as_mut());
    let lane = lane.first(&JobLaneQuery::DueAt(by)).await?;
    let job = unowned::<Job>(uow.as_mut());
    let job = job.first(&JobQuery::WakeAt(by)).await?;
    let moments = [lane.map(|lane| lane.ready_at), job.map(|job| job.run_at)];
    let pause = |moment: Timestamp| {
        let pause = u64::try_from(moment.millis() - now.millis()).ok()?;
        (pause > 0).then(|| Duration::from_millis(pause))
    };
    Ok(moments.into_iter().flatten().filter_map(pause).min())
}

/// A claim does this by itself, unless it finds enough without.
async fn promote_lanes(store: &dyn Store, has_lanes: bool) -> Result<usize> {
    if !has_lanes {
        return Ok(0);
    }
    transact_in(Mode::ReadCommitted, store, |uow, _| Box::pin(promote(uow))).await
}

/// For a store that only this process uses, when it is opened: whatever runs has no worker, so all of it is taken back
/// at once; jobs of kinds that are not known here wait for a process that knows them. Answers how many were taken back.
///
/// # Errors
/// When the store failed.
pub(super) async fn recover(cx: &Context, store: &dyn Store, kinds: &Kinds) -> Result<usize> {
    let mut reaped = 0;
    for job in &leased(store).await? {
        let moved = transact(store, |uow, _| Box::pin(take_back(cx, uow, kinds, job)));
        reaped += usize::from(moved.await?);
    }
    Ok(reaped)
}

async fn leased(store: &dyn Store) -> Result<Vec<JobId>> {
    let mut uow = store.begin(Mode::Read).await?;
    let mut leases = Batches::<JobLease>::of(JobLeaseQuery::All);
    let mut jobs = Vec::new();
    while let Some(batch) = leases.next(unowned(uow.as_mut())).await? {
        jobs.extend(batch.iter().map(|lease| lease.job_id.clone()));
    }
    Ok(jobs)
}

/// Stops jobs whose deadline has passed, each in a unit of work of its own.
///
/// # Errors
/// When the store failed; what was done before stays done.
pub(super) async fn stop_overdue(
    cx: &Context,
    store: &dyn Store,
    kinds: &Kinds,
    jobs: &[JobId],
) -> Result<usize> {
    move_all(
        cx,
        store,
        kinds,
        jobs,
        &Trigger::Deadline,
        Lease::Irrelevant,
    )
    .await
}

/// Takes a job from a holder that is gone. A lease whose job does not run names nobody's work, and goes.
async fn take_back(
    cx: &Context,
    uow: &mut dyn UnitOfWork,
    kinds: &Kinds,
    id: &JobId,
) -> Result<bool> {
    if move_one(cx, uow, kinds, id, &Trigger::Reap, Lease::HolderIsGone).await? {
        return Ok(true);
    }
    let job = unowned::<Job>(uow).find(id).await?;
    if job.is_none_or(|job| job.status != JobStatus::Running)
        && let Some(orphan) = unowned::<JobLease>(uow).find(id).await?
    {
        unaudited::remove(uow, &orphan).await?;
    }
    Ok(false)
}

/// Wakes a waiting job because what it waits for has happened.
///
/// # Errors
/// `INVALID_STATE` when it does not wait.
pub async fn signal(
    cx: &Context,
    scope: &JobScope<grant::JobCreate>,
    uow: &mut dyn UnitOfWork,
    kinds: &Kinds,
) -> Result<Stored<Job>> {
    let job = scope.job();
    let wake = Trigger::Wake { signalled: true };
    let actor = Actor::caller(cx);
    let by = TransitionContext::new(&actor, kinds);
    let stored = transition(cx, uow, job.clone(), &[wake], by).await?;
    operate::record(cx, uow, job, &stored, "job.signalled").await?;
    Ok(stored)
}

/// Whether a job may be moved while its lease lasts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Lease {
    MustHaveEnded,
    Irrelevant,
    /// Nobody can still act under it: its process was the only one that may use the store, and this one has taken over.
    HolderIsGone,
}

#[derive(Debug)]
struct Due {
    to_wake: Vec<JobId>,
    overdue: Vec<JobId>,
    expired: Vec<JobId>,
    /// Whether the time of a lane has come.
    has_lanes: bool,
}

/// Whether a job of a kind that is not known here has been overdue for so long that nobody else may know it either.
fn is_abandoned(job: &Job, now: Timestamp) -> bool {
    job.deadline_at.plus(LEFT_OVERDUE) < now
}

/// The first jobs that a query finds and this process may move: others do not stand before them.
async fn movable(
    uow: &mut dyn UnitOfWork,
    query: JobQuery,
    may_move: impl Fn(&Job) -> bool + Send,
) -> Result<Vec<JobId>> {
    let (mut found, mut jobs) = (Vec::new(), Batches::<Job>::of(query));
    while found.len() < BATCH as usize
        && let Some(batch) = jobs.next(unowned(uow)).await?
    {
        let own = batch.iter().filter(|job| may_move(job));
        found.extend(own.map(|job| job.id.clone()));
    }
    found.truncate(BATCH as usize);
    Ok(found)
}

/// Returns the first running jobs of known kinds whose leases have expired. Jobs of unknown kinds do not count towards
/// [`BATCH`].
async fn expired(uow: &mut dyn UnitOfWork, kinds: &Kinds, now: Timestamp) -> Result<Vec<JobId>> {
    let (mut found, mut leases) = (
        Vec::new(),
        Batches::<JobLease>::of(JobLeaseQuery::ExpiredAt(now)),
    );
    while found.len() < BATCH as usize
        && let Some(batch) = leases.next(unowned(uow)).await?
    {
        let ids: Vec<&str> = batch.iter().map(|lease| lease.job_id.as_str()).collect();
        let jobs = unowned::<Job>(uow).get_many(&ids).await?;
        let own = jobs
            .iter()
            .filter(|job| job.status == JobStatus::Running && kinds.knows(&job.kind));
        found.extend(own.map(|job| job.id.clone()));
    }
    found.truncate(BATCH as usize);
    Ok(found)
}

async fn due(store: &dyn Store, kinds: &Kinds) -> Result<Due> {
    let mut uow = store.begin(Mode::Read).await?;
    let now = uow.now().await?;
    let is_known = |job: &Job| kinds.knows(&job.kind);
    let to_wake = movable(uow.as_mut(), JobQuery::WakeAt(now), is_known).await?;
    let may_stop = |job: &Job| kinds.knows(&job.kind) || is_abandoned(job, now);
    let overdue = movable(uow.as_mut(), JobQuery::OverdueAt(now), may_stop).await?;
    let due = Due {
        to_wake,
        overdue,
        expired: expired(uow.as_mut(), kinds, now).await?,
        has_lanes: unowned::<JobLane>(uow.as_mut())
            .first(&JobLaneQuery::DueAt(now))
            .await?
            .is_some(),
    };
    uow.rollback().await;
    Ok(due)
}

async fn move_all(
    cx: &Context,
    store: &dyn Store,
    kinds: &Kinds,
    jobs: &[JobId],
    trigger: &Trigger,
    lease: Lease,
) -> Result<usize> {
    let (mut count, mut outages, mut first) = (0, 0, None);
    for job in jobs {
        let moved = transact(store, |uow, _| {
            Box::pin(move_one(cx, uow, kinds, job, trigger, lease))
        });
        match moved.await {
            Ok(moved) => count += usize::from(moved),
            // A job that cannot be moved keeps no other from it.
            Err(error) => {
                outages += usize::from(matches!(error, Error::Store(StoreError::Unavailable(_))));
                first.get_or_insert(error);
            }
        }
        if outages > MOST_OUTAGES {
            break;
        }
    }
    first.map_or(Ok(count), Err)
}

/// Decides again inside the unit: somebody else may have been quicker, or the holder's heartbeat came after all.
async fn move_one(
    cx: &Context,
    uow: &mut dyn UnitOfWork,
    kinds: &Kinds,
    job: &JobId,
    trigger: &Trigger,
    lease: Lease,
) -> Result<bool> {
    let now = uow.now().await?;
    let Some(job) = unowned::<Job>(uow).find(job).await? else {
        return Ok(false);
    };
    // Its hooks would be skipped: a process that knows the kind moves it.
    let is_abandoned = *trigger == Trigger::Deadline && is_abandoned(&job, now);
    if !kinds.knows(&job.kind) && !is_abandoned {
        return Ok(false);
    }
    if lease == Lease::MustHaveEnded {
        let held = unowned::<JobLease>(uow).find(&job.id).await?;
        if job.status != JobStatus::Running || held.is_none_or(|l| l.lease_until >= now) {
            return Ok(false);
        }
    }
    let actor = Actor::system();
    let change = match Change::plan(cx, &actor, job, std::slice::from_ref(trigger), now) {
        Ok(change) => change,
        Err(Refusal::NotDue | Refusal::Status(_)) => return Ok(false),
        Err(refusal) => return Err(refusal.into()),
    };
    let by = TransitionContext {
        holder_is_gone: lease == Lease::HolderIsGone,
        ..TransitionContext::new(&actor, kinds)
    };
    write_transition(cx, uow, change, by).await?;
    Ok(true)
}
