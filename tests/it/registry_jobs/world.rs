//! What these tests work in: a store, a clock that stands still, a person, and the local provider in a folder.

use std::any::Any;
use std::collections::BTreeSet;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use core_domain::kernel::{
    Caller, Context, Email, Entropy, JobId, ManualClock, Name, PlatformId, SeededEntropy,
    SessionId, Slug, Timestamp, UserId,
};
use core_domain::port::{MemoryBlobs, Mode, ProviderError, Store, Stored, UnitOfWork, transact};
use core_domain::provisioning::{Job, JobQuery, JobStatus, Kinds};
use core_domain::registry::{Resource, ResourceQuery};
use core_domain::use_case::iam::{SignUp, sign_up};
use core_domain::use_case::provisioning::{Outcome, Unsupervised, Worker};
use core_domain::use_case::registry::{
    OrganizationSetup, OrganizationSetupDone, kinds, organization_setup,
};
use core_local::{Faults, LocalConfig, LocalInfrastructure, Moment};
use core_storage::fault::FaultStore;
use core_storage::{RecordStore, memory, postgres, sqlite, testing};
use tempfile::TempDir;

/// The fault that the next fitting call meets: the call, which of them (0 is the next), and when in it.
type Trap = (&'static str, usize, Moment);

pub(super) struct World {
    pub(super) store: Arc<dyn Store>,
    pub(super) clock: Arc<ManualClock>,
    pub(super) local: LocalInfrastructure,
    pub(super) cx: Context,
    pub(super) trap: Arc<Mutex<Option<Trap>>>,
    entropy: Arc<dyn Entropy>,
    _keeps: (TempDir, Box<dyn Any + Send + Sync>),
}

/// A person with a session.
pub(super) struct Person {
    pub(super) user_id: UserId,
    pub(super) session_id: SessionId,
}

impl Person {
    pub(super) fn caller(&self) -> Caller {
        Caller::User {
            user_id: self.user_id.clone(),
            session_id: Some(self.session_id.clone()),
            membership: None,
        }
    }
}

fn clock() -> Arc<ManualClock> {
    Arc::new(ManualClock::at(Timestamp::from_seconds(1_800_000_000)))
}

/// The call fails at the moment that was asked for, once: the caller does not know what happened.
fn faults(trap: &Arc<Mutex<Option<Trap>>>) -> Faults {
    let trap = Arc::clone(trap);
    Faults::new(move |point| {
        let mut set = trap.lock().unwrap();
        let (call, left, moment) = set.as_mut()?;
        if *call != point.call || *moment != point.moment {
            return None;
        }
        if *left > 0 {
            *left -= 1;
            return None;
        }
        *set = None;
        Some(ProviderError::OutcomeUnknown("no answer".to_owned()))
    })
}

impl World {
    async fn over(
        store: Arc<dyn Store>,
        clock: Arc<ManualClock>,
        keeps: Box<dyn Any + Send + Sync>,
    ) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let trap = Arc::default();
        let mut config = LocalConfig::new(folder.path(), 8090, clock.clone());
        config.faults = faults(&trap);
        let local = LocalInfrastructure::open(config).await.unwrap();
        let entropy: Arc<dyn Entropy> = Arc::new(SeededEntropy::new(7));
        Self {
            store,
            clock,
            local,
            cx: Context::system(Arc::clone(&entropy)),
            trap,
            entropy,
            _keeps: (folder, keeps),
        }
    }

    pub(super) async fn memory() -> Self {
        let clock = clock();
        let store = memory::open(memory::MemoryConfig {
            clock: clock.clone(),
            cursor_key: [7_u8; 32].into(),
        });
        Self::over(store, clock, Box::new(())).await
    }

    /// In memory, over an engine that fails when told to.
    pub(super) async fn faulty() -> (Self, FaultStore) {
        let clock = clock();
        let faults = FaultStore::new(memory::rows(clock.clone()));
        let store = RecordStore::new(Arc::new(faults.clone()), [7_u8; 32]);
        let world = Self::over(Arc::new(store), clock, Box::new(())).await;
        (world, faults)
    }

    pub(super) async fn sqlite() -> Self {
        let clock = clock();
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("jobs.db");
        let mut config = sqlite::SqliteConfig::new(path, clock.clone(), [7_u8; 32]);
        config.survive_power_cut = false;
        let store = sqlite::open(config).await.unwrap();
        Self::over(store, clock, Box::new(folder)).await
    }

    pub(super) async fn postgres() -> Self {
        let clock = clock();
        let database = testing::postgres().await;
        let mut config = postgres::PostgresConfig::new(&database.url, [7_u8; 32]);
        config.clock = Some(clock.clone());
        let store = postgres::open(config).await.unwrap();
        Self::over(store, clock, Box::new(database)).await
    }

    pub(super) async fn person(&self) -> Person {
        let new = SignUp {
            name: "Ada".to_owned(),
            email: Email::parse("ada@example.org").unwrap(),
            image: None,
            password_hash: "none".to_owned(),
            remembered: true,
        };
        let signed_in = transact(self.store.as_ref(), |uow, _| {
            Box::pin(sign_up(&self.cx, uow, &new))
        });
        let signed_in = signed_in.await.unwrap();
        Person {
            user_id: signed_in.user.id.clone(),
            session_id: signed_in.session.id.clone(),
        }
    }

    /// A person sets up an organization with this slug.
    pub(super) async fn set_up(&self, slug: &str) -> OrganizationSetupDone {
        let person = self.person().await;
        let cx = Context {
            caller: person.caller(),
            ..self.cx.clone()
        };
        let input = OrganizationSetup {
            name: Name::parse("Engines").unwrap(),
            slug: Slug::parse(slug).unwrap(),
            user_id: person.user_id.clone(),
            session_id: person.session_id.clone(),
        };
        let set_up = transact(self.store.as_ref(), |uow, _| {
            Box::pin(organization_setup(&cx, uow, input.clone()))
        });
        set_up.await.unwrap()
    }

    pub(super) fn worker(&self) -> Worker {
        Worker::new(
            Arc::clone(&self.store),
            Arc::new(self.local.clone()),
            Arc::new(MemoryBlobs::default()),
            Arc::new(Kinds::new(kinds())),
            Arc::clone(&self.entropy),
        )
    }

    /// Works until every job has ended.
    pub(super) async fn until_idle(&self) {
        for _ in 0..100 {
            let worker = self.worker();
            worker.sweep().await.unwrap();
            if worker.run_one(&Unsupervised).await.unwrap() != Outcome::Idle {
                continue;
            }
            if self.jobs().await.iter().all(|job| job.status.is_terminal()) {
                return;
            }
            self.clock.advance(Duration::from_secs(31));
        }
        panic!("jobs do not end: {:?}", self.jobs().await);
    }

    pub(super) async fn unit(&self) -> Box<dyn UnitOfWork> {
        self.store.begin(Mode::Read).await.unwrap()
    }

    pub(super) async fn jobs(&self) -> Vec<Stored<Job>> {
        let all = JobQuery::Of {
            platform_id: None,
            status: None,
        };
        self.unit().await.jobs().list(&all, 1_000).await.unwrap()
    }

    pub(super) async fn job(&self, id: &JobId) -> Job {
        let job = self.unit().await.jobs().get(id.as_str()).await.unwrap();
        job.unwrap().into_inner()
    }

    pub(super) async fn status(&self, id: &JobId) -> JobStatus {
        self.job(id).await.status
    }

    /// The entries of the catalogue, oldest first.
    pub(super) async fn entries(&self, platform: &PlatformId, deleted: bool) -> Vec<Resource> {
        let query = ResourceQuery::OfPlatform {
            platform_id: platform.clone(),
            deleted,
        };
        let mut uow = self.unit().await;
        let mut rows = uow.resources().list(&query, 1_000).await.unwrap();
        rows.reverse();
        rows.into_iter().map(Stored::into_inner).collect()
    }

    /// The names of what really exists and belongs to the platform.
    pub(super) async fn things(&self, platform: &PlatformId) -> BTreeSet<String> {
        let all = self.local.inventory().await.unwrap();
        let own = all
            .into_iter()
            .filter(|(_, owner)| owner == platform.as_str());
        own.map(|(resource, _)| resource.name).collect()
    }

    /// What there must be after provisioning in one environment: six things, each once, and six entries that say so.
    pub(super) async fn has_exactly_six(&self, platform: &PlatformId, context: &str) {
        let things = self.things(platform).await;
        let entries = self.entries(platform, true).await;
        let named: BTreeSet<String> = entries.iter().map(|r| r.cf_name.clone()).collect();
        assert_eq!(
            (things.len(), entries.len()),
            (6, 6),
            "{context}: {things:?}"
        );
        assert_eq!(things, named, "{context}");
    }
}
