//! Guarantees under concurrency and over time, each on every store.

use std::collections::BTreeSet;
use std::sync::Arc;

use core_domain::access::{RecordKey, authorize_operator};
use core_domain::kernel::{Error, PageQuery, Total};
use core_domain::port::{Mode, Persisted, Within, transact};
use core_domain::provisioning::{
    HoldScope, Job, JobEvent, JobEventQuery, JobLane, JobStatus, JobTransition,
};
use core_domain::use_case::provisioning::{NoSupervisor, enqueue};
use futures_util::future::join_all;

use super::audit::assert_invariants;
use crate::world::{
    ALL_JOBS, Engine, Fault, JobCommand, Order, Removal, Work, lane, on_every_store, platform,
};

on_every_store! {
    Engine:
        only_one_of_several_concurrent_replays_succeeds,
        a_rolled_back_unit_leaves_no_job_and_an_unchanged_lane,
        concurrent_requests_with_one_key_create_one_job,
        no_claim_begins_after_a_hold_is_set,
        lanes_take_turns,
        an_ended_job_is_never_claimed,
        paging_through_the_jobs_returns_each_once_while_others_are_queued,
}

async fn only_one_of_several_concurrent_replays_succeeds(world: Engine) {
    let world = Arc::new(world);
    world.provider.script([Fault::Permanent]);
    let id = world.create(0).await;
    world.run_one().await;
    let entry = world.job(&id).await.dlq_entry_id.unwrap();
    let attempts = (0..12).map(|_| {
        let (world, entry) = (Arc::clone(&world), entry.clone());
        tokio::spawn(async move { world.replay(&world.kinds, &entry).await })
    });
    let mut counted = 0;
    for attempt in join_all(attempts).await {
        match attempt.unwrap() {
            Ok(job) => {
                assert_eq!(job.status, JobStatus::Queued);
                counted += 1;
            }
            Err(error) => assert_eq!(error.code().as_str(), "DLQ_ENTRY_NOT_REPLAYABLE"),
        }
    }
    assert_eq!(counted, 1, "I11");
    let history: Vec<JobEvent> = world.list(JobEventQuery::After(id, 0)).await;
    let mut replays = history.iter().map(|event| event.event_type.as_str());
    replays
        .by_ref()
        .find(|name| *name == JobTransition::Replay.as_str())
        .unwrap();
    assert!(replays.all(|name| name != JobTransition::Replay.as_str()));
    assert_invariants(&world).await;
}

async fn a_rolled_back_unit_leaves_no_job_and_an_unchanged_lane(world: Engine) {
    let first = world.create(0).await;
    let row = || async { world.find::<JobLane>(lane(0).as_str()).await.unwrap() };
    let before = row().await;
    let cx = &world.operator();
    let operator = &authorize_operator(cx).unwrap();
    let refused = transact(world.store.as_ref(), |uow, _| {
        Box::pin(async move {
            let order = Order {
                platform_id: platform(0),
                key: None,
            };
            enqueue::<Removal>(cx, operator, uow, &order).await?;
            Err::<(), _>(Error::Forbidden)
        })
    });
    assert!(refused.await.is_err());
    assert_eq!(row().await, before, "I15");
    let jobs = world.jobs().await;
    assert_eq!(jobs.iter().map(|job| &job.id).collect::<Vec<_>>(), [&first]);
}

async fn concurrent_requests_with_one_key_create_one_job(world: Engine) {
    let world = Arc::new(world);
    let attempts = (0..20).map(|_| {
        let world = Arc::clone(&world);
        tokio::spawn(async move { world.enqueue::<Work>(0, Some("once")).await })
    });
    let attempts = join_all(attempts).await.into_iter();
    let ids: BTreeSet<_> = attempts.map(|id| id.unwrap().unwrap()).collect();
    assert_eq!(ids.len(), 1, "I16");
    assert_eq!(world.jobs().await.len(), 1);
    assert_invariants(&world).await;
}

