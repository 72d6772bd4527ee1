//! The state machine: a job and what happens to it give the job after it, or a refusal.

use std::time::Duration;

use serde_json::{Map, Value};

use super::{
    DEADLINE, FailureKind, FirstLook, Job, JobError, JobStatus, MAX_LOST_LEASES, MAX_OUTPUT_BYTES,
    Step, StepStatus, effect_key, retry_at,
};
use crate::kernel::{Entropy, Error, IllegalMove, Machine, Timestamp, state_machine};

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
    /// A step was undone: its effect was removed or is kept for good.
    Undone {
        /// The name of the step.
        step: String,
        /// The reason for keeping the effect; `None` if it was removed.
        left: Option<String>,
    },
    /// The undoing of its step of this name has stopped midway.
    UndoStopped(String),
}

/// What a worker reports of the job it holds.
#[derive(Clone, Debug, PartialEq)]
pub enum Report {
    /// Work on this step begins.
    Start(usize),
    /// The result of the first observation of this running step. A stored result is not replaced.
    Look(usize, FirstLook),
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
    /// A part of the current step is done. The job is queued again and earlier failures are reset.
    Progress,
    /// The worker stops.
    Release {
        /// Whether work on the current step has begun, so that its effect may have happened.
        begun: bool,
    },
}

/// What a failed attempt means for the job.
#[derive(Clone, Debug, PartialEq)]
pub enum Failure {
    /// To be tried again, while there are attempts left.
    Transient {
        /// What went wrong.
        error: JobError,
        /// The provider's wish for a pause; zero when it has none.
        retry_after: Duration,
        /// Whether the effect may have happened.
        unknown: bool,
    },
    /// Not to be tried again.
    Permanent(JobError),
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
    Status(IllegalMove),
}

impl From<Refusal> for Error {
    fn from(refusal: Refusal) -> Self {
        match refusal {
            Refusal::Status(illegal) => illegal.into(),
            Refusal::LeaseLost | Refusal::NotDue | Refusal::OutOfOrder => {
                Self::Internal(format!("a job was moved out of turn: {refusal:?}"))
            }
        }
    }
}

/// Where in its lane a job goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LanePlace {
    /// Before all others.
    Front,
    /// Behind all others.
    Tail,
    /// Where its kind puts a new job.
    AsNew,
}

/// A job after a move.
#[derive(Clone, Debug, PartialEq)]
pub struct Moved {
    /// The job after it. Its position in the lane is still the old one, see [`Moved::lane_place`].
    pub job: Job,
    /// The move that was made.
    pub by: JobMove,
    /// The step it was about.
    pub step: Option<String>,
    /// Why, for the history.
    pub reason: Option<String>,
    /// Where in its lane the job goes, if it does not keep its position.
    pub lane_place: Option<LanePlace>,
}

/// Makes the move that the trigger asks for. Pure: the instant and the source of jitter are handed in.
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
        Trigger::Retry if job.status == JobStatus::Failed => resume(job, JobMove::Retry, now),
        Trigger::Retry => reschedule(job, now),
        Trigger::Cancel { reason } => cancel(job, reason, now),
        Trigger::ForceComplete => force_complete(job, now),
        Trigger::Replay => resume(job, JobMove::Replay, now),
        Trigger::Undone { step, left } => undo(job, step, left.as_deref(), now),
        Trigger::UndoStopped(step) => stop_undo(job, step, now),
    }
}

/// The bare move: status, fence and time. The rest of a row is done by its own function.
fn moved(job: &Job, name: JobMove, now: Timestamp) -> Result<Moved, Refusal> {
    let to = name.next(job.status).map_err(Refusal::Status)?;
    let mut next = job.clone();
    next.status = to;
    next.fence += i64::from(name.fences());
    next.updated_at = now;
    next.finished_at = to.is_terminal().then_some(now);
    if to != JobStatus::Waiting {
        next.waiting_for = None;
    }
    let step = job.current_step().map(|i| job.steps[i].name.clone());
    Ok(Moved {
        job: next,
        by: name,
        step,
        reason: None,
        lane_place: None,
    })
}

