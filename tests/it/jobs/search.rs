//! The state machine searched to its end: one job of two steps, two workers, a lease that may end at any time, requests
//! whose outcome is not known, an operator. Every order of events is tried; nothing is random. What is searched is the
//! machine itself ([`apply`]), not a copy of it; what is broken on purpose is found.

use std::collections::{HashSet, VecDeque};

use core_domain::kernel::{JobId, Machine, PlatformId, Timestamp};
use core_domain::provisioning::{
    Actor, Failure, FailureKind, Job, JobError, JobMove, JobStatus, LaneKey, MAX_ATTEMPTS, Report,
    Step, StepStatus, Trigger, apply,
};
use core_domain::testing::SeededEntropy;
use serde_json::json;

const STEPS: usize = 2;
const WORKERS: usize = 2;
const NOW: Timestamp = Timestamp::from_seconds(1_000);

/// What is broken on purpose.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Mutant {
    None,
    /// A worker may write whatever the fence is by now.
    NoFence,
    /// The provider cannot tell a repeated request from a new one.
    NoKey,
    /// The reaper writes what it made of the job it read before.
    BlindReap,
    /// The reaper does not look whether the job still runs.
    ReapIgnoresStatus,
}

/// How far a worker is with the step it works on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Phase {
    Claimed,
    Intended,
    /// It has looked and found nothing.
    Absent,
    /// It has asked whether the job is still its own.
    LeaseHeld,
    /// The effect has happened, and it knows.
    Made,
    /// It does not know whether the effect has happened.
    Unknown,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct Hold {
    fence: i64,
    step: usize,
    phase: Phase,
}

/// What may still go wrong or be ordered; what bounds the search.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct Budget {
    expiries: u8,
    faults: u8,
    orders: u8,
}

#[derive(Clone, Debug)]
struct State {
    job: Job,
    workers: [Option<Hold>; WORKERS],
    /// Whose the job is: known to the search alone, not to the machine.
    holder: Option<usize>,
    /// Objects at the provider, by step.
    made: [u8; STEPS],
    /// What a reaper has read and not written yet.
    read_by_reaper: Option<Box<Job>>,
    left: Budget,
}

type Key = (
    JobStatus,
    i64,
    Vec<(StepStatus, bool)>,
    (i64, i64, Option<FailureKind>, bool),
    [Option<Hold>; WORKERS],
    Option<usize>,
    [u8; STEPS],
    Option<(i64, usize)>,
    Budget,
);

impl State {
    fn start() -> Self {
        Self {
            job: new_job(),
            workers: [None; WORKERS],
            holder: None,
            made: [0; STEPS],
            read_by_reaper: None,
            left: Budget {
                expiries: 2,
                faults: 1,
                orders: 2,
            },
        }
    }

    /// What tells two states apart; time is no part of it.
    fn key(&self) -> Key {
        let job = &self.job;
        let steps = job.steps.iter();
        (
            job.status,
            job.fence,
            steps.map(|s| (s.status, s.output.is_some())).collect(),
            (job.attempts, job.lost_leases, job.failure_kind, job.forced),
            self.workers,
            self.holder,
            self.made,
            self.read_by_reaper
                .as_ref()
                .map(|job| (job.fence, job.current_step().unwrap_or(STEPS))),
            self.left,
        )
    }

    /// The job after a trigger, with what must hold of every move. `writer` is the worker who writes, if one does.
    fn moved(&self, trigger: &Trigger, writer: Option<usize>) -> Result<Option<Self>, String> {
        let at = match trigger {
            Trigger::Deadline => self.job.deadline_at.plus(std::time::Duration::from_secs(1)),
            _ => NOW,
        };
        match apply(&self.job, trigger, at, &SeededEntropy::new(1)) {
            Ok(moved) => self.with(moved.job, writer).map(Some),
            Err(_) => Ok(None),
        }
    }

