//! Many jobs in one unit of work: queued, claimed and reported together.

use std::sync::Arc;

use core_domain::access::authorize_operator;
use core_domain::kernel::JobId;
use core_domain::port::transact;
use core_domain::provisioning::{JobStatus, StepStatus};
use core_domain::testing::seeds;
use core_domain::use_case::provisioning::{
    AttemptReport, HeldJob, LeaseState, NoSupervisor, Worker, enqueue_many,
};

use super::audit::assert_invariants;
use crate::world::{
    Engine, FakeProvider, JobCommand, Order, Plain, Work, lane, on_every_store, platform,
    work_alone,
};

on_every_store! {
    Engine:
        jobs_that_are_queued_together_run_in_the_order_of_their_inputs,
        a_long_lane_keeps_its_order_while_jobs_come_and_go,
        a_repeated_key_in_a_batch_creates_one_job,
        a_refused_outcome_does_not_affect_others_in_its_batch,
        an_unknown_kind_does_not_delay_the_lanes_of_other_kinds,
        a_lane_is_not_claimed_before_it_is_due,
        each_of_many_lanes_is_served_before_any_is_served_again,
        a_lane_freed_by_a_report_is_claimed_in_the_same_unit_after_waiting_lanes,
        concurrent_units_never_claim_from_the_same_lane,
        one_read_returns_for_each_job_whether_it_is_held,
        an_outcome_of_a_changed_job_is_checked_against_the_stored_state,
}

fn order(lane: usize, key: Option<&str>) -> Order {
    Order {
        platform_id: platform(lane),
        key: key.map(str::to_owned),
    }
}

pub(crate) async fn queue_orders(world: &Engine, orders: &[Order]) -> Vec<JobId> {
    let cx = &world.operator();
    let operator = &authorize_operator(cx).unwrap();
    let queued = transact(world.store.as_ref(), |uow, _| {
        Box::pin(enqueue_many::<Plain>(cx, operator, uow, orders))
    });
    let queued = queued.await.unwrap();
    queued.iter().map(|job| job.id.clone()).collect()
}

/// Works on the current steps of these jobs without committing the outcomes.
pub(super) async fn attempt(worker: &Worker, held: &[HeldJob]) -> Vec<AttemptReport> {
    let mut finished = Vec::new();
    for job in held {
        finished.push(worker.attempt(job, &NoSupervisor).await.unwrap());
    }
    finished
}

async fn jobs_that_are_queued_together_run_in_the_order_of_their_inputs(world: Engine) {
    let orders: Vec<Order> = (0..40).map(|at| order(at % 2, None)).collect();
    let ids = queue_orders(&world, &orders).await;
    assert_invariants(&world).await;
    for pair in ids.chunks(2) {
        let worker = world.worker();
        let taken = worker.commit(&[], 9).await.claimed.unwrap();
        let mut claimed: Vec<_> = taken.iter().map(|job| &job.claimed.job_id).collect();
        let mut expected: Vec<_> = pair.iter().collect();
        claimed.sort();
        expected.sort();
        assert_eq!(claimed, expected, "the heads of both lanes");
        for held in &taken {
            worker.run(&held.claimed, &NoSupervisor).await.unwrap();
        }
    }
    assert_invariants(&world).await;
}

async fn a_long_lane_keeps_its_order_while_jobs_come_and_go(world: Engine) {
    let orders: Vec<Order> = (0..12).map(|_| order(0, None)).collect();
    let mut expected = queue_orders(&world, &orders).await;
    let mut ran = Vec::new();
    while ran.len() < expected.len() {
        let worker = world.worker();
        let claimed = worker.claim(1).await.unwrap().remove(0);
        worker.run(&claimed, &NoSupervisor).await.unwrap();
        ran.push(claimed.job_id);
        if ran.len() < 8 {
            expected.push(world.create_plain(0).await);
        }
        assert_invariants(&world).await;
    }
    assert_eq!(ran, expected, "I4");
}

async fn a_repeated_key_in_a_batch_creates_one_job(world: Engine) {
    let known = world.enqueue::<Plain>(0, Some("a")).await.unwrap();
    let orders = [
        order(0, Some("b")),
        order(0, Some("a")),
        order(1, None),
        order(0, Some("b")),
    ];
    let ids = queue_orders(&world, &orders).await;
    assert_eq!((&ids[1], &ids[0]), (&known, &ids[3]), "I16");
    assert_eq!(world.jobs().await.len(), 3);
    assert_invariants(&world).await;
}

async fn a_refused_outcome_does_not_affect_others_in_its_batch(world: Engine) {
    for lane in 0..5 {
        world.create_plain(lane).await;
    }
    let worker = world.worker();
    let taken = worker.commit(&[], 5).await.claimed.unwrap();
    let finished = attempt(&worker, &taken).await;
    let lost = &taken[2].claimed.job_id;
    world.operate(JobCommand::Cancel, lost).await.unwrap();
    let committed = worker.commit(&finished, 5).await;
    for (settled, held) in committed.results.into_iter().zip(&taken) {
        let id = &held.claimed.job_id;
        let job = world.job(id).await;
        let first = job.steps[0].status;
        match settled.unwrap() {
            LeaseState::Lost => assert_eq!((id, first), (lost, StepStatus::Abandoned), "I3"),
            LeaseState::Held(next) => {
                assert_eq!(
                    (first, next.current_step()),
                    (StepStatus::Succeeded, Some(1))
                );
            }
        }
    }
    assert_invariants(&world).await;
}

