//! The engine: a worker claims jobs and executes their steps.
//!
//! It does not depend on a runtime. Time limits, cancellation and catching panics are delegated to a [`Supervisor`].

use std::time::Duration;

use serde_json::Value;

use super::attempt::AttemptReport;
use super::batch::MAX_WRITE_ATTEMPTS;
use super::report::{LeaseHolder, LeaseState};
use super::timers::TimerStats;
use super::worker::{Claim, HeldJob, Outcome, Supervisor, Worker};
use super::{claim, report, timers};
use crate::access::unowned_records;
use crate::kernel::{Error, Result, StoreError, Stored};
use crate::port::{Mode, UnitOfWork, transact, transact_in};
use crate::provisioning::{Job, JobQuery, JobStatus, Report, Trigger};

/// Interval between two polls of the queue without a notification.
const POLL: Duration = Duration::from_secs(1);

impl Worker {
    /// Claims up to `limit` jobs and stores the start of their first steps.
    ///
    /// # Errors
    /// Only those of the store.
    pub async fn claim(&self, limit: u32) -> Result<Vec<Claim>> {
        let taken = self.commit(&[], limit).await.claimed?;
        Ok(taken.into_iter().map(|held| held.claimed).collect())
    }

    /// Extends the leases of these claims. Returns the claims that are lost.
    ///
    /// # Errors
    /// Only those of the store.
    pub async fn heartbeat(&self, held: &[Claim]) -> Result<Vec<Claim>> {
        transact_in(Mode::ReadCommitted, self.store.as_ref(), |uow, _| {
            Box::pin(claim::heartbeat(uow, self.owner(), self.lease, held))
        })
        .await
    }

    /// Returns whether the job still runs under the fence of the claim. The store is read after the call starts.
    ///
    /// # Errors
    /// Only those of the store.
    pub async fn is_held(&self, job: &Claim) -> Result<bool> {
        let mut uow = self.store.begin(Mode::Auto).await?;
        claim::is_held(uow.as_mut(), job).await
    }

    /// Works like [`Worker::is_held`] for several claims, using one query.
    ///
    /// # Errors
    /// Only those of the store.
    pub async fn are_held(&self, jobs: &[Claim]) -> Result<Vec<bool>> {
        let mut uow = self.store.begin(Mode::Auto).await?;
        claim::are_held(uow.as_mut(), jobs).await
    }

    /// Returns the time to wait before polling the queue without a notification: 1 second ± 20 %. The jitter prevents
    /// processes from polling at the same time.
    #[must_use]
    pub fn poll_pause(&self) -> Duration {
        let mut random = [0; 1];
        self.cx.entropy.fill(&mut random);
        POLL * 4 / 5 + POLL * 2 / 5 * u32::from(random[0]) / 255
    }

    /// Wakes jobs whose wait has ended, takes back jobs with expired leases and stops overdue jobs.
    ///
    /// # Errors
    /// Returns the first error. The other jobs are handled nevertheless, unless the store is unavailable.
    pub async fn run_timers(&self) -> Result<TimerStats> {
        timers::run_timers(&self.cx, self.store.as_ref(), &self.kinds).await
    }

    /// Returns the time to wait before the timers run again without a notification: until the next job or lane is due,
    /// but at most [`Worker::poll_pause`].
    pub async fn timer_pause(&self) -> Duration {
        let poll = self.poll_pause();
        // If the store fails, wait for the full interval.
        let next = timers::next_due(self.store.as_ref(), poll).await;
        next.ok().flatten().unwrap_or(poll)
    }

    /// Takes back all running jobs of a store that only this process uses. Returns their number.
    ///
    /// # Errors
    /// Only those of the store.
    pub async fn recover(&self) -> Result<usize> {
        timers::recover(&self.cx, self.store.as_ref(), &self.kinds).await
    }

    /// Claims one job, if there is one, and executes it until it leaves `RUNNING`.
    ///
    /// # Errors
    /// Only those of the store; the job is then taken back when its lease expires.
    pub async fn run_one(&self, supervisor: &dyn Supervisor) -> Result<Outcome> {
        match self.commit(&[], 1).await.claimed?.pop() {
            Some(held) => self.run_held(held, supervisor).await,
            None => Ok(Outcome::Idle),
        }
    }

    /// Executes a claimed job until it leaves `RUNNING`.
    ///
    /// # Errors
    /// Only those of the store; the job is then taken back when its lease expires.
    pub async fn run(&self, claimed: &Claim, supervisor: &dyn Supervisor) -> Result<Outcome> {
        match self.read(claimed).await? {
            Some(held) => self.run_held(held, supervisor).await,
            None => Ok(Outcome::LeaseLost),
        }
    }

    async fn run_held(&self, mut held: HeldJob, supervisor: &dyn Supervisor) -> Result<Outcome> {
        loop {
            let Some(finished) = self.attempt(&held, supervisor).await else {
                return Ok(Outcome::LeaseLost);
            };
            let state = if finished.in_batch() {
                let committed = self.commit(std::slice::from_ref(&finished), 0).await;
                committed.results.into_iter().next()
            } else {
                Some(self.report_attempt(&finished).await)
            };
            match state.unwrap_or(Ok(LeaseState::Lost))?.into_held() {
                Ok(next) => held = next,
                Err(outcome) => return Ok(outcome),
            }
        }
    }

