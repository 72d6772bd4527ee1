//! Claiming jobs, checking claims, and prolonging leases.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use super::job_change::JobChange;
use super::kinds::Kinds;
use super::lane::{Lanes, refill_cache};
use super::worker::{Claim, Worker};
use crate::access::{unaudited, unowned_records};
use crate::kernel::{JobId, Result, Stored, Timestamp};
use crate::port::UnitOfWork;
use crate::provisioning::{
    HoldScope, Job, JobHold, JobLane, JobLaneQuery, JobLease, LaneKey, LaneState, QueuedJob,
    Report, Trigger,
};

/// Maximum number of lanes that one call of [`promote`] makes ready.
const MAX_PROMOTED_LANES: u32 = 256;

/// The result of looking for jobs to claim.
#[derive(Debug, Default)]
pub(super) struct ClaimPlan {
    /// The claims to write. Their lanes are in the set of lanes, but not updated yet.
    pub changes: Vec<JobChange>,
    /// Jobs at the head of their lanes whose deadline has passed. They have to be stopped instead.
    pub overdue: Vec<JobId>,
}

/// A lane whose head can be claimed.
struct Candidate {
    order: (i64, Timestamp, LaneKey),
    head: Option<JobId>,
    /// The lane as read and locked; `None` if a report in this unit of work has made it ready.
    stored: Option<Stored<JobLane>>,
}

impl Candidate {
    fn of(lane: &JobLane, stored: Option<Stored<JobLane>>) -> Self {
        Self {
            order: claim_order_key(lane),
            head: lane.head().map(|head| head.job_id.clone()),
            stored,
        }
    }
}

impl Worker {
    /// Finds up to `limit` jobs to claim and plans the start of their first steps. These are the heads of ready lanes
    /// that no hold applies to, of registered kinds. Lanes take turns, and jobs of one lane keep their order. The cost
    /// grows with the number of claimed jobs, not with the number of lanes.
    ///
    /// `lanes` must be updated for the jobs that were `moved` in this unit of work, including their states; the lanes
    /// of the claims are added to it. `wide` are the holds on all jobs and on kinds.
    ///
    /// # Errors
    /// Only those of the store.
    pub(super) async fn find_claims(
        &self,
        uow: &mut dyn UnitOfWork,
        limit: u32,
        wide: &[Stored<JobHold>],
        lanes: &mut Lanes,
        moved: &[JobChange],
    ) -> Result<ClaimPlan> {
        let names = claimable_kinds(&self.kinds, wide);
        if limit == 0 || names.is_empty() {
            return Ok(ClaimPlan::default());
        }
        let now = uow.now().await?;
        let candidates = candidates(uow, &names, limit, lanes, moved).await?;
        if candidates.is_empty() {
            return Ok(ClaimPlan::default());
        }
        let mut heads = heads_of(uow, &candidates).await?;
        let mut found = ClaimPlan::default();
        let (mut lanes_to_write, mut stale_lanes, mut overdue_lanes) =
            (Vec::new(), Vec::new(), Vec::new());
        for Candidate {
            head,
            stored,
            order: (.., lane),
        } in candidates
        {
            let head = head.and_then(|head| heads.remove(&head));
            if let Some(job) = head.as_ref().filter(|job| job.deadline_at < now) {
                found.overdue.push(job.id.clone());
                overdue_lanes.push(lane);
                lanes_to_write.extend(stored);
                continue;
            }
            let change = head.and_then(|job| {
                let triggers = claim_triggers(&self.kinds, &job);
                let mut change =
                    JobChange::plan(&self.cx, &self.actor, job, &triggers, now).ok()?;
                change.lease = Some(self.lease_of(&change.after, now));
                Some(change)
            });
            // The next jobs of a lane that is not written yet cannot be queried; a later claim handles such a lane.
            match change {
                Some(_) => lanes_to_write.extend(stored),
                None => stale_lanes.extend(stored),
            }
            found.changes.extend(change);
        }
        refill_lanes(uow, stale_lanes, now).await?;
        lanes.extend(Lanes::of(uow, lanes_to_write).await?);
        // If stopping the job fails, the lane goes to the end of the order, so that it does not block other lanes.
        for lane in &overdue_lanes {
            if let Some(lane) = lanes.get_mut(lane) {
                lane.last_claimed_at = now;
            }
        }
        Ok(found)
    }

