//! What the tests of the job engine work in: a store, a clock that stands still, a provider that misbehaves, one kind.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use async_trait::async_trait;
use core_domain::kernel::{
    Caller, Context, Entropy, JobId, ManualClock, PlatformId, SeededEntropy, Timestamp,
};
use core_domain::port::{
    BlobError, Blobs, CreateResource, Infrastructure, ProviderError, Provisioned, ResourceRef,
    SiteDeployment, SiteUpload, Store, Stored, transact,
};
use core_domain::provisioning::{
    Job, JobKind, JobQuery, JobStep, Kinds, LaneKey, Observation, StepContext, StepError,
};
use core_domain::registry::ResourceType;
use core_domain::use_case::provisioning::{NewJob, Worker, enqueue};
use core_storage::fault::FaultStore;
use core_storage::{RecordStore, memory, postgres, sqlite, testing};
use serde_json::{Value, json};

/// Names of the steps of the one kind.
pub(super) const STEPS: [&str; 3] = ["db", "bucket", "site"];

/// A provider in memory that can apply and then not answer, fail before it applies, or refuse.
#[derive(Debug, Default)]
pub(super) struct FakeProvider {
    /// Objects by name, with the effect keys that made them.
    pub(super) objects: Mutex<BTreeMap<String, Vec<String>>>,
    /// What the next calls do, last first; empty: they work.
    pub(super) script: Mutex<Vec<Fault>>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Fault {
    None,
    Before,
    AfterApply,
    Throttled,
    Permanent,
    /// The step breaks down.
    Panic,
    /// No answer, ever.
    Hang,
}

#[async_trait]
impl Infrastructure for FakeProvider {
    async fn observe(&self, resource: &ResourceRef) -> Result<Option<Provisioned>, ProviderError> {
        let objects = self.objects.lock().unwrap();
        Ok(objects
            .get(&resource.name)
            .map(|_| provisioned(&resource.name)))
    }

    async fn create(&self, request: &CreateResource) -> Result<Provisioned, ProviderError> {
        let fault = self.script.lock().unwrap().pop().unwrap_or(Fault::None);
        match fault {
            Fault::Before => return Err(ProviderError::Transient("down".into())),
            Fault::Throttled => {
                return Err(ProviderError::Throttled {
                    retry_after_seconds: 7,
                });
            }
            Fault::Permanent => return Err(ProviderError::Permanent("no".into())),
            Fault::Panic => panic!("a step breaks down"),
            Fault::Hang => return std::future::pending().await,
            Fault::None | Fault::AfterApply => {}
        }
        let name = request.resource.name.clone();
        let mut objects = self.objects.lock().unwrap();
        // A provider without idempotency: only looking first keeps a second request from being a second object.
        objects
            .entry(name.clone())
            .or_default()
            .push(request.effect_key.clone());
        if fault == Fault::AfterApply {
            return Err(ProviderError::OutcomeUnknown("no answer".into()));
        }
        Ok(provisioned(&name))
    }

    async fn remove(&self, resource: &ResourceRef, _: &str) -> Result<(), ProviderError> {
        self.objects.lock().unwrap().remove(&resource.name);
        Ok(())
    }

    async fn deploy_site(&self, _: SiteUpload) -> Result<SiteDeployment, ProviderError> {
        Err(ProviderError::Permanent("no sites here".into()))
    }

    async fn site_deployment(
        &self,
        _: &str,
        _: &str,
    ) -> Result<Option<SiteDeployment>, ProviderError> {
        Ok(None)
    }
}

pub(super) fn provisioned(name: &str) -> Provisioned {
    Provisioned {
        id: format!("id-{name}"),
        url: None,
        owner: "test".into(),
    }
}

#[derive(Debug)]
pub(super) struct NoBlobs;

#[async_trait]
impl Blobs for NoBlobs {
    async fn put(&self, _: &str, _: Vec<u8>) -> Result<(), BlobError> {
        Ok(())
    }
    async fn get(&self, _: &str) -> Result<Vec<u8>, BlobError> {
        Err(BlobError::Missing)
    }
    async fn remove(&self, _: &str) -> Result<(), BlobError> {
        Ok(())
    }
}

#[derive(Debug)]
struct MakeObject;

fn object_of(cx: &StepContext<'_>) -> ResourceRef {
    let step = cx
        .job
        .current_step()
        .map_or("", |i| cx.job.steps[i].name.as_str());
    ResourceRef {
        resource_type: ResourceType::D1,
        name: format!("{}-{step}", cx.job.id),
    }
}

#[async_trait]
impl JobStep for MakeObject {
    async fn observe(&self, cx: &StepContext<'_>) -> Result<Observation, StepError> {
        let found = cx.infrastructure.observe(&object_of(cx)).await?;
        Ok(found.map_or(Observation::Absent, |o| {
            Observation::Present(json!({ "id": o.id }))
        }))
    }

