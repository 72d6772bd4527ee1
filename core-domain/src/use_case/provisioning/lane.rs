//! Lanes: which job of a lane runs next, and whether it can be claimed.

use std::collections::BTreeMap;

use crate::access::{unaudited, unowned};
use crate::kernel::{Effect, Error, Result, StoreError, Stored, Timestamp};
use crate::port::UnitOfWork;
use crate::provisioning::{
    Job, JobHold, JobHoldQuery, JobLane, JobQuery, LaneKey, LaneState, QueuedJob,
};

/// The most holds that are read at once: a source has one on a scope, so there are few.
pub(super) const MOST_HOLDS: u32 = 1_000;

/// The holds on these lanes.
pub(super) async fn holds_on(
    uow: &mut dyn UnitOfWork,
    lanes: Vec<LaneKey>,
) -> Result<Vec<Stored<JobHold>>> {
    let on_lanes = JobHoldQuery::OnLanes(lanes);
    unowned::<JobHold>(uow).list(&on_lanes, MOST_HOLDS).await
}

/// Lanes that a unit of work changes: read at once, changed in memory, written at once. They are written before their
/// jobs by every unit, so that two units never wait for each other, and always, even when nothing of them changed: their
/// version guards what was concluded from their jobs and their holds.
#[derive(Debug, Default)]
pub(super) struct Lanes(BTreeMap<LaneKey, Loaded>);

#[derive(Debug)]
struct Loaded {
    stored: Option<Stored<JobLane>>,
    lane: JobLane,
}

impl Lanes {
    /// Reads these lanes, which are no lanes of this set yet; one that does not exist is new.
    pub(super) async fn load(
        uow: &mut dyn UnitOfWork,
        keys: impl IntoIterator<Item = LaneKey>,
    ) -> Result<Self> {
        let new = |key: LaneKey| {
            let lane = JobLane::new(key.clone());
            (key, Loaded { stored: None, lane })
        };
        let mut lanes: BTreeMap<LaneKey, Loaded> = keys.into_iter().map(new).collect();
        if lanes.is_empty() {
            return Ok(Self(lanes));
        }
        let names: Vec<&str> = lanes.keys().map(LaneKey::as_str).collect();
        let stored = unowned::<JobLane>(uow).get_many(&names).await?;
        lanes.extend(stored.into_iter().map(Loaded::entry));
        Self(lanes).learn(uow).await
    }

    /// Takes lanes that have been read.
    pub(super) async fn of(uow: &mut dyn UnitOfWork, stored: Vec<Stored<JobLane>>) -> Result<Self> {
        let lanes = stored.into_iter().map(Loaded::entry).collect();
        Self(lanes).learn(uow).await
    }

    /// Tells lanes that have come to the end of what they know which of their jobs come next. One query a lane, once in
    /// several jobs of it: a query for all of them would read every queued job of a long lane.
    async fn learn(mut self, uow: &mut dyn UnitOfWork) -> Result<Self> {
        for loaded in self.0.values_mut() {
            if loaded.lane.must_learn() {
                learn(uow, &mut loaded.lane).await?;
            }
        }
        Ok(self)
    }

    /// One of the lanes, if it is in the set.
    pub(super) fn get_mut(&mut self, key: &LaneKey) -> Option<&mut JobLane> {
        self.0.get_mut(key).map(|loaded| &mut loaded.lane)
    }

    /// Decides which of the lanes can be claimed, and writes them. Answers those that can.
    pub(super) async fn store(
        mut self,
        uow: &mut dyn UnitOfWork,
        now: Timestamp,
    ) -> Result<Vec<LaneKey>> {
        let holds = self.holds(uow).await?;
        let (mut ready, mut added, mut changed) = (Vec::new(), Vec::new(), Vec::new());
        for Loaded { stored, mut lane } in self.0.into_values() {
            let held = lane.head().is_some_and(|head| {
                let mut holds = holds.iter();
                holds.any(|hold| hold.holds(&lane.lane, &head.kind))
            });
            lane.settle(held, now);
            if lane.state == LaneState::Ready {
                ready.push(lane.lane.clone());
            }
            match stored {
                Some(stored) => changed.push((stored, lane)),
                None => added.push(lane),
            }
        }
        if !added.is_empty() {
            let inserted = unaudited::insert_many(uow, added).await;
            inserted.map_err(made_elsewhere)?;
        }
        if !changed.is_empty() {
            unaudited::replace_many(uow, changed).await?;
        }
        Ok(ready)
    }

    /// The holds on lanes whose head they may concern. A lane that is new has none: a hold makes its lane.
    async fn holds(&mut self, uow: &mut dyn UnitOfWork) -> Result<Vec<Stored<JobHold>>> {
        let may_be_held = |loaded: &&Loaded| {
            let lane = &loaded.lane;
            loaded.stored.is_some() && lane.running_job_id.is_none() && lane.head().is_some()
        };
        let lanes = self.0.values().filter(may_be_held);
        let lanes: Vec<LaneKey> = lanes.map(|loaded| loaded.lane.lane.clone()).collect();
        if lanes.is_empty() {
            return Ok(Vec::new());
        }
        holds_on(uow, lanes).await
    }
}

impl Loaded {
    fn entry(stored: Stored<JobLane>) -> (LaneKey, Self) {
        let lane = (*stored).clone();
        let stored = Some(stored);
        (lane.lane.clone(), Self { stored, lane })
    }
}

/// Two units that make one lane: the one that comes second runs again and finds it.
fn made_elsewhere(error: Error) -> Error {
    match error {
        Error::Store(StoreError::Conflict { .. }) => {
            StoreError::retry("the lane was made elsewhere").into()
        }
        other => other,
    }
}

/// Tells the lane the first of its queued jobs.
pub(super) async fn learn(uow: &mut dyn UnitOfWork, lane: &mut JobLane) -> Result<()> {
    let queued = JobQuery::QueuedInLane(lane.lane.clone());
    let first = unowned::<Job>(uow).list(&queued, JobLane::wants()).await?;
    lane.learn(first.iter().map(|job| QueuedJob::from(&**job)));
    Ok(())
}

/// Brings one lane up to date after a hold on it came or went.
pub(super) async fn refresh_lane(uow: &mut dyn UnitOfWork, key: &LaneKey) -> Result<()> {
    let now = uow.now().await?;
    let lanes = Lanes::load(uow, [key.clone()]).await?;
    let ready = lanes.store(uow, now).await?;
    announce(uow, &ready);
    Ok(())
}

/// A lane that can be claimed is a job for somebody.
pub(super) fn announce(uow: &mut dyn UnitOfWork, ready: &[LaneKey]) {
    if !ready.is_empty() {
        uow.effects().add(Effect::JobReady);
    }
}
