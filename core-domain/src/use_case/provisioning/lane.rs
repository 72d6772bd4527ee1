//! Reads, updates and writes lanes in a unit of work.

use std::collections::{BTreeMap, BTreeSet};

use crate::access::{unaudited, unowned_records};
use crate::kernel::{Effect, Result, Stored, Timestamp};
use crate::port::UnitOfWork;
use crate::provisioning::{
    HoldScope, Job, JobHold, JobHoldQuery, JobLane, JobLaneQuery, JobQuery, LaneKey, LaneState,
    QueuedJob,
};

/// Maximum number of holds that one query reads. Each source has at most one hold on a scope, so there are few.
pub(super) const MAX_HOLDS: u32 = 1_000;

/// The number of lanes that one query looks for.
const LANES_PER_QUERY: usize = 200;

/// The most waiting jobs that one query reads.
const MAX_WAITING: u32 = 10_000;

/// Returns the holds on exactly these scopes.
pub(super) async fn holds_on(
    uow: &mut dyn UnitOfWork,
    scopes: Vec<HoldScope>,
) -> Result<Vec<Stored<JobHold>>> {
    if scopes.is_empty() {
        return Ok(Vec::new());
    }
    let on_scopes = JobHoldQuery::On(scopes);
    unowned_records::<JobHold>(uow)
        .list(&on_scopes, MAX_HOLDS)
        .await
}

/// What the unfinished jobs of a lane do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LaneUse {
    /// A job runs, or is queued.
    Busy,
    /// A job waits for something outside, and the next job can run.
    Waiting,
}

/// Returns those of the lanes in which a job of any kind runs or is queued, or in which a job of this kind waits.
///
/// # Errors
/// Only those of the store.
pub async fn lanes_in_use(
    uow: &mut dyn UnitOfWork,
    kind: &str,
    lanes: &[LaneKey],
) -> Result<BTreeMap<LaneKey, LaneUse>> {
    let mut uses = BTreeMap::new();
    for lanes in lanes.chunks(LANES_PER_QUERY) {
        let waiting = JobQuery::WaitingInLanes(lanes.to_vec());
        let waiting = unowned_records::<Job>(uow)
            .list(&waiting, MAX_WAITING)
            .await?;
        let of_kind = waiting.iter().filter(|job| job.kind == kind);
        uses.extend(of_kind.map(|job| (job.lane.clone(), LaneUse::Waiting)));
        let names: Vec<&str> = lanes.iter().map(LaneKey::as_str).collect();
        let known = unowned_records::<JobLane>(uow).get_many(&names).await?;
        let busy = known
            .iter()
            .filter(|lane| lane.running_job_id.is_some() || lane.queued > 0);
        uses.extend(busy.map(|lane| (lane.lane.clone(), LaneUse::Busy)));
    }
    Ok(uses)
}

/// The lanes that a unit of work changes: read together, changed in memory and written together. Every unit writes them
/// before their jobs, so that two units never wait for each other. They are written even if they did not change,
/// because their version protects decisions that depend on their jobs and holds.
#[derive(Debug, Default)]
pub(super) struct Lanes(BTreeMap<LaneKey, LoadedLane>);

#[derive(Debug)]
struct LoadedLane {
    stored: Option<Stored<JobLane>>,
    lane: JobLane,
    /// Whether the unit of work has locked the stored lane.
    is_locked: bool,
}

impl Lanes {
    /// Reads these lanes; creates those that do not exist. The result is a new set, so the lanes must not be in another
    /// set of the same unit.
    pub(super) async fn load(
        uow: &mut dyn UnitOfWork,
        keys: impl IntoIterator<Item = LaneKey>,
    ) -> Result<Self> {
        let new = |key: LaneKey| {
            let lane = JobLane::new(key.clone());
            let loaded = LoadedLane {
                stored: None,
                lane,
                is_locked: false,
            };
            (key, loaded)
        };
        let mut lanes: BTreeMap<LaneKey, LoadedLane> = keys.into_iter().map(new).collect();
        if lanes.is_empty() {
            return Ok(Self(lanes));
        }
        let names: Vec<&str> = lanes.keys().map(LaneKey::as_str).collect();
        let stored = unowned_records::<JobLane>(uow).get_many(&names).await?;
        lanes.extend(stored.into_iter().map(LoadedLane::keyed_by_lane));
        Self(lanes).learn(uow).await
    }

