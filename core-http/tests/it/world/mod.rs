//! The shared test environment: every service over one store, with a manual clock and an in-memory provider.

mod announcer;
mod api;
mod api_keys;
mod archives;
mod billing;
mod callers;
mod devices;
mod domains;
mod follower;
mod limits;
mod looks;
mod mails;
mod organizations;
mod passkeys;
mod payments;
mod provider;
mod records;
pub(crate) mod reference;
mod seals;
mod second_factors;
pub(crate) mod server;
mod stores;
mod stripe;
mod taxes;
mod usage;
mod webhooks;

use std::any::Any;
use std::sync::Arc;
use std::time::Duration;

use core_domain::billing::PlanCatalog;
use core_domain::gateway::TrustedProxies;
use core_domain::kernel::{Clock, Context, DlqEntryId, JobId, Result, Stored, Timestamp};
use core_domain::port::{Infrastructure, Persisted, Within, transact};
use core_domain::provisioning::Job;
use core_domain::testing::{ManualClock, MemoryDns, MemoryInfrastructure, RecordKey};
use core_domain::use_case::billing::Billing;
use core_domain::use_case::billing::advance_job::register_kinds as register_billing;
use core_domain::use_case::billing::clock::BillingClock;
use core_domain::use_case::billing::page_links::PageLinks;
use core_domain::use_case::cli;
use core_domain::use_case::provisioning::{Kinds, NoSupervisor, Outcome, Worker};
use core_domain::use_case::registry::deployment::fail_stuck;
use core_domain::use_case::registry::register_kinds;
use core_http::cli::CliConfig;
use core_http::iam::{IamConfig, IamOptions};
use core_http::kernel::testing::app;
use core_http::kernel::{App, StoreCheck};
use core_storage::RowStore;
use core_storage::fault::FaultStore;
use core_storage::memory::MemoryRows;
use core_stripe_fake::FakeStripe;
use core_testkit::{OpenStore, StoreLocation};
use core_webauthn::Webauthn;

pub(crate) use announcer::{announce_commits, world_with_notifications};
pub(crate) use api::{Api, send_concurrently};
pub(crate) use api_keys::VALIDATE;
pub(crate) use archives::{SERVER_PATH, SITE, text_archives};
pub(crate) use callers::{
    admin, api_key, api_key_named, operator, owner, plain_member, user_without_organization,
    vouched_for,
};
pub(crate) use core_domain::testing::HookedInfrastructure;
pub(crate) use core_http::kernel::testing::{Answer, SERVICE_KEY};
pub(crate) use core_testkit::{Backend, JobCommand, manual_clock};
pub(crate) use domains::{TARGET, any_target};
pub(crate) use follower::Follower;
pub(crate) use limits::{assert_limit, assert_room_at_once};
pub(crate) use payments::{FaultyPayments, PaymentFault, VALID_SIGNATURE};
pub(crate) use provider::no_answer_error;
pub(crate) use records::{PASSWORD, PLATFORMS, Person, platform_path, resource_body};
pub(crate) use seals::{NEXT_ROW_VERSION, audit_entry, entry_id};
pub(crate) use second_factors::{Authenticator, pending_sign_in_cookie};
pub(crate) use stores::{ExchangeableStore, on_every_store};
pub(crate) use taxes::TestTaxes;
use taxes::issuer;
pub(crate) use usage::{usage_event, with_fields};
pub(crate) use webhooks::{WEBHOOKS, reply_with_status, webhooks_of};

/// The base URL of IAM, and the origin of its pages.
pub(crate) const ORIGIN: &str = "http://iam.test";

/// The services under test, with their store, clock, provider and DNS.
pub(crate) struct World {
    pub(crate) clock: Arc<ManualClock>,
    pub(crate) app: Arc<App>,
    pub(crate) registry: Api,
    pub(crate) iam: Api,
    pub(crate) provisioning: Api,
    pub(crate) cli: Api,
    pub(crate) billing: Api,
    /// The plans, the payment provider and the clock of billing.
    pub(crate) billing_parts: Arc<Billing>,
    /// The payment provider, which fails on demand.
    pub(crate) payments: FaultyPayments,
    /// The Stripe account that charges invoices. `None` if the ledger does.
    pub(crate) stripe: Option<FakeStripe>,
    /// The taxes on invoices.
    pub(crate) taxes: TestTaxes,
    pub(crate) stacks: Api,
    pub(crate) provider: MemoryInfrastructure,
    pub(crate) dns: MemoryDns,
    pub(crate) store: Arc<ExchangeableStore>,
    /// The rows below `store`, for changes that no use case makes.
    pub(crate) rows: Arc<dyn RowStore>,
    pub(crate) store_location: StoreLocation,
    pub(crate) _store_resources: Box<dyn Any + Send + Sync>,
}

