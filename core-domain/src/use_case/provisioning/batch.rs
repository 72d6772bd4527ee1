//! One unit of work for many jobs: what their holder reports, and the next jobs it takes.

use std::collections::BTreeMap;

use super::attempt::Finished;
use super::change::write_changes;
use super::claim::{HeldJob, Taken, take};
use super::lane::{Lanes, announce};
use super::report::{LeaseState, Planned, plan};
use super::timers;
use super::worker::Worker;
use crate::access::unowned;
use crate::kernel::{Error, JobId, Result, StoreError, Stored};
use crate::port::{Mode, UnitOfWork, transact_in};
use crate::provisioning::{Job, JobStatus, LaneKey};

/// How often a unit is tried when the store does not say whether it happened.
pub(super) const WRITE_TRIES: u32 = 3;

/// What [`Worker::commit`] did.
#[derive(Debug)]
pub struct Committed {
    /// What became of each report, in their order.
    pub settled: Vec<Result<LeaseState>>,
    /// The jobs that were taken, or why none could be.
    pub taken: Result<Vec<HeldJob>>,
}

/// What became of a report in a unit with others.
#[derive(Debug)]
enum Settlement {
    Written(LeaseState),
    Refused(Error),
    /// More is to be written than the job: in a unit of its own.
    Alone,
}

#[derive(Debug)]
struct Unit {
    settled: Vec<Settlement>,
    taken: Taken,
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
        let taken = self.without_overdue(unit.taken).await;
        Committed { settled, taken }
    }

    /// The reports in halves, a single one in a unit of its own.
    async fn commit_apart(&self, finished: &[Finished], limit: u32) -> Committed {
        if let [one] = finished {
            let settled = vec![self.settle(one).await];
            let taken = self.commit(&[], limit).await.taken;
            return Committed { settled, taken };
        }
        let (first, second) = finished.split_at(finished.len() / 2);
        let first = self.commit(first, 0).await;
        let mut both = self.commit(second, limit).await;
        both.settled.splice(..0, first.settled);
        both
    }

    /// Stops what was found at the head of a lane after its deadline.
    async fn without_overdue(&self, taken: Taken) -> Result<Vec<HeldJob>> {
        if !taken.overdue.is_empty() {
            let store = self.store.as_ref();
            timers::stop_overdue(&self.cx, store, &self.kinds, &taken.overdue).await?;
        }
        Ok(taken.held)
    }

    async fn try_unit(&self, finished: &[Finished], limit: u32) -> Result<Unit> {
        if finished.is_empty() {
            return transact_in(Mode::ReadCommitted, self.store.as_ref(), |uow, _| {
                Box::pin(self.unit(uow, finished, limit))
            })
            .await;
        }
        let mut tries = 0;
        loop {
            tries += 1;
            match self.run_unit(finished, limit).await {
                Err(Error::Store(StoreError::Unavailable(_) | StoreError::CommitUnknown(_)))
                    if tries < WRITE_TRIES => {}
                outcome => return outcome,
            }
        }
    }

    /// One run: a conflict is answered with smaller units, not with a repetition.
    async fn run_unit(&self, finished: &[Finished], limit: u32) -> Result<Unit> {
        let mut uow = self.store.begin(Mode::ReadCommitted).await?;
        match self.unit(uow.as_mut(), finished, limit).await {
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

    /// Reports first: they free lanes and slots.
    async fn unit(
        &self,
        uow: &mut dyn UnitOfWork,
        finished: &[Finished],
        limit: u32,
    ) -> Result<Unit> {
        let (settled, mut ready) = self.write_reports(uow, finished).await?;
        let taken = take(&self.cx, uow, &self.kinds, &self.actor, limit).await?;
        ready.retain(|lane| !taken.lanes.contains(lane));
        announce(uow, &ready);
        Ok(Unit { settled, taken })
    }

    async fn write_reports(
        &self,
        uow: &mut dyn UnitOfWork,
        finished: &[Finished],
    ) -> Result<(Vec<Settlement>, Vec<LaneKey>)> {
        if finished.is_empty() {
            return Ok((Vec::new(), Vec::new()));
        }
        let now = uow.now().await?;
        let mut jobs = jobs_of(uow, finished).await?;
        let (mut settled, mut changes) = (Vec::with_capacity(finished.len()), Vec::new());
        for finished in finished {
            let Some(job) = jobs.remove(&finished.claimed.job_id) else {
                settled.push(Some(Settlement::Written(LeaseState::Lost)));
                continue;
            };
            let (claimed, reports) = (&finished.claimed, &finished.reports);
            let planned = plan(&self.cx, &self.actor, job, claimed, reports, now);
            settled.push(match planned {
                _ if !finished.in_batch => Some(Settlement::Alone),
                // It opens a dead letter.
                Planned::Change(change) if change.after.status == JobStatus::Failed => {
                    Some(Settlement::Alone)
                }
                Planned::Change(change) => {
                    changes.push(*change);
                    None
                }
                Planned::Known(state) => Some(Settlement::Written(state)),
                Planned::Refused(refusal) => Some(Settlement::Refused(refusal.into())),
            });
        }
        let fenced = changes.iter().filter(|change| change.fences());
        let keys: Vec<LaneKey> = fenced.map(|change| change.after.lane.clone()).collect();
        let lanes = Lanes::load(uow, keys).await?;
        let written = write_changes(uow, changes, lanes, &self.actor, now).await?;
        let mut held = written.jobs.into_iter().map(Box::new).map(LeaseState::Held);
        let settled = settled.into_iter().map(|known| match known {
            Some(known) => known,
            None => Settlement::Written(held.next().unwrap_or(LeaseState::Lost)),
        });
        Ok((settled.collect(), written.ready))
    }
}

async fn jobs_of(
    uow: &mut dyn UnitOfWork,
    finished: &[Finished],
) -> Result<BTreeMap<JobId, Stored<Job>>> {
    let ids = finished.iter().map(|one| one.claimed.job_id.as_str());
    let ids: Vec<&str> = ids.collect();
    let jobs = unowned::<Job>(uow).get_many(&ids).await?;
    Ok(jobs.into_iter().map(|job| (job.id.clone(), job)).collect())
}
