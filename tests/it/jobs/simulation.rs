//! The whole engine in a deterministic simulation: workers, timers and operator take turns as a seed says, workers die
//! between any two turns, time passes or is set back, the provider's requests come late, twice or never, and calls of the store fail,
//! commits before or after they happened. The same seed is the same run.

use std::collections::BTreeMap;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Waker};

use core_domain::access::RecordKey;
use core_domain::kernel::{Clock, JobId, Stored, Timestamp};
use core_domain::port::{CreateResource, Infrastructure, Mode, ResourceRef, Store, Within};
use core_domain::provisioning::{
    FailureKind, Job, JobEvent, JobEventQuery, JobStatus, Report, StepStatus, effect_key,
};
use core_domain::registry::ResourceType;
use core_domain::use_case::provisioning::{Claimed, LeaseState, Unsupervised, Worker};
use core_storage::fault::FaultStore;
use serde_json::{Value, json};

use super::audit::{invariants_hold, written_by_holders};
use crate::world::{
    Command, Engine, FakeProvider, Plain, PoliteStore, Rng, STEPS, Work, find, list, now,
};

/// What is broken on purpose, to see that it is found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Mutant {
    None,
    /// Workers write without asking whether the job is still theirs.
    NoFence,
    /// The provider is sent a new key with every request.
    NoKey,
}

const WORKERS: usize = 3;
const TURNS: usize = 500;

type Actor = Pin<Box<dyn Future<Output = ()>>>;

struct Simulation {
    world: Arc<Engine>,
    /// The same rows, without faults.
    view: Arc<dyn Store>,
    faults: FaultStore,
    rng: Rng,
    mutant: Mutant,
    /// Whether everything works from now on.
    settles: bool,
    /// Every id that a creation has answered.
    jobs: Vec<JobId>,
    /// What was done once, by job and step.
    done: BTreeMap<(JobId, usize), Value>,
}

impl Simulation {
    fn new(seed: u64, mutant: Mutant) -> Self {
        let rng = Rng::new(seed);
        let provider = FakeProvider::random(rng.clone(), mutant != Mutant::NoKey);
        let (mut world, faults, view) = Engine::faulty(provider);
        world.store = Arc::new(PoliteStore {
            inner: Arc::clone(&world.store),
            rng: rng.clone(),
        });
        faults.inject_random(seed, 120);
        Self {
            world: Arc::new(world),
            view,
            faults,
            rng,
            mutant,
            settles: false,
            jobs: Vec::new(),
            done: BTreeMap::new(),
        }
    }

    /// A process with a worker that never ends by itself.
    fn worker(&self) -> Actor {
        let (world, rng) = (Arc::clone(&self.world), self.rng.clone());
        let worker = world.worker();
        let fenced = self.mutant != Mutant::NoFence;
        Box::pin(async move {
            loop {
                if fenced {
                    // A store that fails ends the work on the job; the job comes back when its lease ends.
                    let _ = worker.run_one(&Unsupervised).await;
                } else if let Ok(claimed) = worker.claim(1).await
                    && let Some(claimed) = claimed.first()
                {
                    run_without_fence(&world, &worker, claimed).await;
                }
                rng.pause(1).await;
                tokio::task::yield_now().await;
            }
        })
    }

    fn timers(&self) -> Actor {
        let worker = self.world.worker();
        Box::pin(async move {
            loop {
                let _ = worker.run_timers().await;
                tokio::task::yield_now().await;
            }
        })
    }

    fn create(&mut self, lane: usize) {
        let queued = match self.rng.below(2) {
            0 => now(self.world.enqueue::<Work>(lane, None)),
            _ => now(self.world.enqueue::<Plain>(lane, None)),
        };
        self.jobs.extend(queued.ok());
    }

    fn operate(&self, at: usize, command: Command) {
        if let Some(id) = self.jobs.get(at % self.jobs.len().max(1)) {
            // Refused when the job stands elsewhere, unknown when the store fails: both are fine.
            let _ = now(self.world.operate(command, id));
        }
    }

    /// Up to a minute and a half, as a clock that was corrected.
    fn set_clock_back(&self) {
        if self.settles || self.rng.below(3) > 0 {
            return;
        }
        let by = self.rng.below(90_000) as i64;
        let now = self.world.clock.now().millis();
        self.world.clock.set(Timestamp::from_millis(now - by));
    }

