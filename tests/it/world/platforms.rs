//! Platforms and the jobs of the registry, with the local provider in a temporary folder.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Deref;
use std::path::Path;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use core_domain::access::{PublicScope, authorize_new_organization};
use core_domain::iam::{PasswordHash, SetUpOrganization};
use core_domain::kernel::{
    Caller, Clock, Context, Email, Environment, JobId, Line, OrganizationName, PersonName,
    PlatformId, Slug, Timestamp,
};
use core_domain::port::{ProviderError, transact};
use core_domain::registry::{PlatformStatus, Resource, ResourceQuery};
use core_domain::testing::{ManualClock, MemoryDns};
use core_domain::use_case::iam::user::{SignUp, sign_up};
use core_domain::use_case::provisioning::{Kinds, Outcome};
use core_domain::use_case::registry::provision::{self, ProvisionCommand};
use core_domain::use_case::registry::tenant::{self, OrganizationSetUp};
use core_domain::use_case::registry::{platform, register_kinds};
use core_local::{FaultMoment, Faults, LocalConfig, LocalInfrastructure};
use core_storage::fault::FaultStore;
use core_storage::memory::MemoryRows;
use core_testkit::{OpenStore, StoreLocation, manual_clock};
use tempfile::TempDir;

use super::{Backend, World};

/// The URL of IAM in the configuration of auth workers.
const IAM: &str = "http://iam.test";

/// A call of the provider that fails.
struct Fault {
    call: &'static str,
    /// The number of these calls that succeed before.
    after: usize,
    moment: FaultMoment,
    error: ProviderError,
    /// True if all later calls fail as well.
    lasts: bool,
    is_met: bool,
}

type Trap = Arc<Mutex<Option<Fault>>>;

