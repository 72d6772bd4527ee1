//! The engine: takes a job and works on its steps until the job is no longer its own.
//!
//! It needs no runtime. What only a runtime can do (time limits, cutting off, catching a panic) is asked of a
//! [`Supervisor`].

use std::time::Duration;

use serde_json::Value;

use super::attempt::Finished;
use super::batch::WRITE_TRIES;
use super::claim::{Claimed, HeldJob};
use super::lease;
use super::report::{self, LeaseHolder, LeaseState};
use super::supervisor::Supervisor;
use super::timers::{self, TimerStats};
use super::worker::{Outcome, Worker};
use crate::access::unowned;
use crate::kernel::{Error, Result, StoreError};
use crate::port::{Mode, transact, transact_in};
use crate::provisioning::{Job, JobStatus, Report, Trigger};

/// How often the queue is to be looked at when nobody calls.
const POLL: Duration = Duration::from_secs(1);

impl Worker {
    /// Takes up to `limit` jobs, each with the intent to work on its first step.
    ///
    /// # Errors
    /// When the store failed.
    pub async fn claim(&self, limit: u32) -> Result<Vec<Claimed>> {
        let taken = self.commit(&[], limit).await.taken?;
        Ok(taken.into_iter().map(|held| held.claimed).collect())
    }

    /// Prolongs leases; answers those that are lost.
    ///
    /// # Errors
    /// When the store failed.
    pub async fn heartbeat(&self, held: &[Claimed]) -> Result<Vec<Claimed>> {
        transact_in(Mode::ReadCommitted, self.store.as_ref(), |uow, _| {
            Box::pin(lease::heartbeat(uow, self.owner(), self.lease, held))
        })
        .await
    }

    /// Tells whether the job still runs under the fence it was claimed with, by a read of the store that begins after the
    /// call.
    ///
    /// # Errors
    /// When the store failed.
    pub async fn is_held(&self, job: &Claimed) -> Result<bool> {
        let mut uow = self.store.begin(Mode::Auto).await?;
        lease::is_held(uow.as_mut(), job).await
    }

    /// As [`Worker::is_held`] of each of these jobs, by one read.
    ///
    /// # Errors
    /// When the store failed.
    pub async fn are_held(&self, jobs: &[Claimed]) -> Result<Vec<bool>> {
        let mut uow = self.store.begin(Mode::Auto).await?;
        lease::are_held(uow.as_mut(), jobs).await
    }

    /// How long to wait before looking at the queue when nobody calls: a second, give or take a fifth, so that processes
    /// do not come in step.
    #[must_use]
    pub fn poll_pause(&self) -> Duration {
        let mut random = [0; 1];
        self.cx.entropy.fill(&mut random);
        POLL * 4 / 5 + POLL * 2 / 5 * u32::from(random[0]) / 255
    }

    /// Wakes what has waited long enough, takes back what a vanished worker held, stops what is overdue.
    ///
    /// # Errors
    /// When the store failed; what was done before stays done.
    pub async fn run_timers(&self) -> Result<TimerStats> {
        timers::run_timers(&self.cx, self.store.as_ref(), &self.kinds).await
    }

    /// How long to wait before the timers are run again when nobody calls: until something is due, and at most as long as
    /// [`Worker::poll_pause`].
    pub async fn timer_pause(&self) -> Duration {
        let poll = self.poll_pause();
        // Without an answer of the store it is looked at again later.
        let next = timers::next_due(self.store.as_ref(), poll).await;
        next.ok().flatten().unwrap_or(poll)
    }

    /// Takes back all running jobs of a store that only this process uses; answers how many.
    ///
    /// # Errors
    /// When the store failed.
    pub async fn recover(&self) -> Result<usize> {
        timers::recover(&self.cx, self.store.as_ref(), &self.kinds).await
    }

    /// Takes one job, if there is one, and works on it until it leaves `RUNNING`.
    ///
    /// # Errors
    /// When the store failed; the job is taken back when its lease ends.
    pub async fn run_one(&self, supervisor: &dyn Supervisor) -> Result<Outcome> {
        match self.commit(&[], 1).await.taken?.pop() {
            Some(held) => self.run_held(held, supervisor).await,
            None => Ok(Outcome::Idle),
        }
    }

    /// Works on a job it has taken, until it leaves `RUNNING`.
    ///
    /// # Errors
    /// When the store failed; the job is taken back when its lease ends.
    pub async fn run(&self, claimed: &Claimed, supervisor: &dyn Supervisor) -> Result<Outcome> {
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
                committed.settled.into_iter().next()
            } else {
                Some(self.settle(&finished).await)
            };
            match state.unwrap_or(Ok(LeaseState::Lost))?.still_held() {
                Ok(next) => held = next,
                Err(outcome) => return Ok(outcome),
            }
        }
    }

    async fn read(&self, claimed: &Claimed) -> Result<Option<HeldJob>> {
        let mut uow = self.store.begin(Mode::Auto).await?;
        let job = unowned::<Job>(uow.as_mut()).find(&claimed.job_id).await?;
        let is_held = |job: &Job| job.status == JobStatus::Running && job.fence == claimed.fence;
        Ok(job.filter(|job| is_held(job)).map(HeldJob::new))
    }

    /// Writes what was reported of a job in a unit of its own. A refusal of the domain is a failure of the step.
    ///
    /// # Errors
    /// When the store failed; the job is taken back when its lease ends.
    pub async fn settle(&self, finished: &Finished) -> Result<LeaseState> {
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

    /// One write of the holder of a job, with all that follows from it. When the store does not say whether it happened,
    /// it is repeated: the fence makes the second one find the first. So is one that met conflicts alone, for a job that
    /// is let go costs an attempt.
    ///
    /// # Errors
    /// When the report is about another step than the current one, the domain refused an output, or the store failed.
    pub async fn report(&self, claimed: &Claimed, report: Report) -> Result<LeaseState> {
        let report = Trigger::Work(claimed.fence, report);
        self.write(claimed, std::slice::from_ref(&report), None)
            .await
    }

    async fn write(
        &self,
        claimed: &Claimed,
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
                )) if tries < WRITE_TRIES => {}
                outcome => return outcome,
            }
        }
    }
}
