//! One attempt of the current step of a held job.

use std::sync::{Arc, OnceLock};

use async_trait::async_trait;
use serde_json::Value;

use super::claim::startable_step;
use super::kind::{ErasedStep, Guard, StepCall, StepPorts};
use super::kinds::Kinds;
use super::report::{LeaseState, report_of};
use super::step_error::{Observation, StepError};
use super::undo;
use super::worker::{Claim, HeldJob, StepEnd, Supervisor, Worker};
use crate::kernel::Stored;
use crate::provisioning::{
    Failure, FirstObservation, Job, Report, StepStatus, Trigger, effect_key,
};

/// The reports to write after an attempt. They are written as one change of the job.
#[derive(Clone, Debug)]
pub struct AttemptReport {
    /// Identifies the claim of the job.
    pub claimed: Claim,
    /// The job as its holder last wrote it.
    pub(super) job: Arc<Stored<Job>>,
    pub(super) reports: Vec<Trigger>,
    /// The intermediate output of a step that waits or has done a part, to be recorded together with the transition.
    pub(super) found: Option<Value>,
    /// `true` if the reports can be written in one unit of work with other jobs, because no domain records are written
    /// with them.
    pub(super) can_batch: bool,
    /// `true` if the worker no longer holds the job after the write.
    pub(super) releases_job: bool,
}

impl AttemptReport {
    fn new(kinds: &Kinds, held: &HeldJob, ended: AttemptResult) -> Self {
        let AttemptResult {
            reports,
            found,
            observed_job: looked,
        } = ended;
        let in_batch = found.is_none() && changes_only_job(kinds, &held.job, &reports);
        let leaves = !matches!(reports.last(), Some(Report::Start(_)));
        let fence = held.claimed.fence;
        let triggers = reports
            .into_iter()
            .map(|report| Trigger::Work(fence, report));
        Self {
            claimed: held.claimed.clone(),
            job: looked.unwrap_or_else(|| Arc::clone(&held.job)),
            reports: triggers.collect(),
            found,
            can_batch: in_batch,
            releases_job: leaves,
        }
    }

    /// Returns whether [`Worker::commit`] can write the reports together with those of other jobs. If not, use
    /// [`Worker::report_attempt`].
    #[must_use]
    pub const fn in_batch(&self) -> bool {
        self.can_batch
    }

    /// Returns the code of the error with which the attempt failed; `None` if it did not fail.
    #[must_use]
    pub fn error_code(&self) -> Option<&str> {
        self.reports.iter().find_map(|report| match report {
            Trigger::Work(
                _,
                Report::Fail(Failure::Transient { error, .. } | Failure::Permanent(error)),
            ) => Some(error.code.as_str()),
            _ => None,
        })
    }

    /// Returns whether the worker no longer holds the job after the write, so that its slot becomes free.
    #[must_use]
    pub const fn leaves(&self) -> bool {
        self.releases_job
    }
}

/// The result of an attempt.
struct AttemptResult {
    reports: Vec<Report>,
    /// The intermediate output of a step that waits or has done a part.
    found: Option<Value>,
    /// The job after this attempt stored its first observation; `None` if it stored none.
    observed_job: Option<Arc<Stored<Job>>>,
}

impl From<Vec<Report>> for AttemptResult {
    fn from(reports: Vec<Report>) -> Self {
        Self {
            reports,
            found: None,
            observed_job: None,
        }
    }
}

/// Stores the first observation of a step that can be undone, under the fence. The step has no effect before that.
struct FirstObservationWriter<'a> {
    worker: &'a Worker,
    claimed: &'a Claim,
    step: usize,
    /// `true` if the step can be undone and has no stored observation.
    is_due: bool,
    /// The observation of this attempt; unset if none is due.
    found: OnceLock<FirstObservation>,
    /// The job after the observation was stored.
    looked: OnceLock<Stored<Job>>,
}

