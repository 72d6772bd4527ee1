//! Concurrent workers and operators, and the order of jobs.

use std::sync::Arc;

use core_domain::kernel::{Error, JobId, StoreError};
use core_domain::provisioning::{HoldScope, JobStatus};
use core_domain::use_case::provisioning::{NoSupervisor, Outcome};
use futures_util::future::join_all;

use super::audit::assert_invariants;
use crate::world::{Engine, Fault, JobCommand, lane, on_every_store};

on_every_store! {
    Engine:
        six_workers_run_each_of_forty_jobs_once,
        a_retried_job_takes_the_position_of_a_new_job_of_its_kind,
}

async fn six_workers_run_each_of_forty_jobs_once(world: Engine) {
    let mut ids = Vec::new();
    for number in 0..40 {
        ids.push(world.create(number % 7).await);
    }
    let open = |jobs: &[core_domain::provisioning::Job]| {
        jobs.iter().any(|job| job.status == JobStatus::Queued)
    };
    while open(&world.jobs().await) {
        let workers = (0..6).map(|_| {
            let worker = world.worker();
            tokio::spawn(async move {
                loop {
                    match worker.run_one(&NoSupervisor).await {
                        Ok(Outcome::Idle) => break,
                        // Another worker was quicker to claim. The driver would retry as well.
                        Ok(_) | Err(Error::Store(StoreError::Retry(_))) => {}
                        failed => panic!("{failed:?}"),
                    }
                }
            })
        });
        for worker in join_all(workers).await {
            worker.unwrap();
        }
    }
    for id in &ids {
        let job = world.job(id).await;
        let once = (JobStatus::Completed, 2);
        assert_eq!((job.status, job.fence), once, "claimed once, left once");
    }
    assert_invariants(&world).await;
}

/// An operator races with the worker's last report: exactly one wins, and its result is stored.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_operator_who_races_the_last_step_wins_or_is_refused() {
    let world = Arc::new(Engine::memory().await);
    for round in 0..200 {
        let id = world.create(round % 5).await;
        let command = [JobCommand::Cancel, JobCommand::ForceComplete][round % 2];
        let (worker, operator, target) = (world.worker(), Arc::clone(&world), id.clone());
        let operation = tokio::spawn(async move { operator.operate(command, &target).await });
        let outcome = worker.run_one(&NoSupervisor).await.unwrap();
        let answer = operation.await.unwrap();
        let job = world.job(&id).await;
        if let Ok(answered) = answer {
            assert_eq!(job.status, answered.status, "{job:?}");
        } else {
            assert_eq!((job.status, job.forced), (JobStatus::Completed, false));
            assert_eq!(outcome, Outcome::Left(JobStatus::Completed));
        }
        world.tick(31);
    }
    assert_invariants(&world).await;
}

#[tokio::test]
async fn a_tenant_with_many_jobs_does_not_delay_others() {
    let world = Engine::memory().await;
    for _ in 0..500 {
        world.create(0).await;
    }
    world.run_one().await;
    let other = world.create(1).await;
    world.tick(1);
    world.run_one().await;
    assert_eq!(world.status(&other).await, JobStatus::Completed);
}

/// Claims and runs jobs one after another. Returns them in this order.
async fn order_of(world: &Engine, jobs: usize) -> Vec<JobId> {
    let mut order = Vec::new();
    for _ in 0..jobs {
        let claimed = world.worker().claim(9).await.unwrap();
        assert_eq!(claimed.len(), 1, "one running job per lane");
        let run = world.worker();
        run.run(&claimed[0], &NoSupervisor).await.unwrap();
        order.push(claimed[0].job_id.clone());
    }
    order
}

#[tokio::test]
async fn jobs_of_a_lane_run_in_order_but_a_deprovision_runs_first() {
    let world = Engine::memory().await;
    let (first, second) = (world.create(0).await, world.create(0).await);
    let last = world.create_removal(0).await;
    assert_eq!(order_of(&world, 3).await, [last, first, second]);
}

async fn a_retried_job_takes_the_position_of_a_new_job_of_its_kind(world: Engine) {
    for replays in [false, true] {
        world.provider.script([Fault::Permanent; 2]);
        let (removal, work) = (world.create_removal(0).await, world.create(0).await);
        assert_eq!(order_of(&world, 2).await, [removal.clone(), work.clone()]);
        let waiting = world.create(0).await;
        for job in [&removal, &work] {
            let failed = world.job(job).await;
            assert_eq!(failed.status, JobStatus::Failed);
            if replays {
                let entry = failed.dlq_entry_id.unwrap();
                world.replay(&world.kinds, &entry).await.unwrap();
            } else {
                world.operate(JobCommand::Retry, job).await.unwrap();
            }
        }
        assert_eq!(order_of(&world, 3).await, [removal, waiting, work]);
    }
    assert_invariants(&world).await;
}

/// A held job does not block the removal of its platform.
#[tokio::test]
async fn a_held_job_does_not_block_a_retried_deprovision() {
    let world = Engine::memory().await;
    world.provider.script([Fault::Permanent]);
    let removal = world.create_removal(0).await;
    world.run_one().await;
    let held = world.create(0).await;
    world.hold(&HoldScope::Kind("work".into()), true).await;
    world.operate(JobCommand::Retry, &removal).await.unwrap();
    assert_eq!(world.run_one().await, Outcome::Left(JobStatus::Completed));
    assert_eq!(world.status(&removal).await, JobStatus::Completed);
    assert!(world.worker().claim(9).await.unwrap().is_empty());
    world.hold(&HoldScope::Kind("work".into()), false).await;
    world.until_idle().await;
    assert_eq!(world.status(&held).await, JobStatus::Completed);
}

#[tokio::test]
async fn a_held_lane_runs_no_jobs_and_other_lanes_continue() {
    let world = Engine::memory().await;
    world.hold(&HoldScope::Lane(lane(0)), true).await;
    world.create(0).await;
    world.create_removal(0).await;
    let neighbour = world.create(1).await;
    world.run_one().await;
    assert_eq!(world.status(&neighbour).await, JobStatus::Completed);
    assert!(world.worker().claim(9).await.unwrap().is_empty());
    world.hold(&HoldScope::Lane(lane(0)), false).await;
    world.until_idle().await;
}
