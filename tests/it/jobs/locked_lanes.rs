//! Outcomes of jobs whose lane is locked by another unit of work.

use std::time::Duration;

use core_domain::access::RecordKey;
use core_domain::port::{Mode, Persisted, UnitOfWork};
use core_domain::provisioning::{Job, JobLane, JobLaneQuery, JobStatus};
use core_domain::use_case::provisioning::{
    AttemptReport, CommitResult, HeldJob, LeaseState, Worker,
};

use tokio::task::JoinHandle;

use super::audit::assert_invariants;
use super::batches::attempt;
use crate::world::{Backend, Engine, lane, on_every_store};

on_every_store! {
    Engine:
        an_outcome_in_a_locked_lane_is_written_after_the_unlock,
}

/// Works on these jobs up to their last outcomes, which are not committed yet.
pub(crate) async fn up_to_last_reports(
    worker: &Worker,
    mut held: Vec<HeldJob>,
) -> Vec<AttemptReport> {
    loop {
        let finished = attempt(worker, &held).await;
        if finished.iter().all(AttemptReport::leaves) {
            return finished;
        }
        let settled = worker.commit(&finished, 0).await.results.into_iter();
        held = settled
            .map(|one| one.unwrap().into_held().unwrap())
            .collect();
    }
}

/// Begins a unit that locks the lane, as a unit does that queues a job in it.
async fn unit_with_lane(world: &Engine, number: usize) -> Box<dyn UnitOfWork> {
    let mut uow = world.store.begin(Mode::ReadCommitted).await.unwrap();
    let lanes = JobLane::repository(uow.repositories(RecordKey::for_tests()));
    let query = JobLaneQuery::Of(vec![lane(number)]);
    let locked = lanes.claim(&query, 1).await.unwrap();
    assert_eq!(locked.len(), 1);
    uow
}

/// Commits the ends of one job in each of two lanes, while another unit has locked the first lane.
async fn report_two_while_one_lane_is_locked(
    world: &Engine,
) -> (Box<dyn UnitOfWork>, JoinHandle<CommitResult>) {
    for lane in 0..2 {
        world.create_plain(lane).await;
    }
    let worker = world.worker();
    let taken = worker.commit(&[], 2).await.claimed.unwrap();
    let finished = up_to_last_reports(&worker, taken).await;
    let unit = unit_with_lane(world, 0).await;
    let commit = tokio::spawn(async move { worker.commit(&finished, 0).await });
    (unit, commit)
}

fn all_completed(committed: CommitResult) -> bool {
    let mut settled = committed.results.into_iter();
    settled.all(|one| match one {
        Ok(LeaseState::Held(job)) => job.status == JobStatus::Completed,
        _ => false,
    })
}

async fn an_outcome_in_a_locked_lane_is_written_after_the_unlock(world: Engine) {
    let (unit, commit) = report_two_while_one_lane_is_locked(&world).await;
    tokio::task::yield_now().await;
    unit.rollback().await;
    assert!(all_completed(commit.await.unwrap()));
    assert_invariants(&world).await;
}

/// Needs a store on which units run concurrently.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_outcome_in_a_locked_lane_does_not_block_other_outcomes() {
    for backend in [Backend::Postgres, Backend::Sqlx] {
        a_locked_lane_does_not_block_other_lanes(Engine::on(backend).await).await;
    }
}

async fn a_locked_lane_does_not_block_other_lanes(world: Engine) {
    let (unit, commit) = report_two_while_one_lane_is_locked(&world).await;
    let in_lane = |jobs: &[Job], number| {
        let job = jobs.iter().find(|job| job.lane == lane(number));
        job.unwrap().status
    };
    let beside = tokio::time::timeout(Duration::from_secs(10), async {
        while in_lane(&world.jobs().await, 1) != JobStatus::Completed {
            tokio::task::yield_now().await;
        }
    });
    beside.await.unwrap();
    assert_eq!(in_lane(&world.jobs().await, 0), JobStatus::Running);
    assert!(!commit.is_finished());
    unit.rollback().await;
    assert!(all_completed(commit.await.unwrap()));
    assert_invariants(&world).await;
}