async fn an_unknown_kind_does_not_delay_the_lanes_of_other_kinds(world: Engine) {
    for lane in 0..20 {
        world.create_plain(lane).await;
    }
    world.tick(1);
    for lane in 20..24 {
        world.enqueue::<Work>(lane, None).await.unwrap();
    }
    let stranger = world.worker_knowing(&Arc::new(work_alone()));
    assert_eq!(stranger.claim(3).await.unwrap().len(), 3);
    assert_eq!(stranger.claim(3).await.unwrap().len(), 1);
    assert!(stranger.claim(3).await.unwrap().is_empty());
    assert_eq!(world.worker().claim(99).await.unwrap().len(), 20);
    assert_invariants(&world).await;
}

async fn a_lane_is_not_claimed_before_it_is_due(world: Engine) {
    world.provider.script([crate::world::Fault::Down; 12]);
    for lane in 0..12 {
        world.create_plain(lane).await;
    }
    let worker = world.worker();
    let taken = worker.commit(&[], 12).await.claimed.unwrap();
    let finished = attempt(&worker, &taken).await;
    let committed = worker.commit(&finished, 12).await;
    assert!(committed.claimed.unwrap().is_empty(), "all are in back-off");
    for settled in &committed.results {
        let due = settled.as_ref().unwrap().resume_delay().unwrap();
        assert!((1..=2).contains(&due.as_secs()), "{due:?}");
    }
    assert_invariants(&world).await;
    world.tick(2);
    assert_eq!(worker.claim(99).await.unwrap().len(), 12);
    assert_invariants(&world).await;
}

/// With K lanes and S slots a lane waits for at most K / S claims, whatever the number of its jobs.
async fn each_of_many_lanes_is_served_before_any_is_served_again(world: Engine) {
    const LANES: usize = 60;
    let orders: Vec<Order> = (0..LANES * 2).map(|at| order(at % LANES, None)).collect();
    queue_orders(&world, &orders).await;
    let worker = world.worker();
    let mut served = Vec::new();
    while served.len() < LANES * 2 {
        let taken = worker.commit(&[], 7).await.claimed.unwrap();
        for held in taken {
            worker.run(&held.claimed, &NoSupervisor).await.unwrap();
            served.push(world.job(&held.claimed.job_id).await.lane);
        }
        world.tick(1);
    }
    let (mut first, mut second) = (served[..LANES].to_vec(), served[LANES..].to_vec());
    first.sort();
    first.dedup();
    second.sort();
    second.dedup();
    assert_eq!((first.len(), second.len()), (LANES, LANES), "I18");
    assert!(first.contains(&lane(0)));
}

/// Works on these jobs until each has reached its last outcome, which is not committed.
async fn to_their_ends(worker: &Worker, mut held: Vec<HeldJob>) -> Vec<AttemptReport> {
    let mut ends = Vec::new();
    while !held.is_empty() {
        let finished = attempt(worker, &held).await;
        let (leaving, going_on): (Vec<_>, Vec<_>) =
            finished.into_iter().partition(AttemptReport::leaves);
        ends.extend(leaving);
        let settled = worker.commit(&going_on, 0).await.results;
        let settled = settled.into_iter().map(Result::unwrap);
        held = settled.map(|state| state.into_held().unwrap()).collect();
    }
    ends
}

fn ids(held: &[HeldJob]) -> Vec<&JobId> {
    held.iter().map(|job| &job.claimed.job_id).collect()
}

async fn a_lane_freed_by_a_report_is_claimed_in_the_same_unit_after_waiting_lanes(world: Engine) {
    let served = queue_orders(&world, &[order(0, None), order(0, None), order(0, None)]).await;
    let waiting = world.create_plain(1).await;
    let worker = world.worker();
    let taken = worker.commit(&[], 1).await.claimed.unwrap();
    assert_eq!(ids(&taken), [&served[0]]);
    world.tick(1);
    let ends = to_their_ends(&worker, taken).await;
    let taken = worker.commit(&ends, 1).await.claimed.unwrap();
    assert_eq!(ids(&taken), [&waiting], "I18");
    assert_invariants(&world).await;
    let ends = to_their_ends(&worker, taken).await;
    let taken = worker.commit(&ends, 2).await.claimed.unwrap();
    assert_eq!(ids(&taken), [&served[1]], "one running job per lane");
    let ends = to_their_ends(&worker, taken).await;
    let taken = worker.commit(&ends, 2).await.claimed.unwrap();
    assert_eq!(ids(&taken), [&served[2]], "freed and claimed in one unit");
    assert_invariants(&world).await;
}

