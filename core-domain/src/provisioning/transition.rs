//! The state machine of jobs. [`apply`] takes a job and a trigger and returns the changed job or a refusal.

use std::time::Duration;

use serde_json::{Map, Value};

use super::{
    DEFAULT_DEADLINE, FailureKind, FirstObservation, Job, JobError, JobStatus, MAX_LOST_LEASES,
    MAX_OUTPUT_BYTES, Step, StepStatus, effect_key, retry_at,
};
use crate::kernel::{Entropy, Error, IllegalTransition, Machine, Timestamp, state_machine};

/// A cause of a transition.
#[derive(Clone, Debug, PartialEq)]
pub enum Trigger {
    /// A worker claims the job.
    Claim,
    /// The worker that claimed the job under this fence reports.
    Work(i64, Report),
    /// The wait ends, because `run_at` has passed or because of a signal.
    Wake {
        /// Whether a signal ends the wait. A signal is accepted before `run_at`.
        signalled: bool,
    },
    /// The lease has expired.
    Reap,
    /// The deadline may have passed.
    Deadline,
    /// An operator retries a failed job, or requests that a queued or waiting job runs now.
    Retry,
    /// An operator cancels the job.
    Cancel {
        /// The reason for the cancellation.
        reason: String,
    },
    /// An operator completes the job by force.
    ForceComplete,
    /// An operator replays the job from the dead-letter queue.
    Replay,
    /// A step was undone: its effect was removed, or is kept permanently.
    Undone {
        /// The name of the undone step.
        step: String,
        /// The reason for keeping the effect; `None` if it was removed.
        left: Option<String>,
    },
    /// The undo of the step with this name did not finish.
    UndoStopped(String),
}

/// A worker's report about the job it holds.
#[derive(Clone, Debug, PartialEq)]
pub enum Report {
    /// Work on the step with this index starts.
    Start(usize),
    /// The result of the first observation of this running step. It does not replace a stored result.
    Look(usize, FirstObservation),
    /// The step with this index succeeded with this output. The job completes with its last step.
    Advance(usize, Value),
    /// The job has no unfinished step.
    Complete,
    /// The attempt of the current step failed.
    Fail(Failure),
    /// The current step waits for an external event.
    Wait {
        /// The time of the next attempt.
        until: Timestamp,
        /// The event that the step waits for, in words.
        reason: String,
    },
    /// A part of the current step is done. The job is queued again; failed attempts and lost leases are reset.
    Progress,
    /// The worker stops and returns the job to the queue.
    Release {
        /// `true` if work on the current step started, so that its effect may have happened.
        is_step_started: bool,
    },
}

/// The consequence of a failed attempt for the job.
#[derive(Clone, Debug, PartialEq)]
pub enum Failure {
    /// The step is tried again while it has attempts left.
    Transient {
        /// The error to record.
        error: JobError,
        /// The minimum delay requested by the provider; zero if it requested none.
        retry_after: Duration,
        /// Whether the effect may have happened.
        may_have_effect: bool,
    },
    /// The step is not tried again.
    Permanent(JobError),
}

/// Why a transition was refused.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Refusal {
    /// The job is no longer held under the reported fence. The reporter must not write anything.
    LeaseLost,
    /// The time for the transition has not come.
    NotDue,
    /// The report is about a step that is not the current one.
    OutOfOrder,
    /// The transition is not allowed in the current status.
    Status(IllegalTransition),
}

impl From<Refusal> for Error {
    fn from(refusal: Refusal) -> Self {
        match refusal {
            Refusal::Status(illegal) => illegal.into(),
            Refusal::LeaseLost | Refusal::NotDue | Refusal::OutOfOrder => {
                Self::Internal(format!("unexpected transition of a job: {refusal:?}"))
            }
        }
    }
}

/// A place in a lane.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LanePlace {
    /// Before all other jobs.
    Front,
    /// After all other jobs.
    Tail,
    /// The place that the kind defines for new jobs.
    KindDefault,
}

