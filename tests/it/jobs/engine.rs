//! The worker with a faulty provider.

use core_domain::kernel::Clock;
use core_domain::provisioning::{
    FailureKind, JobLease, JobStatus, MAX_LOST_LEASES, Step, StepStatus,
};
use core_domain::testing::seeds;
use core_domain::use_case::provisioning::{NoSupervisor, Outcome};

use super::audit::assert_invariants;
use crate::world::{Engine, Fault, JobCommand, Rng, on_every_store};

on_every_store! {
    Engine: a_job_runs_to_its_end, provider_faults_never_create_an_object_twice,
}

async fn a_job_runs_to_its_end(world: Engine) {
    let id = world.create(0).await;
    let outcome = world.run_one().await;
    assert_eq!(outcome, Outcome::Left(JobStatus::Completed));
    let job = world.job(&id).await;
    let done = |step: &Step| step.status == StepStatus::Succeeded && step.effect_key.is_some();
    assert!(job.steps.iter().all(done));
    assert_eq!(job.progress().percent, 100);
    assert_eq!(world.provider.names().len(), 3);
    assert_invariants(&world).await;
}

/// Whatever faults the provider has, no object is created twice, and every job ends.
async fn provider_faults_never_create_an_object_twice(world: Engine) {
    survives_provider_faults(world, 1).await;
}

async fn survives_provider_faults(world: Engine, seed: u64) {
    let rng = Rng::new(seed);
    let script = [(); 40].map(|()| match rng.below(32) {
        0..=7 => Fault::NoAnswer,
        8..=11 => Fault::Down,
        12..=15 => Fault::Throttled,
        16 => Fault::Permanent,
        _ => Fault::None,
    });
    world.provider.script(script);
    for job in 0..6 {
        world.create(job % 2).await;
    }
    world.until_idle().await;
    assert_invariants(&world).await;
}

#[tokio::test]
async fn random_provider_faults_never_create_an_object_twice() {
    for seed in seeds(150) {
        let run = tokio::spawn(survives_provider_faults(Engine::memory().await, seed));
        assert!(run.await.is_ok(), "seed {seed}");
    }
}

#[tokio::test]
async fn a_transient_error_is_tried_eight_times_and_then_becomes_a_dead_letter() {
    let world = Engine::memory().await;
    world.provider.script([Fault::Down; 8]);
    let id = world.create(0).await;
    world.until_idle().await;
    let job = world.job(&id).await;
    assert_eq!(job.failure_kind, Some(FailureKind::AttemptsExhausted));
    assert_eq!((job.attempts, job.steps[0].status), (8, StepStatus::Failed));
    assert_invariants(&world).await;
}

#[tokio::test]
async fn a_throttled_step_is_not_retried_before_the_providers_retry_time() {
    let world = Engine::memory().await;
    world.provider.script([Fault::Throttled]);
    let id = world.create(0).await;
    assert_eq!(world.run_one().await, Outcome::Left(JobStatus::Queued));
    let job = world.job(&id).await;
    assert_eq!(job.error.unwrap().code, "PROVIDER_THROTTLED");
    world.tick(6);
    assert_eq!(world.run_one().await, Outcome::Idle);
    world.until_idle().await;
    assert_eq!(world.status(&id).await, JobStatus::Completed);
}

#[tokio::test]
async fn an_overdue_job_is_not_started() {
    let world = Engine::memory().await;
    let id = world.create(0).await;
    world.tick(25 * 3_600);
    assert_eq!(world.run_one().await, Outcome::Idle);
    let failed = world.job(&id).await.failure_kind;
    assert_eq!(failed, Some(FailureKind::DeadlineExceeded));
    assert_invariants(&world).await;
}

/// The former holder may not have noticed yet that it lost the job.
#[tokio::test]
async fn the_lane_of_a_cancelled_job_pauses_until_its_lease_would_have_expired() {
    let world = Engine::memory().await;
    let running = world.create(0).await;
    let held = world.worker().claim(1).await.unwrap();
    let next = world.create(0).await;
    world.operate(JobCommand::Cancel, &running).await.unwrap();
    assert_eq!(world.run_one().await, Outcome::Idle);
    let outcome = world.worker().run(&held[0], &NoSupervisor).await.unwrap();
    assert_eq!(outcome, Outcome::LeaseLost);
    world.tick(31);
    assert_eq!(world.run_one().await, Outcome::Left(JobStatus::Completed));
    assert_eq!(world.status(&next).await, JobStatus::Completed);
}

#[tokio::test]
async fn a_job_that_kills_its_worker_fails_after_five_lost_leases() {
    let world = Engine::memory().await;
    let id = world.create(0).await;
    for _ in 0..MAX_LOST_LEASES {
        // A worker claims the job and never reports again.
        assert_eq!(world.worker().claim(1).await.unwrap().len(), 1);
        assert_invariants(&world).await;
        world.tick(31);
        assert_eq!(world.worker().run_timers().await.unwrap().reaped, 1);
        world.tick(60);
    }
    let job = world.job(&id).await;
    assert_eq!(job.failure_kind, Some(FailureKind::WorkerLost));
    assert_invariants(&world).await;
}

#[tokio::test]
async fn recovery_returns_running_jobs_of_a_previous_process_to_the_queue() {
    let world = Engine::memory().await;
    let id = world.create(0).await;
    let lost = world.worker().claim(1).await.unwrap();
    assert_eq!(world.worker().recover().await.unwrap(), 1);
    let job = world.job(&id).await;
    let stands = (job.status, job.lost_leases, job.attempts);
    assert_eq!(stands, (JobStatus::Queued, 1, 1));
    // The former holder notices it, and writes nothing.
    let outcome = world.worker().run(&lost[0], &NoSupervisor).await.unwrap();
    assert_eq!(outcome, Outcome::LeaseLost);
    // Only the back-off after a first failure is waited for, not the lease of the former holder.
    world.tick(2);
    assert_eq!(world.worker().claim(1).await.unwrap().len(), 1);
    world.restart().await;
    assert_eq!(world.status(&id).await, JobStatus::Completed);
    assert_invariants(&world).await;
}

#[tokio::test]
async fn recovery_removes_the_lease_of_a_job_that_does_not_run() {
    let world = Engine::memory().await;
    let id = world.create(0).await;
    world.until_idle().await;
    let orphan = JobLease {
        job_id: id.clone(),
        fence: 1,
        owner: "nobody".into(),
        lease_until: world.clock.now(),
    };
    world.insert(orphan).await;
    assert_eq!(world.worker().recover().await.unwrap(), 0);
    assert_eq!(world.status(&id).await, JobStatus::Completed);
    assert_invariants(&world).await;
}

#[tokio::test]
async fn a_heartbeat_extends_leases_and_returns_lost_jobs() {
    let world = Engine::memory().await;
    world.create(0).await;
    let worker = world.worker();
    let held = worker.claim(1).await.unwrap();
    world.tick(20);
    assert!(worker.heartbeat(&held).await.unwrap().is_empty());
    world.tick(20);
    assert_eq!(worker.run_timers().await.unwrap().reaped, 0);
    assert_eq!(world.worker().heartbeat(&held).await.unwrap(), held);
    world.tick(20);
    assert_eq!(worker.run_timers().await.unwrap().reaped, 1);
    assert_eq!(worker.heartbeat(&held).await.unwrap(), held);
}