/// The records, the provider and the time of a world in memory.
pub(crate) struct WorldImage {
    rows: Arc<MemoryRows>,
    provider: MemoryInfrastructure,
    now: Timestamp,
}

/// Returns an application over an empty in-memory store, for tests that define their own endpoint rows.
pub(crate) fn bare_app() -> (App, Arc<ManualClock>) {
    let clock = manual_clock();
    let store = OpenStore::in_memory(clock.clone()).store;
    (app(store, clock.clone()), clock)
}

/// Returns the settings of IAM. The IAM service and an in-process gateway share them.
pub(crate) fn iam_config() -> IamConfig {
    IamConfig {
        secret: b"a secret of thirty-two bytes ...".to_vec(),
        base_url: ORIGIN.to_owned(),
        trusted_origins: Vec::new(),
        trusted_proxies: TrustedProxies::parse(["192.0.2.1"]).unwrap(),
        options: IamOptions::default(),
        passkeys: Some(Arc::new(Webauthn::new(ORIGIN, &[]).unwrap())),
    }
}

/// Creates every service of an application, in the order of [`World::services`].
fn services_of(
    app: &Arc<App>,
    provider: &MemoryInfrastructure,
    config: CliConfig,
    billing: &Arc<Billing>,
) -> [Api; 6] {
    let shared = || Arc::clone(app);
    let provider = Arc::new(provider.clone());
    [
        Api(core_http::registry::service(shared()).unwrap()),
        Api(core_http::iam::service(shared(), &iam_config()).unwrap()),
        Api(core_http::provisioning::service(shared()).unwrap()),
        Api(core_http::cli::service(shared(), text_archives(), provider, config).unwrap()),
        Api(core_http::billing::service(shared(), billing).unwrap()),
        Api(core_http::stacks::service(shared()).unwrap()),
    ]
}

/// The public URL of billing.
pub(crate) const BILLING_ORIGIN: &str = "http://billing.test";

/// Returns the addresses of the pages of billing.
pub(crate) fn page_links() -> PageLinks {
    PageLinks::new(Some(BILLING_ORIGIN), Vec::new(), b"a secret of billing")
}

/// Returns the standard plans with this payment provider and a test clock.
fn billing_with(app: &App, payments: FaultyPayments, taxes: TestTaxes) -> Arc<Billing> {
    Arc::new(Billing {
        plans: PlanCatalog::default(),
        payments: Arc::new(payments),
        clock: BillingClock::Test,
        cipher: app.cipher.clone(),
        pages: page_links(),
        taxes: Arc::new(taxes),
        issuer: Some(issuer()),
    })
}

impl World {
    /// Creates a world over an empty in-memory store.
    pub(crate) fn new() -> Self {
        Self::with(|_| {})
    }

    /// Creates an in-memory world; `change` adjusts its settings or ports first.
    pub(crate) fn with(change: impl FnOnce(&mut App)) -> Self {
        Self::with_uploads(CliConfig::default(), change)
    }

    /// Like [`World::with`], with these settings of the CLI service, such as upload limits.
    pub(crate) fn with_uploads(config: CliConfig, change: impl FnOnce(&mut App)) -> Self {
        let clock = manual_clock();
        Self::over(OpenStore::in_memory(clock.clone()), clock, config, change)
    }

    /// Creates an in-memory world whose store fails on demand, and the handle that makes it fail.
    pub(crate) fn faulty() -> (Self, FaultStore) {
        let clock = manual_clock();
        let (opened, faults) = OpenStore::in_memory(clock.clone()).faulty();
        let world = Self::over(opened, clock, CliConfig::default(), |_| {});
        (world, faults)
    }

    /// Returns the same world with these options for sign-up and sign-in.
    pub(crate) fn with_iam(self, options: IamOptions) -> Self {
        self.with_iam_config(&IamConfig {
            options,
            ..iam_config()
        })
    }

    /// Returns the same world with a trusted application on another origin.
    pub(crate) fn with_trusted_origin(self, origin: &str) -> Self {
        self.with_iam_config(&IamConfig {
            trusted_origins: vec![origin.to_owned()],
            ..iam_config()
        })
    }

    /// Returns the same world with passkeys disabled.
    pub(crate) fn without_passkeys(self) -> Self {
        self.with_iam_config(&IamConfig {
            passkeys: None,
            ..iam_config()
        })
    }