/// The result of a transition.
#[derive(Clone, Debug, PartialEq)]
pub struct Transition {
    /// The job after the transition. Its position in the lane is still the old one; see [`Transition::lane_place`].
    pub job: Job,
    /// The transition that was made.
    pub job_move: JobTransition,
    /// The name of the step that the transition is about, if any.
    pub step: Option<String>,
    /// The reason to record in the history, if any.
    pub reason: Option<String>,
    /// The new place of the job in its lane; `None` if it keeps its position.
    pub lane_place: Option<LanePlace>,
}

state_machine! {
    /// A transition of a job; its text is the event type in the history. A new job is `QUEUED`. A heartbeat is not a
    /// transition: it changes only the lease.
    pub enum JobTransition moves JobStatus {
        /// A worker claims the job.
        Claim = "job.claimed": [Queued] => Running;
        /// The start of a step is stored.
        Start = "step.started": [Running] => Running;
        /// The first observation of a step is stored.
        Look = "step.looked": [Running] => Running;
        /// A step succeeded and more steps follow.
        Advance = "step.succeeded": [Running] => Running;
        /// The last step succeeded, or no step was left.
        Complete = "job.completed": [Running] => Completed;
        /// A part of a step is done; the rest follows in a later run.
        Progress = "step.progressed": [Running] => Queued;
        /// A step failed and will be tried again.
        BackOff = "step.failed": [Running] => Queued;
        /// A step failed and has no attempts left.
        Exhaust = "job.attempts_exhausted": [Running] => Failed;
        /// A step failed permanently.
        Fail = "job.failed": [Running] => Failed;
        /// A step waits for an external event.
        Wait = "job.waiting": [Running] => Waiting;
        /// The wait ended by time or by a signal.
        Wake = "job.woken": [Waiting] => Queued;
        /// The worker stops and returns the job to the queue.
        Release = "job.released": [Running] => Queued;
        /// The lease expired; the job will be tried again.
        Reap = "job.lease_lost": [Running] => Queued;
        /// The lease expired too often; the job stops.
        ReapLast = "job.worker_lost": [Running] => Failed;
        /// The job did not end before its deadline.
        Deadline = "job.deadline_exceeded": [Queued, Waiting, Running] => Failed;
        /// An operator retries a failed job.
        Retry = "job.retried": [Failed] => Queued;
        /// An operator requests that a queued or waiting job runs now.
        Reschedule = "job.rescheduled": [Queued, Waiting] => Queued;
        /// An operator cancels the job.
        Cancel = "job.cancelled": [Queued, Waiting, Running] => Failed;
        /// An operator completes the job by force.
        ForceComplete = "job.force_completed": [Queued, Waiting, Running, Failed] => Completed;
        /// An operator replays the job from the dead-letter queue.
        Replay = "job.replayed": [Failed] => Queued;
        /// A step of a cancelled job was undone.
        Undo = "step.undone": [Failed] => Failed;
        /// The undo of a step did not finish; its effect may or may not exist.
        StopUndo = "step.undo_stopped": [Failed] => Failed;
    }
}

impl JobTransition {
    /// Returns whether the transition increases the fence and so locks out the holder. Only transitions from `RUNNING`
    /// to `RUNNING` keep it.
    #[must_use]
    pub fn increases_fence(self) -> bool {
        let row = self.transition();
        !(row.from == [JobStatus::Running] && row.to == JobStatus::Running)
    }
}