fn claim(job: &Job, now: Timestamp) -> Result<Moved, Refusal> {
    let mut moved = moved(job, JobMove::Claim, now)?;
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
        Report::Look(step, found) => look(job, *step, *found, now),
        Report::Advance(step, output) => advance(job, *step, output, now),
        Report::Complete => {
            if job.current_step().is_some() {
                return Err(Refusal::OutOfOrder);
            }
            let mut moved = moved(job, JobMove::Complete, now)?;
            complete(&mut moved.job);
            Ok(moved)
        }
        Report::Fail(failure) => fail(job, failure, now, entropy),
        Report::Wait { until, reason } => {
            let mut moved = moved(job, JobMove::Wait, now)?;
            moved.job.run_at = *until;
            moved.job.waiting_for = Some(reason.clone());
            moved.reason = Some(reason.clone());
            set_running_step(&mut moved.job, StepStatus::Pending);
            Ok(moved)
        }
        Report::Progress => progress(job, now),
        Report::Release { begun } => {
            let mut moved = moved(job, JobMove::Release, now)?;
            moved.job.run_at = now;
            set_running_step(&mut moved.job, left_as(*begun));
            Ok(moved)
        }
    }
}

/// Returns the status of an interrupted step.
const fn left_as(may_have_happened: bool) -> StepStatus {
    if may_have_happened {
        StepStatus::Abandoned
    } else {
        StepStatus::Pending
    }
}