    fn lease_of(&self, job: &Job, now: Timestamp) -> JobLease {
        JobLease {
            job_id: job.id.clone(),
            fence: job.fence,
            owner: self.owner().to_owned(),
            lease_until: now.plus(self.lease),
        }
    }
}

/// Returns the first claimable lanes in claim order: ready lanes from the store, and those of `lanes` that have just
/// become ready.
async fn candidates(
    uow: &mut dyn UnitOfWork,
    names: &[String],
    limit: u32,
    lanes: &Lanes,
    moved: &[JobChange],
) -> Result<Vec<Candidate>> {
    let mut ready = ready_lanes(uow, names, limit).await?;
    let most = usize::try_from(limit).unwrap_or(usize::MAX);
    // If enough lanes are ready, the timers promote the due ones.
    if ready.len() < most && promote(uow).await? > 0 {
        ready = ready_lanes(uow, names, limit).await?;
    }
    let moved: BTreeSet<&JobId> = moved.iter().map(|change| &change.before.id).collect();
    let is_claimable =
        |head: &QueuedJob| names.contains(&head.kind) && !moved.contains(&head.job_id);
    let freed = lanes.iter().filter(|lane| {
        let is_ready = lane.state == LaneState::Ready;
        is_ready && lane.head().is_some_and(is_claimable)
    });
    let mut all: Vec<Candidate> = freed.map(|lane| Candidate::of(lane, None)).collect();
    let of_ready = |lane: Stored<JobLane>| Candidate::of(&lane.clone(), Some(lane));
    all.extend(ready.into_iter().map(of_ready));
    all.sort_by(|one, other| one.order.cmp(&other.order));
    all.truncate(most);
    Ok(all)
}

/// Returns the claim and the start of the first step, which are written together.
fn claim_triggers(kinds: &Kinds, job: &Job) -> Vec<Trigger> {
    let mut triggers = vec![Trigger::Claim];
    if let Some(step) = startable_step(kinds, job, job.current_step()) {
        triggers.push(Trigger::Work(job.fence + 1, Report::Start(step)));
    }
    triggers
}

/// Returns the step if this process knows it.
pub(super) fn startable_step(kinds: &Kinds, job: &Job, step: Option<usize>) -> Option<usize> {
    let (step, kind) = (step?, kinds.get(&job.kind)?);
    kind.step(&job.steps.get(step)?.name).map(|_| step)
}

/// Returns the hold scopes that affect jobs of these kinds in every lane.
pub(super) fn wide_scopes(kinds: &Kinds) -> Vec<HoldScope> {
    let mut scopes = vec![HoldScope::All];
    scopes.extend(kinds.names().into_iter().map(HoldScope::Kind));
    scopes
}

/// Returns the kinds to which none of the holds on all jobs or on a kind applies.
fn claimable_kinds(kinds: &Kinds, wide: &[Stored<JobHold>]) -> Vec<String> {
    let mut names = kinds.names();
    for hold in wide {
        match &hold.scope {
            HoldScope::All => return Vec::new(),
            HoldScope::Kind(held) => names.retain(|name| name != held),
            HoldScope::Lane(_) => {}
        }
    }
    names
}

/// Makes lanes ready whose `ready_at` has passed, and returns their number.
pub(super) async fn promote(uow: &mut dyn UnitOfWork) -> Result<usize> {
    let now = uow.now().await?;
    let due = JobLaneQuery::DueAt(now);
    let due = unowned_records::<JobLane>(uow)
        .claim(&due, MAX_PROMOTED_LANES)
        .await?;
    let promoted = due.len();
    if promoted > 0 {
        let lanes = Lanes::of(uow, due).await?;
        lanes.store(uow, now).await?;
    }
    Ok(promoted)
}

/// Returns the first ready lanes whose heads are of these kinds, in claim order. Usually all first lanes match. Only if
/// some do not, each kind is queried separately, so that lanes of unknown kinds need not be skipped one by one.
async fn ready_lanes(
    uow: &mut dyn UnitOfWork,
    names: &[String],
    limit: u32,
) -> Result<Vec<Stored<JobLane>>> {
    let first = unowned_records::<JobLane>(uow)
        .claim(&JobLaneQuery::Ready, limit)
        .await?;
    let is_ours = |lane: &Stored<JobLane>| lane.head_kind().is_some_and(|k| names.contains(&k));
    if first.iter().all(is_ours) {
        return Ok(first);
    }
    let mut lanes = Vec::new();
    for name in names {
        let of_kind = JobLaneQuery::ReadyOfKind(name.clone());
        lanes.extend(
            unowned_records::<JobLane>(uow)
                .claim(&of_kind, limit)
                .await?,
        );
    }
    lanes.sort_by_cached_key(|lane| claim_order_key(lane));
    lanes.truncate(usize::try_from(limit).unwrap_or(usize::MAX));
    Ok(lanes)
}

