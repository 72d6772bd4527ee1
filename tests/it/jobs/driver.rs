//! The worker on tokio.

use std::time::Duration;

use core_domain::kernel::JobId;
use core_domain::provisioning::{Job, JobStatus, StepStatus};
use core_suite::{WorkerOptions, WorkerWake, start_worker};

use super::audit::assert_invariants;
use crate::world::{Engine, Fault};

/// Polls until the job satisfies the condition. Panics after ten seconds.
async fn until(world: &Engine, id: &JobId, wanted: impl Fn(&Job) -> bool) -> Job {
    let wait = async {
        loop {
            let job = world.job(id).await;
            if wanted(&job) {
                return job;
            }
            tokio::task::yield_now().await;
        }
    };
    let waited = tokio::time::timeout(Duration::from_secs(10), wait).await;
    waited.unwrap()
}

async fn until_completed(world: &Engine, id: &JobId) {
    until(world, id, |job| job.status == JobStatus::Completed).await;
}

#[tokio::test]
async fn a_woken_worker_runs_queued_jobs_and_stops_on_request() {
    let world = Engine::memory().await;
    let wake = WorkerWake::default();
    let handle = start_worker(world.worker(), &wake, WorkerOptions::default());
    let mut ids = Vec::new();
    for lane in 0..10 {
        ids.push(world.create(lane % 3).await);
    }
    wake.wake();
    for id in &ids {
        until_completed(&world, id).await;
    }
    handle.stop().await;
    assert_invariants(&world).await;
}

#[tokio::test]
async fn a_step_that_panics_fails_the_attempt_but_not_the_worker() {
    let world = Engine::memory().await;
    world.provider.script([Fault::Panic]);
    let broken = world.create(0).await;
    let wake = WorkerWake::default();
    let handle = start_worker(world.worker(), &wake, WorkerOptions::default());
    let job = until(&world, &broken, |job| job.attempts == 1).await;
    assert_eq!(job.status, JobStatus::Queued);
    assert_eq!(job.error.unwrap().code, "STEP_PANICKED");
    let next = world.create(1).await;
    wake.wake();
    until_completed(&world, &next).await;
    handle.stop().await;
    assert_invariants(&world).await;
}

#[tokio::test]
async fn a_stop_aborts_a_hanging_step_without_counting_the_attempt() {
    let world = Engine::memory().await;
    world.provider.script([Fault::Hang]);
    let id = world.create(0).await;
    let wake = WorkerWake::default();
    let options = WorkerOptions {
        drain: Duration::from_millis(50),
        ..WorkerOptions::default()
    };
    let handle = start_worker(world.worker(), &wake, options);
    let runs = |job: &Job| job.steps[0].status == StepStatus::Running;
    until(&world, &id, runs).await;
    handle.stop().await;
    let job = world.job(&id).await;
    assert_eq!((job.status, job.attempts), (JobStatus::Queued, 0));
    assert_eq!(job.steps[0].status, StepStatus::Abandoned);
    assert_invariants(&world).await;
    let handle = start_worker(world.worker(), &wake, WorkerOptions::default());
    until_completed(&world, &id).await;
    handle.stop().await;
}

/// With a shared store, guards are answered together, and two units may run at the same time.
#[tokio::test]
async fn a_worker_on_a_shared_store_runs_every_job_once() {
    let world = Engine::memory().await;
    let mut ids = Vec::new();
    for job in 0..60 {
        ids.push(world.create_plain(job % 20).await);
    }
    let options = WorkerOptions {
        slots: 8,
        sole_user: false,
        ..WorkerOptions::default()
    };
    let wake = WorkerWake::default();
    let handle = start_worker(world.worker(), &wake, options);
    for id in &ids {
        until_completed(&world, id).await;
    }
    handle.stop().await;
    assert_invariants(&world).await;
}