/// Queues the job again. The step becomes `PENDING` instead of `ABANDONED` because its state is known.
fn progress(job: &Job, now: Timestamp) -> Result<Moved, Refusal> {
    let mut moved = moved(job, JobMove::Progress, now)?;
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

fn start(job: &Job, step: usize, now: Timestamp) -> Result<Moved, Refusal> {
    if job.current_step() != Some(step) {
        return Err(Refusal::OutOfOrder);
    }
    let mut moved = moved(job, JobMove::Start, now)?;
    let key = effect_key(&job.id, &job.steps[step].name);
    let current = &mut moved.job.steps[step];
    current.status = StepStatus::Running;
    current.started_at = current.started_at.or(Some(now));
    current.finished_at = None;
    current.output = None;
    // A step that undoes was given the key of the one it undoes.
    current.effect_key.get_or_insert(key);
    Ok(moved)
}

fn look(job: &Job, step: usize, found: FirstLook, now: Timestamp) -> Result<Moved, Refusal> {
    ensure_under_way(job, step)?;
    let mut moved = moved(job, JobMove::Look, now)?;
    moved.job.steps[step].first_look.get_or_insert(found);
    moved.reason = Some(found.as_str().to_owned());
    Ok(moved)
}

fn ensure_under_way(job: &Job, step: usize) -> Result<(), Refusal> {
    if job.current_step() == Some(step) && job.steps[step].status == StepStatus::Running {
        return Ok(());
    }
    Err(Refusal::OutOfOrder)
}

fn advance(job: &Job, step: usize, output: &Value, now: Timestamp) -> Result<Moved, Refusal> {
    ensure_under_way(job, step)?;
    if output.to_string().len() > MAX_OUTPUT_BYTES {
        let error = JobError::new(
            "OUTPUT_TOO_LARGE",
            format!("the output of a step may have {MAX_OUTPUT_BYTES} bytes"),
        );
        return stop(job, JobMove::Fail, FailureKind::PermanentError, error, now);
    }
    let last = job.step_after(step).is_none();
    let name = if last {
        JobMove::Complete
    } else {
        JobMove::Advance
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
) -> Result<Moved, Refusal> {
    match failure {
        Failure::Permanent(error) => {
            let mut job = job.clone();
            count_attempt(&mut job, Some(error));
            stop(
                &job,
                JobMove::Fail,
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
                return stop(&job, JobMove::Exhaust, kind, error.clone(), now);
            }
            let mut moved = moved(&job, JobMove::BackOff, now)?;
            moved.job.run_at = retry_at(now, job.attempts, *retry_after, entropy);
            moved.job.error = Some(error.clone());
            moved.reason = Some(error.code.clone());
            set_running_step(&mut moved.job, left_as(*unknown));
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
    name: JobMove,
    kind: FailureKind,
    error: JobError,
    now: Timestamp,
) -> Result<Moved, Refusal> {
    let mut moved = moved(job, name, now)?;
    moved.job.failure_kind = Some(kind);
    moved.reason = Some(error.code.clone());
    let left = match name {
        JobMove::Exhaust | JobMove::Fail => StepStatus::Failed,
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
    let mut moved = moved(job, JobMove::Wake, now)?;
    if !signalled && job.run_at > now {
        return Err(Refusal::NotDue);
    }
    moved.job.run_at = now;
    moved.lane_place = Some(place_after_wait(job));
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
            JobMove::ReapLast,
            FailureKind::WorkerLost,
            error,
            now,
        );
    }
    let mut moved = moved(&counted, JobMove::Reap, now)?;
    moved.job.run_at = retry_at(now, counted.attempts, Duration::ZERO, entropy);
    moved.job.error = Some(error);
    set_running_step(&mut moved.job, StepStatus::Abandoned);
    Ok(moved)
}

fn deadline(job: &Job, now: Timestamp) -> Result<Moved, Refusal> {
    let error = JobError::new("DEADLINE_EXCEEDED", "the job was not done in time");
    let moved = stop(
        job,
        JobMove::Deadline,
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
fn resume(job: &Job, name: JobMove, now: Timestamp) -> Result<Moved, Refusal> {
    let mut moved = moved(job, name, now)?;
    let next = &mut moved.job;
    next.attempts = 0;
    next.lost_leases = 0;
    next.failure_kind = None;
    next.reason = None;
    next.run_at = earliest(job, now);
    next.deadline_at = now.plus(DEADLINE);
    next.replay_count += i64::from(name == JobMove::Replay);
    if let Some(step) = next.current_step() {
        let step = &mut next.steps[step];
        step.attempts = 0;
        step.finished_at = None;
        if step.status == StepStatus::Failed {
            step.status = StepStatus::Pending;
        }
    }
    moved.lane_place = Some(LanePlace::AsNew);
    Ok(moved)
}

fn reschedule(job: &Job, now: Timestamp) -> Result<Moved, Refusal> {
    let mut moved = moved(job, JobMove::Reschedule, now).map_err(|refusal| match refusal {
        // Who asks for a retry is told where a retry goes on from as well.
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

/// Behind what came meanwhile; undoing before it, for that may make the same objects again.
fn place_after_wait(job: &Job) -> LanePlace {
    if job.is_undo() {
        LanePlace::Front
    } else {
        LanePlace::Tail
    }
}

/// Now; for undoing that has not begun not before what it is to find has landed.
fn earliest(job: &Job, now: Timestamp) -> Timestamp {
    if job.is_undo() && job.started_at.is_none() {
        job.run_at.max(now)
    } else {
        now
    }
}

fn cancel(job: &Job, reason: &str, now: Timestamp) -> Result<Moved, Refusal> {
    let error = JobError::new("CANCELLED", reason);
    let mut moved = stop(job, JobMove::Cancel, FailureKind::Cancelled, error, now)?;
    moved.job.reason = Some(reason.to_owned());
    moved.reason = Some(reason.to_owned());
    // A step that waits or was tried before may have done a part of its work.
    for step in &mut moved.job.steps {
        if step.status == StepStatus::Pending && step.started_at.is_some() {
            step.status = StepStatus::Abandoned;
            step.finished_at = Some(now);
        }
    }
    Ok(moved)
}

/// Marks a step of a cancelled job as undone. A retry of the job observes the step again.
fn undo(job: &Job, step: &str, left: Option<&str>, now: Timestamp) -> Result<Moved, Refusal> {
    let mut moved = moved_by_undoing(job, step, JobMove::Undo, now)?;
    let undone = being_undone(&mut moved.job, step)?;
    undone.status = StepStatus::Undone;
    undone.started_at = None;
    undone.attempts = 0;
    undone.error = None;
    undone.first_look = None;
    moved.reason = left.map(|why| format!("left: {why}"));
    Ok(moved)
}

/// Sets a step of a cancelled job to `ABANDONED`: its undo stopped midway.
fn stop_undo(job: &Job, step: &str, now: Timestamp) -> Result<Moved, Refusal> {
    let mut moved = moved_by_undoing(job, step, JobMove::StopUndo, now)?;
    being_undone(&mut moved.job, step)?.status = StepStatus::Abandoned;
    Ok(moved)
}

fn moved_by_undoing(
    job: &Job,
    step: &str,
    name: JobMove,
    now: Timestamp,
) -> Result<Moved, Refusal> {
    let mut moved = moved(job, name, now)?;
    // It ended when it was cancelled.
    moved.job.finished_at = job.finished_at;
    moved.step = Some(step.to_owned());
    Ok(moved)
}

fn being_undone<'j>(job: &'j mut Job, step: &str) -> Result<&'j mut Step, Refusal> {
    let mut steps = job.steps.iter_mut();
    let undone = steps.find(|undone| undone.name == step && undone.status.may_have_happened());
    undone.ok_or(Refusal::OutOfOrder)
}

fn force_complete(job: &Job, now: Timestamp) -> Result<Moved, Refusal> {
    let mut moved = moved(job, JobMove::ForceComplete, now)?;
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
    complete(&mut moved.job);
    Ok(moved)
}

state_machine! {
    /// A move of a job, by its name in the history. A job is created `QUEUED`; a heartbeat is no move, it touches the lease
    /// alone.
    pub enum JobMove moves JobStatus {
        /// A worker takes the job.
        Claim = "job.claimed": [Queued] => Running;
        /// The intent to work on a step is stored.
        Start = "step.started": [Running] => Running;
        /// The first observation of a step is stored.
        Look = "step.looked": [Running] => Running;
        /// A step is done.
        Advance = "step.succeeded": [Running] => Running;
        /// The last step is done.
        Complete = "job.completed": [Running] => Completed;
        /// A part of a step is done, and it goes on with the rest.
        Progress = "step.progressed": [Running] => Queued;
        /// A step failed and will be tried again.
        BackOff = "step.failed": [Running] => Queued;
        /// A step failed as often as it may.
        Exhaust = "job.attempts_exhausted": [Running] => Failed;
        /// A step failed for good.
        Fail = "job.failed": [Running] => Failed;
        /// A step waits for the outside world.
        Wait = "job.waiting": [Running] => Waiting;
        /// The wait is over.
        Wake = "job.woken": [Waiting] => Queued;
        /// The worker stops and hands the job back.
        Release = "job.released": [Running] => Queued;
        /// The worker vanished.
        Reap = "job.lease_lost": [Running] => Queued;
        /// Workers vanish again and again.
        ReapLast = "job.worker_lost": [Running] => Failed;
        /// The job took too long.
        Deadline = "job.deadline_exceeded": [Queued, Waiting, Running] => Failed;
        /// An operator lets a failed job go on.
        Retry = "job.retried": [Failed] => Queued;
        /// An operator makes a queued or waiting job run now.
        Reschedule = "job.rescheduled": [Queued, Waiting] => Queued;
        /// An operator stops the job.
        Cancel = "job.cancelled": [Queued, Waiting, Running] => Failed;
        /// An operator declares the job done.
        ForceComplete = "job.force_completed": [Queued, Waiting, Running, Failed] => Completed;
        /// An operator replays the job from the dead-letter queue.
        Replay = "job.replayed": [Failed] => Queued;
        /// What a step of a cancelled job had done was taken back.
        Undo = "step.undone": [Failed] => Failed;
        /// The undoing of a step stopped midway: how far it came is not known.
        StopUndo = "step.undo_stopped": [Failed] => Failed;
    }
}

impl JobMove {
    /// Whether the fence moves, so that the holder is locked out: on every move but those of a holder that keeps the job.
    #[must_use]
    pub fn fences(self) -> bool {
        let row = self.of_event();
        !(row.from == [JobStatus::Running] && row.to == JobStatus::Running)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use crate::kernel::assert_only_table_moves;

    use super::*;

    proptest! {
        #[test]
        fn any_sequence_of_moves_makes_only_those_of_the_table(
            moves in prop::collection::vec(prop::sample::select(JobMove::ALL), 1..60),
        ) {
            assert_only_table_moves(JobStatus::Queued, &moves);
        }
    }

    #[test]
    fn completed_is_never_left_and_every_change_of_status_moves_the_fence() {
        for row in JobMove::MOVES {
            assert!(!row.from.contains(&JobStatus::Completed), "{row:?}");
            assert!(row.event.fences() || row.from == [row.to], "{row:?}");
        }
    }
}
