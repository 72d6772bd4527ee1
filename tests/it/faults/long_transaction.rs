//! F12: a transaction stays open while jobs run, so that Postgres cannot remove old row versions.

use core_domain::port::Mode;
use core_domain::provisioning::{Job, JobLease, JobLeaseQuery};
use core_suite::{WorkerOptions, WorkerWake, start_worker};

use crate::jobs::{assert_invariants, queue_orders};
use crate::world::{ALL_JOBS, Backend, Engine, Order, list, platform};

const JOBS: usize = 1_000;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn jobs_complete_while_a_transaction_stays_open() {
    let world = Engine::on(Backend::Postgres).await;
    let order = |at| Order {
        platform_id: platform(at % 40),
        key: None,
    };
    let orders: Vec<Order> = (0..JOBS).map(order).collect();
    let ids = queue_orders(&world, &orders).await;
    let mut open = world.store.begin(Mode::Read).await.unwrap();
    let before: Vec<Job> = list(open.as_mut(), ALL_JOBS).await;
    assert_eq!(before.len(), JOBS);

    let options = WorkerOptions {
        sole_user: false,
        ..WorkerOptions::default()
    };
    let handle = start_worker(world.worker(), &WorkerWake::default(), options);
    for id in &ids {
        while !world.status(id).await.is_terminal() {
            // The transaction still has its first snapshot. The query also shows Postgres that the client is alive.
            let leases: Vec<JobLease> = list(open.as_mut(), JobLeaseQuery::All).await;
            assert_eq!(leases, []);
        }
    }
    handle.stop().await;
    open.rollback().await;
    assert_invariants(&world).await;
}