    fn with(&self, mut job: Job, writer: Option<usize>) -> Result<Self, String> {
        let before = &self.job;
        let known = JobMove::MOVES
            .iter()
            .any(|row| row.from.contains(&before.status) && row.to == job.status);
        if !known || before.status == JobStatus::Completed {
            return Err(format!("I1 {:?} to {:?}", before.status, job.status));
        }
        let stays = before.status == JobStatus::Running && job.status == JobStatus::Running;
        if job.fence < before.fence || (!stays && job.fence == before.fence) {
            return Err(format!("I2 {} to {}", before.fence, job.fence));
        }
        if writer.is_some() && before.status == JobStatus::Running && writer != self.holder {
            return Err(format!("I3 {writer:?} wrote, {:?} holds", self.holder));
        }
        for (old, new) in before.steps.iter().zip(&job.steps) {
            let done = old.status == StepStatus::Succeeded;
            if done && (new.status != old.status || new.output != old.output) {
                return Err(format!("I7 {old:?} became {new:?}"));
            }
        }
        if job.status == JobStatus::Completed && !job.forced {
            let all = job.steps.iter().all(|s| s.status == StepStatus::Succeeded);
            if !all || self.made.contains(&0) {
                return Err(format!("I9 {job:?} with {:?}", self.made));
            }
        }
        if job.status.is_terminal() != job.finished_at.is_some() {
            return Err(format!("I19 {job:?}"));
        }
        if job.attempts > MAX_ATTEMPTS {
            return Err(format!("I13 {job:?}"));
        }
        // Whenever it may be claimed, it is time.
        job.run_at = NOW;
        let mut next = self.clone();
        next.holder = match (before.status, job.status) {
            (JobStatus::Queued, JobStatus::Running) => writer,
            (_, JobStatus::Running) => self.holder,
            _ => None,
        };
        next.job = job;
        Ok(next)
    }
}

fn new_job() -> Job {
    let platform = PlatformId::parse("p").unwrap();
    Job {
        id: JobId::parse("j").unwrap(),
        kind: "work".into(),
        definition_version: 1,
        lane: LaneKey::platform(&platform),
        platform_id: Some(platform),
        entity_id: None,
        environment: None,
        lane_position: 1,
        priority: 0,
        status: JobStatus::Queued,
        reason: None,
        failure_kind: None,
        error: None,
        input: json!({}),
        output: None,
        steps: vec![Step::new("a"), Step::new("b")],
        attempts: 0,
        max_attempts: MAX_ATTEMPTS,
        lost_leases: 0,
        run_at: NOW,
        deadline_at: NOW,
        waiting_for: None,
        forced: false,
        replay_count: 0,
        dlq_entry_id: None,
        parent_job_id: None,
        idempotency_key: None,
        request_id: String::new(),
        trace_id: None,
        created_by: Actor::system(),
        fence: 0,
        event_count: 1,
        created_at: NOW,
        started_at: None,
        finished_at: None,
        updated_at: NOW,
    }
}

/// Everything that can happen next.
fn nexts(state: &State, mutant: Mutant) -> Result<Vec<State>, String> {
    let mut all = Vec::new();
    for worker in 0..WORKERS {
        match state.workers[worker] {
            None => claims(state, worker, &mut all)?,
            Some(hold) => works(state, worker, hold, mutant, &mut all)?,
        }
    }
    reaps(state, mutant, &mut all)?;
    orders(state, &mut all)?;
    Ok(all)
}

fn claims(state: &State, worker: usize, all: &mut Vec<State>) -> Result<(), String> {
    if let Some(mut next) = state.moved(&Trigger::Claim, Some(worker))? {
        next.workers[worker] = Some(Hold {
            fence: next.job.fence,
            step: next.job.current_step().unwrap_or(STEPS),
            phase: Phase::Claimed,
        });
        // The intent is stored by itself, or in the same unit.
        let begin = Trigger::Work(next.job.fence, Report::Start(hold_step(&next)));
        if let Some(mut begun) = next.moved(&begin, Some(worker))? {
            begun.workers[worker] = next.workers[worker].map(|hold| Hold {
                phase: Phase::Intended,
                ..hold
            });
            all.push(begun);
        }
        all.push(next);
    }
    Ok(())
}

fn hold_step(state: &State) -> usize {
    state.job.current_step().unwrap_or(STEPS)
}

