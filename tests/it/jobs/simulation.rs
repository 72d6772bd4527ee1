//! The whole engine in a deterministic simulation: workers, sweeper and operator take turns as a seed says, workers die
//! between any two turns, time passes or is set back, the provider's requests come late, twice or never, and calls of the store fail,
//! commits before or after they happened. The same seed is the same run.

use std::collections::BTreeMap;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::task::{Context, Poll, Waker};

use core_domain::kernel::{Clock, JobId, Timestamp};
use core_domain::port::{Mode, Store, transact};
use core_domain::provisioning::{
    FailureKind, JobEventQuery, JobStatus, Report, StepStatus, effect_key,
};
use core_domain::use_case::provisioning::{
    Claimed, Grip, Holder, NewJob, Unsupervised, Worker, cancel, enqueue, report, retry,
};
use core_storage::fault::FaultStore;
use serde_json::{Value, json};

use super::audit::{invariants_hold, written_by_holders};
use super::unreliable::{Luck, PoliteStore, RemoteProvider};
use super::world::{NoBlobs, STEPS, World, platform};

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
    world: Arc<World>,
    /// The same rows, undisturbed.
    view: Arc<dyn Store>,
    faults: FaultStore,
    provider: Arc<RemoteProvider>,
    luck: Luck,
    mutant: Mutant,
    /// Whether everything works from now on.
    settles: bool,
    /// Every id that a creation has answered.
    jobs: Vec<JobId>,
    /// What was done once, by job and step.
    done: BTreeMap<(JobId, usize), Value>,
}

/// Polls to the end: nothing here waits for anything but its turn.
fn now<F: Future>(future: F) -> F::Output {
    let mut future = pin!(future);
    let mut cx = Context::from_waker(Waker::noop());
    loop {
        if let Poll::Ready(output) = future.as_mut().poll(&mut cx) {
            return output;
        }
    }
}

impl Simulation {
    fn new(seed: u64, mutant: Mutant) -> Self {
        let luck = Luck::new(seed);
        let (mut world, faults, view) = World::faulty_with_view();
        world.store = Arc::new(PoliteStore {
            inner: Arc::clone(&world.store),
            luck: luck.clone(),
        });
        faults.disturb(seed, 120);
        Self {
            world: Arc::new(world),
            view,
            faults,
            provider: Arc::new(RemoteProvider::new(luck.clone(), mutant == Mutant::NoKey)),
            luck,
            mutant,
            settles: false,
            jobs: Vec::new(),
            done: BTreeMap::new(),
        }
    }

    /// A process with a worker that never ends by itself.
    fn worker(&self) -> Actor {
        let worker = Worker::new(
            Arc::clone(&self.world.store),
            self.provider.clone(),
            Arc::new(NoBlobs),
            Arc::clone(&self.world.kinds),
            Arc::clone(&self.world.entropy),
        );
        let (world, provider, luck) = (
            Arc::clone(&self.world),
            Arc::clone(&self.provider),
            self.luck.clone(),
        );
        let fenced = self.mutant != Mutant::NoFence;
        Box::pin(async move {
            loop {
                if fenced {
                    // A store that fails ends the work on the job; the job comes back when its lease ends.
                    let _ = worker.run_one(&Unsupervised).await;
                } else if let Ok(claimed) = worker.claim(1).await
                    && let Some(claimed) = claimed.first()
                {
                    run_without_fence(&world, &provider, &worker, claimed).await;
                }
                luck.pause(1).await;
                tokio::task::yield_now().await;
            }
        })
    }

    fn sweeper(&self) -> Actor {
        let worker = self.world.worker();
        Box::pin(async move {
            loop {
                let _ = worker.sweep().await;
                tokio::task::yield_now().await;
            }
        })
    }

    fn create(&mut self, lane: usize) {
        let world = Arc::clone(&self.world);
        let made = now(transact(world.store.as_ref(), |uow, _| {
            let new = NewJob::for_platform("work", platform(lane), &STEPS);
            Box::pin(enqueue(&world.operator, uow, new))
        }));
        self.jobs.extend(made.ok().map(|job| job.id.clone()));
    }

