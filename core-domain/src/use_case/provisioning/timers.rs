//! Timer-driven transitions: ending waits, taking back jobs with expired leases, and stopping jobs at their deadline.
//! Any node may run them at any time.

use std::time::Duration;

use super::claim::promote;
use super::job_change::JobChange;
use super::kinds::Kinds;
use super::operate;
use super::transition::{TransitionContext, transition, write_transition};
use crate::access::{Batches, JobScope, unaudited, unowned_records};
use crate::kernel::{Context, Error, JobId, Result, StoreError, Stored, Timestamp, permission};
use crate::port::{Mode, Store, UnitOfWork, transact, transact_in};
use crate::provisioning::{
    Actor, Job, JobLane, JobLaneQuery, JobLease, JobLeaseQuery, JobQuery, JobStatus, Refusal,
    Trigger,
};

/// Maximum number of jobs per run and reason.
const BATCH: u32 = 100;

/// Maximum number of unavailable answers of the store before a run ends.
const MAX_OUTAGES: usize = 3;

/// Time after its deadline during which a job of an unknown kind is left to processes that know the kind and can run
/// its hooks. After that, any process stops the job: otherwise it might keep its place in the lane forever.
const UNKNOWN_KIND_GRACE: Duration = Duration::from_secs(15 * 60);

/// The results of one run of the timers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TimerStats {
    /// The number of jobs whose wait ended.
    pub woken: usize,
    /// The number of jobs that were taken back because their lease had expired.
    pub reaped: usize,
    /// The number of jobs that were stopped at their deadline.
    pub overdue: usize,
    /// The number of lanes whose `ready_at` had passed and that can be claimed now.
    pub promoted: usize,
}

/// Wakes jobs whose wait has ended, takes back jobs with expired leases and stops overdue jobs. Uses one unit of work
/// per job.
///
/// # Errors
/// Returns the first error. The other jobs are handled nevertheless, unless the store is unavailable; failed ones are
/// tried again in the next run.
pub(super) async fn run_timers(
    cx: &Context,
    store: &dyn Store,
    kinds: &Kinds,
) -> Result<TimerStats> {
    let due = find_due(store, kinds).await?;
    let wake = Trigger::Wake { signalled: false };
    let woken = move_all(
        cx,
        store,
        kinds,
        &due.to_wake,
        &wake,
        LeaseCondition::Irrelevant,
    )
    .await;
    let overdue = stop_overdue(cx, store, kinds, &due.overdue).await;
    let promoted = promote_lanes(store, due.has_lanes).await;
    let reap = Trigger::Reap;
    let ended = LeaseCondition::MustHaveEnded;
    let reaped = move_all(cx, store, kinds, &due.expired, &reap, ended).await;
    // An error of one task does not prevent the others.
    Ok(TimerStats {
        woken: woken?,
        overdue: overdue?,
        promoted: promoted?,
        reaped: reaped?,
    })
}

/// Returns the time until the next wait ends or the next lane becomes ready, if this is `within` the given time.
/// Ignores jobs and lanes that are already due, because they may be left to a process that knows their kinds.
///
/// # Errors
/// Only those of the store.
pub(super) async fn next_due(store: &dyn Store, within: Duration) -> Result<Option<Duration>> {
    let mut uow = store.begin(Mode::Auto).await?;
    let now = uow.now().await?;
    let by = now.plus(within);
    let lane = unowned_records::<JobLane>(uow.as_mut());
    let lane = lane.first(&JobLaneQuery::DueAt(by)).await?;
    let job = unowned_records::<Job>(uow.as_mut());
    let job = job.first(&JobQuery::WakeAt(by)).await?;
    let moments = [lane.map(|lane| lane.ready_at), job.map(|job| job.run_at)];
    let pause = |moment: Timestamp| {
        let pause = u64::try_from(moment.millis() - now.millis()).ok()?;
        (pause > 0).then(|| Duration::from_millis(pause))
    };
    Ok(moments.into_iter().flatten().filter_map(pause).min())
}

