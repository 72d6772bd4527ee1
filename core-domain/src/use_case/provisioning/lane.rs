//! Lanes: which job of a lane runs next, and whether it can be claimed.

use std::collections::{BTreeMap, BTreeSet};

use crate::access::{unaudited, unowned};
use crate::kernel::{Effect, Result, Stored, Timestamp};
use crate::port::UnitOfWork;
use crate::provisioning::{
    HoldScope, Job, JobHold, JobHoldQuery, JobLane, JobLaneQuery, JobQuery, LaneKey, LaneState,
    QueuedJob,
};

/// The most holds that are read at once: a source has one on a scope, so there are few.
pub(super) const MOST_HOLDS: u32 = 1_000;

/// The holds on exactly these.
pub(super) async fn holds_on(
    uow: &mut dyn UnitOfWork,
    scopes: Vec<HoldScope>,
) -> Result<Vec<Stored<JobHold>>> {
    if scopes.is_empty() {
        return Ok(Vec::new());
    }
    let on_scopes = JobHoldQuery::On(scopes);
    unowned::<JobHold>(uow).list(&on_scopes, MOST_HOLDS).await
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
    /// Whether the unit has locked the stored lane.
    is_locked: bool,
}

impl Lanes {
    /// Reads these lanes, which are no lanes of this set yet; one that does not exist is new.
    pub(super) async fn load(
        uow: &mut dyn UnitOfWork,
        keys: impl IntoIterator<Item = LaneKey>,
    ) -> Result<Self> {
        let new = |key: LaneKey| {
            let lane = JobLane::new(key.clone());
            let loaded = Loaded {
                stored: None,
                lane,
                is_locked: false,
            };
            (key, loaded)
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

    /// Reads and locks these lanes; one that does not exist is added. Unlike with [`Lanes::load`], units that change
    /// different lanes do not conflict: they read no range of lanes that others add to.
    pub(super) async fn load_locked(
        uow: &mut dyn UnitOfWork,
        keys: impl IntoIterator<Item = LaneKey>,
    ) -> Result<Self> {
        let keys: BTreeSet<LaneKey> = keys.into_iter().collect();
        if keys.is_empty() {
            return Ok(Self::default());
        }
        let new = keys.into_iter().map(JobLane::new).collect();
        let stored = unaudited::insert_or_lock(uow, new).await?;
        let mut lanes: BTreeMap<_, _> = stored.into_iter().map(Loaded::entry).collect();
        lanes
            .values_mut()
            .for_each(|loaded| loaded.is_locked = true);
        Self(lanes).learn(uow).await
    }

    /// Reads these lanes and locks them; those that another unit has locked are left out.
    pub(super) async fn lock(uow: &mut dyn UnitOfWork, keys: Vec<LaneKey>) -> Result<Self> {
        if keys.is_empty() {
            return Ok(Self::default());
        }
        let limit = u32::try_from(keys.len()).unwrap_or(u32::MAX);
        let these = JobLaneQuery::Of(keys);
        let locked = unowned::<JobLane>(uow).claim(&these, limit).await?;
        Self::of(uow, locked).await
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

    /// Adds the lanes of another set.
    pub(super) fn extend(&mut self, others: Self) {
        self.0.extend(others.0);
    }

    /// Whether the lane is in the set.
    pub(super) fn has(&self, key: &LaneKey) -> bool {
        self.0.contains_key(key)
    }

    /// All of them.
    pub(super) fn iter(&self) -> impl Iterator<Item = &JobLane> {
        self.0.values().map(|loaded| &loaded.lane)
    }

    /// Decides which of the lanes can be claimed, and writes them. Answers those that can.
    pub(super) async fn store(
        mut self,
        uow: &mut dyn UnitOfWork,
        now: Timestamp,
    ) -> Result<Vec<LaneKey>> {
        self.settle(now);
        self.write(uow).await
    }

    /// Decides which of the lanes can be claimed.
    pub(super) fn settle(&mut self, now: Timestamp) {
        for Loaded { lane, .. } in self.0.values_mut() {
            lane.settle(now);
        }
    }

    /// Writes the lanes as they were settled. Answers those that can be claimed.
    pub(super) async fn write(self, uow: &mut dyn UnitOfWork) -> Result<Vec<LaneKey>> {
        let (mut ready, mut added) = (Vec::new(), Vec::new());
        let (mut changed, mut locked) = (Vec::new(), Vec::new());
        for loaded in self.0.into_values() {
            let Loaded {
                stored,
                lane,
                is_locked,
            } = loaded;
            if lane.state == LaneState::Ready {
                ready.push(lane.lane.clone());
            }
            match stored {
                Some(stored) if is_locked => locked.push((stored, lane)),
                Some(stored) => changed.push((stored, lane)),
                None => added.push(lane),
            }
        }
        if !added.is_empty() {
            // Two units may create one lane: the second one runs again and finds it.
            unaudited::append_many(uow, added).await?;
        }
        if !changed.is_empty() {
            unaudited::replace_many(uow, changed).await?;
        }
        if !locked.is_empty() {
            unaudited::replace_locked(uow, locked).await?;
        }
        Ok(ready)
    }
}

impl Loaded {
    fn entry(stored: Stored<JobLane>) -> (LaneKey, Self) {
        let lane = (*stored).clone();
        let loaded = Self {
            stored: Some(stored),
            lane,
            is_locked: false,
        };
        (loaded.lane.lane.clone(), loaded)
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
    let mut lanes = Lanes::load(uow, [key.clone()]).await?;
    let holds = holds_on(uow, vec![HoldScope::Lane(key.clone())]).await?;
    if let Some(lane) = lanes.get_mut(key) {
        lane.held_by = holds.iter().map(|hold| hold.source).collect();
    }
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
