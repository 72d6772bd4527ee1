//! Taking jobs to work on.

use super::kinds::Kinds;
use super::lane::{MOST_HOLDS, lane_of, refresh_lane};
use super::transition::{TransitionContext, apply_transition};
use crate::access::unowned;
use crate::kernel::{Context, JobId, Result, Stored};
use crate::port::UnitOfWork;
use crate::provisioning::{
    Actor, HoldScope, Job, JobHold, JobHoldQuery, JobLane, JobLaneQuery, JobStatus, Trigger, apply,
};

/// A job that a worker holds: every write it makes names both.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Claimed {
    /// The job.
    pub job_id: JobId,
    /// The fence it was given.
    pub fence: i64,
}

/// Takes up to `limit` jobs for this owner: the heads of lanes that are ready and not held, of kinds this process
/// knows. Fair between lanes, in order within one.
///
/// # Errors
/// When the store failed.
pub(super) async fn claim(
    cx: &Context,
    uow: &mut dyn UnitOfWork,
    kinds: &Kinds,
    owner: &str,
    limit: u32,
) -> Result<Vec<Claimed>> {
    let now = uow.now().await?;
    let names = claimable_kinds(uow, kinds).await?;
    if names.is_empty() {
        return Ok(Vec::new());
    }
    let query = JobLaneQuery::ReadyAt(now, names);
    let lanes = unowned::<JobLane>(uow).claim(&query, limit).await?;
    let mut claimed = Vec::with_capacity(lanes.len());
    for lane in lanes {
        if let Some(job) = claim_head(cx, uow, kinds, owner, &lane).await? {
            claimed.push(job);
        }
    }
    Ok(claimed)
}

/// The kinds that no hold on everything or on a kind keeps back.
async fn claimable_kinds(uow: &mut dyn UnitOfWork, kinds: &Kinds) -> Result<Vec<String>> {
    let wide = JobHoldQuery::Wide;
    let holds = unowned::<JobHold>(uow).list(&wide, MOST_HOLDS).await?;
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

async fn claim_head(
    cx: &Context,
    uow: &mut dyn UnitOfWork,
    kinds: &Kinds,
    owner: &str,
    lane: &Stored<JobLane>,
) -> Result<Option<Claimed>> {
    let now = uow.now().await?;
    let Some(head) = &lane.head_job_id else {
        return Ok(None);
    };
    let Some(job) = unowned::<Job>(uow).find(head).await? else {
        return Ok(None);
    };
    let actor = Actor::worker(owner);
    let by = TransitionContext {
        actor: &actor,
        kinds,
        holder_is_gone: false,
    };
    let trigger = if job.deadline_at < now {
        Trigger::Deadline
    } else {
        Trigger::Claim
    };
    let Ok(moved) = apply(&job, &trigger, now, cx.entropy.as_ref()) else {
        // The lane names a job that cannot be claimed: put it right rather than meet it again.
        let lane = lane_of(uow, &job.lane).await?;
        refresh_lane(uow, lane).await?;
        return Ok(None);
    };
    let stored = apply_transition(cx, uow, &job, moved, by).await?;
    Ok((stored.status == JobStatus::Running).then(|| Claimed {
        job_id: stored.id.clone(),
        fence: stored.fence,
    }))
}
