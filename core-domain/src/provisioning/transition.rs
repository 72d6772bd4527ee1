//! The state machine: a job and what happens to it give the job after it, or a refusal.

use std::time::Duration;

use serde_json::{Map, Value};

use super::{
    DEADLINE, Failure, FailureKind, Job, JobError, JobStatus, MAX_LOST_LEASES, MAX_OUTPUT_BYTES,
    Move, MoveName, StepStatus, effect_key, retry_at,
};
use crate::kernel::{Entropy, Error, Timestamp};

/// What happens to a job.
#[derive(Clone, Debug, PartialEq)]
pub enum Trigger {
    /// A worker takes it.
    Claim,
    /// The holder of this fence reports.
    Work(i64, Report),
    /// The wait is over: its time has come, or somebody signals.
    Wake {
        /// Whether it is a signal, which need not wait for the time.
        signalled: bool,
    },
    /// Its lease has ended.
    Reap,
    /// Its deadline may have passed.
    Deadline,
    /// An operator lets it go on, or run now.
    Retry,
    /// An operator stops it.
    Cancel {
        /// Why.
        reason: String,
    },
    /// An operator declares it done.
    ForceComplete,
    /// An operator replays it from the dead-letter queue.
    Replay,
}

/// What a worker reports of the job it holds.
#[derive(Clone, Debug, PartialEq)]
pub enum Report {
    /// Work on this step begins.
    Start(usize),
    /// This step is done, with this output; the job completes with its last step.
    Advance(usize, Value),
    /// There is no step left to do.
    Complete,
    /// The current step failed.
    Fail(Failure),
    /// The current step waits.
    Wait {
        /// When to look again.
        until: Timestamp,
        /// What is waited for.
        reason: String,
    },
    /// The worker stops.
    Release,
}

/// Why something could not happen to a job.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Refusal {
    /// The job belongs to somebody else by now; nothing may be written.
    LeaseLost,
    /// Its time has not come.
    NotDue,
    /// The report is about another step than the current one.
    OutOfOrder,
    /// It cannot be done in this status.
    Status {
        /// The status.
        status: JobStatus,
        /// Where it can be done.
        allowed_from: Vec<JobStatus>,
    },
}

impl From<Refusal> for Error {
    fn from(refusal: Refusal) -> Self {
        match refusal {
            Refusal::Status {
                status,
                allowed_from,
            } => Self::InvalidState {
                status: status.as_str(),
                allowed_from: allowed_from.iter().map(|s| s.as_str()).collect(),
            },
            Refusal::LeaseLost | Refusal::NotDue | Refusal::OutOfOrder => {
                Self::Internal(format!("a job was moved out of turn: {refusal:?}"))
            }
        }
    }
}

/// A job after a move.
#[derive(Clone, Debug, PartialEq)]
pub struct Moved {
    /// The job after it. Its place in the lane is still the old one, see [`Moved::to_tail`].
    pub job: Job,
    /// The move that was made.
    pub by: &'static Move,
    /// The step it was about.
    pub step: Option<String>,
    /// Why, for the history.
    pub reason: Option<String>,
    /// Whether the job goes to the tail of its lane.
    pub to_tail: bool,
}

/// Makes the move that the trigger asks for. Pure: the instant and the luck of the draw are handed in.
///
/// # Errors
/// [`Refusal`] when the job is not in a state in which this can happen.
pub fn apply(
    job: &Job,
    trigger: &Trigger,
    now: Timestamp,
    entropy: &dyn Entropy,
) -> Result<Moved, Refusal> {
    match trigger {
        Trigger::Claim => claim(job, now),
        Trigger::Work(fence, report) => {
            if job.status != JobStatus::Running || job.fence != *fence {
                return Err(Refusal::LeaseLost);
            }
            work(job, report, now, entropy)
        }
        Trigger::Wake { signalled } => wake(job, *signalled, now),
        Trigger::Reap => reap(job, now, entropy),
        Trigger::Deadline => deadline(job, now),
        Trigger::Retry if job.status == JobStatus::Failed => resume(job, MoveName::Retry, now),
        Trigger::Retry => run_now(job, now),
        Trigger::Cancel { reason } => cancel(job, reason, now),
        Trigger::ForceComplete => force_complete(job, now),
        Trigger::Replay => resume(job, MoveName::Replay, now),
    }
}

/// The bare move: status, fence and time. The rest of a row is done by its own function.
fn moved(job: &Job, name: MoveName, now: Timestamp) -> Result<Moved, Refusal> {
    let row = name.row();
    if !row.from.contains(&job.status) {
        return Err(Refusal::Status {
            status: job.status,
            allowed_from: row.from.to_vec(),
        });
    }
    let mut next = job.clone();
    next.status = row.to;
    next.fence += i64::from(row.fences);
    next.updated_at = now;
    next.finished_at = row.to.is_terminal().then_some(now);
    if row.to != JobStatus::Waiting {
        next.waiting_for = None;
    }
    let step = job.current_step().map(|i| job.steps[i].name.clone());
    Ok(Moved {
        job: next,
        by: row,
        step,
        reason: None,
        to_tail: false,
    })
}

