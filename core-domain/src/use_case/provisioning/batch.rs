//! One unit of work for many jobs: what their holder reports, and the next jobs it takes.

use std::collections::{BTreeMap, BTreeSet};

use super::attempt::Finished;
use super::claim::{HeldJob, wide_scopes};
use super::engine::Worker;
use super::lane::{Lanes, announce, holds_on};
use super::report::{LeaseState, Planned, plan};
use super::timers;
use super::transition::{Change, write_settled};
use crate::access::unowned;
use crate::kernel::{Error, JobId, Result, StoreError, Stored};
use crate::port::{Mode, UnitOfWork, transact_in};
use crate::provisioning::{Job, JobHold, JobStatus, LaneKey};

/// How often a unit is tried when the store does not say whether it happened.
pub(super) const WRITE_TRIES: u32 = 3;

/// What [`Worker::commit`] did.
#[derive(Debug)]
pub struct Committed {
    /// What became of each report, in their order.
    pub settled: Vec<Result<LeaseState>>,
    /// The jobs that were taken, or why none could be.
    pub taken: Result<Vec<HeldJob>>,
    /// The first error of stopping overdue jobs. Such a job is tried again when its lane is next; the taken jobs are not
    /// affected.
    pub overdue: Result<()>,
}

/// What became of a report in a unit with others.
#[derive(Debug)]
enum Settlement {
    Written(LeaseState),
    Refused(Error),
    /// More is to be written than the job: in a unit of its own.
    Alone,
}

/// What a unit has written.
#[derive(Debug)]
struct Unit {
    settled: Vec<Settlement>,
    held: Vec<HeldJob>,
    /// Jobs that were found at the head of their lanes after their deadline.
    overdue: Vec<JobId>,
}

/// Where a unit has the jobs from that were worked on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Source {
    /// From their holder, who wrote them last. If somebody changed one of them since, its version refuses the unit.
    HeldCopy,
    /// From the store.
    Store,
}

impl Worker {
    /// Writes what was reported of jobs it holds and takes up to `limit` jobs, in as few units of work as can be: one,
    /// unless it fails. A unit that fails is run again in halves, so that one bad job does not keep back others; one that
    /// may have been committed is repeated, and the fences make it find the first. Reports that cannot be written
    /// together with others are written in units of their own.
    pub async fn commit(&self, finished: &[Finished], limit: u32) -> Committed {
        let unit = match self.try_unit(finished, limit).await {
            Ok(unit) => unit,
            Err(error) if finished.is_empty() => {
                return Committed {
                    settled: Vec::new(),
                    taken: Err(error),
                    overdue: Ok(()),
                };
            }
            Err(_) => return Box::pin(self.commit_apart(finished, limit)).await,
        };
        let mut settled = Vec::with_capacity(finished.len());
        for (settlement, finished) in unit.settled.into_iter().zip(finished) {
            settled.push(match settlement {
                Settlement::Written(state) => Ok(state),
                Settlement::Refused(error) => Err(error),
                Settlement::Alone => self.settle(finished).await,
            });
        }
        Committed {
            settled,
            taken: Ok(unit.held),
            overdue: self.stop_overdue(&unit.overdue).await,
        }
    }

    /// The reports in halves, a single one in a unit of its own.
    async fn commit_apart(&self, finished: &[Finished], limit: u32) -> Committed {
        if let [one] = finished {
            let settled = vec![self.settle(one).await];
            return Committed {
                settled,
                ..self.commit(&[], limit).await
            };
        }
        let (first, second) = finished.split_at(finished.len() / 2);
        let first = self.commit(first, 0).await;
        let mut both = self.commit(second, limit).await;
        both.settled.splice(..0, first.settled);
        both
    }

    /// Stops what was found at the head of a lane after its deadline.
    async fn stop_overdue(&self, overdue: &[JobId]) -> Result<()> {
        if !overdue.is_empty() {
            let store = self.store.as_ref();
            timers::stop_overdue(&self.cx, store, &self.kinds, overdue).await?;
        }
        Ok(())
    }

    async fn try_unit(&self, finished: &[Finished], limit: u32) -> Result<Unit> {
        if finished.is_empty() {
            return transact_in(Mode::ReadCommitted, self.store.as_ref(), |uow, _| {
                Box::pin(self.unit(uow, finished, limit, Source::HeldCopy))
            })
            .await;
        }
        let first = self.run_unit(finished, limit, Source::HeldCopy).await;
        if !matches!(first, Err(Error::Store(_))) {
            return first;
        }
        let mut tries = 1;
        loop {
            tries += 1;
            match self.run_unit(finished, limit, Source::Store).await {
                Err(Error::Store(StoreError::Unavailable(_) | StoreError::CommitUnknown(_)))
                    if tries < WRITE_TRIES => {}
                outcome => return outcome,
            }
        }
    }

    /// One run: a conflict is answered with smaller units, not with a repetition.
    async fn run_unit(&self, finished: &[Finished], limit: u32, source: Source) -> Result<Unit> {
        let mut uow = self.store.begin(Mode::ReadCommitted).await?;
        match self.unit(uow.as_mut(), finished, limit, source).await {
            Ok(unit) => {
                uow.commit().await?;
                Ok(unit)
            }
            Err(error) => {
                uow.rollback().await;
                Err(error)
            }
        }
    }