    fn operate(&self, at: usize, cancels: bool) {
        let Some(id) = self.jobs.get(at % self.jobs.len().max(1)) else {
            return;
        };
        let world = Arc::clone(&self.world);
        // Refused when the job stands elsewhere, unknown when the store fails: both are fine.
        let _ = now(transact(world.store.as_ref(), |uow, _| {
            let (cx, kinds) = (&world.operator, world.kinds.as_ref());
            Box::pin(async move {
                if cancels {
                    cancel(cx, uow, kinds, id, None).await
                } else {
                    retry(cx, uow, kinds, id).await
                }
            })
        }));
    }

    /// Up to a minute and a half, as a clock that was corrected.
    fn set_clock_back(&self) {
        if self.settles || self.luck.draw(3) > 0 {
            return;
        }
        let by = self.luck.draw(90_000) as i64;
        let now = self.world.clock.now().millis();
        self.world.clock.set(Timestamp::from_millis(now - by));
    }

    /// One turn of somebody.
    fn turn(&mut self, workers: &mut [Actor], sweeper: &mut Actor) {
        let mut cx = Context::from_waker(Waker::noop());
        match self.luck.draw(100) {
            0..=1 => {
                // A process dies, and another one is started.
                let at = self.luck.draw(WORKERS);
                workers[at] = self.worker();
            }
            2..=4 => self.world.tick(self.luck.draw(5) as u64),
            5 => self.world.tick(31 + self.luck.draw(60) as u64),
            6 => self.set_clock_back(),
            7..=9 => self.provider.deliver_one(),
            10 if self.jobs.len() < 6 => self.create(self.luck.draw(2)),
            11 => self.operate(self.luck.draw(6), true),
            12..=14 => self.operate(self.luck.draw(6), false),
            15..=20 => drop(sweeper.as_mut().poll(&mut cx)),
            turn => drop(workers[turn % WORKERS].as_mut().poll(&mut cx)),
        }
    }

    fn run(&mut self) -> Result<(), String> {
        let mut workers: Vec<Actor> = (0..WORKERS).map(|_| self.worker()).collect();
        let mut sweeper = self.sweeper();
        self.create(0);
        self.create(1);
        for turn in 0..TURNS {
            self.turn(&mut workers, &mut sweeper);
            if turn % 20 == 0 {
                self.check()?;
            }
        }
        self.faults.disturb(0, 0);
        self.provider.calm_down();
        self.settles = true;
        for _ in 0..2_000 {
            self.turn(&mut workers, &mut sweeper);
            self.world.tick(1);
        }
        // Nobody is in the middle of anything any more: the processes end, and what they held comes back.
        drop(workers);
        self.provider.deliver_all();
        self.check()?;
        self.finish();
        self.check()?;
        self.check_ends()
    }

    /// Works off what is left, in peace.
    fn finish(&self) {
        let worker = Worker::new(
            Arc::clone(&self.world.store),
            self.provider.clone(),
            Arc::new(NoBlobs),
            Arc::clone(&self.world.kinds),
            Arc::clone(&self.world.entropy),
        );
        for _ in 0..80 {
            let _ = now(worker.sweep());
            let _ = now(worker.run_one(&Unsupervised));
            self.world.tick(40);
        }
    }

