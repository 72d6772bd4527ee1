//! The states of the search: a job of two steps, the job that undoes it, their lane, two workers, and the provider's
//! objects.

use core_domain::kernel::{JobId, Machine, PlatformId, Timestamp};
use core_domain::provisioning::{
    Actor, FailureKind, FirstObservation, Job, JobLane, JobStatus, JobTransition, LaneKey,
    LanePlace, LaneState, MAX_ATTEMPTS, QueuedJob, Step, StepStatus, Transition, Trigger, apply,
    undo_triggers,
};
use core_domain::testing::SeededEntropy;
use serde_json::json;

pub(super) const STEPS: usize = 2;
pub(super) const WORKERS: usize = 2;
pub(super) const NOW: Timestamp = Timestamp::from_seconds(1_000);

/// Selects the working job, or the job that undoes it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Which {
    Work,
    Undo,
}

pub(super) const BOTH: [Which; 2] = [Which::Work, Which::Undo];

/// The progress of a worker with its current step.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Phase {
    Claimed,
    Intended,
    /// It has observed the object, and must create or remove it.
    Due,
    /// It has checked that it still holds the job.
    LeaseHeld,
    /// The effect has happened, and the worker knows it.
    Made,
    /// The outcome of the request is unknown.
    Unknown,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct Hold {
    pub(super) job: Which,
    /// The number of the undo job, since several can follow one another.
    pub(super) generation: u8,
    pub(super) fence: i64,
    pub(super) step: usize,
    pub(super) phase: Phase,
}

/// The faults, commands and holds that may still occur. It bounds the search.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct Budget {
    pub(super) expiries: u8,
    pub(super) faults: u8,
    pub(super) orders: u8,
    pub(super) holds: u8,
}

#[derive(Clone, Debug)]
pub(super) struct State {
    pub(super) jobs: [Option<Job>; 2],
    pub(super) generation: u8,
    pub(super) lane: JobLane,
    /// True if an operator holds the lane.
    pub(super) held: bool,
    /// True if the undo must wait until requests of former holders have arrived.
    pub(super) undo_waits: bool,
    pub(super) workers: [Option<Hold>; WORKERS],
    /// The worker that holds the running job. Only the search knows it, not the state machine.
    pub(super) holder: Option<usize>,
    /// The number of objects at the provider, by step.
    pub(super) made: [u8; STEPS],
    /// True if the object of the first step is older than the job.
    pub(super) older: bool,
    /// The job that a reaper has read and not yet written.
    pub(super) read_by_reaper: Option<(Which, Box<Job>)>,
    pub(super) left: Budget,
}

type JobKey = (
    JobStatus,
    i64,
    Vec<(StepStatus, bool, bool, Option<FirstObservation>)>,
    (i64, i64, Option<FailureKind>, bool),
);

type LaneKeyParts = (
    LaneState,
    Option<Which>,
    Vec<Option<Which>>,
    (bool, bool),
    bool,
);

pub(super) type Key = (
    [Option<JobKey>; 2],
    u8,
    LaneKeyParts,
    [Option<Hold>; WORKERS],
    Option<usize>,
    ([u8; STEPS], bool),
    Option<(Which, i64, usize)>,
    Budget,
);

/// The part of a job that distinguishes states. It contains no times.
fn job_key(job: &Job) -> JobKey {
    let step = |s: &Step| {
        let began = s.started_at.is_some();
        (s.status, s.output.is_some(), began, s.first_look)
    };
    (
        job.status,
        job.fence,
        job.steps.iter().map(step).collect(),
        (job.attempts, job.lost_leases, job.failure_kind, job.forced),
    )
}

impl State {
    pub(super) fn start(left: Budget, older: bool) -> Self {
        let mut job = new_job();
        let mut lane = JobLane::new(job.lane.clone());
        job.lane_position = lane.tail_position();
        lane.update_job(None, &job, NOW);
        lane.update_state(NOW);
        Self {
            jobs: [Some(job), None],
            generation: 0,
            lane,
            held: false,
            undo_waits: false,
            workers: [None; WORKERS],
            holder: None,
            made: [u8::from(older), 0],
            older,
            read_by_reaper: None,
            left,
        }
    }