    async fn apply(&self, cx: &StepContext<'_>) -> Result<Value, StepError> {
        let request = CreateResource {
            resource: object_of(cx),
            owner: "test".into(),
            effect_key: cx.effect_key.clone(),
            config: json!({}),
        };
        let made = cx.infrastructure.create(&request).await?;
        Ok(json!({ "id": made.id }))
    }
}

#[derive(Debug)]
struct TestKind(&'static str, MakeObject);

impl JobKind for TestKind {
    fn name(&self) -> &'static str {
        self.0
    }

    fn step(&self, name: &str) -> Option<&dyn JobStep> {
        STEPS.contains(&name).then_some(&self.1)
    }
}

pub(super) struct World {
    pub(super) store: Arc<dyn Store>,
    pub(super) clock: Arc<ManualClock>,
    pub(super) provider: Arc<FakeProvider>,
    pub(super) kinds: Arc<Kinds>,
    pub(super) cx: Context,
    pub(super) operator: Context,
    pub(super) entropy: Arc<dyn Entropy>,
    _keeps: Box<dyn std::any::Any + Send + Sync>,
}

fn start() -> Timestamp {
    Timestamp::from_seconds(1_800_000_000)
}

impl World {
    fn over(
        store: Arc<dyn Store>,
        clock: Arc<ManualClock>,
        keeps: Box<dyn std::any::Any + Send + Sync>,
    ) -> Self {
        let entropy: Arc<dyn Entropy> = Arc::new(SeededEntropy::new(7));
        let cx = Context::system(Arc::clone(&entropy));
        let mut operator = cx.clone();
        operator.caller = Caller::Service {
            name: "operator".into(),
        };
        let kinds = ["work", "platform.deprovision"].map(|name| {
            let kind: Arc<dyn JobKind> = Arc::new(TestKind(name, MakeObject));
            kind
        });
        Self {
            store,
            clock,
            provider: Arc::default(),
            kinds: Arc::new(Kinds::new(kinds)),
            cx,
            operator,
            entropy,
            _keeps: keeps,
        }
    }

    pub(super) fn memory() -> Self {
        let clock = Arc::new(ManualClock::at(start()));
        let store = memory::open(memory::MemoryConfig {
            clock: clock.clone(),
            cursor_key: [7_u8; 32].into(),
        });
        Self::over(store, clock, Box::new(()))
    }

    /// In memory, over an engine that fails when told to.
    pub(super) fn faulty() -> (Self, FaultStore) {
        let (world, faults, _) = Self::faulty_with_view();
        (world, faults)
    }

    /// As [`World::faulty`], with a store over the same rows that does not fail.
    pub(super) fn faulty_with_view() -> (Self, FaultStore, Arc<dyn Store>) {
        let clock = Arc::new(ManualClock::at(start()));
        let rows = memory::rows(clock.clone());
        let view = Arc::new(RecordStore::new(Arc::clone(&rows), [7_u8; 32]));
        let faults = FaultStore::new(rows);
        let store = RecordStore::new(Arc::new(faults.clone()), [7_u8; 32]);
        let world = Self::over(Arc::new(store), clock, Box::new(()));
        (world, faults, view)
    }

    pub(super) async fn sqlite() -> Self {
        let clock = Arc::new(ManualClock::at(start()));
        let folder = tempfile::tempdir().unwrap();
        let mut config =
            sqlite::SqliteConfig::new(folder.path().join("jobs.db"), clock.clone(), [7_u8; 32]);
        config.survive_power_cut = false;
        let store = sqlite::open(config).await.unwrap();
        Self::over(store, clock, Box::new(folder))
    }

    pub(super) async fn postgres() -> Self {
        let clock = Arc::new(ManualClock::at(start()));
        let database = testing::postgres().await;
        let mut config = postgres::PostgresConfig::new(&database.url, [7_u8; 32]);
        config.clock = Some(clock.clone());
        let store = postgres::open(config).await.unwrap();
        Self::over(store, clock, Box::new(database))
    }

    pub(super) fn worker(&self) -> Worker {
        Worker::new(
            Arc::clone(&self.store),
            self.provider.clone(),
            Arc::new(NoBlobs),
            Arc::clone(&self.kinds),
            Arc::clone(&self.entropy),
        )
    }

    pub(super) async fn create(&self, lane: usize, kind: &'static str, front: bool) -> JobId {
        let platform = platform(lane);
        let job = transact(self.store.as_ref(), |uow, _| {
            let mut new = NewJob::for_platform(kind, platform.clone(), &STEPS);
            new.front = front;
            Box::pin(enqueue(&self.operator, uow, new))
        })
        .await
        .unwrap();
        job.id.clone()
    }

    pub(super) async fn job(&self, id: &JobId) -> Job {
        let mut uow = self
            .store
            .begin(core_domain::port::Mode::Auto)
            .await
            .unwrap();
        uow.jobs()
            .get(id.as_str())
            .await
            .unwrap()
            .unwrap()
            .into_inner()
    }

    pub(super) async fn jobs(&self) -> Vec<Stored<Job>> {
        let mut uow = self
            .store
            .begin(core_domain::port::Mode::Auto)
            .await
            .unwrap();
        let all = JobQuery::Of {
            platform_id: None,
            status: None,
        };
        uow.jobs().list(&all, 10_000).await.unwrap()
    }

    pub(super) fn tick(&self, seconds: u64) {
        self.clock.advance(Duration::from_secs(seconds));
    }
}

pub(super) fn platform(lane: usize) -> PlatformId {
    PlatformId::parse(&format!("p{lane}")).unwrap()
}

pub(super) fn lane(number: usize) -> LaneKey {
    LaneKey::platform(&platform(number))
}