impl<'a> FirstObservationWriter<'a> {
    fn of(worker: &'a Worker, claimed: &'a Claim, job: &Job, step: usize, can_undo: bool) -> Self {
        Self {
            worker,
            claimed,
            step,
            is_due: can_undo && job.steps[step].first_look.is_none(),
            found: OnceLock::new(),
            looked: OnceLock::new(),
        }
    }

    fn remember<T>(&self, observed: &Observation<T>) {
        if let Some(found) = observed.first_look().filter(|_| self.is_due) {
            self.found.get_or_init(|| found);
        }
    }

    /// Stores the observation before the effect.
    async fn store(&self) -> Result<(), StepError> {
        let Some(found) = self.found.get() else {
            return Ok(());
        };
        let look = Report::Look(self.step, *found);
        match self.worker.report(self.claimed, look).await? {
            LeaseState::Held(job) => {
                self.looked.get_or_init(|| *job);
                Ok(())
            }
            LeaseState::Lost => Err(StepError::LeaseLost),
        }
    }

    /// Returns the report of an observation that is not stored yet: that of a step without an effect.
    fn unstored_report(&self) -> Option<Report> {
        let found = self.found.get().filter(|_| self.looked.get().is_none());
        found.map(|found| Report::Look(self.step, *found))
    }
}

/// Returns whether these reports change only the job, its lease, its lane and its history. If the job has a dead letter
/// or a parent, its end changes more.
fn changes_only_job(kinds: &Kinds, job: &Job, reports: &[Report]) -> bool {
    let Some(kind) = kinds.get(&job.kind) else {
        return false;
    };
    let ends_plainly =
        || kind.hooks.is_none() && job.dlq_entry_id.is_none() && job.parent_job_id.is_none();
    reports.iter().all(|report| match report {
        Report::Start(_)
        | Report::Look(..)
        | Report::Wait { .. }
        | Report::Progress
        | Report::Release { .. } => true,
        Report::Advance(step, _) => {
            let records = job
                .steps
                .get(*step)
                .is_none_or(|stored| kind.step(&stored.name).is_some_and(ErasedStep::has_record));
            let last = job.step_after(*step).is_none();
            !records && (!last || ends_plainly())
        }
        Report::Complete => ends_plainly(),
        Report::Fail(Failure::Transient { .. }) => job.attempts + 1 < job.max_attempts,
        Report::Fail(Failure::Permanent(_)) => false,
    })
}

/// Checks the lease through the supervisor, which can combine the checks of several jobs.
struct LeaseGuard<'a> {
    worker: &'a Worker,
    supervisor: &'a dyn Supervisor,
    claimed: &'a Claim,
}

impl std::fmt::Debug for LeaseGuard<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("LeaseGuard").field(self.claimed).finish()
    }
}

#[async_trait]
impl Guard for LeaseGuard<'_> {
    async fn check(&self) -> Result<(), StepError> {
        if self.supervisor.is_held(self.worker, self.claimed).await? {
            Ok(())
        } else {
            Err(StepError::LeaseLost)
        }
    }
}

impl Worker {
    /// Makes one attempt of the current step of a held job. Returns the reports, to be written with [`Worker::commit`]
    /// or [`Worker::report_attempt`]. `None` if the worker has lost the job.
    pub async fn attempt(
        &self,
        held: &HeldJob,
        supervisor: &dyn Supervisor,
    ) -> Option<AttemptReport> {
        let ended = if supervisor.is_stopping() {
            vec![Report::Release {
                is_step_started: false,
            }]
            .into()
        } else {
            self.work(held, supervisor).await?
        };
        Some(AttemptReport::new(&self.kinds, held, ended))
    }