/// Returns the sort key of a lane in the order of claims.
fn claim_order_key(lane: &JobLane) -> (i64, Timestamp, LaneKey) {
    let key = lane.lane.clone();
    (lane.head_priority(), lane.last_claimed_at, key)
}

async fn heads_of(
    uow: &mut dyn UnitOfWork,
    candidates: &[Candidate],
) -> Result<BTreeMap<JobId, Stored<Job>>> {
    let heads = candidates.iter().filter_map(|lane| lane.head.as_ref());
    let ids: Vec<&str> = heads.map(JobId::as_str).collect();
    let jobs = unowned_records::<Job>(uow).get_many(&ids).await?;
    Ok(jobs.into_iter().map(|job| (job.id.clone(), job)).collect())
}

/// Refills the caches of lanes whose cached head cannot be claimed, so that the next claim does not find the same head.
async fn refill_lanes(
    uow: &mut dyn UnitOfWork,
    lanes: Vec<Stored<JobLane>>,
    now: Timestamp,
) -> Result<()> {
    if lanes.is_empty() {
        return Ok(());
    }
    let keys: Vec<LaneKey> = lanes.iter().map(|lane| lane.lane.clone()).collect();
    let mut lanes = Lanes::of(uow, lanes).await?;
    for key in &keys {
        if let Some(lane) = lanes.get_mut(key) {
            refill_cache(uow, lane).await?;
        }
    }
    lanes.store(uow, now).await?;
    Ok(())
}

/// Returns whether the job still runs under the fence of the claim. Reads the lease, which exists exactly while the job
/// runs and is smaller than the job.
///
/// # Errors
/// Only those of the store.
pub(super) async fn is_held(uow: &mut dyn UnitOfWork, job: &Claim) -> Result<bool> {
    let lease = unowned_records::<JobLease>(uow).find(&job.job_id).await?;
    Ok(lease.is_some_and(|lease| lease.fence == job.fence))
}

/// Returns for each claim whether the job still runs under its fence, using one query.
///
/// # Errors
/// Only those of the store.
pub(super) async fn are_held(uow: &mut dyn UnitOfWork, jobs: &[Claim]) -> Result<Vec<bool>> {
    let ids: Vec<&str> = jobs.iter().map(|job| job.job_id.as_str()).collect();
    let leases = unowned_records::<JobLease>(uow).get_many(&ids).await?;
    let fences = leases.iter().map(|lease| (&lease.job_id, lease.fence));
    let fences: BTreeMap<&JobId, i64> = fences.collect();
    let is_held = |job: &Claim| fences.get(&job.job_id) == Some(&job.fence);
    Ok(jobs.iter().map(is_held).collect())
}

/// Extends the leases of these claims to `lasts` from now, all at once. Returns the claims that the owner has lost.
/// Does not write any job.
///
/// # Errors
/// Only those of the store; no lease is extended then.
pub(super) async fn heartbeat(
    uow: &mut dyn UnitOfWork,
    owner: &str,
    lasts: Duration,
    held: &[Claim],
) -> Result<Vec<Claim>> {
    if held.is_empty() {
        return Ok(Vec::new());
    }
    let now = uow.now().await?;
    let ids: Vec<&str> = held.iter().map(|claimed| claimed.job_id.as_str()).collect();
    let leases = unowned_records::<JobLease>(uow).get_many(&ids).await?;
    let own = leases.into_iter().filter(|lease| lease.owner == owner);
    let mut own: BTreeMap<JobId, _> = own.map(|lease| (lease.job_id.clone(), lease)).collect();
    let (mut lost, mut prolonged) = (Vec::new(), Vec::new());
    for claimed in held {
        let is_held = own
            .get(&claimed.job_id)
            .is_some_and(|lease| lease.fence == claimed.fence);
        let Some(lease) = own.remove(&claimed.job_id).filter(|_| is_held) else {
            lost.push(claimed.clone());
            continue;
        };
        let mut next = (*lease).clone();
        next.lease_until = now.plus(lasts);
        prolonged.push((lease, next));
    }
    if !prolonged.is_empty() {
        unaudited::replace_many(uow, prolonged).await?;
    }
    Ok(lost)
}
