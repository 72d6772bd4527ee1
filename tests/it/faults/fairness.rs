//! F11: one platform queues ten thousand jobs, another one queues one job.

use crate::jobs::{assert_invariants, queue_orders};
use crate::world::{Engine, Order, on_every_store, platform};

on_every_store! {
    Engine: ten_thousand_jobs_of_one_platform_delay_another_by_one_claim,
}

async fn ten_thousand_jobs_of_one_platform_delay_another_by_one_claim(world: Engine) {
    let of = |lane| Order {
        platform_id: platform(lane),
        key: None,
    };
    for _ in 0..10 {
        queue_orders(&world, &vec![of(0); 1_000]).await;
    }
    let worker = world.worker();
    let many = worker.claim(1).await.unwrap();
    let one = world.create_plain(1).await;
    let next = worker.claim(1).await.unwrap();
    assert_eq!(next[0].job_id, one, "I18");
    assert_ne!(many, next);
    assert_invariants(&world).await;
}