/// The number of calls of the provider by name; the key `true` counts completed calls.
pub(crate) type Calls = BTreeMap<(&'static str, bool), usize>;

pub(crate) struct Platforms {
    world: World<LocalInfrastructure>,
    location: StoreLocation,
    /// The folder of the provider.
    folder: TempDir,
    trap: Trap,
    calls: Arc<Mutex<Calls>>,
    /// The DNS records that lookups return.
    pub(crate) dns: Arc<MemoryDns>,
}

/// The state of platforms in memory: the records, the time, the provider's objects and the DNS records.
pub(crate) struct Image {
    rows: Arc<MemoryRows>,
    clock: Arc<ManualClock>,
    now: Timestamp,
    folder: TempDir,
    dns: MemoryDns,
}

impl Deref for Platforms {
    type Target = World<LocalInfrastructure>;

    fn deref(&self) -> &Self::Target {
        &self.world
    }
}

/// Runs a use case on a platform as the operator, with the permissions that the use case requires.
macro_rules! as_operator {
    ($world:expr, $platform:expr, |$cx:ident, $scope:ident, $uow:ident| $does:expr) => {{
        let ($cx, platform) = (&$world.operator(), $platform);
        let done = ::core_domain::port::transact($world.store.as_ref(), |$uow, _| {
            Box::pin(async move {
                let $scope = &::core_domain::access::authorize($cx, $uow, platform).await?;
                $does.await
            })
        });
        done.await.unwrap()
    }};
}
pub(crate) use as_operator;

/// Returns a temporary folder with the files of another folder.
fn copy_of(folder: &Path) -> TempDir {
    fn copy_into(from: &Path, to: &Path) {
        for entry in std::fs::read_dir(from).unwrap() {
            let entry = entry.unwrap();
            let to = to.join(entry.file_name());
            if entry.file_type().unwrap().is_dir() {
                std::fs::create_dir(&to).unwrap();
                copy_into(&entry.path(), &to);
            } else {
                std::fs::copy(entry.path(), to).unwrap();
            }
        }
    }
    let copy = tempfile::tempdir().unwrap();
    copy_into(folder, copy.path());
    copy
}

impl Platforms {
    pub(crate) async fn on(backend: Backend) -> Self {
        let clock = manual_clock();
        let opened = backend.open(clock.clone()).await;
        Self::over(
            opened,
            clock,
            tempfile::tempdir().unwrap(),
            MemoryDns::default(),
        )
        .await
    }

    pub(crate) async fn memory() -> Self {
        Self::on(Backend::Memory).await
    }

    /// Creates platforms in memory over a store that can inject failures.
    pub(crate) async fn faulty() -> (Self, FaultStore) {
        let clock = manual_clock();
        let (opened, faults) = OpenStore::in_memory(clock.clone()).faulty();
        let (folder, dns) = (tempfile::tempdir().unwrap(), MemoryDns::default());
        (Self::over(opened, clock, folder, dns).await, faults)
    }

    /// Returns a copy of the state of these platforms, which are in memory.
    pub(crate) fn image(&self) -> Image {
        let StoreLocation::Process(rows) = &self.location else {
            panic!("the platforms are not in memory");
        };
        Image {
            rows: rows.copy(),
            clock: Arc::clone(&self.clock),
            now: self.clock.now(),
            folder: copy_of(self.folder.path()),
            dns: self.dns.copy(),
        }
    }

    /// Returns platforms in the state of the image, a second later. All platforms of an image share one clock, so that
    /// only the last ones can be used.
    pub(crate) async fn from_image(image: &Image) -> Self {
        // The random numbers start again, so new ids differ from those of the image by the time alone.
        image.clock.set(image.now.plus(Duration::from_secs(1)));
        let opened = OpenStore::over_memory(image.rows.copy());
        let folder = copy_of(image.folder.path());
        Self::over(opened, Arc::clone(&image.clock), folder, image.dns.copy()).await
    }

    async fn over(
        opened: OpenStore,
        clock: Arc<ManualClock>,
        folder: TempDir,
        dns: MemoryDns,
    ) -> Self {
        let trap = Trap::default();
        let mut config = LocalConfig::new(folder.path(), 8090, clock.clone());
        let calls = Arc::<Mutex<Calls>>::default();
        config.faults = faults(Arc::clone(&trap), Arc::clone(&calls));
        let local = LocalInfrastructure::open(config).await.unwrap();
        let dns = Arc::new(dns);
        let kinds = register_kinds(Kinds::new(), dns.clone(), IAM).unwrap();
        let location = opened.location.clone();
        let world = World::over(opened, clock, local, kinds);
        Self {
            world,
            location,
            folder,
            trap,
            calls,
            dns,
        }
    }

    /// Leaves one call without a reply, after `after` calls with a reply. The caller does not know what happened.
    pub(crate) fn leave_unanswered(&self, call: &'static str, after: usize, moment: FaultMoment) {
        let error = ProviderError::OutcomeUnknown("no answer".into());
        self.fail(Fault {
            call,
            after,
            moment,
            error,
            lasts: false,
            is_met: false,
        });
    }

    /// Refuses all calls permanently after `after` successful ones, until [`Platforms::refuse_nothing`].
    pub(crate) fn refuse_after(&self, call: &'static str, after: usize) {
        let error = ProviderError::Permanent("not like this".to_owned());
        let moment = FaultMoment::Before;
        self.fail(Fault {
            call,
            after,
            moment,
            error,
            lasts: true,
            is_met: false,
        });
    }

    pub(crate) fn refuse_nothing(&self) {
        *self.trap.lock().unwrap() = None;
    }

    fn fail(&self, fault: Fault) {
        *self.trap.lock().unwrap() = Some(fault);
    }

    /// Returns the number of calls since the last time, and starts again at zero.
    pub(crate) fn take_calls(&self) -> Calls {
        std::mem::take(&mut self.calls.lock().unwrap())
    }

    /// Returns whether the call that was to fail was made.
    pub(crate) fn has_failed(&self) -> bool {
        self.trap
            .lock()
            .unwrap()
            .as_ref()
            .is_some_and(|fault| fault.is_met)
    }

    /// Creates a user with a session.
    pub(crate) async fn person(&self) -> Context {
        self.person_at("ada@example.org").await
    }

    /// Creates a user with this address and a session.
    pub(crate) async fn person_at(&self, email: &str) -> Context {
        let new = &SignUp {
            name: PersonName::parse("Ada").unwrap(),
            email: Email::parse(email).unwrap(),
            image: None,
            password_hash: PasswordHash::new("none".to_owned()),
            remembered: true,
        };
        let cx = &self.operator();
        let signed_in = transact(self.store.as_ref(), |uow, _| {
            Box::pin(async move { sign_up(cx, &PublicScope::open(), uow, new).await })
        });
        let signed_in = signed_in.await.unwrap();
        let caller = Caller::User {
            user_id: signed_in.user.id.clone(),
            session_id: Some(signed_in.session.id.clone()),
            service: None,
            membership: None,
        };
        Context {
            caller: Arc::new(caller),
            ..cx.clone()
        }
    }

    /// Creates a user who sets up an organization with this slug.
    pub(crate) async fn set_up(&self, slug: &str) -> OrganizationSetUp {
        self.set_up_by("ada@example.org", slug).await
    }

    /// Creates a user with this address, who sets up an organization.
    pub(crate) async fn set_up_by(&self, email: &str, slug: &str) -> OrganizationSetUp {
        let cx = &self.person_at(email).await;
        let command = &SetUpOrganization {
            name: OrganizationName::parse("Engines").unwrap(),
            slug: Slug::parse(slug).unwrap(),
        };
        let set_up = transact(self.store.as_ref(), |uow, _| {
            Box::pin(async move {
                let scope = authorize_new_organization(cx, uow).await?;
                tenant::set_up(cx, &scope, uow, command.clone()).await
            })
        });
        set_up.await.unwrap()
    }

    /// Creates a platform and completes its provisioning.
    pub(crate) async fn complete(&self) -> PlatformId {
        let done = self.set_up("engines").await;
        self.until_idle().await;
        done.platform_id
    }

    pub(crate) async fn provision(&self, platform: &PlatformId, at: Environment) -> JobId {
        let command = &ProvisionCommand {
            platform_id: platform.clone(),
            plan_tier: Line::parse("starter").unwrap(),
            billing_email: Email::parse("ada@example.org").unwrap(),
            default_entity_id: None,
            environment: at,
        };
        let job = as_operator!(self, platform, |cx, scope, uow| provision::provision(
            cx,
            scope,
            uow,
            command.clone()
        ));
        job.id.clone()
    }

    pub(crate) async fn deprovision(&self, platform: &PlatformId, at: Environment) -> JobId {
        let job = as_operator!(self, platform, |cx, scope, uow| provision::deprovision(
            cx, scope, uow, at
        ));
        job.id.clone()
    }

    pub(crate) async fn hard_delete(&self, id: &PlatformId) {
        let kinds = self.kinds.as_ref();
        let deleted = as_operator!(self, id, |cx, scope, uow| platform::hard_delete(
            cx, scope, uow, kinds, None
        ));
        assert_eq!(deleted.status, PlatformStatus::Deleted);
    }

    /// Returns whether there is no job that a worker could claim.
    pub(crate) async fn is_idle(&self) -> bool {
        self.run_one().await == Outcome::Idle
    }

    /// Returns the resource records of a platform.
    pub(crate) async fn entries(&self, platform: &PlatformId, deleted: bool) -> Vec<Resource> {
        let mut found: Vec<Resource> = self.list(ResourceQuery::All { deleted }).await;
        found.retain(|entry| entry.platform_id == *platform);
        found
    }

    /// Returns the names of the existing objects that belong to the platform.
    pub(crate) async fn objects(&self, platform: &PlatformId) -> BTreeSet<String> {
        let all = self.provider.inventory().await.unwrap().into_iter();
        let own = all.filter(|(_, owner)| owner == platform.as_str());
        own.map(|(resource, _)| resource.name).collect()
    }

    /// Checks the result of provisioning one environment: six objects, and a record for each.
    pub(crate) async fn assert_six_objects(&self, platform: &PlatformId, context: &str) {
        let objects = self.objects(platform).await;
        let entries = self.entries(platform, true).await;
        let named: BTreeSet<String> = entries.iter().map(|r| r.cf_name.to_string()).collect();
        let counts = (objects.len(), entries.len());
        assert_eq!(counts, (6, 6), "{context}: {objects:?}");
        assert_eq!(objects, named, "{context}");
    }

    pub(crate) async fn assert_nothing_left(&self, platform: &PlatformId, context: &str) {
        let objects = self.objects(platform).await;
        assert!(objects.is_empty(), "{context}: {objects:?}");
        let entries = self.entries(platform, true).await;
        assert!(entries.is_empty(), "{context}: {entries:?}");
        let row: Option<core_domain::registry::Platform> = self.find(platform).await;
        assert!(row.is_none(), "{context}");
    }
}

fn faults(trap: Trap, calls: Arc<Mutex<Calls>>) -> Faults {
    Faults::new(move |point| {
        let is_done = point.moment == FaultMoment::Done;
        if is_done || point.moment == FaultMoment::Before {
            let mut calls = calls.lock().unwrap();
            *calls.entry((point.call, is_done)).or_default() += 1;
        }
        let mut trap = trap.lock().unwrap();
        let fault = trap.as_mut()?;
        if fault.call != point.call || fault.moment != point.moment || fault.is_met && !fault.lasts
        {
            return None;
        }
        if fault.after > 0 {
            fault.after -= 1;
            return None;
        }
        fault.is_met = true;
        Some(fault.error.clone())
    })
}