    async fn read(&self, claimed: &Claim) -> Result<Option<HeldJob>> {
        let mut uow = self.store.begin(Mode::Auto).await?;
        let job = unowned_records::<Job>(uow.as_mut())
            .find(&claimed.job_id)
            .await?;
        let is_held = |job: &Job| job.status == JobStatus::Running && job.fence == claimed.fence;
        Ok(job.filter(|job| is_held(job)).map(HeldJob::new))
    }

    /// Writes the reports of one attempt in a unit of work of its own. If the domain refuses an output, reports this as
    /// a failure of the step instead.
    ///
    /// # Errors
    /// Only those of the store; the job is then taken back when its lease expires.
    pub async fn report_attempt(&self, finished: &AttemptReport) -> Result<LeaseState> {
        let (claimed, found) = (&finished.claimed, finished.found.as_ref());
        let error = match self.write(claimed, &finished.reports, found).await {
            Err(Error::Store(error)) => return Err(error.into()),
            Err(refusal) => refusal,
            written => return written,
        };
        match report::report_of(error.into()) {
            Some(failure) => self.report(claimed, failure).await,
            None => Ok(LeaseState::Lost),
        }
    }

    /// Writes one report about a held job with all its consequences. If the outcome of the write is unknown, it is
    /// repeated; the fence makes the repetition safe. Conflicts are retried as well, because losing the job would cost
    /// an attempt.
    ///
    /// # Errors
    /// Returns an error if the report is not about the current step, or if the domain refuses an output.
    pub async fn report(&self, claimed: &Claim, report: Report) -> Result<LeaseState> {
        let report = Trigger::Work(claimed.fence, report);
        self.write(claimed, std::slice::from_ref(&report), None)
            .await
    }

    async fn write(
        &self,
        claimed: &Claim,
        reports: &[Trigger],
        found: Option<&Value>,
    ) -> Result<LeaseState> {
        let holder = LeaseHolder {
            actor: &self.actor,
            kinds: &self.kinds,
            claimed,
        };
        let mut tries = 0;
        loop {
            tries += 1;
            let outcome = transact(self.store.as_ref(), |uow, _| {
                Box::pin(report::report(&self.cx, uow, holder, reports, found))
            })
            .await;
            match outcome {
                Err(Error::Store(
                    StoreError::Unavailable(_)
                    | StoreError::Retry(_)
                    | StoreError::CommitUnknown(_)
                    | StoreError::Backend(_),
                )) if tries < MAX_WRITE_ATTEMPTS => {}
                outcome => return outcome,
            }
        }
    }
}

/// Maximum number of completed jobs used for an estimate.
const MAX_SAMPLES: u32 = 20;

/// Estimate for a kind without completed jobs.
const DEFAULT_ESTIMATE: Duration = Duration::from_secs(30);

/// Returns the estimated run time in seconds of a job of one of the [`TIMED_KINDS`](crate::provisioning::TIMED_KINDS),
/// from start to end, including retries and their delays. It is the median of the newest jobs that completed without
/// force, rounded up, at least 1. Without such jobs it is 30.
pub(in crate::use_case) async fn estimated_seconds(
    uow: &mut dyn UnitOfWork,
    kind: &'static str,
) -> Result<i64> {
    let completed = JobQuery::Completed(kind);
    let newest = unowned_records::<Job>(uow)
        .list(&completed, MAX_SAMPLES)
        .await?;
    let run_times = newest.iter().filter_map(run_time).collect();
    Ok(whole_seconds(median(run_times).unwrap_or(DEFAULT_ESTIMATE)))
}

fn run_time(job: &Stored<Job>) -> Option<Duration> {
    Some(job.finished_at?.since(job.started_at?))
}

/// Returns the middle value, or the mean of the two middle values if their number is even.
fn median(mut durations: Vec<Duration>) -> Option<Duration> {
    durations.sort_unstable();
    let middle = durations.len() / 2;
    let upper = *durations.get(middle)?;
    if durations.len() % 2 == 1 {
        return Some(upper);
    }
    Some((durations[middle - 1] + upper) / 2)
}

fn whole_seconds(duration: Duration) -> i64 {
    let seconds = duration.as_millis().div_ceil(1_000).max(1);
    i64::try_from(seconds).unwrap_or(i64::MAX)
}

#[cfg(test)]
mod tests {

    use super::*;

    #[test]
    fn the_estimate_is_the_median_in_whole_seconds_rounded_up() {
        let estimate = |millis: &[u64]| {
            let durations = millis.iter().copied().map(Duration::from_millis);
            whole_seconds(median(durations.collect()).unwrap_or(DEFAULT_ESTIMATE))
        };
        assert_eq!(estimate(&[]), 30);
        assert_eq!(estimate(&[0]), 1);
        assert_eq!(estimate(&[9_000, 1_000, 4_001]), 5);
        assert_eq!(estimate(&[3_000, 900_000, 5_000, 1]), 4);
    }
}