/// A worker goes on, fails, waits, hands back; it may also die, which is to do nothing any more.
fn works(
    state: &State,
    worker: usize,
    hold: Hold,
    mutant: Mutant,
    all: &mut Vec<State>,
) -> Result<(), String> {
    let into = |phase: Phase| {
        let mut next = state.clone();
        next.workers[worker] = Some(Hold { phase, ..hold });
        next
    };
    let gone = || {
        let mut next = state.clone();
        next.workers[worker] = None;
        next
    };
    let fence = if mutant == Mutant::NoFence {
        state.job.fence
    } else {
        hold.fence
    };
    let owned = state.job.status == JobStatus::Running && state.job.fence == fence;
    // Reports, and goes on with the step `after` and this phase, if it still holds the job then.
    let mut report = |what: Report, after: usize, phase: Phase| -> Result<(), String> {
        let mut next = match state.moved(&Trigger::Work(fence, what), Some(worker))? {
            Some(next) => next,
            None => gone(),
        };
        let holds = next.job.status == JobStatus::Running && owned;
        next.workers[worker] = holds.then_some(Hold {
            step: after,
            phase,
            ..hold
        });
        all.push(next);
        Ok(())
    };
    match hold.phase {
        Phase::Claimed if hold.step == STEPS => report(Report::Complete, STEPS, Phase::Claimed)?,
        Phase::Claimed => {
            report(Report::Start(hold.step), hold.step, Phase::Intended)?;
            release(state, worker, fence, all)?;
        }
        Phase::Intended => {
            let there = state.made[hold.step] > 0;
            all.push(into(if there { Phase::Made } else { Phase::Absent }));
        }
        Phase::Absent if owned => all.push(into(Phase::LeaseHeld)),
        Phase::Absent => all.push(gone()),
        Phase::LeaseHeld => {
            let mut made = into(Phase::Made);
            let repeated = made.made[hold.step] > 0 && mutant != Mutant::NoKey;
            made.made[hold.step] += u8::from(!repeated);
            if made.made[hold.step] > 1 {
                return Err(format!("I8 step {} has two objects", hold.step));
            }
            if state.left.faults > 0 {
                // The answer is lost; or the request was.
                let mut lost = made.clone();
                lost.left.faults -= 1;
                lost.workers[worker] = Some(Hold {
                    phase: Phase::Unknown,
                    ..hold
                });
                all.push(lost);
                let mut failed = into(Phase::Unknown);
                failed.left.faults -= 1;
                all.push(failed);
            }
            all.push(made);
        }
        Phase::Made => {
            let output = json!({ "id": hold.step });
            report(
                Report::Advance(hold.step, output.clone()),
                hold.step + 1,
                Phase::Claimed,
            )?;
            advance_and_start(state, worker, hold, fence, output, all)?;
        }
        Phase::Unknown => {
            let failure = |permanent: bool| {
                let error = JobError::new("LOST", "no answer");
                Report::Fail(if permanent {
                    Failure::Permanent(error)
                } else {
                    Failure::Transient {
                        error,
                        retry_after: std::time::Duration::ZERO,
                        unknown: true,
                    }
                })
            };
            report(failure(false), hold.step, Phase::Claimed)?;
            report(failure(true), hold.step, Phase::Claimed)?;
            let until = Report::Wait {
                until: NOW,
                reason: "a certificate".into(),
            };
            report(until, hold.step, Phase::Claimed)?;
        }
    }
    Ok(())
}

/// The end of a step and the intent to begin the next one, in one unit.
fn advance_and_start(
    state: &State,
    worker: usize,
    hold: Hold,
    fence: i64,
    output: serde_json::Value,
    all: &mut Vec<State>,
) -> Result<(), String> {
    let step = hold.step + 1;
    let advance = Trigger::Work(fence, Report::Advance(hold.step, output));
    let Some(next) = state.moved(&advance, Some(worker))? else {
        return Ok(());
    };
    let start = Trigger::Work(fence, Report::Start(step));
    if let Some(mut next) = next.moved(&start, Some(worker))? {
        next.workers[worker] = Some(Hold {
            step,
            phase: Phase::Intended,
            ..hold
        });
        all.push(next);
    }
    Ok(())
}