    fn with_iam_config(mut self, config: &IamConfig) -> Self {
        let service = core_http::iam::service(Arc::clone(&self.app), config);
        self.iam = Api(service.unwrap());
        self
    }

    /// Creates a world over an empty store of this backend.
    pub(crate) async fn on(backend: Backend) -> Self {
        Self::on_with(backend, |_| {}).await
    }

    /// Like [`World::on`]; `change` adjusts the settings or ports first.
    pub(crate) async fn on_with(backend: Backend, change: impl FnOnce(&mut App)) -> Self {
        let clock = manual_clock();
        let opened = backend.open(clock.clone()).await;
        Self::over(opened, clock, CliConfig::default(), change)
    }

    fn over(
        opened: OpenStore,
        clock: Arc<ManualClock>,
        config: CliConfig,
        change: impl FnOnce(&mut App),
    ) -> Self {
        let store = ExchangeableStore::new(opened.store);
        let mut app = app(store.clone(), clock.clone());
        let dns = MemoryDns::default();
        let kinds = register_kinds(Kinds::new(), Arc::new(dns.clone()), ORIGIN).unwrap();
        let kinds = cli::register_kinds(kinds, text_archives()).unwrap();
        let payments = FaultyPayments::over(&app);
        let taxes = TestTaxes::default();
        let billing_parts = billing_with(&app, payments.clone(), taxes.clone());
        let kinds = register_billing(kinds, &billing_parts, &app.entropy).unwrap();
        app.kinds = Arc::new(kinds);
        change(&mut app);
        app.store_check = StoreCheck::new(Arc::clone(&app.store));
        let app = Arc::new(app);
        let provider = MemoryInfrastructure::default();
        let [registry, iam, provisioning, cli, billing, stacks] =
            services_of(&app, &provider, config, &billing_parts);
        Self {
            registry,
            iam,
            provisioning,
            cli,
            billing,
            billing_parts,
            payments,
            stripe: None,
            taxes,
            stacks,
            provider,
            dns,
            clock,
            app,
            store,
            rows: opened.rows,
            store_location: opened.location,
            _store_resources: opened.resources,
        }
    }

    /// Returns the records, the provider and the time of a world in memory.
    pub(crate) fn image(&self) -> WorldImage {
        let StoreLocation::Process(rows) = &self.store_location else {
            panic!("the world is not in memory");
        };
        WorldImage {
            rows: rows.copy(),
            provider: self.provider.copy(),
            now: self.clock.now(),
        }
    }

    /// Returns the same services with an empty store in memory, an empty provider and an empty DNS.
    pub(crate) fn with_empty_store(self) -> Self {
        let opened = OpenStore::in_memory(self.clock.clone());
        self.with_store(opened)
    }

    /// Returns the same services with the records, the provider and the time of an image, and an empty DNS.
    pub(crate) fn with_image(self, image: &WorldImage) -> Self {
        self.clock.set(image.now);
        let world = self.with_store(OpenStore::over_memory(image.rows.copy()));
        world.provider.replace_with(&image.provider);
        world
    }

    /// Like [`World::with_image`], with a store that fails on demand. Returns the handle that makes it fail as well.
    pub(crate) fn with_faulty_image(self, image: &WorldImage) -> (Self, FaultStore) {
        self.clock.set(image.now);
        let (opened, faults) = OpenStore::over_memory(image.rows.copy()).faulty();
        let world = self.with_store(opened);
        world.provider.replace_with(&image.provider);
        (world, faults)
    }

    fn with_store(mut self, opened: OpenStore) -> Self {
        self.store.exchange(opened.store);
        self.rows = opened.rows;
        self.store_location = opened.location;
        self.provider.replace_with(&MemoryInfrastructure::default());
        self.dns.clear();
        self
    }

    /// Returns every service.
    pub(crate) fn services(&self) -> [&Api; 6] {
        [
            &self.registry,
            &self.iam,
            &self.provisioning,
            &self.cli,
            &self.billing,
            &self.stacks,
        ]
    }

    /// Returns the current time in seconds since the epoch.
    pub(crate) fn clock_seconds(&self) -> i64 {
        self.clock.now().seconds()
    }

    /// Advances the clock by this many seconds.
    pub(crate) fn tick(&self, seconds: u64) {
        self.clock.advance(Duration::from_secs(seconds));
        if let Some(stripe) = &self.stripe {
            let behind = self.clock.now().seconds() - stripe.now();
            stripe.advance(Duration::from_secs(u64::try_from(behind).unwrap_or(0)));
        }
    }

