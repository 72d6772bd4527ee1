//! The job engine alone: the test kinds of jobs, and a faulty provider.

use std::ops::Deref;
use std::sync::Arc;

use core_domain::access::authorize_operator;
use core_domain::kernel::{JobId, PlatformId, Result};
use core_domain::port::{Store, transact};
use core_domain::provisioning::LaneKey;
use core_domain::testing::named_uuid;
use core_domain::use_case::provisioning::{JobKind, enqueue};
use core_storage::fault::FaultStore;
use core_testkit::{OpenStore, manual_clock};

use super::{Backend, FakeProvider, Order, Plain, Removal, Work, World, kinds};

pub(crate) type Engine = World<FakeProvider>;

impl Engine {
    pub(crate) async fn on(backend: Backend) -> Self {
        let clock = manual_clock();
        let opened = backend.open(clock.clone()).await;
        Self::over(opened, clock, FakeProvider::default(), kinds::all())
    }

    pub(crate) async fn memory() -> Self {
        Self::on(Backend::Memory).await
    }

    /// Creates an engine in memory over a store that can inject failures. Also returns a store over the same rows
    /// without failures.
    pub(crate) fn faulty(provider: FakeProvider) -> (Self, FaultStore, Arc<dyn Store>) {
        let clock = manual_clock();
        let opened = OpenStore::in_memory(clock.clone());
        let view = Arc::clone(&opened.store);
        let (opened, faults) = opened.faulty();
        let world = Self::over(opened, clock, provider, kinds::all());
        (world, faults, view)
    }

    /// Queues an ordinary job.
    pub(crate) async fn create(&self, lane: usize) -> JobId {
        self.enqueue::<Work>(lane, None).await.unwrap()
    }

    /// Queues a job that goes to the front of its lane.
    pub(crate) async fn create_removal(&self, lane: usize) -> JobId {
        self.enqueue::<Removal>(lane, None).await.unwrap()
    }

    /// Queues a job whose outcomes are committed together with those of others.
    pub(crate) async fn create_plain(&self, lane: usize) -> JobId {
        self.enqueue::<Plain>(lane, None).await.unwrap()
    }

    pub(crate) async fn enqueue<K: JobKind<Input = Order>>(
        &self,
        lane: usize,
        key: Option<&str>,
    ) -> Result<JobId> {
        let cx = &self.operator();
        let operator = &authorize_operator(cx)?;
        let order = &Order {
            platform_id: platform(lane),
            key: key.map(str::to_owned),
        };
        let queued = transact(self.store.as_ref(), |uow, _| {
            Box::pin(enqueue::<K>(cx, operator, uow, order))
        });
        Ok(queued.await?.id.clone())
    }
}

/// An engine over a store that can inject failures.
pub(crate) struct FaultyEngine {
    engine: Engine,
    pub(crate) faults: FaultStore,
}

impl Deref for FaultyEngine {
    type Target = Engine;

    fn deref(&self) -> &Engine {
        &self.engine
    }
}

impl FaultyEngine {
    pub(crate) async fn on(backend: Backend) -> Self {
        let clock = manual_clock();
        let (opened, faults) = backend.open(clock.clone()).await.faulty();
        let provider = FakeProvider::default();
        Self {
            engine: World::over(opened, clock, provider, kinds::all()),
            faults,
        }
    }
}

pub(crate) fn platform(lane: usize) -> PlatformId {
    PlatformId::parse(&named_uuid(&format!("p{lane}"))).unwrap()
}

pub(crate) fn lane(number: usize) -> LaneKey {
    LaneKey::platform(&platform(number))
}
