//! Many at once: workers, operators, tenants.

use std::collections::BTreeMap;
use std::sync::Arc;

use core_domain::kernel::JobId;
use core_domain::port::transact;
use core_domain::provisioning::{HoldScope, HoldSource, JobStatus};
use core_domain::use_case::provisioning::{
    Outcome, Unsupervised, cancel, force_complete, hold, release_hold,
};

use super::audit::invariants_hold;
use super::world::{World, lane};

async fn work_off(world: &Arc<World>, workers: usize) {
    let tasks: Vec<_> = (0..workers)
        .map(|_| {
            let worker = world.worker();
            tokio::spawn(async move {
                while worker.run_one(&Unsupervised).await.unwrap() != Outcome::Idle {}
            })
        })
        .collect();
    for task in tasks {
        task.await.unwrap();
    }
}

async fn six_workers_take_each_job_once(world: World) {
    let world = Arc::new(world);
    let mut ids = Vec::new();
    for number in 0..40 {
        ids.push(world.create(number % 7, "work", false).await);
    }
    while world
        .jobs()
        .await
        .iter()
        .any(|job| job.status == JobStatus::Queued)
    {
        work_off(&world, 6).await;
    }
    for id in &ids {
        let job = world.job(id).await;
        assert_eq!(
            (job.status, job.fence),
            (JobStatus::Completed, 2),
            "claimed once, left once"
        );
    }
    invariants_hold(&world).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn six_workers_take_each_of_forty_jobs_once_on_every_store() {
    six_workers_take_each_job_once(World::memory()).await;
    six_workers_take_each_job_once(World::sqlite().await).await;
    six_workers_take_each_job_once(World::postgres().await).await;
}

/// An operator against the worker's last report: one of them wins, and the answer is what is stored.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_operator_who_races_the_last_step_wins_or_is_refused() {
    let world = Arc::new(World::memory());
    for round in 0..200 {
        let id = world.create(round % 5, "work", false).await;
        let (worker, operator, target) = (world.worker(), Arc::clone(&world), id.clone());
        let operation = tokio::spawn(async move { interfere(&operator, &target, round).await });
        let outcome = worker.run_one(&Unsupervised).await.unwrap();
        let answer = operation.await.unwrap();
        let job = world.job(&id).await;
        if let Some(status) = answer {
            assert_eq!(job.status, status, "{job:?}");
        } else {
            assert_eq!((job.status, job.forced), (JobStatus::Completed, false));
            assert_eq!(outcome, Outcome::Left(JobStatus::Completed));
        }
        world.tick(31);
    }
    invariants_hold(&world).await;
}

async fn interfere(world: &World, id: &JobId, round: usize) -> Option<JobStatus> {
    let outcome = transact(world.store.as_ref(), |uow, _| {
        let (cx, kinds) = (&world.operator, world.kinds.as_ref());
        Box::pin(async move {
            if round.is_multiple_of(2) {
                cancel(cx, uow, kinds, id, None).await
            } else {
                force_complete(cx, uow, kinds, id).await
            }
        })
    })
    .await;
    outcome.ok().map(|job| job.status)
}

#[tokio::test]
async fn a_tenant_with_many_jobs_does_not_keep_others_waiting() {
    let world = World::memory();
    for _ in 0..500 {
        world.create(0, "work", false).await;
    }
    world.worker().run_one(&Unsupervised).await.unwrap();
    let other = world.create(1, "work", false).await;
    world.tick(1);
    world.worker().run_one(&Unsupervised).await.unwrap();
    assert_eq!(world.job(&other).await.status, JobStatus::Completed);
}

#[tokio::test]
async fn jobs_of_a_lane_run_in_the_order_they_were_queued_and_a_deprovision_goes_first() {
    let world = World::memory();
    let first = world.create(0, "work", false).await;
    let second = world.create(0, "work", false).await;
    let last = world.create(0, "platform.deprovision", true).await;
    let mut order = BTreeMap::new();
    for turn in 0..3 {
        let claimed = world.worker().claim(9).await.unwrap();
        assert_eq!(claimed.len(), 1, "one running job a lane");
        world
            .worker()
            .run(&claimed[0], &Unsupervised)
            .await
            .unwrap();
        order.insert(turn, claimed[0].job_id.clone());
    }
    assert_eq!(
        order.into_values().collect::<Vec<_>>(),
        [last, first, second]
    );
}

#[tokio::test]
async fn a_suspended_platform_runs_nothing_but_its_deprovision() {
    let world = World::memory();
    let job = world.create(0, "work", false).await;
    let on_lane = HoldScope::Lane(lane(0));
    transact(world.store.as_ref(), |uow, _| {
        let scope = on_lane.clone();
        Box::pin(hold(
            &world.operator,
            uow,
            scope,
            HoldSource::Suspension,
            None,
        ))
    })
    .await
    .unwrap();
    assert!(world.worker().claim(9).await.unwrap().is_empty());
    let removal = world.create(0, "platform.deprovision", true).await;
    world.worker().run_one(&Unsupervised).await.unwrap();
    assert_eq!(world.job(&removal).await.status, JobStatus::Completed);
    assert!(world.worker().claim(9).await.unwrap().is_empty());
    transact(world.store.as_ref(), |uow, _| {
        Box::pin(release_hold(uow, on_lane.clone(), HoldSource::Suspension))
    })
    .await
    .unwrap();
    world.worker().run_one(&Unsupervised).await.unwrap();
    assert_eq!(world.job(&job).await.status, JobStatus::Completed);
}