/// A hold races with the workers. A job is not claimed once its hold is set.
async fn no_claim_begins_after_a_hold_is_set(world: Engine) {
    let scope = HoldScope::Lane(lane(0));
    for _ in 0..6 {
        let id = world.create(0).await;
        let worker = world.worker();
        let claims = tokio::spawn(async move { worker.claim(1).await.unwrap() });
        world.hold(&scope, true).await;
        let held = world.status(&id).await;
        let late = world.worker().claim(1).await.unwrap();
        assert!(late.is_empty(), "I17 {late:?}");
        let early = claims.await.unwrap();
        // Either the claim came first, or the job is still queued.
        if held == JobStatus::Queued {
            let waits = world.status(&id).await == JobStatus::Queued;
            assert!(early.is_empty() && waits, "I17 {early:?}");
        }
        assert_invariants(&world).await;
        world.hold(&scope, false).await;
        for claimed in &early {
            world.worker().run(claimed, &NoSupervisor).await.unwrap();
        }
        while world.status(&id).await != JobStatus::Completed {
            world.run_one().await;
        }
    }
}

/// With K lanes and one slot each lane is served once in K claims.
async fn lanes_take_turns(world: Engine) {
    for job in 0..12 {
        world.create(job / 3).await;
    }
    let mut served = Vec::new();
    for _ in 0..12 {
        let worker = world.worker();
        let claimed = worker.claim(1).await.unwrap().remove(0);
        worker.run(&claimed, &NoSupervisor).await.unwrap();
        served.push(world.job(&claimed.job_id).await.lane);
        world.tick(1);
    }
    for round in served.chunks(4) {
        let lanes: BTreeSet<_> = round.iter().collect();
        assert_eq!(lanes.len(), 4, "I18 {served:?}");
    }
}

async fn an_ended_job_is_never_claimed(world: Engine) {
    world.provider.script([Fault::Permanent]);
    let mut ended = vec![world.create(0).await, world.create_plain(1).await];
    world.until_idle().await;
    for command in [JobCommand::Cancel, JobCommand::ForceComplete] {
        let job = world.create(2).await;
        world.operate(command, &job).await.unwrap();
        ended.push(job);
    }
    let mut before = Vec::new();
    for id in &ended {
        before.push(world.job(id).await);
    }
    for seconds in [0, 60, 100_000] {
        world.tick(seconds);
        world.worker().run_timers().await.unwrap();
        world.worker().recover().await.unwrap();
        assert!(world.worker().claim(9).await.unwrap().is_empty(), "I19");
    }
    for job in before {
        assert!(job.finished_at.is_some(), "I19 {job:?}");
        assert_eq!(world.job(&job.id).await, job, "I19");
    }
    assert_invariants(&world).await;
}

async fn paging_through_the_jobs_returns_each_once_while_others_are_queued(world: Engine) {
    let mut present = BTreeSet::new();
    for job in 0..7 {
        present.insert(world.create(job % 3).await);
        world.tick(1);
    }
    let (mut walked, mut cursor) = (Vec::new(), None);
    loop {
        let page = PageQuery {
            limit: 2,
            cursor,
            total: Total::Unknown,
        };
        let mut uow = world.store.begin(Mode::Read).await.unwrap();
        let jobs = Job::repository(uow.repositories(RecordKey::for_tests()));
        let page = jobs
            .page(Within::Installation, &ALL_JOBS, &page)
            .await
            .unwrap();
        drop(uow);
        walked.extend(page.items.iter().map(|job| job.id.clone()));
        cursor = page.next;
        if cursor.is_none() {
            break;
        }
        world.create(1).await;
        world.run_one().await;
        world.tick(1);
    }
    let distinct: BTreeSet<_> = walked.iter().cloned().collect();
    assert_eq!(
        distinct.len(),
        walked.len(),
        "I20 returned twice: {walked:?}"
    );
    assert!(present.is_subset(&distinct), "I20 skipped: {walked:?}");
}
