//! Jobs that neither the timers nor a claim can change, and their effect on other jobs.

use std::collections::BTreeSet;
use std::sync::Arc;

use async_trait::async_trait;
use core_domain::kernel::{JobId, Result, StoreError};
use core_domain::port::UnitOfWork;
use core_domain::provisioning::{FailureKind, JobStatus};
use core_domain::use_case::provisioning::{JobContext, JobKind, Kinds, Steps, Worker};

use crate::world::{Engine, MakeObject, Order, Plain, on_every_store};

on_every_store! {
    Engine:
        an_overdue_job_that_cannot_be_failed_blocks_no_other_claim,
        overdue_jobs_that_cannot_be_failed_do_not_keep_others_from_failing,
}

const PAST_DEADLINE: u64 = 24 * 3_600 + 1;

/// A kind whose hook cannot write, so that its jobs cannot be failed.
#[derive(Debug)]
struct Stuck;

#[async_trait]
impl JobKind for Stuck {
    const NAME: &'static str = "stuck";
    type Input = Order;

    fn steps() -> Steps<Self> {
        Steps::new().step(MakeObject("db"))
    }

    async fn on_failed(&self, _: &JobContext<'_, Self>, _: &mut dyn UnitOfWork) -> Result<()> {
        Err(StoreError::backend("the hook cannot write").into())
    }
}

fn worker(world: &Engine) -> Worker {
    let kinds = Kinds::new().with(Stuck).unwrap().with(Plain).unwrap();
    world.worker_knowing(&Arc::new(kinds))
}

async fn claim_jobs(worker: &Worker, limit: u32) -> BTreeSet<JobId> {
    let committed = worker.commit(&[], limit).await;
    let taken = committed.claimed.unwrap().into_iter();
    taken.map(|held| held.claimed.job_id).collect()
}

async fn an_overdue_job_that_cannot_be_failed_blocks_no_other_claim(world: Engine) {
    let worker = worker(&world);
    let stuck = world.enqueue::<Stuck>(0, None).await.unwrap();
    world.tick(PAST_DEADLINE);
    let others = [world.create_plain(1).await, world.create_plain(2).await];
    let committed = worker.commit(&[], 9).await;
    assert!(committed.overdue.is_err());
    let found = committed.claimed.unwrap().into_iter();
    let found: BTreeSet<JobId> = found.map(|held| held.claimed.job_id).collect();
    assert_eq!(found, BTreeSet::from(others));
    assert_eq!(world.status(&stuck).await, JobStatus::Queued);
    // A worker with one slot also serves the other lanes.
    let more = [world.create_plain(3).await, world.create_plain(4).await];
    let mut found = BTreeSet::new();
    for _ in 0..3 {
        world.tick(1);
        found.extend(claim_jobs(&worker, 1).await);
    }
    assert_eq!(found, BTreeSet::from(more));
}

async fn overdue_jobs_that_cannot_be_failed_do_not_keep_others_from_failing(world: Engine) {
    let worker = worker(&world);
    for lane in 0..6 {
        world.enqueue::<Stuck>(lane, None).await.unwrap();
    }
    world.tick(1);
    let last = world.create_plain(9).await;
    world.tick(PAST_DEADLINE);
    assert!(worker.run_timers().await.is_err());
    let ended = world.job(&last).await.failure_kind;
    assert_eq!(ended, Some(FailureKind::DeadlineExceeded));
}

#[tokio::test]
async fn leases_of_unknown_kinds_do_not_block_those_of_known_kinds() {
    let world = Engine::memory().await;
    for lane in 0..130 {
        world.create_removal(lane).await;
    }
    assert_eq!(world.worker().claim(130).await.unwrap().len(), 130);
    world.tick(1);
    let known = world.create_plain(200).await;
    assert_eq!(world.worker().claim(1).await.unwrap()[0].job_id, known);
    world.tick(31);
    assert_eq!(worker(&world).run_timers().await.unwrap().reaped, 1);
    assert_eq!(world.status(&known).await, JobStatus::Queued);
}