    pub(super) fn job(&self, which: Which) -> Option<&Job> {
        self.jobs[which as usize].as_ref()
    }

    fn which(&self, id: &JobId) -> Option<Which> {
        let is = |which: &Which| self.job(*which).is_some_and(|job| job.id == *id);
        BOTH.into_iter().find(is)
    }

    pub(super) fn key(&self) -> Key {
        let which = |queued: &QueuedJob| self.which(&queued.job_id);
        let runs = self.lane.running_job_id.as_ref();
        let read = self.read_by_reaper.as_ref();
        (
            BOTH.map(|which| self.job(which).map(job_key)),
            self.generation,
            (
                self.lane.state,
                runs.and_then(|id| self.which(id)),
                self.lane.cached_jobs.iter().map(which).collect(),
                (self.held, self.lane.is_held()),
                self.undo_waits,
            ),
            self.workers,
            self.holder,
            (self.made, self.older),
            read.map(|(which, job)| (*which, job.fence, job.current_step().unwrap_or(STEPS))),
            self.left,
        )
    }

    /// Returns the job that can be claimed now.
    pub(super) fn claimable(&self) -> Option<Which> {
        let head = self.lane.head()?;
        let which = self.which(&head.job_id)?;
        let under_way = |hold: &Hold| hold.job == Which::Work && hold.phase == Phase::LeaseHeld;
        let early =
            which == Which::Undo && self.undo_waits && self.workers.iter().flatten().any(under_way);
        (self.lane.state == LaneState::Ready && !early).then_some(which)
    }

    /// Returns the index of the object that a step of a job creates or removes.
    pub(super) fn object(&self, hold: Hold) -> usize {
        let job = self.job(hold.job);
        let name = job.and_then(|job| job.steps.get(hold.step));
        usize::from(name.is_some_and(|step| step.name == "b"))
    }

    /// Returns the state after a trigger, and checks the rules for every transition. `writer` is the worker that
    /// writes, if any.
    pub(super) fn apply_trigger(
        &self,
        which: Which,
        trigger: &Trigger,
        writer: Option<usize>,
    ) -> Result<Option<Self>, String> {
        let Some(job) = self.job(which) else {
            return Ok(None);
        };
        let at = match trigger {
            Trigger::Deadline => job.deadline_at.plus(std::time::Duration::from_secs(1)),
            _ => NOW,
        };
        match apply(job, trigger, at, &SeededEntropy::new(1)) {
            Ok(moved) => self.with(which, moved, writer).map(Some),
            Err(_) => Ok(None),
        }
    }

    pub(super) fn with(
        &self,
        which: Which,
        moved: Transition,
        writer: Option<usize>,
    ) -> Result<Self, String> {
        let before = self.job(which).ok_or("no such job")?;
        let mut job = moved.job;
        check_transition(before, &job)?;
        if writer.is_some() && before.status == JobStatus::Running && writer != self.holder {
            return Err(format!("I3 {writer:?} wrote, {:?} holds", self.holder));
        }
        // The search ignores times, so the job is always due.
        job.run_at = NOW;
        let mut next = self.clone();
        if let Some(place) = moved.lane_place {
            job.lane_position = next.lane.position_at(place);
        }
        next.holder = match (before.status, job.status) {
            (JobStatus::Queued, JobStatus::Running) => writer,
            (_, JobStatus::Running) => self.holder,
            (JobStatus::Running, _) => None,
            _ => self.holder,
        };
        next.lane.update_job(Some(before), &job, NOW);
        next.lane.update_state(NOW);
        next.jobs[which as usize] = Some(job);
        if which == Which::Undo {
            next.apply_undo_progress()?;
        }
        next.check()?;
        Ok(next)
    }