/// Makes the transition that the trigger requests. The function is pure: the caller passes the time and the source of
/// jitter.
///
/// # Errors
/// [`Refusal`] if the job is not in a state in which the trigger is allowed.
pub fn apply(
    job: &Job,
    trigger: &Trigger,
    now: Timestamp,
    entropy: &dyn Entropy,
) -> Result<Transition, Refusal> {
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
        Trigger::Retry if job.status == JobStatus::Failed => resume(job, JobTransition::Retry, now),
        Trigger::Retry => reschedule(job, now),
        Trigger::Cancel { reason } => cancel(job, reason, now),
        Trigger::ForceComplete => force_complete(job, now),
        Trigger::Replay => resume(job, JobTransition::Replay, now),
        Trigger::Undone { step, left } => undo(job, step, left.as_deref(), now),
        Trigger::UndoStopped(step) => stop_undo(job, step, now),
    }
}

/// Changes status, fence and times only. The function of each transition does the rest.
fn begin_transition(job: &Job, name: JobTransition, now: Timestamp) -> Result<Transition, Refusal> {
    let to = name.next(job.status).map_err(Refusal::Status)?;
    let mut next = job.clone();
    next.status = to;
    next.fence += i64::from(name.increases_fence());
    next.updated_at = now;
    next.finished_at = to.is_terminal().then_some(now);
    if to != JobStatus::Waiting {
        next.waiting_for = None;
    }
    let step = job.current_step().map(|i| job.steps[i].name.clone());
    Ok(Transition {
        job: next,
        job_move: name,
        step,
        reason: None,
        lane_place: None,
    })
}

fn claim(job: &Job, now: Timestamp) -> Result<Transition, Refusal> {
    let mut moved = begin_transition(job, JobTransition::Claim, now)?;
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
) -> Result<Transition, Refusal> {
    match report {
        Report::Start(step) => start(job, *step, now),
        Report::Look(step, found) => store_observation(job, *step, *found, now),
        Report::Advance(step, output) => advance(job, *step, output, now),
        Report::Complete => {
            if job.current_step().is_some() {
                return Err(Refusal::OutOfOrder);
            }
            let mut moved = begin_transition(job, JobTransition::Complete, now)?;
            set_completed(&mut moved.job);
            Ok(moved)
        }
        Report::Fail(failure) => fail(job, failure, now, entropy),
        Report::Wait { until, reason } => {
            let mut moved = begin_transition(job, JobTransition::Wait, now)?;
            moved.job.run_at = *until;
            moved.job.waiting_for = Some(reason.clone());
            moved.reason = Some(reason.clone());
            set_running_step(&mut moved.job, StepStatus::Pending);
            Ok(moved)
        }
        Report::Progress => progress(job, now),
        Report::Release {
            is_step_started: begun,
        } => {
            let mut moved = begin_transition(job, JobTransition::Release, now)?;
            moved.job.run_at = now;
            set_running_step(&mut moved.job, interrupted_status(*begun));
            Ok(moved)
        }
    }
}

/// Returns the status of an interrupted step.
const fn interrupted_status(may_have_happened: bool) -> StepStatus {
    if may_have_happened {
        StepStatus::Abandoned
    } else {
        StepStatus::Pending
    }
}

/// Queues the job again. The step becomes `PENDING` instead of `ABANDONED` because its state is known.
fn progress(job: &Job, now: Timestamp) -> Result<Transition, Refusal> {
    let mut moved = begin_transition(job, JobTransition::Progress, now)?;
    let next = &mut moved.job;
    next.run_at = now;
    next.attempts = 0;
    next.lost_leases = 0;
    next.error = None;
    if let Some(step) = next.current_step() {
        next.steps[step].attempts = 0;
        next.steps[step].error = None;
    }
    set_running_step(next, StepStatus::Pending);
    Ok(moved)
}

fn start(job: &Job, step: usize, now: Timestamp) -> Result<Transition, Refusal> {
    if job.current_step() != Some(step) {
        return Err(Refusal::OutOfOrder);
    }
    let mut moved = begin_transition(job, JobTransition::Start, now)?;
    let key = effect_key(&job.id, &job.steps[step].name);
    let current = &mut moved.job.steps[step];
    current.status = StepStatus::Running;
    current.started_at = current.started_at.or(Some(now));
    current.finished_at = None;
    current.output = None;
    // An undo step already has the key of the step it undoes.
    current.effect_key.get_or_insert(key);
    Ok(moved)
}

