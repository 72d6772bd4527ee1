//! Taking jobs to work on.

use std::collections::BTreeMap;

use super::change::{Change, write_changes};
use super::hold::wide;
use super::kinds::{AnyKind, Kinds};
use super::lane::{Lanes, learn};
use crate::access::unowned;
use crate::kernel::{Context, JobId, Result, Stored, Timestamp};
use crate::port::UnitOfWork;
use crate::provisioning::{Actor, HoldScope, Job, JobLane, JobLaneQuery, LaneKey, Report, Trigger};

/// How many lanes whose time has come are moved into the order of a claim at once.
const MOST_DUE: u32 = 256;

/// A job that a worker holds: every write it makes names both.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Claimed {
    /// The job.
    pub job_id: JobId,
    /// The fence it was given.
    pub fence: i64,
}

/// A job that a worker holds, as it stands: with the intent to work on its current step stored, unless the step is not
/// known here or there is none.
#[derive(Clone, Debug, PartialEq)]
pub struct HeldJob {
    /// What its holder names in every write.
    pub claimed: Claimed,
    pub(super) job: Stored<Job>,
}

impl HeldJob {
    pub(super) fn new(job: Stored<Job>) -> Self {
        let claimed = Claimed {
            job_id: job.id.clone(),
            fence: job.fence,
        };
        Self { claimed, job }
    }
}

/// What a claim found.
#[derive(Debug, Default)]
pub(super) struct Taken {
    /// The jobs that are the owner's now.
    pub held: Vec<HeldJob>,
    /// Jobs at the head of their lanes that are to be stopped instead, because their deadline has passed.
    pub overdue: Vec<JobId>,
    /// The lanes that were taken from.
    pub lanes: Vec<LaneKey>,
}

/// Takes up to `limit` jobs for this owner and stores the intent to begin them: the heads of lanes that are ready and not
/// held, of kinds this process knows. Fair between lanes, in order within one; its cost grows with the number of jobs
/// taken, not with that of lanes.
///
/// # Errors
/// When the store failed.
pub(super) async fn take(
    cx: &Context,
    uow: &mut dyn UnitOfWork,
    kinds: &Kinds,
    owner: &Actor,
    limit: u32,
) -> Result<Taken> {
    if limit == 0 {
        return Ok(Taken::default());
    }
    let now = uow.now().await?;
    let names = claimable_kinds(uow, kinds).await?;
    if names.is_empty() {
        return Ok(Taken::default());
    }
    promote(uow, now).await?;
    let lanes = ready_lanes(uow, &names, limit).await?;
    if lanes.is_empty() {
        return Ok(Taken::default());
    }
    let mut heads = heads_of(uow, &lanes).await?;
    let mut taken = Taken::default();
    let (mut changes, mut kept, mut astray) = (Vec::new(), Vec::new(), Vec::new());
    for lane in lanes {
        let head = lane.head().and_then(|head| heads.remove(&head.job_id));
        if let Some(job) = head.as_ref().filter(|job| job.deadline_at < now) {
            taken.overdue.push(job.id.clone());
            continue;
        }
        let change = head.and_then(|job| {
            let triggers = begin(kinds, &job);
            Change::plan(cx, owner, job, &triggers, now).ok()
        });
        match change {
            Some(change) => {
                changes.push(change);
                kept.push(lane);
            }
            None => astray.push(lane),
        }
    }
    put_right(uow, astray, now).await?;
    if changes.is_empty() {
        return Ok(taken);
    }
    taken.lanes = kept.iter().map(|lane| lane.lane.clone()).collect();
    let lanes = Lanes::of(uow, kept).await?;
    let written = write_changes(uow, changes, lanes, owner, now).await?;
    taken.held = written.jobs.into_iter().map(HeldJob::new).collect();
    Ok(taken)
}

/// The claim and, in the same move of the row, the intent to work on the first step.
fn begin(kinds: &Kinds, job: &Job) -> Vec<Trigger> {
    let mut triggers = vec![Trigger::Claim];
    if let Some(step) = startable(kinds, job, job.current_step()) {
        triggers.push(Trigger::Work(job.fence + 1, Report::Start(step)));
    }
    triggers
}

/// The step, if it is one that is known here.
pub(super) fn startable(kinds: &Kinds, job: &Job, step: Option<usize>) -> Option<usize> {
    let (step, kind) = (step?, kinds.get(&job.kind)?);
    AnyKind::has_step(kind, &job.steps.get(step)?.name).then_some(step)
}

/// The kinds that no hold on everything or on a kind keeps back.
async fn claimable_kinds(uow: &mut dyn UnitOfWork, kinds: &Kinds) -> Result<Vec<String>> {
    let holds = wide(uow).await?;
    let mut names = kinds.names();
    for hold in &holds {
        match &hold.scope {
            HoldScope::All => return Ok(Vec::new()),
            HoldScope::Kind(held) => names.retain(|name| name != held),
            HoldScope::Lane(_) => {}
        }
    }
    Ok(names)
}

/// Moves lanes whose time has come into the order in which lanes are claimed.
async fn promote(uow: &mut dyn UnitOfWork, now: Timestamp) -> Result<()> {
    let due = JobLaneQuery::DueAt(now);
    let due = unowned::<JobLane>(uow).claim(&due, MOST_DUE).await?;
    if !due.is_empty() {
        let lanes = Lanes::of(uow, due).await?;
        lanes.store(uow, now).await?;
    }
    Ok(())
}

/// The first lanes of the order whose heads are of these kinds. As a rule those are the first of all; only when others
/// stand before them is each kind asked for by itself, so that they need not be passed one by one.
async fn ready_lanes(
    uow: &mut dyn UnitOfWork,
    names: &[String],
    limit: u32,
) -> Result<Vec<Stored<JobLane>>> {
    let first = unowned::<JobLane>(uow)
        .claim(&JobLaneQuery::Ready, limit)
        .await?;
    let is_ours = |lane: &Stored<JobLane>| lane.head_kind().is_some_and(|k| names.contains(&k));
    if first.iter().all(is_ours) {
        return Ok(first);
    }
    let mut lanes = Vec::new();
    for name in names {
        let of_kind = JobLaneQuery::ReadyOfKind(name.clone());
        lanes.extend(unowned::<JobLane>(uow).claim(&of_kind, limit).await?);
    }
    lanes.sort_by_key(|lane| {
        let order = (lane.head_priority(), lane.last_claimed_at);
        (order, lane.lane.clone())
    });
    lanes.truncate(usize::try_from(limit).unwrap_or(usize::MAX));
    Ok(lanes)
}

async fn heads_of(
    uow: &mut dyn UnitOfWork,
    lanes: &[Stored<JobLane>],
) -> Result<BTreeMap<JobId, Stored<Job>>> {
    let heads = lanes.iter().filter_map(|lane| lane.head());
    let ids: Vec<&str> = heads.map(|head| head.job_id.as_str()).collect();
    let jobs = unowned::<Job>(uow).get_many(&ids).await?;
    Ok(jobs.into_iter().map(|job| (job.id.clone(), job)).collect())
}

/// Lanes that name a job which cannot be claimed: rather than meet them again, they are told what is queued.
async fn put_right(
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
            learn(uow, lane).await?;
        }
    }
    lanes.store(uow, now).await?;
    Ok(())
}
