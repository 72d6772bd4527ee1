//! The worker against a provider that misbehaves.

use core_domain::kernel::Entropy;
use core_domain::kernel::SeededEntropy;
use core_domain::provisioning::{FailureKind, JobStatus, MAX_LOST_LEASES, StepStatus};
use core_domain::use_case::provisioning::{Outcome, Unsupervised};

use super::audit::invariants_hold;
use super::world::{Fault, World};

/// Works until every job has ended; time passes when there is nothing to do.
pub(super) async fn until_idle(world: &World) {
    let worker = world.worker();
    for _ in 0..400 {
        worker.sweep().await.unwrap();
        if worker.run_one(&Unsupervised).await.unwrap() == Outcome::Idle {
            let jobs = world.jobs().await;
            if jobs.iter().all(|job| job.status.is_terminal()) {
                return;
            }
            world.tick(31);
        }
    }
    panic!("jobs do not end: {:?}", world.jobs().await);
}

async fn a_job_runs_to_its_end(world: World) {
    let id = world.create(0, "work", false).await;
    let outcome = world.worker().run_one(&Unsupervised).await.unwrap();
    assert_eq!(outcome, Outcome::Left(JobStatus::Completed));
    let job = world.job(&id).await;
    assert!(
        job.steps
            .iter()
            .all(|s| s.status == StepStatus::Succeeded && s.effect_key.is_some())
    );
    assert_eq!(job.progress().percent, 100);
    assert_eq!(world.provider.objects.lock().unwrap().len(), 3);
    invariants_hold(&world).await;
}

#[tokio::test]
async fn a_job_runs_to_its_end_on_every_store() {
    a_job_runs_to_its_end(World::memory()).await;
    a_job_runs_to_its_end(World::sqlite().await).await;
    a_job_runs_to_its_end(World::postgres().await).await;
}

/// Whatever the provider does, nothing is made twice, and every job ends.
async fn survives_provider_faults(world: World, seed: u64) {
    let entropy = SeededEntropy::new(seed);
    let mut draw = [0_u8; 40];
    entropy.fill(&mut draw);
    let script = draw.map(|byte| match byte % 8 {
        0 | 1 => Fault::AfterApply,
        2 => Fault::Before,
        3 => Fault::Throttled,
        4 if byte > 200 => Fault::Permanent,
        _ => Fault::None,
    });
    *world.provider.script.lock().unwrap() = script.to_vec();
    for job in 0..6 {
        world.create(job % 2, "work", false).await;
    }
    until_idle(&world).await;
    invariants_hold(&world).await;
}

#[tokio::test]
async fn no_fault_of_the_provider_makes_a_thing_twice() {
    for seed in 0..150 {
        let run = tokio::spawn(survives_provider_faults(World::memory(), seed));
        assert!(run.await.is_ok(), "seed {seed}");
    }
    survives_provider_faults(World::sqlite().await, 1).await;
    survives_provider_faults(World::postgres().await, 2).await;
}

#[tokio::test]
async fn a_transient_error_is_tried_eight_times_and_then_waits_in_the_dead_letter_queue() {
    let world = World::memory();
    *world.provider.script.lock().unwrap() = vec![Fault::Before; 8];
    let id = world.create(0, "work", false).await;
    until_idle(&world).await;
    let job = world.job(&id).await;
    assert_eq!(job.failure_kind, Some(FailureKind::AttemptsExhausted));
    assert_eq!((job.attempts, job.steps[0].status), (8, StepStatus::Failed));
    invariants_hold(&world).await;
}

#[tokio::test]
async fn a_job_that_kills_its_worker_is_given_up_after_five_lost_leases() {
    let world = World::memory();
    let id = world.create(0, "work", false).await;
    for _ in 0..MAX_LOST_LEASES {
        // A worker that takes the job and is never heard of again.
        assert_eq!(world.worker().claim(1).await.unwrap().len(), 1);
        invariants_hold(&world).await;
        world.tick(31);
        assert_eq!(world.worker().sweep().await.unwrap().reaped, 1);
        world.tick(60);
    }
    assert_eq!(
        world.job(&id).await.failure_kind,
        Some(FailureKind::WorkerLost)
    );
    invariants_hold(&world).await;
}

#[tokio::test]
async fn a_store_of_one_process_takes_running_jobs_back_when_it_is_opened() {
    let world = World::memory();
    let id = world.create(0, "work", false).await;
    let lost = world.worker().claim(1).await.unwrap();
    assert_eq!(world.worker().recover().await.unwrap(), 1);
    let job = world.job(&id).await;
    assert_eq!(
        (job.status, job.lost_leases, job.attempts),
        (JobStatus::Queued, 1, 1)
    );
    // The old holder finds out, and writes nothing.
    let outcome = world.worker().run(&lost[0], &Unsupervised).await.unwrap();
    assert_eq!(outcome, Outcome::LeaseLost);
    // Only the back-off of a first failure passes, not the lease of a holder that is gone.
    world.tick(2);
    assert_eq!(world.worker().claim(1).await.unwrap().len(), 1);
    world.worker().recover().await.unwrap();
    until_idle(&world).await;
    assert_eq!(world.job(&id).await.status, JobStatus::Completed);
    invariants_hold(&world).await;
}

#[tokio::test]
async fn a_heartbeat_keeps_a_job_and_tells_which_ones_are_lost() {
    let world = World::memory();
    world.create(0, "work", false).await;
    let worker = world.worker();
    let held = worker.claim(1).await.unwrap();
    world.tick(20);
    assert!(worker.heartbeat(&held).await.unwrap().is_empty());
    world.tick(20);
    assert_eq!(worker.sweep().await.unwrap().reaped, 0);
    assert_eq!(world.worker().heartbeat(&held).await.unwrap(), held);
    world.tick(20);
    assert_eq!(worker.sweep().await.unwrap().reaped, 1);
    assert_eq!(worker.heartbeat(&held).await.unwrap(), held);
}