    /// One turn of somebody.
    fn turn(&mut self, workers: &mut [Actor], timers: &mut Actor) {
        let mut cx = Context::from_waker(Waker::noop());
        match self.rng.below(100) {
            0..=1 => {
                // A process dies, and another one is started.
                let at = self.rng.below(WORKERS);
                workers[at] = self.worker();
            }
            2..=4 => self.world.tick(self.rng.below(5) as u64),
            5 => self.world.tick(31 + self.rng.below(60) as u64),
            6 => self.set_clock_back(),
            7..=9 => self.world.provider.deliver_one(),
            10 if self.jobs.len() < 6 => self.create(self.rng.below(2)),
            11 => self.operate(self.rng.below(6), Command::Cancel),
            12..=14 => self.operate(self.rng.below(6), Command::Retry),
            15..=20 => drop(timers.as_mut().poll(&mut cx)),
            turn => drop(workers[turn % WORKERS].as_mut().poll(&mut cx)),
        }
    }

    fn run(&mut self) -> Result<(), String> {
        let mut workers: Vec<Actor> = (0..WORKERS).map(|_| self.worker()).collect();
        let mut timers = self.timers();
        self.create(0);
        self.create(1);
        for turn in 0..TURNS {
            self.turn(&mut workers, &mut timers);
            if turn % 20 == 0 {
                self.check()?;
            }
        }
        self.faults.inject_random(0, 0);
        self.world.provider.calm_down();
        self.settles = true;
        for _ in 0..2_000 {
            self.turn(&mut workers, &mut timers);
            self.world.tick(1);
        }
        // Nobody is in the middle of anything any more: the processes end, and what they held comes back.
        drop(workers);
        self.world.provider.deliver_all();
        self.check()?;
        self.finish();
        self.check()?;
        self.check_ends()
    }

    /// Works off what is left, in peace.
    fn finish(&self) {
        let worker = self.world.worker();
        for _ in 0..80 {
            let _ = now(worker.run_timers());
            let _ = now(worker.run_one(&Unsupervised));
            self.world.tick(40);
        }
    }

    /// I2, I3, I5, I7, I8 at any time.
    fn check(&mut self) -> Result<(), String> {
        self.world.provider.made_once()?;
        let mut uow = now(self.view.begin(Mode::Read)).unwrap();
        for id in &self.jobs {
            let Some(job) = now(find::<Job>(uow.as_mut(), id)) else {
                return Err(format!("I5 {id} has disappeared"));
            };
            stays_done(&job, &mut self.done)?;
            let history = JobEventQuery::After(id.clone(), 0);
            let events: Vec<JobEvent> = now(list(uow.as_mut(), history));
            written_by_holders(&events)?;
            fences_grow(&events)?;
        }
        Ok(())
    }

    /// I5 and I9, when there is nothing left to do.
    fn check_ends(&self) -> Result<(), String> {
        let mut uow = now(self.view.begin(Mode::Read)).unwrap();
        let made = self.world.provider.names();
        for id in &self.jobs {
            let job: Job = now(find(uow.as_mut(), id)).unwrap();
            let stopped =
                |kind: FailureKind| kind == FailureKind::Cancelled || kind.opens_dlq_entry();
            match job.status {
                JobStatus::Completed => {
                    let all = job.steps.iter().all(|s| s.status == StepStatus::Succeeded);
                    let there = |step| made.contains(&format!("{id}-{step}"));
                    if !all || !STEPS.iter().all(there) {
                        return Err(format!("I9 {job:?}"));
                    }
                }
                JobStatus::Failed if job.failure_kind.is_some_and(stopped) => {}
                _ => return Err(format!("I5 does not end: {job:?}")),
            }
        }
        now(invariants_hold(&self.world));
        Ok(())
    }
}

/// I7: what was done once stays done, with the same output.
fn stays_done(job: &Job, done: &mut BTreeMap<(JobId, usize), Value>) -> Result<(), String> {
    for (at, step) in job.steps.iter().enumerate() {
        let key = (job.id.clone(), at);
        let succeeded = step.status == StepStatus::Succeeded;
        let output = step.output.clone().unwrap_or_default();
        match done.get(&key) {
            None if succeeded => drop(done.insert(key, output)),
            Some(before) if !succeeded || *before != output => {
                return Err(format!("I7 step {at} was done: {job:?}"));
            }
            _ => {}
        }
    }
    Ok(())
}