/// Makes due lanes ready. A claim also does this, but only if it finds too few ready lanes.
async fn promote_lanes(store: &dyn Store, has_lanes: bool) -> Result<usize> {
    if !has_lanes {
        return Ok(0);
    }
    transact_in(Mode::ReadCommitted, store, |uow, _| Box::pin(promote(uow))).await
}

/// Takes back all running jobs. Call it when opening a store that only this process uses: no worker can be alive then.
/// Jobs of unknown kinds are left for a process that knows them. Returns the number of jobs taken back.
///
/// # Errors
/// Only those of the store.
pub(super) async fn recover(cx: &Context, store: &dyn Store, kinds: &Kinds) -> Result<usize> {
    let mut reaped = 0;
    for job in &list_leased_jobs(store).await? {
        let moved = transact(store, |uow, _| Box::pin(take_back(cx, uow, kinds, job)));
        reaped += usize::from(moved.await?);
    }
    Ok(reaped)
}

async fn list_leased_jobs(store: &dyn Store) -> Result<Vec<JobId>> {
    let mut uow = store.begin(Mode::Read).await?;
    let mut leases = Batches::<JobLease>::of(JobLeaseQuery::All);
    let mut jobs = Vec::new();
    while let Some(batch) = leases.next(unowned_records(uow.as_mut())).await? {
        jobs.extend(batch.iter().map(|lease| lease.job_id.clone()));
    }
    Ok(jobs)
}

/// Stops jobs whose deadline has passed, each in a unit of work of its own.
///
/// # Errors
/// Returns the first error. Jobs that were already stopped remain stopped.
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
        LeaseCondition::Irrelevant,
    )
    .await
}

/// Takes a job from a holder that no longer exists. If the job does not run, removes its orphaned lease. Returns
/// whether the job was taken back.
async fn take_back(
    cx: &Context,
    uow: &mut dyn UnitOfWork,
    kinds: &Kinds,
    id: &JobId,
) -> Result<bool> {
    if move_one(
        cx,
        uow,
        kinds,
        id,
        &Trigger::Reap,
        LeaseCondition::HolderIsGone,
    )
    .await?
    {
        return Ok(true);
    }
    let job = unowned_records::<Job>(uow).find(id).await?;
    if job.is_none_or(|job| job.status != JobStatus::Running)
        && let Some(orphan) = unowned_records::<JobLease>(uow).find(id).await?
    {
        unaudited::remove(uow, &orphan).await?;
    }
    Ok(false)
}

/// Wakes a waiting job because the event it waits for has happened.
///
/// # Errors
/// `INVALID_STATE` if the job does not wait.
pub async fn signal(
    cx: &Context,
    scope: &JobScope<permission::JobCreate>,
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

/// The condition on the lease under which a job may be moved.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum LeaseCondition {
    MustHaveEnded,
    Irrelevant,
    /// The holder cannot act any more: this process has taken over the store from the only other process that could use
    /// it.
    HolderIsGone,
}

#[derive(Debug)]
struct Due {
    to_wake: Vec<JobId>,
    overdue: Vec<JobId>,
    expired: Vec<JobId>,
    /// Whether the `ready_at` of a lane has passed.
    has_lanes: bool,
}

/// Returns whether the job has been overdue for so long that any process may stop it, even one that does not know its
/// kind.
fn is_abandoned(job: &Job, now: Timestamp) -> bool {
    job.deadline_at.plus(UNKNOWN_KIND_GRACE) < now
}

/// Returns the first jobs of the query that this process may move. Other jobs do not count towards [`BATCH`].
async fn find_movable(
    uow: &mut dyn UnitOfWork,
    query: JobQuery,
    may_move: impl Fn(&Job) -> bool + Send,
) -> Result<Vec<JobId>> {
    let (mut found, mut jobs) = (Vec::new(), Batches::<Job>::of(query));
    while found.len() < BATCH as usize
        && let Some(batch) = jobs.next(unowned_records(uow)).await?
    {
        let own = batch.iter().filter(|job| may_move(job));
        found.extend(own.map(|job| job.id.clone()));
    }
    found.truncate(BATCH as usize);
    Ok(found)
}

