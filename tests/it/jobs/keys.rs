//! The scope of idempotency keys of jobs.

use core_domain::kernel::{JobId, TextValue};
use core_domain::provisioning::{Job, JobKey, JobStatus};
use core_domain::use_case::provisioning::JobKind;

use crate::world::{Engine, Plain, Work, on_every_store};

on_every_store! {
    Engine:
        a_key_is_unique_per_kind_and_platform,
        a_key_stored_by_an_earlier_version_is_still_found,
}

async fn enqueue<K: JobKind<Input = crate::world::Order>>(
    world: &Engine,
    lane: usize,
    key: &str,
) -> JobId {
    world.enqueue::<K>(lane, Some(key)).await.unwrap()
}

async fn a_key_is_unique_per_kind_and_platform(world: Engine) {
    let work = enqueue::<Work>(&world, 0, "may").await;
    let plain = enqueue::<Plain>(&world, 0, "may").await;
    let elsewhere = enqueue::<Work>(&world, 1, "may").await;
    assert!(work != plain && work != elsewhere && plain != elsewhere);
    assert_eq!(world.job(&plain).await.kind, Plain::NAME);
    for _ in 0..2 {
        assert_eq!(enqueue::<Work>(&world, 0, "may").await, work);
        assert_eq!(enqueue::<Plain>(&world, 0, "may").await, plain);
        assert_eq!(enqueue::<Work>(&world, 1, "may").await, elsewhere);
    }
    assert_eq!(world.jobs().await.len(), 3);
    let shown = serde_json::to_value(world.job(&work).await).unwrap();
    assert_eq!(shown["idempotencyKey"], "may");
}

async fn a_key_stored_by_an_earlier_version_is_still_found(world: Engine) {
    let now = world.create(0).await;
    let old = Job {
        id: JobId::parse("0190a000-0000-7000-8000-000000000001").unwrap(),
        idempotency_key: JobKey::from_text("june"),
        status: JobStatus::Completed,
        finished_at: Some(world.job(&now).await.created_at),
        ..world.job(&now).await
    };
    world.insert(old.clone()).await;
    assert_eq!(enqueue::<Work>(&world, 0, "june").await, old.id);
    let other = enqueue::<Plain>(&world, 0, "june").await;
    assert_ne!(other, old.id);
    assert_eq!(enqueue::<Plain>(&world, 0, "june").await, other);
}