fn fences_grow(events: &[JobEvent]) -> Result<(), String> {
    for pair in events.windows(2) {
        let moved = pair[1].from_status != Some(pair[1].to_status);
        let grows = pair[1].fence > pair[0].fence;
        if pair[1].fence < pair[0].fence || (moved && !grows) {
            return Err(format!("I2 {pair:?}"));
        }
    }
    Ok(())
}

/// A worker as it would be without fences: whatever fence the job has now is good enough.
async fn run_without_fence(world: &Engine, worker: &Worker, claimed: &Claimed) {
    while let Some((step, name)) = open_step(world, &claimed.job_id).await {
        if !write_without_fence(world, worker, claimed, Report::Start(step)).await {
            return;
        }
        let resource = ResourceRef {
            resource_type: ResourceType::D1,
            name: format!("{}-{name}", claimed.job_id),
        };
        let there = world.provider.observe(&resource).await;
        if matches!(there, Ok(None)) {
            let request = CreateResource {
                resource,
                owner: "test".into(),
                effect_key: effect_key(&claimed.job_id, name),
                config: json!({}),
            };
            if world.provider.create(&request).await.is_err() {
                return;
            }
        }
        let output = json!({ "by": worker.owner() });
        if !write_without_fence(world, worker, claimed, Report::Advance(step, output)).await {
            return;
        }
    }
}

async fn read(world: &Engine, id: &JobId) -> Option<Job> {
    let mut uow = world.store.begin(Mode::Read).await.ok()?;
    let jobs = uow.repositories(RecordKey::for_tests()).jobs();
    let found = jobs.get(Within::Installation, id.as_str()).await;
    found.ok()?.map(Stored::into_inner)
}

async fn open_step(world: &Engine, id: &JobId) -> Option<(usize, &'static str)> {
    let job = read(world, id).await?;
    let step = job.current_step()?;
    (job.status == JobStatus::Running).then(|| (step, STEPS[step]))
}

async fn write_without_fence(
    world: &Engine,
    worker: &Worker,
    claimed: &Claimed,
    what: Report,
) -> bool {
    let Some(job) = read(world, &claimed.job_id).await else {
        return false;
    };
    let current = Claimed {
        fence: job.fence,
        ..claimed.clone()
    };
    let outcome = worker.report(&current, what).await;
    matches!(outcome, Ok(LeaseState::Held(_)))
}

/// How many seeds are tried; more when the tests are built with `JOB_SEEDS=5000`.
const SEEDS: u64 = 60;

#[test]
fn no_seed_breaks_an_invariant() {
    let asked = option_env!("JOB_SEEDS").and_then(|n| n.parse().ok());
    let seeds = asked.unwrap_or(SEEDS);
    let (mut mishaps, mut completed, mut lost) = (0, 0, 0);
    for seed in 0..seeds {
        let mut simulation = Simulation::new(seed, Mutant::None);
        let outcome = simulation.run();
        assert_eq!(outcome, Ok(()), "seed {seed}");
        mishaps += simulation.world.provider.mishaps() as u64;
        for job in now(simulation.world.jobs()) {
            completed += u64::from(job.status == JobStatus::Completed);
            lost += u64::from(job.lost_leases > 0);
        }
    }
    // The runs were worth it: much went wrong, and most jobs were done all the same.
    assert!(mishaps > 2 * seeds, "{mishaps} requests went astray");
    assert!(lost > seeds / 4, "{lost} jobs lost their worker");
    assert!(completed > seeds, "{completed} jobs were done");
}

/// The first seed that shows what is broken.
fn found(mutant: Mutant) -> Option<(u64, String)> {
    (0..SEEDS).find_map(|seed| {
        let outcome = Simulation::new(seed, mutant).run();
        outcome.err().map(|broken| (seed, broken))
    })
}

#[test]
fn workers_without_fences_are_found_out() {
    let (_, broken) = found(Mutant::NoFence).unwrap();
    assert!(broken.starts_with("I3"), "{broken}");
}

#[test]
fn requests_without_keys_are_found_out() {
    let (_, broken) = found(Mutant::NoKey).unwrap();
    assert!(broken.starts_with("I8"), "{broken}");
}

#[test]
fn the_same_seed_is_the_same_run() {
    let run = |seed| {
        let mut simulation = Simulation::new(seed, Mutant::None);
        simulation.run().unwrap();
        format!("{:?}", now(simulation.world.jobs()))
    };
    assert_eq!(run(3), run(3));
    assert_ne!(run(3), run(4));
}