    async fn work(&self, held: &HeldJob, supervisor: &dyn Supervisor) -> Option<AttemptResult> {
        let job: &Job = &held.job;
        let Some(step) = job.current_step() else {
            return Some(vec![Report::Complete].into());
        };
        let name = &job.steps[step].name;
        let known = self.kinds.get(&job.kind).and_then(|kind| kind.step(name));
        let Some(known) = known else {
            let missing = format!("the job kind {} has no step {name}", job.kind);
            let unknown = StepError::permanent("UNKNOWN_STEP", missing);
            return Some(vec![report_of(unknown)?].into());
        };
        if job.steps[step].status != StepStatus::Running {
            return Some(vec![Report::Start(step)].into());
        }
        let undone = match undo::read_undone(self.store.as_ref(), job).await {
            Ok(undone) => undone,
            Err(error) => return Some(vec![report_of(error)?].into()),
        };
        let subject = undone.as_deref().unwrap_or(job);
        let effect_key = effect_key(&subject.id, name);
        let guard = LeaseGuard {
            worker: self,
            supervisor,
            claimed: &held.claimed,
        };
        let ports = StepPorts {
            effect_key: &effect_key,
            infrastructure: self.infrastructure.as_ref(),
            blobs: self.blobs.as_ref(),
            store: self.store.as_ref(),
            guard: &guard,
        };
        let call = StepCall {
            job: subject,
            step: name,
            ports,
        };
        let looks = FirstObservationWriter::of(self, &held.claimed, job, step, known.can_undo());
        let attempt = Box::pin(perform(known, call, &looks));
        let end = supervisor.attempt(&held.claimed, known.timeout(), attempt);
        let end = end.await;
        let ended = self.end_of(end, job, step, supervisor, looks.unstored_report())?;
        let looked = looks.looked.into_inner().map(Arc::new);
        Some(AttemptResult {
            observed_job: looked,
            ..ended
        })
    }

    /// Returns the reports of an attempt; `None` if the lease was lost.
    fn end_of(
        &self,
        end: StepEnd,
        job: &Job,
        step: usize,
        supervisor: &dyn Supervisor,
        unstored: Option<Report>,
    ) -> Option<AttemptResult> {
        let mut error = match end {
            StepEnd::Finished(Ok(output)) => {
                let mut reports: Vec<Report> = unstored.into_iter().collect();
                reports.push(Report::Advance(step, output));
                reports.extend(self.next_report(job, step, supervisor));
                return Some(reports.into());
            }
            StepEnd::Finished(Err(error)) => error,
            StepEnd::TimedOut => {
                StepError::unknown("STEP_TIMEOUT", "the step took longer than allowed")
            }
            StepEnd::Panicked => StepError::unknown("STEP_PANICKED", "the step panicked"),
            StepEnd::LeaseLost => return None,
            StepEnd::Stopping => {
                return Some(
                    vec![Report::Release {
                        is_step_started: true,
                    }]
                    .into(),
                );
            }
        };
        let found = match &mut error {
            StepError::Wait { output: found, .. } => found.take(),
            StepError::Unfinished { found } => found.take(),
            _ => None,
        };
        let reports = vec![report_of(error)?];
        Some(AttemptResult {
            found,
            ..reports.into()
        })
    }

    /// Returns the report that follows the end of a step: the start of the next step, or the release of the job if the
    /// process stops. `None` after the last step.
    fn next_report(&self, job: &Job, step: usize, supervisor: &dyn Supervisor) -> Option<Report> {
        let next = job.step_after(step)?;
        if supervisor.is_stopping() {
            return Some(Report::Release {
                is_step_started: false,
            });
        }
        startable_step(&self.kinds, job, Some(next)).map(Report::Start)
    }
}

/// Observes the step and applies it if needed. Stores the first observation and checks the lease between the two.
async fn perform(
    step: &dyn ErasedStep,
    call: StepCall<'_>,
    looks: &FirstObservationWriter<'_>,
) -> Result<Value, StepError> {
    let observed = step.observe(call).await?;
    looks.remember(&observed);
    match observed {
        Observation::Present(output) => Ok(output),
        Observation::Conflict(what) => Err(StepError::permanent("NAME_TAKEN", what)),
        Observation::Absent | Observation::Outdated => {
            looks.store().await?;
            step.apply(call).await
        }
    }
}
