//! Writes the reports of several jobs and claims the next ones in one unit of work.

use std::collections::{BTreeMap, BTreeSet};

use super::attempt::AttemptReport;
use super::claim::wide_scopes;
use super::job_change::{JobChange, write_with_updated_lanes};
use super::lane::{Lanes, holds_on, notify_ready};
use super::report::{LeaseState, ReportPlan, plan};
use super::timers;
use super::worker::{HeldJob, Worker};
use crate::access::unowned_records;
use crate::kernel::{Error, JobId, Result, StoreError, Stored};
use crate::port::{Mode, UnitOfWork, transact_in};
use crate::provisioning::{Job, JobHold, JobStatus, LaneKey};

/// Maximum number of attempts to write if the outcome of a commit is unknown or the store fails.
pub(super) const MAX_WRITE_ATTEMPTS: u32 = 3;

/// The result of [`Worker::commit`].
#[derive(Debug)]
pub struct CommitResult {
    /// The result of each report, in the order of the reports.
    pub results: Vec<Result<LeaseState>>,
    /// The claimed jobs, or the error that prevented the claim.
    pub claimed: Result<Vec<HeldJob>>,
    /// The first error of stopping overdue jobs. Such a job is tried again when its lane is next; the claimed jobs are
    /// not affected.
    pub overdue: Result<()>,
}

/// The result of a report in a unit of work with others.
#[derive(Debug)]
enum ReportResult {
    Written(LeaseState),
    Refused(Error),
    /// The report changes more than the job, so it needs a unit of work of its own.
    Alone,
}

/// The result of one unit of work.
#[derive(Debug)]
struct UnitResult {
    results: Vec<ReportResult>,
    held: Vec<HeldJob>,
    /// Jobs at the head of their lanes whose deadline has passed.
    overdue: Vec<JobId>,
}

/// The source of the jobs that a unit of work reports on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum JobSource {
    /// The copy of the holder, who wrote the job last. If the job has changed since, its version check fails the unit.
    HeldCopy,
    /// The job is read from the store.
    Store,
}

impl Worker {
    /// Writes the reports of held jobs and claims up to `limit` jobs, in one unit of work if possible. If the unit
    /// fails, it is run again in halves, so that one job cannot block the others. If the outcome of a commit is
    /// unknown, the unit is repeated; the fences make this safe. Reports that cannot be combined with others get units
    /// of their own.
    pub async fn commit(&self, finished: &[AttemptReport], limit: u32) -> CommitResult {
        let unit = match self.try_unit(finished, limit).await {
            Ok(unit) => unit,
            Err(error) if finished.is_empty() => {
                return CommitResult {
                    results: Vec::new(),
                    claimed: Err(error),
                    overdue: Ok(()),
                };
            }
            Err(_) => return Box::pin(self.commit_halves(finished, limit)).await,
        };
        let mut results = Vec::with_capacity(finished.len());
        for (result, finished) in unit.results.into_iter().zip(finished) {
            results.push(match result {
                ReportResult::Written(state) => Ok(state),
                ReportResult::Refused(error) => Err(error),
                ReportResult::Alone => self.report_attempt(finished).await,
            });
        }
        CommitResult {
            results,
            claimed: Ok(unit.held),
            overdue: self.stop_overdue(&unit.overdue).await,
        }
    }

    /// Writes the reports in two halves, and a single report in a unit of its own.
    async fn commit_halves(&self, finished: &[AttemptReport], limit: u32) -> CommitResult {
        if let [one] = finished {
            let results = vec![self.report_attempt(one).await];
            return CommitResult {
                results,
                ..self.commit(&[], limit).await
            };
        }
        let (first, second) = finished.split_at(finished.len() / 2);
        let first = self.commit(first, 0).await;
        let mut both = self.commit(second, limit).await;
        both.results.splice(..0, first.results);
        both
    }

    /// Stops the overdue jobs that a claim found at the head of their lanes.
    async fn stop_overdue(&self, overdue: &[JobId]) -> Result<()> {
        if !overdue.is_empty() {
            let store = self.store.as_ref();
            timers::stop_overdue(&self.cx, store, &self.kinds, overdue).await?;
        }
        Ok(())
    }

    async fn try_unit(&self, finished: &[AttemptReport], limit: u32) -> Result<UnitResult> {
        if finished.is_empty() {
            return transact_in(Mode::ReadCommitted, self.store.as_ref(), |uow, _| {
                Box::pin(self.unit(uow, finished, limit, JobSource::HeldCopy))
            })
            .await;
        }
        let first = self.run_unit(finished, limit, JobSource::HeldCopy).await;
        if !matches!(first, Err(Error::Store(_))) {
            return first;
        }
        let mut tries = 1;
        loop {
            tries += 1;
            match self.run_unit(finished, limit, JobSource::Store).await {
                Err(Error::Store(StoreError::Unavailable(_) | StoreError::CommitUnknown(_)))
                    if tries < MAX_WRITE_ATTEMPTS => {}
                outcome => return outcome,
            }
        }
    }