    /// Reads and locks these lanes; creates those that do not exist. Unlike with [`Lanes::load`], units that change
    /// different lanes do not conflict, because no range is read into which other units insert.
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
        let mut lanes: BTreeMap<_, _> = stored.into_iter().map(LoadedLane::keyed_by_lane).collect();
        lanes
            .values_mut()
            .for_each(|loaded| loaded.is_locked = true);
        Self(lanes).learn(uow).await
    }

    /// Reads and locks these lanes. Lanes that another unit of work has locked are left out.
    pub(super) async fn lock(uow: &mut dyn UnitOfWork, keys: Vec<LaneKey>) -> Result<Self> {
        if keys.is_empty() {
            return Ok(Self::default());
        }
        let limit = u32::try_from(keys.len()).unwrap_or(u32::MAX);
        let these = JobLaneQuery::Of(keys);
        let locked = unowned_records::<JobLane>(uow).claim(&these, limit).await?;
        Self::of(uow, locked).await
    }

    /// Creates a set of lanes that were already read.
    pub(super) async fn of(uow: &mut dyn UnitOfWork, stored: Vec<Stored<JobLane>>) -> Result<Self> {
        let lanes = stored.into_iter().map(LoadedLane::keyed_by_lane).collect();
        Self(lanes).learn(uow).await
    }

    /// Refills the caches of lanes that need it, with one query per lane. A query for all lanes would read every queued
    /// job of a long lane.
    async fn learn(mut self, uow: &mut dyn UnitOfWork) -> Result<Self> {
        for loaded in self.0.values_mut() {
            if loaded.lane.needs_refill() {
                refill_cache(uow, &mut loaded.lane).await?;
            }
        }
        Ok(self)
    }

    /// Returns the lane with this key, if it is in the set.
    pub(super) fn get_mut(&mut self, key: &LaneKey) -> Option<&mut JobLane> {
        self.0.get_mut(key).map(|loaded| &mut loaded.lane)
    }

    /// Adds the lanes of another set.
    pub(super) fn extend(&mut self, others: Self) {
        self.0.extend(others.0);
    }

    /// Returns whether the lane is in the set.
    pub(super) fn has(&self, key: &LaneKey) -> bool {
        self.0.contains_key(key)
    }

    /// Returns an iterator over the lanes.
    pub(super) fn iter(&self) -> impl Iterator<Item = &JobLane> {
        self.0.values().map(|loaded| &loaded.lane)
    }

    /// Updates the state of each lane and writes all of them. Returns the keys of the lanes that can be claimed.
    pub(super) async fn store(
        mut self,
        uow: &mut dyn UnitOfWork,
        now: Timestamp,
    ) -> Result<Vec<LaneKey>> {
        self.update_states(now);
        self.write(uow).await
    }

    /// Updates the state of each lane.
    pub(super) fn update_states(&mut self, now: Timestamp) {
        for LoadedLane { lane, .. } in self.0.values_mut() {
            lane.update_state(now);
        }
    }

    /// Writes the lanes without updating their states. Returns the keys of the lanes that can be claimed.
    pub(super) async fn write(self, uow: &mut dyn UnitOfWork) -> Result<Vec<LaneKey>> {
        let (mut ready, mut added) = (Vec::new(), Vec::new());
        let (mut changed, mut locked) = (Vec::new(), Vec::new());
        for loaded in self.0.into_values() {
            let LoadedLane {
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
            // If two units create the same lane, the second one runs again and finds it.
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

impl LoadedLane {
    fn keyed_by_lane(stored: Stored<JobLane>) -> (LaneKey, Self) {
        let lane = (*stored).clone();
        let loaded = Self {
            stored: Some(stored),
            lane,
            is_locked: false,
        };
        (loaded.lane.lane.clone(), loaded)
    }
}

/// Refills the lane's cache with its first queued jobs.
pub(super) async fn refill_cache(uow: &mut dyn UnitOfWork, lane: &mut JobLane) -> Result<()> {
    let queued = JobQuery::QueuedInLane(lane.lane.clone());
    let first = unowned_records::<Job>(uow)
        .list(&queued, JobLane::cache_size())
        .await?;
    lane.refill(first.iter().map(|job| QueuedJob::from(&**job)));
    Ok(())
}

/// Updates a lane after a hold on it was set or lifted.
pub(super) async fn refresh_lane(uow: &mut dyn UnitOfWork, key: &LaneKey) -> Result<()> {
    let now = uow.now().await?;
    let mut lanes = Lanes::load(uow, [key.clone()]).await?;
    let holds = holds_on(uow, vec![HoldScope::Lane(key.clone())]).await?;
    if let Some(lane) = lanes.get_mut(key) {
        lane.held_by = holds.iter().map(|hold| hold.source).collect();
    }
    let ready = lanes.store(uow, now).await?;
    notify_ready(uow, &ready);
    Ok(())
}

/// Notifies workers that jobs can be claimed, unless `ready` is empty.
pub(super) fn notify_ready(uow: &mut dyn UnitOfWork, ready: &[LaneKey]) {
    if !ready.is_empty() {
        uow.effects().add(Effect::JobReady);
    }
}