fn store_observation(
    job: &Job,
    step: usize,
    found: FirstObservation,
    now: Timestamp,
) -> Result<Transition, Refusal> {
    ensure_step_running(job, step)?;
    let mut moved = begin_transition(job, JobTransition::Look, now)?;
    moved.job.steps[step].first_look.get_or_insert(found);
    moved.reason = Some(found.as_str().to_owned());
    Ok(moved)
}

fn ensure_step_running(job: &Job, step: usize) -> Result<(), Refusal> {
    if job.current_step() == Some(step) && job.steps[step].status == StepStatus::Running {
        return Ok(());
    }
    Err(Refusal::OutOfOrder)
}

fn advance(job: &Job, step: usize, output: &Value, now: Timestamp) -> Result<Transition, Refusal> {
    ensure_step_running(job, step)?;
    if output.to_string().len() > MAX_OUTPUT_BYTES {
        let error = JobError::new(
            "OUTPUT_TOO_LARGE",
            format!("the output of the step is larger than {MAX_OUTPUT_BYTES} bytes"),
        );
        return stop(
            job,
            JobTransition::Fail,
            FailureKind::PermanentError,
            error,
            now,
        );
    }
    let last = job.step_after(step).is_none();
    let name = if last {
        JobTransition::Complete
    } else {
        JobTransition::Advance
    };
    let mut moved = begin_transition(job, name, now)?;
    let done = &mut moved.job.steps[step];
    done.status = StepStatus::Succeeded;
    done.finished_at = Some(now);
    done.error = None;
    done.output = Some(output.clone());
    moved.job.attempts = 0;
    moved.job.error = None;
    moved.job.reason = None;
    if last {
        set_completed(&mut moved.job);
    }
    Ok(moved)
}

/// Sets the fields of a completed job other than its status.
fn set_completed(job: &mut Job) {
    let outputs: Map<String, Value> = job
        .steps
        .iter()
        .filter(|step| step.status == StepStatus::Succeeded)
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
) -> Result<Transition, Refusal> {
    match failure {
        Failure::Permanent(error) => {
            let mut job = job.clone();
            count_attempt(&mut job, Some(error));
            stop(
                &job,
                JobTransition::Fail,
                FailureKind::PermanentError,
                error.clone(),
                now,
            )
        }
        Failure::Transient {
            error,
            retry_after,
            may_have_effect: unknown,
        } => {
            let mut job = job.clone();
            count_attempt(&mut job, Some(error));
            if job.attempts >= job.max_attempts {
                let kind = FailureKind::AttemptsExhausted;
                return stop(&job, JobTransition::Exhaust, kind, error.clone(), now);
            }
            let mut moved = begin_transition(&job, JobTransition::BackOff, now)?;
            moved.job.run_at = retry_at(now, job.attempts, *retry_after, entropy);
            moved.job.error = Some(error.clone());
            moved.reason = Some(error.code.clone());
            set_running_step(&mut moved.job, interrupted_status(*unknown));
            Ok(moved)
        }
    }
}

/// Records one more failed attempt of the current step.
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

/// Sets the status of the running step, if there is one.
fn set_running_step(job: &mut Job, status: StepStatus) {
    for step in &mut job.steps {
        if step.status == StepStatus::Running {
            step.status = status;
        }
    }
}