    /// Returns a worker that runs jobs on the in-memory provider.
    pub(crate) fn worker(&self) -> Worker {
        self.worker_on(Arc::new(self.provider.clone()))
    }

    /// Like [`World::worker`], with another provider.
    pub(crate) fn worker_on(&self, provider: Arc<dyn Infrastructure>) -> Worker {
        Worker::new(
            self.app.store.clone(),
            provider,
            self.app.blobs.clone(),
            self.app.kinds.clone(),
            self.app.entropy.clone(),
        )
    }

    /// Runs jobs until none is ready.
    pub(crate) async fn run_jobs(&self) {
        self.run_jobs_on(Arc::new(self.provider.clone())).await;
    }

    /// Runs one job while the store fails its `call`-th call, and ignores the outcome of the job. Returns whether that
    /// call was reached. Afterwards the store no longer fails.
    pub(crate) async fn run_one_failing(&self, store: &FaultStore, call: u32) -> bool {
        store.fail_call(call);
        let _ = self.worker().run_one(&NoSupervisor).await;
        let failed = store.has_failed();
        store.fail_call(u32::MAX);
        failed
    }

    /// Runs one job while the store loses the reply to its `commit`-th commit, and ignores the outcome of the job. Returns
    /// whether that commit was reached. Afterwards the store loses no replies.
    pub(crate) async fn run_one_without_reply(&self, store: &FaultStore, commit: u32) -> bool {
        store.lose_reply(commit);
        let _ = self.worker().run_one(&NoSupervisor).await;
        let is_lost = store.has_lost_reply();
        store.lose_reply(u32::MAX);
        is_lost
    }

    /// Like [`World::run_jobs`], with another provider.
    pub(crate) async fn run_jobs_on(&self, provider: Arc<dyn Infrastructure>) {
        let worker = self.worker_on(provider);
        for _ in 0..1000 {
            if worker.run_one(&NoSupervisor).await.unwrap() == Outcome::Idle {
                return;
            }
        }
        panic!("jobs are still ready after 1000 runs");
    }

    /// Runs jobs and timers 20 times, 6 seconds apart, so that waiting jobs end too.
    pub(crate) async fn finish_jobs(&self) {
        for _ in 0..20 {
            self.run_jobs().await;
            self.tick(6);
            self.run_timers().await;
        }
    }

    pub(crate) async fn run_timers(&self) {
        self.worker().run_timers().await.unwrap();
    }

    /// Ends the deployments of other programs that were not updated for too long.
    pub(crate) async fn fail_stuck_deployments(&self) {
        let cx = Context::system(Arc::clone(&self.app.entropy));
        let store = self.app.store.as_ref();
        let failed = transact(store, |uow, _| Box::pin(fail_stuck(&cx, uow)));
        failed.await.unwrap();
    }

    pub(crate) async fn operate(&self, job: &str, command: JobCommand) {
        self.try_to_operate(job, command).await.unwrap();
    }

    pub(crate) async fn try_to_operate(
        &self,
        job: &str,
        command: JobCommand,
    ) -> Result<Stored<Job>> {
        let (store, kinds) = (self.app.store.as_ref(), self.app.kinds.as_ref());
        let job = &JobId::parse(job).unwrap();
        core_testkit::run_command(store, kinds, &self.cx(), command, job).await
    }

    /// Replays the dead letter of a job.
    pub(crate) async fn replay_job(&self, job: &str) -> Result<Stored<Job>> {
        let job = self.job(job).await;
        let entry = job["dlqEntryId"].as_str().and_then(DlqEntryId::parse);
        let (store, kinds) = (self.app.store.as_ref(), self.app.kinds.as_ref());
        core_testkit::replay(store, kinds, &self.cx(), &entry.unwrap()).await
    }

    /// Changes the record of a job in the store, in a way that no use case does.
    pub(crate) async fn change_job(&self, id: &str, change: fn(&mut Job)) {
        let changed = transact(self.app.store.as_ref(), |uow, _| {
            Box::pin(async move {
                let jobs = Job::repository(uow.repositories(RecordKey::for_tests()));
                let seen = jobs.get(Within::Installation, id).await?.unwrap();
                let mut next = (*seen).clone();
                change(&mut next);
                Ok(jobs.replace(&seen, next).await?)
            })
        });
        changed.await.unwrap();
    }

    /// Returns the context in which an operator calls use cases.
    pub(crate) fn cx(&self) -> Context {
        Context {
            caller: std::sync::Arc::new(operator()),
            ..Context::system(self.app.entropy.clone())
        }
    }
}