async fn concurrent_units_never_claim_from_the_same_lane(world: Engine) {
    const LANES: usize = 12;
    let orders: Vec<Order> = (0..LANES * 4).map(|at| order(at % LANES, None)).collect();
    let mut waiting = queue_orders(&world, &orders).await.len();
    let worker = world.worker();
    let (mut first, mut second) = (Vec::new(), Vec::new());
    while waiting > 0 {
        let (one, other) = tokio::join!(worker.commit(&first, 5), worker.commit(&second, 5));
        for settled in one.results.into_iter().chain(other.results) {
            assert!(matches!(settled.unwrap(), LeaseState::Held(_)));
        }
        let (one, other) = (one.claimed.unwrap(), other.claimed.unwrap());
        let mut lanes = Vec::new();
        for held in one.iter().chain(&other) {
            lanes.push(world.job(&held.claimed.job_id).await.lane);
        }
        lanes.sort();
        let claimed = lanes.len();
        lanes.dedup();
        assert_eq!(lanes.len(), claimed, "I4");
        assert!(claimed > 0, "some lane is ready whenever jobs wait");
        waiting -= claimed;
        assert_invariants(&world).await;
        first = to_their_ends(&worker, one).await;
        second = to_their_ends(&worker, other).await;
    }
}

async fn one_read_returns_for_each_job_whether_it_is_held(world: Engine) {
    for lane in 0..4 {
        world.create_plain(lane).await;
    }
    let worker = world.worker();
    let mut jobs = worker.claim(4).await.unwrap();
    assert_eq!(worker.are_held(&jobs).await.unwrap(), [true; 4]);
    world
        .operate(JobCommand::Cancel, &jobs[1].job_id)
        .await
        .unwrap();
    jobs[2].fence -= 1;
    jobs.push(jobs[0].clone());
    let held = worker.are_held(&jobs).await.unwrap();
    assert_eq!(held, [true, false, false, true, true]);
    for (job, held) in jobs.iter().zip(held) {
        assert_eq!(worker.is_held(job).await.unwrap(), held);
    }
    assert!(worker.are_held(&[]).await.unwrap().is_empty());
}

async fn an_outcome_of_a_changed_job_is_checked_against_the_stored_state(world: Engine) {
    for lane in 0..3 {
        world.create_plain(lane).await;
    }
    let worker = world.worker();
    let taken = worker.commit(&[], 3).await.claimed.unwrap();
    let finished = attempt(&worker, &taken).await;
    let first = worker.commit(&finished[..1], 0).await;
    assert!(matches!(first.results[0], Ok(LeaseState::Held(_))));
    // The first of these is reported again, by a holder that has an outdated copy of the job.
    let again = worker.commit(&finished, 0).await;
    for (settled, held) in again.results.iter().zip(&taken) {
        assert!(matches!(settled, Ok(LeaseState::Held(_))), "{settled:?}");
        let job = world.job(&held.claimed.job_id).await;
        assert_eq!(
            (job.steps[0].status, job.event_count),
            (StepStatus::Succeeded, 5)
        );
    }
    assert_invariants(&world).await;
}

/// Either the reply of the commit is lost, or the commit itself: the retry finds the stored state.
#[tokio::test]
async fn a_batch_whose_commit_outcome_is_unknown_is_written_once() {
    for seed in seeds(60) {
        let (world, faults, _) = Engine::faulty(FakeProvider::default());
        for lane in 0..4 {
            world.create_plain(lane).await;
        }
        let worker = world.worker();
        let taken = worker.commit(&[], 4).await.claimed.unwrap();
        let finished = attempt(&worker, &taken).await;
        faults.inject_random(seed, 6);
        let committed = worker.commit(&finished, 0).await;
        faults.inject_random(0, 0);
        for (settled, held) in committed.results.into_iter().zip(&taken) {
            let job = world.job(&held.claimed.job_id).await;
            let done = job.steps[0].status == StepStatus::Succeeded;
            if let Ok(state) = settled {
                assert!(done, "seed {seed}: {state:?} of {job:?}");
                assert!(matches!(state, LeaseState::Held(_)), "seed {seed}");
            }
            assert_eq!(job.event_count, if done { 5 } else { 3 }, "seed {seed}");
        }
        assert_invariants(&world).await;
        world.restart().await;
        let jobs = world.jobs().await;
        let done = |status| status == JobStatus::Completed;
        assert!(jobs.iter().all(|job| done(job.status)), "seed {seed}");
        assert_invariants(&world).await;
    }
}

/// One job of a batch cannot be written at all, because its row has changed.
#[tokio::test]
async fn a_job_that_cannot_be_written_does_not_block_others() {
    let world = Engine::memory().await;
    for lane in 0..5 {
        world.create_plain(lane).await;
    }
    let worker = world.worker();
    let taken = worker.commit(&[], 5).await.claimed.unwrap();
    let mut finished = attempt(&worker, &taken).await;
    // Reported twice: the second change finds another row than it has read.
    finished.push(finished[1].clone());
    let committed = worker.commit(&finished, 0).await;
    assert_eq!(committed.results.len(), 6);
    for held in &taken {
        let job = world.job(&held.claimed.job_id).await;
        assert_eq!(job.steps[0].status, StepStatus::Succeeded, "{job:?}");
    }
    assert_invariants(&world).await;
}
