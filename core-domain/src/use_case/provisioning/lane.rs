//! Lanes: which job of a lane runs next, and whether it can be claimed.

use crate::access::{unaudited, unowned};
use crate::kernel::{Effect, Result, Stored};
use crate::port::UnitOfWork;
use crate::provisioning::{Job, JobHold, JobHoldQuery, JobLane, JobQuery, LaneKey};

/// The most holds that are read at once: a source has one on a scope, so there are few.
pub(super) const MOST_HOLDS: u32 = 1_000;

/// The lane as it stands, or a new one.
pub(super) async fn lane_of(uow: &mut dyn UnitOfWork, key: &LaneKey) -> Result<JobLane> {
    let stored = unowned::<JobLane>(uow).find(key).await?;
    Ok(stored.map_or_else(|| JobLane::new(key.clone()), Stored::into_inner))
}

/// Puts the right head in front of the lane and stores it.
pub(super) async fn refresh_lane(uow: &mut dyn UnitOfWork, mut lane: JobLane) -> Result<()> {
    let queued = JobQuery::QueuedInLane(lane.lane.clone());
    let head = unowned::<Job>(uow).first(&queued).await?;
    let held = match &head {
        Some(head) => {
            let holds = holds_on(uow, vec![lane.lane.clone()]).await?;
            holds.iter().any(|hold| hold.holds(&lane.lane, &head.kind))
        }
        None => false,
    };
    lane.set_head(head.as_deref(), held);
    put_lane(uow, lane).await
}

/// The holds on these lanes.
pub(super) async fn holds_on(
    uow: &mut dyn UnitOfWork,
    lanes: Vec<LaneKey>,
) -> Result<Vec<Stored<JobHold>>> {
    let on_lanes = JobHoldQuery::OnLanes(lanes);
    unowned::<JobHold>(uow).list(&on_lanes, MOST_HOLDS).await
}

/// Stores the lane, new or changed. A lane whose head can be claimed is a job for somebody.
pub(super) async fn put_lane(uow: &mut dyn UnitOfWork, lane: JobLane) -> Result<()> {
    if lane.ready_at.is_some() {
        uow.effects().add(Effect::JobReady);
    }
    match unowned::<JobLane>(uow).find(&lane.lane).await? {
        Some(stored) if *stored == lane => {}
        Some(stored) => {
            unaudited::replace(uow, &stored, lane).await?;
        }
        None => {
            unaudited::insert(uow, lane).await?;
        }
    }
    Ok(())
}
