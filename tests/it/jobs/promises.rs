//! Promises about many at once and about time, each on every store.

use std::sync::Arc;

use core_domain::kernel::{Error, JobId};
use core_domain::port::{Mode, transact};
use core_domain::provisioning::{
    DlqQuery, DlqStatus, HoldScope, HoldSource, JobEventQuery, JobStatus, Kinds, MoveName,
};
use core_domain::use_case::provisioning::{
    NewJob, Unsupervised, claim, enqueue, hold, release_hold, replay, retry,
};

use super::audit::invariants_hold;
use super::world::{Fault, STEPS, World, lane, platform};

async fn worlds() -> [World; 3] {
    [
        World::memory(),
        World::sqlite().await,
        World::postgres().await,
    ]
}

/// How often a move is in the history of a job.
async fn times(world: &World, id: &JobId, name: MoveName) -> usize {
    let mut uow = world.store.begin(Mode::Read).await.unwrap();
    let history = JobEventQuery::After(id.clone(), 0);
    let events = uow.job_events().list(&history, 1_000).await.unwrap();
    let named = events.iter().filter(|e| e.event_type == name.as_str());
    named.count()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn of_many_replays_of_an_entry_one_counts() {
    for world in worlds().await {
        let world = Arc::new(world);
        *world.provider.script.lock().unwrap() = vec![Fault::Permanent];
        let id = world.create(0, "work", false).await;
        world.worker().run_one(&Unsupervised).await.unwrap();
        let entry = world.job(&id).await.dlq_entry_id.unwrap();
        let attempts: Vec<_> = (0..12)
            .map(|_| {
                let (world, entry) = (Arc::clone(&world), entry.clone());
                tokio::spawn(async move {
                    transact(world.store.as_ref(), |uow, _| {
                        Box::pin(replay(&world.operator, uow, &world.kinds, &entry))
                    })
                    .await
                    .map(|job| job.status)
                })
            })
            .collect();
        let mut counted = 0;
        for attempt in attempts {
            match attempt.await.unwrap() {
                Ok(status) => {
                    assert_eq!(status, JobStatus::Queued);
                    counted += 1;
                }
                Err(error) => assert_eq!(error.code().as_str(), "DLQ_ENTRY_NOT_REPLAYABLE"),
            }
        }
        assert_eq!(counted, 1, "I11");
        assert_eq!(times(&world, &id, MoveName::Replay).await, 1);
        invariants_hold(&world).await;
    }
}

#[tokio::test]
async fn a_unit_that_is_rolled_back_leaves_no_job_and_its_lane_as_it_was() {
    for world in worlds().await {
        let first = world.create(0, "work", false).await;
        let before = lane_of(&world).await;
        let refused = transact(world.store.as_ref(), |uow, _| {
            Box::pin(async {
                let new = NewJob::for_platform("platform.deprovision", platform(0), &STEPS);
                let new = NewJob { front: true, ..new };
                enqueue(&world.operator, uow, new).await?;
                Err::<(), _>(Error::Forbidden)
            })
        });
        assert!(refused.await.is_err());
        assert_eq!(lane_of(&world).await, before, "I15");
        let jobs = world.jobs().await;
        assert_eq!(jobs.len(), 1);
        assert_eq!(jobs[0].id, first);
    }
}

async fn lane_of(world: &World) -> String {
    let mut uow = world.store.begin(Mode::Read).await.unwrap();
    let found = uow.job_lanes().get(lane(0).as_str()).await.unwrap();
    format!("{:?}", found.unwrap())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn one_key_is_one_job_however_many_ask_at_once() {
    for world in worlds().await {
        let world = Arc::new(world);
        let attempts: Vec<_> = (0..20)
            .map(|_| {
                let world = Arc::clone(&world);
                tokio::spawn(async move {
                    transact(world.store.as_ref(), |uow, _| {
                        let mut new = NewJob::for_platform("work", platform(0), &STEPS);
                        new.idempotency_key = Some("once".to_owned());
                        Box::pin(enqueue(&world.operator, uow, new))
                    })
                    .await
                    .map(|job| job.id.clone())
                })
            })
            .collect();
        let mut ids = Vec::new();
        for attempt in attempts {
            ids.push(attempt.await.unwrap().unwrap());
        }
        ids.dedup();
        assert_eq!(ids.len(), 1, "I16");
        assert_eq!(world.jobs().await.len(), 1);
        invariants_hold(&world).await;
    }
}

/// A hold races the workers: what it holds is not claimed once it is there.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_claim_begins_after_a_hold_is_there() {
    for world in worlds().await {
        let world = Arc::new(world);
        for _ in 0..6 {
            let id = world.create(0, "work", false).await;
            let worker = world.worker();
            let claims = tokio::spawn(async move { worker.claim(1).await.unwrap() });
            let scope = HoldScope::Lane(lane(0));
            transact(world.store.as_ref(), |uow, _| {
                let source = HoldSource::Operator;
                Box::pin(hold(&world.operator, uow, scope.clone(), source, None))
            })
            .await
            .unwrap();
            let held = world.job(&id).await;
            let late = world.worker().claim(1).await.unwrap();
            assert!(late.is_empty(), "I17 {late:?}");
            let early = claims.await.unwrap();
            let job = world.job(&id).await;
            // Either the claim came first, or the job still waits.
            if held.status == JobStatus::Queued {
                assert!(
                    early.is_empty() && job.status == JobStatus::Queued,
                    "I17 {job:?}"
                );
            }
            invariants_hold(&world).await;
            transact(world.store.as_ref(), |uow, _| {
                Box::pin(release_hold(uow, scope.clone(), HoldSource::Operator))
            })
            .await
            .unwrap();
            for claimed in &early {
                world.worker().run(claimed, &Unsupervised).await.unwrap();
            }
            while world.job(&id).await.status != JobStatus::Completed {
                world.worker().run_one(&Unsupervised).await.unwrap();
            }
        }
    }
}

#[tokio::test]
async fn a_kind_that_a_process_does_not_know_is_left_alone_until_its_deadline() {
    for world in worlds().await {
        let id = world.create(0, "work", false).await;
        let knows_none = Kinds::default();
        let claimed = transact(world.store.as_ref(), |uow, _| {
            Box::pin(claim(&world.cx, uow, &knows_none, "old", 9))
        });
        assert!(claimed.await.unwrap().is_empty());
        let job = world.job(&id).await;
        assert_eq!(
            (job.status, job.attempts, job.fence),
            (JobStatus::Queued, 0, 0)
        );
        world.tick(25 * 3_600);
        world.worker().sweep().await.unwrap();
        let job = world.job(&id).await;
        assert_eq!(job.failure_kind.unwrap().as_str(), "DEADLINE_EXCEEDED");
        let mut uow = world.store.begin(Mode::Read).await.unwrap();
        let pending = DlqQuery::WithStatus(Some(DlqStatus::Pending));
        assert_eq!(uow.dlq_entries().count(&pending).await.unwrap(), 1);
        uow.rollback().await;
        transact(world.store.as_ref(), |uow, _| {
            Box::pin(retry(&world.operator, uow, &world.kinds, &id))
        })
        .await
        .unwrap();
        world.worker().run_one(&Unsupervised).await.unwrap();
        assert_eq!(world.job(&id).await.status, JobStatus::Completed);
        invariants_hold(&world).await;
    }
}

/// With K lanes and one slot each lane is served once in K claims.
#[tokio::test]
async fn lanes_take_turns() {
    for world in worlds().await {
        for job in 0..12 {
            world.create(job / 3, "work", false).await;
        }
        let mut served = Vec::new();
        for _ in 0..12 {
            let claimed = world.worker().claim(1).await.unwrap();
            let job = world.job(&claimed[0].job_id).await;
            world
                .worker()
                .run(&claimed[0], &Unsupervised)
                .await
                .unwrap();
            served.push(job.lane.as_str().to_owned());
            world.tick(1);
        }
        for round in served.chunks(4) {
            let mut lanes = round.to_vec();
            lanes.sort();
            lanes.dedup();
            assert_eq!(lanes.len(), 4, "I18 {served:?}");
        }
    }
}