/// Returns the first running jobs of known kinds whose leases have expired. Jobs of unknown kinds do not count towards
/// [`BATCH`].
async fn find_expired(
    uow: &mut dyn UnitOfWork,
    kinds: &Kinds,
    now: Timestamp,
) -> Result<Vec<JobId>> {
    let (mut found, mut leases) = (
        Vec::new(),
        Batches::<JobLease>::of(JobLeaseQuery::ExpiredAt(now)),
    );
    while found.len() < BATCH as usize
        && let Some(batch) = leases.next(unowned_records(uow)).await?
    {
        let ids: Vec<&str> = batch.iter().map(|lease| lease.job_id.as_str()).collect();
        let jobs = unowned_records::<Job>(uow).get_many(&ids).await?;
        let own = jobs
            .iter()
            .filter(|job| job.status == JobStatus::Running && kinds.contains(&job.kind));
        found.extend(own.map(|job| job.id.clone()));
    }
    found.truncate(BATCH as usize);
    Ok(found)
}

async fn find_due(store: &dyn Store, kinds: &Kinds) -> Result<Due> {
    let mut uow = store.begin(Mode::Read).await?;
    let now = uow.now().await?;
    let is_known = |job: &Job| kinds.contains(&job.kind);
    let to_wake = find_movable(uow.as_mut(), JobQuery::WakeAt(now), is_known).await?;
    let may_stop = |job: &Job| kinds.contains(&job.kind) || is_abandoned(job, now);
    let overdue = find_movable(uow.as_mut(), JobQuery::OverdueAt(now), may_stop).await?;
    let due = Due {
        to_wake,
        overdue,
        expired: find_expired(uow.as_mut(), kinds, now).await?,
        has_lanes: unowned_records::<JobLane>(uow.as_mut())
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
    lease: LeaseCondition,
) -> Result<usize> {
    let (mut count, mut outages, mut first) = (0, 0, None);
    for job in jobs {
        let moved = transact(store, |uow, _| {
            Box::pin(move_one(cx, uow, kinds, job, trigger, lease))
        });
        match moved.await {
            Ok(moved) => count += usize::from(moved),
            // A job that cannot be moved must not block the others.
            Err(error) => {
                outages += usize::from(matches!(error, Error::Store(StoreError::Unavailable(_))));
                first.get_or_insert(error);
            }
        }
        if outages > MAX_OUTAGES {
            break;
        }
    }
    first.map_or(Ok(count), Err)
}

/// Makes the transition if its condition still holds in the unit of work. Another process may have moved the job, or a
/// heartbeat may have extended its lease. Returns whether the job was moved.
async fn move_one(
    cx: &Context,
    uow: &mut dyn UnitOfWork,
    kinds: &Kinds,
    job: &JobId,
    trigger: &Trigger,
    lease: LeaseCondition,
) -> Result<bool> {
    let now = uow.now().await?;
    let Some(job) = unowned_records::<Job>(uow).find(job).await? else {
        return Ok(false);
    };
    // This process cannot run the hooks of an unknown kind, so it leaves the job to another process.
    let is_abandoned = *trigger == Trigger::Deadline && is_abandoned(&job, now);
    if !kinds.contains(&job.kind) && !is_abandoned {
        return Ok(false);
    }
    if lease == LeaseCondition::MustHaveEnded {
        let held = unowned_records::<JobLease>(uow).find(&job.id).await?;
        if job.status != JobStatus::Running || held.is_none_or(|l| l.lease_until >= now) {
            return Ok(false);
        }
    }
    let actor = Actor::system();
    let change = match JobChange::plan(cx, &actor, job, std::slice::from_ref(trigger), now) {
        Ok(change) => change,
        Err(Refusal::NotDue | Refusal::Status(_)) => return Ok(false),
        Err(refusal) => return Err(refusal.into()),
    };
    let by = TransitionContext {
        holder_is_gone: lease == LeaseCondition::HolderIsGone,
        ..TransitionContext::new(&actor, kinds)
    };
    write_transition(cx, uow, change, by).await?;
    Ok(true)
}