fn claim(job: &Job, now: Timestamp) -> Result<Moved, Refusal> {
    let mut moved = moved(job, MoveName::Claim, now)?;
    if job.run_at > now {
        return Err(Refusal::NotDue);
    }
    moved.job.started_at = job.started_at.or(Some(now));
    moved.step = None;
    Ok(moved)
}

fn work(
    job: &Job,
    report: &Report,
    now: Timestamp,
    entropy: &dyn Entropy,
) -> Result<Moved, Refusal> {
    match report {
        Report::Start(step) => start(job, *step, now),
        Report::Advance(step, output) => advance(job, *step, output, now),
        Report::Complete => {
            if job.current_step().is_some() {
                return Err(Refusal::OutOfOrder);
            }
            let mut moved = moved(job, MoveName::Complete, now)?;
            complete(&mut moved.job);
            Ok(moved)
        }
        Report::Fail(failure) => fail(job, failure, now, entropy),
        Report::Wait { until, reason } => {
            let mut moved = moved(job, MoveName::Wait, now)?;
            moved.job.run_at = *until;
            moved.job.waiting_for = Some(reason.clone());
            moved.reason = Some(reason.clone());
            set_running_step(&mut moved.job, StepStatus::Pending);
            Ok(moved)
        }
        Report::Release => {
            let mut moved = moved(job, MoveName::Release, now)?;
            moved.job.run_at = now;
            // A step that was cut off may have happened.
            set_running_step(&mut moved.job, StepStatus::Abandoned);
            Ok(moved)
        }
    }
}

fn start(job: &Job, step: usize, now: Timestamp) -> Result<Moved, Refusal> {
    if job.current_step() != Some(step) {
        return Err(Refusal::OutOfOrder);
    }
    let mut moved = moved(job, MoveName::Start, now)?;
    let key = effect_key(&job.id, &job.steps[step].name);
    let current = &mut moved.job.steps[step];
    current.status = StepStatus::Running;
    current.started_at = current.started_at.or(Some(now));
    current.effect_key = Some(key);
    Ok(moved)
}

fn advance(job: &Job, step: usize, output: &Value, now: Timestamp) -> Result<Moved, Refusal> {
    if job.current_step() != Some(step) || job.steps[step].status != StepStatus::Running {
        return Err(Refusal::OutOfOrder);
    }
    if output.to_string().len() > MAX_OUTPUT_BYTES {
        let error = JobError::new(
            "OUTPUT_TOO_LARGE",
            format!("the output of a step may have {MAX_OUTPUT_BYTES} bytes"),
        );
        return stop(
            job,
            MoveName::Refuse,
            FailureKind::PermanentError,
            error,
            now,
        );
    }
    let last = step + 1 == job.steps.len();
    let name = if last {
        MoveName::Complete
    } else {
        MoveName::Advance
    };
    let mut moved = moved(job, name, now)?;
    let done = &mut moved.job.steps[step];
    done.status = StepStatus::Succeeded;
    done.finished_at = Some(now);
    done.error = None;
    done.output = Some(output.clone());
    moved.job.attempts = 0;
    moved.job.error = None;
    moved.job.reason = None;
    if last {
        complete(&mut moved.job);
    }
    Ok(moved)
}

/// What `COMPLETED` means besides the status.
fn complete(job: &mut Job) {
    let outputs: Map<String, Value> = job
        .steps
        .iter()
        .filter_map(|step| Some((step.name.clone(), step.output.clone()?)))
        .collect();
    job.output = Some(Value::Object(outputs));
    job.failure_kind = None;
    job.error = None;
}

fn fail(
    job: &Job,
    failure: &Failure,
    now: Timestamp,
    entropy: &dyn Entropy,
) -> Result<Moved, Refusal> {
    match failure {
        Failure::Permanent(error) => {
            let mut job = job.clone();
            count_attempt(&mut job, Some(error));
            stop(
                &job,
                MoveName::Refuse,
                FailureKind::PermanentError,
                error.clone(),
                now,
            )
        }
        Failure::Transient {
            error,
            retry_after,
            unknown,
        } => {
            let mut job = job.clone();
            count_attempt(&mut job, Some(error));
            if job.attempts >= job.max_attempts {
                let kind = FailureKind::AttemptsExhausted;
                return stop(&job, MoveName::Exhaust, kind, error.clone(), now);
            }
            let mut moved = moved(&job, MoveName::BackOff, now)?;
            moved.job.run_at = retry_at(now, job.attempts, *retry_after, entropy);
            moved.job.error = Some(error.clone());
            moved.reason = Some(error.code.clone());
            let left = if *unknown {
                StepStatus::Abandoned
            } else {
                StepStatus::Pending
            };
            set_running_step(&mut moved.job, left);
            Ok(moved)
        }
    }
}

/// One more failed attempt of the current step.
fn count_attempt(job: &mut Job, error: Option<&JobError>) {
    job.attempts += 1;
    let attempts = job.attempts;
    if let Some(step) = job.current_step() {
        job.steps[step].attempts = attempts;
        if let Some(error) = error {
            job.steps[step].error = Some(error.clone());
        }
    }
}

