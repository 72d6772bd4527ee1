//! Removing expired records, on every store: in slices, by one node at a time.

use std::sync::Arc;
use std::time::Duration;

use core_domain::iam::{AccessToken, TokenHash};
use core_domain::kernel::SessionId;
use core_domain::port::{Mode, Store, transact};
use core_domain::shared::{MaintenanceLeaseQuery, StoredResponse};
use core_domain::testing::{ManualClock, RecordKey, SeededEntropy};
use core_domain::use_case::iam::oauth;
use core_domain::use_case::shared::{
    LeaseHolder, RemoveSlice, Slice, remove_expired_answers, sweep_slice,
};
use core_testkit::manual_clock;

use crate::world::Backend;
const LEASE: Duration = Duration::from_secs(60);

const TOKENS: &RemoveSlice<'static> =
    &|uow, limit| Box::pin(oauth::remove_expired_tokens(uow, limit));
const ANSWERS: &RemoveSlice<'static> = &|uow, limit| Box::pin(remove_expired_answers(uow, limit));

struct World {
    clock: Arc<ManualClock>,
    store: Arc<dyn Store>,
    _resources: Box<dyn std::any::Any + Send + Sync>,
}

impl World {
    /// Creates a store with tokens and one stored response, which all expire in the same second.
    async fn on(backend: Backend, tokens: u32) -> Self {
        let clock = manual_clock();
        let opened = backend.open(clock.clone()).await;
        let store = opened.store;
        let filled = transact(store.as_ref(), |uow, _| {
            Box::pin(async move {
                let now = uow.now().await?;
                let expires_at = now.plus(Duration::from_secs(900));
                let repositories = uow.repositories(RecordKey::for_tests());
                let token = |nth: u32| AccessToken {
                    token_hash: TokenHash::of(&nth.to_string()),
                    session_id: SessionId::generate(now, &SeededEntropy::new(1)),
                    created_at: now,
                    expires_at,
                };
                let tokens = (0..tokens).map(token).collect();
                repositories.access_tokens().insert_many(tokens).await?;
                let answer = StoredResponse {
                    id: "key".to_owned(),
                    request_hash: String::new(),
                    status: 201,
                    headers: Vec::new(),
                    body: String::new(),
                    needs_proof: false,
                    created_at: now,
                    expires_at,
                };
                repositories.idempotency_keys().insert(answer).await?;
                Ok(())
            })
        });
        filled.await.unwrap();
        Self {
            clock,
            store,
            _resources: opened.resources,
        }
    }

    async fn sweep(&self, holder: &LeaseHolder, remove: &RemoveSlice<'_>, limit: u32) -> Slice {
        let store = self.store.as_ref();
        sweep_slice(store, holder, remove, limit, &|| ())
            .await
            .unwrap()
    }
}

fn node(number: u64) -> LeaseHolder {
    LeaseHolder::generate("sweep", LEASE, &SeededEntropy::new(number))
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_unit_removes_more_than_its_slice_if_all_records_expire_together() {
    for backend in Backend::ALL {
        let world = World::on(backend, 2_500).await;
        let node = node(1);
        world.clock.advance(Duration::from_secs(899));
        assert_eq!(world.sweep(&node, TOKENS, 1_000).await, Slice::Removed(0));
        world.clock.advance(Duration::from_secs(1));
        let mut slices = Vec::new();
        for limit in [10, 1_000, 5_000, 1_000, 1_000] {
            slices.push(world.sweep(&node, TOKENS, limit).await);
        }
        let expected = [10, 1_000, 1_000, 490, 0].map(Slice::Removed);
        assert_eq!(slices, expected, "{backend:?}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn one_node_at_a_time_sweeps_until_its_lease_expires_or_it_releases_it() {
    for backend in Backend::ALL {
        let world = World::on(backend, 100).await;
        world.clock.advance(Duration::from_secs(1_000));
        let [first, second] = [node(1), node(2)];
        assert_eq!(world.sweep(&first, TOKENS, 10).await, Slice::Removed(10));
        assert_eq!(
            world.sweep(&second, TOKENS, 10).await,
            Slice::Busy,
            "{backend:?}"
        );
        // A slice renews the lease.
        world.clock.advance(LEASE * 3 / 4);
        assert_eq!(world.sweep(&first, TOKENS, 10).await, Slice::Removed(10));
        world.clock.advance(LEASE * 3 / 4);
        assert_eq!(world.sweep(&second, TOKENS, 10).await, Slice::Busy);
        world.clock.advance(LEASE / 4);
        assert_eq!(world.sweep(&second, TOKENS, 10).await, Slice::Removed(10));
        assert_eq!(world.sweep(&first, TOKENS, 10).await, Slice::Busy);
        // A node cannot release a lease that another node holds.
        first.release(world.store.as_ref()).await.unwrap();
        assert_eq!(world.sweep(&first, TOKENS, 10).await, Slice::Busy);
        second.release(world.store.as_ref()).await.unwrap();
        assert_eq!(world.sweep(&first, TOKENS, 10).await, Slice::Removed(10));
        let sole = LeaseHolder::exclusive("another task", LEASE);
        assert_eq!(world.sweep(&sole, ANSWERS, 10).await, Slice::Removed(1));
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn concurrent_nodes_remove_every_record_once() {
    for backend in Backend::ALL {
        let world = World::on(backend, 300).await;
        world.clock.advance(Duration::from_secs(1_000));
        let sweep = async |number: u64| {
            let (holder, mut removed) = (node(number), 0);
            loop {
                match world.sweep(&holder, TOKENS, 10).await {
                    Slice::Removed(0) => break,
                    Slice::Removed(some) => removed += some,
                    Slice::Busy => tokio::task::yield_now().await,
                }
            }
            holder.release(world.store.as_ref()).await.unwrap();
            removed
        };
        let (a, b, c) = tokio::join!(sweep(1), sweep(2), sweep(3));
        assert_eq!(a + b + c, 300, "{backend:?}");
        let mut uow = world.store.begin(Mode::Read).await.unwrap();
        assert!(uow.now().await.is_ok());
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_lease_is_released_although_another_node_checks_it_at_that_moment() {
    for backend in Backend::ALL {
        let world = World::on(backend, 10).await;
        let [first, second] = [node(1), node(2)];
        assert!(first.acquire(world.store.as_ref()).await.unwrap());
        let mut checking = world.store.begin(Mode::ReadCommitted).await.unwrap();
        let leases = checking.repositories(RecordKey::for_tests());
        let of_task = MaintenanceLeaseQuery::Of("sweep".to_owned());
        let locked = leases
            .maintenance_leases()
            .claim(&of_task, 1)
            .await
            .unwrap();
        assert_eq!(locked.len(), 1, "{backend:?}");
        let store = Arc::clone(&world.store);
        let mut releasing = tokio::spawn(async move { first.release(store.as_ref()).await });
        // The check ends after the release has begun, or at the latest after this time.
        let early = tokio::time::timeout(Duration::from_millis(200), &mut releasing).await;
        checking.rollback().await;
        match early {
            Ok(released) => released.unwrap().unwrap(),
            Err(_) => releasing.await.unwrap().unwrap(),
        }
        let acquired = second.acquire(world.store.as_ref()).await.unwrap();
        assert!(acquired, "{backend:?}");
    }
}