    /// I2, I3, I5, I7, I8 at any time.
    fn check(&mut self) -> Result<(), String> {
        self.provider.made_once()?;
        let mut uow = now(self.view.begin(Mode::Read)).unwrap();
        for id in &self.jobs {
            let Some(job) = now(uow.jobs().get(id.as_str())).unwrap() else {
                return Err(format!("I5 {id} has disappeared"));
            };
            for (at, step) in job.steps.iter().enumerate() {
                let key = (id.clone(), at);
                match (self.done.get(&key), step.status) {
                    (None, StepStatus::Succeeded) => {
                        let output = step.output.clone().unwrap_or_default();
                        self.done.insert(key, output);
                    }
                    (Some(output), StepStatus::Succeeded)
                        if step.output.as_ref() == Some(output) => {}
                    (None, _) => {}
                    (Some(_), _) => return Err(format!("I7 step {at} was done: {job:?}")),
                }
            }
            let history = JobEventQuery::After(id.clone(), 0);
            let events = now(uow.job_events().list(&history, 10_000)).unwrap();
            written_by_holders(events.iter().map(|event| &**event))?;
            for pair in events.windows(2) {
                let moved = pair[1].from_status != Some(pair[1].to_status);
                let grows = pair[1].fence > pair[0].fence;
                if pair[1].fence < pair[0].fence || (moved && !grows) {
                    return Err(format!("I2 {pair:?}"));
                }
            }
        }
        Ok(())
    }

    /// I5 and I9, when there is nothing left to do.
    fn check_ends(&self) -> Result<(), String> {
        let mut uow = now(self.view.begin(Mode::Read)).unwrap();
        for id in &self.jobs {
            let job = now(uow.jobs().get(id.as_str())).unwrap().unwrap();
            match job.status {
                JobStatus::Completed => {
                    let all = job.steps.iter().all(|s| s.status == StepStatus::Succeeded);
                    let made = STEPS
                        .iter()
                        .all(|s| self.provider.has(&format!("{id}-{s}")));
                    if !all || !made {
                        return Err(format!("I9 {job:?}"));
                    }
                }
                JobStatus::Failed
                    if job.failure_kind.is_some_and(|kind| {
                        kind == FailureKind::Cancelled || kind.opens_dlq_entry()
                    }) => {}
                _ => return Err(format!("I5 does not end: {job:?}")),
            }
        }
        now(invariants_hold(&self.world));
        Ok(())
    }
}

/// A worker as it would be without fences: whatever fence the job has now is good enough.
async fn run_without_fence(
    world: &World,
    provider: &RemoteProvider,
    worker: &Worker,
    claimed: &Claimed,
) {
    use core_domain::port::{CreateResource, Infrastructure, ResourceRef};
    use core_domain::registry::ResourceType;

    while let Some((step, name)) = open_step(world, &claimed.job_id).await {
        if !write_without_fence(world, worker, claimed, Report::Start(step)).await {
            return;
        }
        let resource = ResourceRef {
            resource_type: ResourceType::D1,
            name: format!("{}-{name}", claimed.job_id),
        };
        let there = provider.observe(&resource).await;
        if matches!(there, Ok(None)) {
            let request = CreateResource {
                resource,
                owner: "test".into(),
                effect_key: effect_key(&claimed.job_id, name),
                config: json!({}),
            };
            if provider.create(&request).await.is_err() {
                return;
            }
        }
        let output = json!({ "by": worker.owner() });
        if !write_without_fence(world, worker, claimed, Report::Advance(step, output)).await {
            return;
        }
    }
}

async fn open_step(world: &World, id: &JobId) -> Option<(usize, &'static str)> {
    let mut uow = world.store.begin(Mode::Read).await.ok()?;
    let job = uow.jobs().get(id.as_str()).await.ok()??;
    let step = job.current_step()?;
    (job.status == JobStatus::Running).then(|| (step, STEPS[step]))
}

async fn write_without_fence(
    world: &World,
    worker: &Worker,
    claimed: &Claimed,
    what: Report,
) -> bool {
    let what = &what;
    let outcome = transact(world.store.as_ref(), |uow, _| {
        Box::pin(async move {
            let job = uow.jobs().get(claimed.job_id.as_str()).await?;
            let current = Claimed {
                job_id: claimed.job_id.clone(),
                fence: job.map_or(0, |job| job.fence),
            };
            let holder = Holder {
                owner: worker.owner(),
                kinds: &world.kinds,
                claimed: &current,
            };
            report(&world.cx, uow, holder, what.clone()).await
        })
    })
    .await;
    matches!(outcome, Ok(Grip::Kept(_)))
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
        mishaps += simulation.provider.mishaps() as u64;
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