    /// Reports first: they free lanes and slots. All rows of a table are written at once.
    async fn unit(
        &self,
        uow: &mut dyn UnitOfWork,
        finished: &[Finished],
        limit: u32,
        source: Source,
    ) -> Result<Unit> {
        let now = uow.now().await?;
        let planned = self.plan_reports(uow, finished, source).await?;
        let (planned, mut lanes) = lock_lanes(uow, planned).await?;
        let (mut changes, mut settled) = (Vec::new(), Vec::with_capacity(finished.len()));
        for planned in planned {
            settled.push(planned.map(|change| changes.push(change)).err());
        }
        let reported = changes.len();
        for change in &changes {
            change.update_lane(&mut lanes, now);
        }
        lanes.settle(now);
        let wide = self.read_wide_holds(uow, limit).await?;
        let found = self.find_claims(uow, limit, &wide, &mut lanes, &changes);
        let found = found.await?;
        for change in &found.changes {
            change.update_lane(&mut lanes, now);
        }
        lanes.settle(now);
        changes.extend(found.changes);
        let written = write_settled(uow, changes, lanes).await?;
        announce(uow, &written.ready);
        let mut jobs = written.jobs.into_iter();
        let mut reported = jobs.by_ref().take(reported);
        let mut next = || match reported.next() {
            Some(job) => Settlement::Written(LeaseState::Held(Box::new(job))),
            None => Settlement::Written(LeaseState::Lost),
        };
        let settled = settled
            .into_iter()
            .map(|known| known.unwrap_or_else(&mut next));
        Ok(Unit {
            settled: settled.collect(),
            held: jobs.map(HeldJob::new).collect(),
            overdue: found.overdue,
        })
    }

    /// Reads the holds that keep jobs from being claimed in whatever lane, unless nothing is to be claimed.
    async fn read_wide_holds(
        &self,
        uow: &mut dyn UnitOfWork,
        limit: u32,
    ) -> Result<Vec<Stored<JobHold>>> {
        if limit == 0 {
            return Ok(Vec::new());
        }
        holds_on(uow, wide_scopes(&self.kinds)).await
    }

    /// What each report changes, or what becomes of it otherwise.
    async fn plan_reports(
        &self,
        uow: &mut dyn UnitOfWork,
        finished: &[Finished],
        source: Source,
    ) -> Result<Vec<Result<Change, Settlement>>> {
        if finished.is_empty() {
            return Ok(Vec::new());
        }
        let now = uow.now().await?;
        let mut jobs = match source {
            Source::HeldCopy => held_jobs(finished),
            Source::Store => stored_jobs(uow, finished).await?,
        };
        let plan_one = |finished: &Finished| {
            let Some(job) = jobs.remove(&finished.claimed.job_id) else {
                return Err(Settlement::Written(LeaseState::Lost));
            };
            let (claimed, reports) = (&finished.claimed, &finished.reports);
            match plan(&self.cx, &self.actor, job, claimed, reports, now) {
                _ if !finished.in_batch => Err(Settlement::Alone),
                // It opens a dead letter.
                Planned::Change(change) if change.after.status == JobStatus::Failed => {
                    Err(Settlement::Alone)
                }
                Planned::Change(change) => Ok(*change),
                Planned::Known(state) => Err(Settlement::Written(state)),
                Planned::Refused(refusal) => Err(Settlement::Refused(refusal.into())),
            }
        };
        Ok(finished.iter().map(plan_one).collect())
    }
}

/// Locks the lanes of changes of hands or status. A change whose lane another unit has locked is written alone, so that
/// the others need not wait.
async fn lock_lanes(
    uow: &mut dyn UnitOfWork,
    planned: Vec<Result<Change, Settlement>>,
) -> Result<(Vec<Result<Change, Settlement>>, Lanes)> {
    let fenced = planned.iter().flatten().filter(|change| change.fences());
    let keys: BTreeSet<LaneKey> = fenced.map(|change| change.after.lane.clone()).collect();
    let lanes = Lanes::lock(uow, keys.into_iter().collect()).await?;
    let with_lane = |change: Change| {
        if !change.fences() || lanes.has(&change.after.lane) {
            Ok(change)
        } else {
            Err(Settlement::Alone)
        }
    };
    let planned = planned.into_iter().map(|one| one.and_then(with_lane));
    Ok((planned.collect(), lanes))
}

fn held_jobs(finished: &[Finished]) -> BTreeMap<JobId, Stored<Job>> {
    let job = |one: &Finished| (one.claimed.job_id.clone(), Stored::clone(&one.job));
    finished.iter().map(job).collect()
}

async fn stored_jobs(
    uow: &mut dyn UnitOfWork,
    finished: &[Finished],
) -> Result<BTreeMap<JobId, Stored<Job>>> {
    let ids = finished.iter().map(|one| one.claimed.job_id.as_str());
    let ids: Vec<&str> = ids.collect();
    let jobs = unowned::<Job>(uow).get_many(&ids).await?;
    Ok(jobs.into_iter().map(|job| (job.id.clone(), job)).collect())
}