    /// Runs the unit of work once. The caller answers a conflict with smaller units instead of a repetition.
    async fn run_unit(
        &self,
        finished: &[AttemptReport],
        limit: u32,
        source: JobSource,
    ) -> Result<UnitResult> {
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

    /// Writes the reports first, because they free lanes and slots. Then plans the claims, and writes all rows of a
    /// table together.
    async fn unit(
        &self,
        uow: &mut dyn UnitOfWork,
        finished: &[AttemptReport],
        limit: u32,
        source: JobSource,
    ) -> Result<UnitResult> {
        let now = uow.now().await?;
        let planned = self.plan_reports(uow, finished, source).await?;
        let (planned, mut lanes) = lock_lanes(uow, planned).await?;
        let (mut changes, mut results) = (Vec::new(), Vec::with_capacity(finished.len()));
        for planned in planned {
            results.push(planned.map(|change| changes.push(change)).err());
        }
        let reported = changes.len();
        for change in &changes {
            change.update_lane(&mut lanes, now);
        }
        lanes.update_states(now);
        let wide = self.read_wide_holds(uow, limit).await?;
        let found = self.find_claims(uow, limit, &wide, &mut lanes, &changes);
        let found = found.await?;
        for change in &found.changes {
            change.update_lane(&mut lanes, now);
        }
        lanes.update_states(now);
        changes.extend(found.changes);
        let written = write_with_updated_lanes(uow, changes, lanes).await?;
        notify_ready(uow, &written.ready);
        let mut jobs = written.jobs.into_iter();
        let mut reported = jobs.by_ref().take(reported);
        let mut next = || match reported.next() {
            Some(job) => ReportResult::Written(LeaseState::Held(Box::new(job))),
            None => ReportResult::Written(LeaseState::Lost),
        };
        let results = results
            .into_iter()
            .map(|known| known.unwrap_or_else(&mut next));
        Ok(UnitResult {
            results: results.collect(),
            held: jobs.map(HeldJob::new).collect(),
            overdue: found.overdue,
        })
    }

    /// Reads the holds on all jobs and on kinds. Returns none if nothing is to be claimed.
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

    /// Returns the change of each report, or its result if no change is to be written here.
    async fn plan_reports(
        &self,
        uow: &mut dyn UnitOfWork,
        finished: &[AttemptReport],
        source: JobSource,
    ) -> Result<Vec<Result<JobChange, ReportResult>>> {
        if finished.is_empty() {
            return Ok(Vec::new());
        }
        let now = uow.now().await?;
        let mut jobs = match source {
            JobSource::HeldCopy => held_jobs(finished),
            JobSource::Store => stored_jobs(uow, finished).await?,
        };
        let plan_one = |finished: &AttemptReport| {
            let Some(job) = jobs.remove(&finished.claimed.job_id) else {
                return Err(ReportResult::Written(LeaseState::Lost));
            };
            let (claimed, reports) = (&finished.claimed, &finished.reports);
            match plan(&self.cx, &self.actor, job, claimed, reports, now) {
                _ if !finished.can_batch => Err(ReportResult::Alone),
                // The failure of a job opens a dead letter.
                ReportPlan::Change(change) if change.after.status == JobStatus::Failed => {
                    Err(ReportResult::Alone)
                }
                ReportPlan::Change(change) => Ok(*change),
                ReportPlan::NoChange(state) => Err(ReportResult::Written(state)),
                ReportPlan::Refused(refusal) => Err(ReportResult::Refused(refusal.into())),
            }
        };
        Ok(finished.iter().map(plan_one).collect())
    }
}

/// Locks the lanes of all changes of a fence. A change whose lane another unit has locked is written alone, so that the
/// others need not wait.
async fn lock_lanes(
    uow: &mut dyn UnitOfWork,
    planned: Vec<Result<JobChange, ReportResult>>,
) -> Result<(Vec<Result<JobChange, ReportResult>>, Lanes)> {
    let fenced = planned
        .iter()
        .flatten()
        .filter(|change| change.changes_fence());
    let keys: BTreeSet<LaneKey> = fenced.map(|change| change.after.lane.clone()).collect();
    let lanes = Lanes::lock(uow, keys.into_iter().collect()).await?;
    let with_lane = |change: JobChange| {
        if !change.changes_fence() || lanes.has(&change.after.lane) {
            Ok(change)
        } else {
            Err(ReportResult::Alone)
        }
    };
    let planned = planned.into_iter().map(|one| one.and_then(with_lane));
    Ok((planned.collect(), lanes))
}

fn held_jobs(finished: &[AttemptReport]) -> BTreeMap<JobId, Stored<Job>> {
    let job = |one: &AttemptReport| (one.claimed.job_id.clone(), Stored::clone(&one.job));
    finished.iter().map(job).collect()
}

async fn stored_jobs(
    uow: &mut dyn UnitOfWork,
    finished: &[AttemptReport],
) -> Result<BTreeMap<JobId, Stored<Job>>> {
    let ids = finished.iter().map(|one| one.claimed.job_id.as_str());
    let ids: Vec<&str> = ids.collect();
    let jobs = unowned_records::<Job>(uow).get_many(&ids).await?;
    Ok(jobs.into_iter().map(|job| (job.id.clone(), job)).collect())
}