/// Sets the job to `FAILED` with this error and failure kind.
fn stop(
    job: &Job,
    name: JobTransition,
    kind: FailureKind,
    error: JobError,
    now: Timestamp,
) -> Result<Transition, Refusal> {
    let mut moved = begin_transition(job, name, now)?;
    moved.job.failure_kind = Some(kind);
    moved.reason = Some(error.code.clone());
    let left = match name {
        JobTransition::Exhaust | JobTransition::Fail => StepStatus::Failed,
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

fn wake(job: &Job, signalled: bool, now: Timestamp) -> Result<Transition, Refusal> {
    let mut moved = begin_transition(job, JobTransition::Wake, now)?;
    if !signalled && job.run_at > now {
        return Err(Refusal::NotDue);
    }
    moved.job.run_at = now;
    moved.lane_place = Some(place_after_wait(job));
    Ok(moved)
}

fn reap(job: &Job, now: Timestamp, entropy: &dyn Entropy) -> Result<Transition, Refusal> {
    let error = JobError::new(
        "WORKER_LOST",
        "the lease expired: the worker of the job stopped responding",
    );
    let mut counted = job.clone();
    counted.lost_leases += 1;
    count_attempt(&mut counted, Some(&error));
    if counted.lost_leases >= MAX_LOST_LEASES || counted.attempts >= counted.max_attempts {
        return stop(
            &counted,
            JobTransition::ReapLast,
            FailureKind::WorkerLost,
            error,
            now,
        );
    }
    let mut moved = begin_transition(&counted, JobTransition::Reap, now)?;
    moved.job.run_at = retry_at(now, counted.attempts, Duration::ZERO, entropy);
    moved.job.error = Some(error);
    set_running_step(&mut moved.job, StepStatus::Abandoned);
    Ok(moved)
}

fn deadline(job: &Job, now: Timestamp) -> Result<Transition, Refusal> {
    let error = JobError::new(
        "DEADLINE_EXCEEDED",
        "the job did not end before its deadline",
    );
    let moved = stop(
        job,
        JobTransition::Deadline,
        FailureKind::DeadlineExceeded,
        error,
        now,
    )?;
    if job.deadline_at >= now {
        return Err(Refusal::NotDue);
    }
    Ok(moved)
}

/// Queues a failed job with new attempts and a new deadline. It continues at the first unfinished step.
fn resume(job: &Job, name: JobTransition, now: Timestamp) -> Result<Transition, Refusal> {
    let mut moved = begin_transition(job, name, now)?;
    let next = &mut moved.job;
    next.attempts = 0;
    next.lost_leases = 0;
    next.failure_kind = None;
    next.reason = None;
    next.run_at = earliest(job, now);
    next.deadline_at = now.plus(DEFAULT_DEADLINE);
    next.replay_count += i64::from(name == JobTransition::Replay);
    if let Some(step) = next.current_step() {
        let step = &mut next.steps[step];
        step.attempts = 0;
        step.finished_at = None;
        if step.status == StepStatus::Failed {
            step.status = StepStatus::Pending;
        }
    }
    moved.lane_place = Some(LanePlace::KindDefault);
    Ok(moved)
}

fn reschedule(job: &Job, now: Timestamp) -> Result<Transition, Refusal> {
    let mut moved =
        begin_transition(job, JobTransition::Reschedule, now).map_err(|refusal| match refusal {
            // A retry is also possible from `FAILED`, so the error lists that status as well.
            Refusal::Status(mut illegal) => {
                illegal
                    .allowed_from
                    .push(JobStatus::Failed.as_str().to_owned());
                Refusal::Status(illegal)
            }
            other => other,
        })?;
    moved.job.run_at = earliest(job, now);
    if job.status == JobStatus::Waiting {
        moved.lane_place = Some(place_after_wait(job));
    }
    Ok(moved)
}

/// Returns the place of a job after a wait. An undo job goes first: jobs created in the meantime may create the same
/// objects again, and a later undo would remove these.
fn place_after_wait(job: &Job) -> LanePlace {
    if job.is_undo() {
        LanePlace::Front
    } else {
        LanePlace::Tail
    }
}

/// Returns the earliest time at which a resumed job may run. An undo job that has not started keeps its start time, so
/// that it finds all effects it has to undo.
fn earliest(job: &Job, now: Timestamp) -> Timestamp {
    if job.is_undo() && job.started_at.is_none() {
        job.run_at.max(now)
    } else {
        now
    }
}

fn cancel(job: &Job, reason: &str, now: Timestamp) -> Result<Transition, Refusal> {
    let error = JobError::new("CANCELLED", reason);
    let mut moved = stop(
        job,
        JobTransition::Cancel,
        FailureKind::Cancelled,
        error,
        now,
    )?;
    moved.job.reason = Some(reason.to_owned());
    moved.reason = Some(reason.to_owned());
    // A step that waits or failed before may have had a part of its effect.
    for step in &mut moved.job.steps {
        if step.status == StepStatus::Pending && step.started_at.is_some() {
            step.status = StepStatus::Abandoned;
            step.finished_at = Some(now);
        }
    }
    Ok(moved)
}

/// Marks a step of a cancelled job as undone. A retry of the job observes the step again.
fn undo(job: &Job, step: &str, left: Option<&str>, now: Timestamp) -> Result<Transition, Refusal> {
    let mut moved = begin_undo_transition(job, step, JobTransition::Undo, now)?;
    let undone = find_undoable_step(&mut moved.job, step)?;
    undone.status = StepStatus::Undone;
    undone.started_at = None;
    undone.attempts = 0;
    undone.error = None;
    undone.first_look = None;
    moved.reason = left.map(|why| format!("left: {why}"));
    Ok(moved)
}

/// Marks a step of a cancelled job as `ABANDONED` because its undo did not finish.
fn stop_undo(job: &Job, step: &str, now: Timestamp) -> Result<Transition, Refusal> {
    let mut moved = begin_undo_transition(job, step, JobTransition::StopUndo, now)?;
    find_undoable_step(&mut moved.job, step)?.status = StepStatus::Abandoned;
    Ok(moved)
}

fn begin_undo_transition(
    job: &Job,
    step: &str,
    name: JobTransition,
    now: Timestamp,
) -> Result<Transition, Refusal> {
    let mut moved = begin_transition(job, name, now)?;
    // The job keeps the end time of its cancellation.
    moved.job.finished_at = job.finished_at;
    moved.step = Some(step.to_owned());
    Ok(moved)
}

fn find_undoable_step<'j>(job: &'j mut Job, step: &str) -> Result<&'j mut Step, Refusal> {
    let mut steps = job.steps.iter_mut();
    let undone = steps.find(|undone| undone.name == step && undone.status.may_have_effect());
    undone.ok_or(Refusal::OutOfOrder)
}