/// Leaves the step that runs, if one does, in the given status.
fn set_running_step(job: &mut Job, status: StepStatus) {
    for step in &mut job.steps {
        if step.status == StepStatus::Running {
            step.status = status;
        }
    }
}

/// To `FAILED`, with the error and its kind.
fn stop(
    job: &Job,
    name: MoveName,
    kind: FailureKind,
    error: JobError,
    now: Timestamp,
) -> Result<Moved, Refusal> {
    let mut moved = moved(job, name, now)?;
    moved.job.failure_kind = Some(kind);
    moved.reason = Some(error.code.clone());
    let left = match name {
        MoveName::Exhaust | MoveName::Refuse => StepStatus::Failed,
        _ => StepStatus::Abandoned,
    };
    if let Some(step) = moved.job.current_step()
        && moved.job.steps[step].status == StepStatus::Running
    {
        let step = &mut moved.job.steps[step];
        step.status = left;
        step.finished_at = Some(now);
        step.error = Some(error.clone());
    }
    moved.job.error = Some(error);
    Ok(moved)
}

fn wake(job: &Job, signalled: bool, now: Timestamp) -> Result<Moved, Refusal> {
    let mut moved = moved(job, MoveName::Wake, now)?;
    if !signalled && job.run_at > now {
        return Err(Refusal::NotDue);
    }
    moved.job.run_at = now;
    moved.to_tail = true;
    Ok(moved)
}

fn reap(job: &Job, now: Timestamp, entropy: &dyn Entropy) -> Result<Moved, Refusal> {
    let error = JobError::new("WORKER_LOST", "the worker of the job vanished");
    let mut counted = job.clone();
    counted.lost_leases += 1;
    count_attempt(&mut counted, Some(&error));
    if counted.lost_leases >= MAX_LOST_LEASES || counted.attempts >= counted.max_attempts {
        return stop(
            &counted,
            MoveName::ReapLast,
            FailureKind::WorkerLost,
            error,
            now,
        );
    }
    let mut moved = moved(&counted, MoveName::Reap, now)?;
    moved.job.run_at = retry_at(now, counted.attempts, Duration::ZERO, entropy);
    moved.job.error = Some(error);
    set_running_step(&mut moved.job, StepStatus::Abandoned);
    Ok(moved)
}

fn deadline(job: &Job, now: Timestamp) -> Result<Moved, Refusal> {
    let error = JobError::new("DEADLINE_EXCEEDED", "the job was not done in time");
    let moved = stop(
        job,
        MoveName::Deadline,
        FailureKind::DeadlineExceeded,
        error,
        now,
    )?;
    if job.deadline_at >= now {
        return Err(Refusal::NotDue);
    }
    Ok(moved)
}

/// Back to the queue with new attempts and a new deadline; goes on at the first step that is not done.
fn resume(job: &Job, name: MoveName, now: Timestamp) -> Result<Moved, Refusal> {
    let mut moved = moved(job, name, now)?;
    let next = &mut moved.job;
    next.attempts = 0;
    next.lost_leases = 0;
    next.failure_kind = None;
    next.reason = None;
    next.run_at = now;
    next.deadline_at = now.plus(DEADLINE);
    next.replay_count += i64::from(name == MoveName::Replay);
    if let Some(step) = next.current_step() {
        let step = &mut next.steps[step];
        step.attempts = 0;
        step.finished_at = None;
        if step.status == StepStatus::Failed {
            step.status = StepStatus::Pending;
        }
    }
    moved.to_tail = true;
    Ok(moved)
}

fn run_now(job: &Job, now: Timestamp) -> Result<Moved, Refusal> {
    let mut moved = moved(job, MoveName::RunNow, now).map_err(|refusal| match refusal {
        Refusal::Status {
            status,
            mut allowed_from,
        } => {
            allowed_from.push(JobStatus::Failed);
            Refusal::Status {
                status,
                allowed_from,
            }
        }
        other => other,
    })?;
    moved.job.run_at = now;
    moved.to_tail = job.status == JobStatus::Waiting;
    Ok(moved)
}

fn cancel(job: &Job, reason: &str, now: Timestamp) -> Result<Moved, Refusal> {
    let error = JobError::new("CANCELLED", reason);
    let mut moved = stop(job, MoveName::Cancel, FailureKind::Cancelled, error, now)?;
    moved.job.reason = Some(reason.to_owned());
    moved.reason = Some(reason.to_owned());
    Ok(moved)
}

fn force_complete(job: &Job, now: Timestamp) -> Result<Moved, Refusal> {
    let mut moved = moved(job, MoveName::ForceComplete, now)?;
    for step in &mut moved.job.steps {
        step.status = match step.status {
            StepStatus::Running | StepStatus::Abandoned => StepStatus::Abandoned,
            StepStatus::Pending | StepStatus::Failed => StepStatus::Skipped,
            done => done,
        };
    }
    moved.job.forced = true;
    complete(&mut moved.job);
    Ok(moved)
}