    /// Applies the progress of the undo job to the undone job.
    fn apply_undo_progress(&mut self) -> Result<(), String> {
        let [Some(work), Some(undo)] = &mut self.jobs else {
            return Ok(());
        };
        if work.status != JobStatus::Failed {
            return Ok(());
        }
        for trigger in undo_triggers(work, undo) {
            let moved = apply(work, &trigger, NOW, &SeededEntropy::new(1));
            let moved = moved.map_err(|refusal| format!("{trigger:?}: {refusal:?}"))?;
            if moved.job.fence <= work.fence || moved.job.status != work.status {
                return Err(format!("I2 {trigger:?}"));
            }
            *work = moved.job;
        }
        Ok(())
    }

    /// Queues the job that undoes the cancelled one, at the front of the lane.
    pub(super) fn add_undo(&mut self, mut undo: Job, run_at: Timestamp) -> Result<(), String> {
        self.undo_waits = run_at > NOW;
        self.generation += 1;
        undo.id = JobId::parse(&format!("u{}", self.generation)).unwrap();
        undo.run_at = NOW;
        undo.lane_position = self.lane.position_at(LanePlace::Front);
        self.lane.update_job(None, &undo, NOW);
        self.lane.update_state(NOW);
        self.jobs[1] = Some(undo);
        self.check()
    }

    /// Checks the rules that hold in every state.
    pub(super) fn check(&self) -> Result<(), String> {
        let running = self.jobs.iter().flatten();
        let running: Vec<_> = running
            .filter(|job| job.status == JobStatus::Running)
            .collect();
        if running.len() > 1 {
            return Err("I4 two jobs of a lane are running".to_owned());
        }
        let Some(work) = self.job(Which::Work) else {
            return Err("I5 the job was lost".to_owned());
        };
        if self.older && self.made[0] == 0 {
            return Err("U3 an object that is older than the job was removed".to_owned());
        }
        let undone = |at: &usize| work.steps[*at].status == StepStatus::Undone;
        let own = |at: &usize| self.made[*at] > 0 && !(self.older && *at == 0);
        if let Some(at) = (0..STEPS).filter(undone).find(own) {
            return Err(format!("U1 step {at} is undone but its object exists"));
        }
        let undoing = self
            .job(Which::Undo)
            .is_some_and(|undo| !undo.status.is_terminal());
        if undoing && work.status != JobStatus::Failed {
            return Err(format!("U2 {:?} while it is being undone", work.status));
        }
        if work.status == JobStatus::Completed && !work.forced {
            let all = work.steps.iter().all(|s| s.status == StepStatus::Succeeded);
            if !all || self.made.contains(&0) {
                return Err(format!("I9 {work:?} with {:?}", self.made));
            }
        }
        Ok(())
    }
}

/// Checks the rules for every transition of a job.
fn check_transition(before: &Job, job: &Job) -> Result<(), String> {
    let known = JobTransition::TRANSITIONS
        .iter()
        .any(|row| row.from.contains(&before.status) && row.to == job.status);
    if !known || before.status == JobStatus::Completed {
        return Err(format!("I1 {:?} to {:?}", before.status, job.status));
    }
    let stays = before.status == JobStatus::Running && job.status == JobStatus::Running;
    if job.fence < before.fence || (!stays && job.fence == before.fence) {
        return Err(format!("I2 {} to {}", before.fence, job.fence));
    }
    for (old, new) in before.steps.iter().zip(&job.steps) {
        let done = old.status == StepStatus::Succeeded;
        if done && (new.status != old.status || new.output != old.output) {
            return Err(format!("I7 {old:?} became {new:?}"));
        }
    }
    if job.status.is_terminal() != job.finished_at.is_some() {
        return Err(format!("I19 {job:?}"));
    }
    if job.attempts > MAX_ATTEMPTS {
        return Err(format!("I13 {job:?}"));
    }
    Ok(())
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