/// The process stops and hands the job back.
fn release(state: &State, worker: usize, fence: i64, all: &mut Vec<State>) -> Result<(), String> {
    if state.left.faults == 0 {
        return Ok(());
    }
    let trigger = Trigger::Work(fence, Report::Release { begun: true });
    let mut next = state
        .moved(&trigger, Some(worker))?
        .unwrap_or_else(|| state.clone());
    next.workers[worker] = None;
    next.left.faults -= 1;
    all.push(next);
    Ok(())
}

/// The lease ends, at any time: whoever holds the job does not know yet.
fn reaps(state: &State, mutant: Mutant, all: &mut Vec<State>) -> Result<(), String> {
    if mutant == Mutant::BlindReap {
        return blind_reaps(state, all);
    }
    if state.left.expiries == 0 {
        return Ok(());
    }
    let mut seen = state.clone();
    if mutant == Mutant::ReapIgnoresStatus {
        seen.job.status = JobStatus::Running;
    }
    if let Ok(moved) = apply(&seen.job, &Trigger::Reap, NOW, &SeededEntropy::new(1)) {
        let mut next = state.with(moved.job, None)?;
        next.left.expiries -= 1;
        all.push(next);
    }
    Ok(())
}

fn blind_reaps(state: &State, all: &mut Vec<State>) -> Result<(), String> {
    if let Some(read) = &state.read_by_reaper {
        if let Ok(moved) = apply(read, &Trigger::Reap, NOW, &SeededEntropy::new(1)) {
            let mut next = state.with(moved.job, None)?;
            next.read_by_reaper = None;
            all.push(next);
        }
    } else if state.left.expiries > 0 && state.job.status == JobStatus::Running {
        let mut next = state.clone();
        next.left.expiries -= 1;
        next.read_by_reaper = Some(Box::new(state.job.clone()));
        all.push(next);
    }
    Ok(())
}

/// What operators and time do.
fn orders(state: &State, all: &mut Vec<State>) -> Result<(), String> {
    let wake = Trigger::Wake { signalled: false };
    all.extend(state.moved(&wake, None)?);
    if state.left.orders == 0 {
        return Ok(());
    }
    let reason = "because".to_owned();
    for trigger in [
        Trigger::Retry,
        Trigger::Replay,
        Trigger::ForceComplete,
        Trigger::Cancel { reason },
        Trigger::Deadline,
    ] {
        if let Some(mut next) = state.moved(&trigger, None)? {
            next.left.orders -= 1;
            all.push(next);
        }
    }
    Ok(())
}

/// How many states there are; or what is broken in the first one that is, and after how many events.
fn search(mutant: Mutant) -> Result<usize, (usize, String)> {
    let start = State::start();
    let mut seen = HashSet::from([start.key()]);
    let mut queue = VecDeque::from([(0, start)]);
    while let Some((depth, state)) = queue.pop_front() {
        let nexts = nexts(&state, mutant).map_err(|broken| (depth + 1, broken))?;
        assert!(seen.len() < 2_000_000, "the search has no end");
        for next in nexts {
            if seen.insert(next.key()) {
                queue.push_back((depth + 1, next));
            }
        }
    }
    Ok(seen.len())
}

#[test]
fn no_order_of_events_breaks_an_invariant() {
    let states = search(Mutant::None).unwrap();
    assert!(states > 100_000, "{states} states");
}

#[track_caller]
fn is_found(mutant: Mutant, invariant: &str) {
    let (depth, broken) = search(mutant).unwrap_err();
    assert!(broken.starts_with(invariant), "{mutant:?}: {broken}");
    assert!(depth <= 12, "{mutant:?} after {depth} events");
}

#[test]
fn a_machine_without_fences_is_found_out() {
    is_found(Mutant::NoFence, "I3");
}

#[test]
fn requests_without_keys_are_found_out() {
    is_found(Mutant::NoKey, "I8");
}

#[test]
fn a_reaper_that_reads_and_then_writes_is_found_out() {
    is_found(Mutant::BlindReap, "I");
}

#[test]
fn a_reaper_that_ignores_a_cancel_is_found_out() {
    is_found(Mutant::ReapIgnoresStatus, "I1");
}