fn force_complete(job: &Job, now: Timestamp) -> Result<Transition, Refusal> {
    let mut moved = begin_transition(job, JobTransition::ForceComplete, now)?;
    for step in &mut moved.job.steps {
        step.status = match step.status {
            StepStatus::Running | StepStatus::Abandoned => StepStatus::Abandoned,
            StepStatus::Pending | StepStatus::Failed | StepStatus::Undone => StepStatus::Skipped,
            done => done,
        };
        if step.status != StepStatus::Succeeded {
            step.output = None;
        }
    }
    moved.job.forced = true;
    set_completed(&mut moved.job);
    Ok(moved)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use crate::kernel::assert_only_table_moves;

    use super::*;

    proptest! {
        #[test]
        fn random_events_follow_the_transition_table(
            moves in prop::collection::vec(prop::sample::select(JobTransition::ALL), 1..60),
        ) {
            assert_only_table_moves(JobStatus::Queued, &moves);
        }
    }

    #[test]
    fn completed_is_final_and_every_status_change_increases_the_fence() {
        for row in JobTransition::TRANSITIONS {
            assert!(!row.from.contains(&JobStatus::Completed), "{row:?}");
            assert!(
                row.event.increases_fence() || row.from == [row.to],
                "{row:?}"
            );
        }
    }
}
