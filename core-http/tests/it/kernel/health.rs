//! Health and readiness: the rate of the store checks, and their timeout.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use async_trait::async_trait;
use core_domain::kernel::{Caller, StoreError};
use core_domain::port::{Mode, Store, UnitOfWork};
use futures_util::FutureExt;
use futures_util::future::join_all;
use tokio::time::Instant;

use crate::world::World;

/// A store that counts its units of work. Without an inner store, `begin` never returns.
#[derive(Debug)]
struct ObservedStore {
    inner: Option<Arc<dyn Store>>,
    begin_count: AtomicUsize,
}

#[async_trait]
impl Store for ObservedStore {
    async fn begin(&self, mode: Mode) -> Result<Box<dyn UnitOfWork>, StoreError> {
        self.begin_count.fetch_add(1, Ordering::Relaxed);
        match &self.inner {
            Some(store) => store.begin(mode).await,
            None => std::future::pending().await,
        }
    }

    async fn back_off(&self, _: u32) {}
}

impl ObservedStore {
    fn begin_count(&self) -> usize {
        self.begin_count.load(Ordering::Relaxed)
    }
}

/// Creates services over an observed store, which hangs if `hangs` is set.
fn world_with_observed_store(hangs: bool) -> (World, Arc<ObservedStore>) {
    let mut observed = None;
    let world = World::with(|app| {
        let store = Arc::new(ObservedStore {
            inner: (!hangs).then(|| Arc::clone(&app.store)),
            begin_count: AtomicUsize::new(0),
        });
        app.store = store.clone();
        observed = Some(store);
    });
    (world, observed.unwrap())
}

#[tokio::test(start_paused = true)]
async fn the_store_is_checked_at_most_once_a_second_by_all_services() {
    let (world, store) = world_with_observed_store(false);
    let anonymous = &Caller::Anonymous;
    for round in 1..=3 {
        let paths = ["/health", "/readyz"].repeat(20);
        let all = paths.iter().flat_map(|path| {
            let services = world.services();
            services.map(|api| async move { api.get(anonymous, path).await.expect(200) })
        });
        join_all(all).await;
        assert_eq!(store.begin_count(), round);
        tokio::time::advance(Duration::from_secs(1)).await;
    }
}

#[tokio::test(start_paused = true)]
async fn readiness_fails_within_two_seconds_when_the_store_hangs() {
    let (world, store) = world_with_observed_store(true);
    let anonymous = &Caller::Anonymous;
    let began = Instant::now();
    let services = world.services();
    let answers = services.map(|api| api.get(anonymous, "/readyz"));
    for answer in join_all(answers).await {
        assert_eq!(answer.expect(503).text("status"), "degraded");
    }
    assert!(began.elapsed() < Duration::from_secs(2));
    let began = Instant::now();
    let health = world.registry.get(anonymous, "/health").await;
    assert_eq!(health.expect(200).text("status"), "degraded");
    assert!(began.elapsed() < Duration::from_secs(2));
    let began = Instant::now();
    let _ = world
        .iam
        .get(&Caller::Anonymous, "/livez")
        .await
        .expect(200);
    assert_eq!(began.elapsed(), Duration::ZERO);
    assert!(store.begin_count() <= 2);
}

#[tokio::test(start_paused = true)]
async fn clients_that_disconnect_do_not_start_more_store_checks() {
    let (world, store) = world_with_observed_store(true);
    for _ in 0..20 {
        let answer = Box::pin(world.registry.get(&Caller::Anonymous, "/readyz"));
        assert!(answer.now_or_never().is_none());
        tokio::task::yield_now().await;
    }
    assert_eq!(store.begin_count(), 1);
}
