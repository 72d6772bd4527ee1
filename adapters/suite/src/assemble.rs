//! Assembles the services over one store.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use core_domain::gateway::Origins;
use core_domain::kernel::{Cipher, Context, Ed25519Private, Error, SuiteService};
use core_domain::port::{
    AnnouncingStore, CommitListener, PasswordHasher, Payments, RateLimiter, SiteArchives, SpanSink,
    Store, transact,
};
use core_domain::use_case::billing::advance_job::register_kinds as register_billing;
use core_domain::use_case::billing::clock::BillingClock;
use core_domain::use_case::billing::page_links::PageLinks;
use core_domain::use_case::billing::{Billing, plan};
use core_domain::use_case::cli;
use core_domain::use_case::provisioning::{Kinds, Worker};
use core_domain::use_case::registry::register_kinds;
use core_http::cli::CliConfig;
use core_http::gateway::{
    Authority, ConfigError, Gateway, GatewayConfig, InProcess, Ports, Upstreams,
};
use core_http::iam::{IamConfig, SessionAuthority};
use core_http::kernel::metrics::Metrics;
use core_http::kernel::{
    App, InFlight, MetricsService, OpenStreams, Service, ServiceKey, ServiceOptions, StoreCheck,
    Tracer,
};
use core_http::{billing as billing_http, cli as cli_http, iam, provisioning, registry, stacks};

use crate::accounting::Accounting;
use crate::after_commit::AfterCommit;
use crate::billing_ticker::BillingTicker;
use crate::blobs::{check_s3, has_shared_blobs};
use crate::client_address::trusted_proxies;
use crate::dns::dns_resolver;
use crate::due_queue;
use crate::history_options::HistoryOptions;
use crate::hostname_checker::HostnameChecker;
use crate::infrastructure::{check_account, check_sites};
use crate::jobs::Jobs;
use crate::mail_relay::MailRelay;
use crate::mailer::{check_mailer, mailer};
use crate::metrics::{
    Backlog, BillingMetrics, MeteredStore, SealerMetrics, SuiteMetrics, register_cells,
    register_pools, register_process, register_spans,
};
use crate::nodes::{Nodes, check_redis, start_receiver};
use crate::open::OpenOptions;
use crate::passkeys::passkeys;
use crate::payments::{PaymentProviders, check_payments};
use crate::plans::Plans;
use crate::provider::{Provider, archives};
use crate::relay::Relay;
use crate::remote_services::{self, RemoteServices};
use crate::sealer::Sealer;
use crate::secret::{InstallationSecret, MasterKey};
use crate::suite::Services;
use crate::sweeper::Sweeper;
use crate::traces::{check_otlp, span_sink, tracer};
use crate::usage::{GatewayMeter, GatewayReporter, Usage};
use crate::webhook_dispatcher::WebhookDispatcher;
use crate::webhook_sender::webhook_sender;
use crate::worker::{WorkerOptions, start_metered_worker};
use crate::{Argon2Hasher, Suite, SuiteBuilder, SuiteError};

impl SuiteBuilder {
    /// Checks the settings without opening anything.
    ///
    /// # Errors
    /// [`SuiteError::Setting`] names the first invalid setting. [`SuiteError::Kinds`] reports a conflict between two job kinds.
    pub fn check(&self) -> Result<(), SuiteError> {
        self.settings.check()?;
        check(self)?;
        self.kinds.as_ref().map_err(|error| error.clone())?;
        Ok(())
    }

    /// Opens the store, assembles the services, and starts the worker and the background tasks.
    ///
    /// # Errors
    /// [`SuiteError`] names the part that could not be created.
    pub async fn build(self) -> Result<Suite, SuiteError> {
        suite(self).await
    }
}

/// Builds the suite that the builder describes.
async fn suite(builder: SuiteBuilder) -> Result<Suite, SuiteError> {
    builder.check()?;
    for contradiction in builder.contradictions() {
        tracing::warn!(%contradiction, "settings contradict each other");
    }
    let folder = Folder::of(&builder)?;
    let secret = secret(&builder, &folder)?;
    let sole_user = builder.store.is_exclusive();
    let open_options = open_options(&builder, &secret);
    let wake = builder.store.worker_wake(open_options.clone())?;
    let metrics = Metrics::new();
    let nodes = Nodes::of(&builder, open_options.clone(), &metrics).await?;
    let after_commit = Arc::new(AfterCommit::new(wake.clone(), nodes.notices.clone()));
    let store = open_store(&builder, open_options, &after_commit, &metrics).await?;
    register_pools(&metrics, &store);
    register_cells(&metrics, &store);
    register_process(&metrics);
    let sink: Option<Arc<dyn SpanSink>> = span_sink(&builder)?;
    register_spans(&metrics, sink.as_ref());
    let tracer = sink.as_ref().map(|sink| tracer(&builder, sink, &secret));
    let meter = Arc::new(GatewayMeter::default());
    let provider = Provider::of(
        &builder,
        &folder.path,
        &store,
        &after_commit,
        &meter,
        &metrics,
    )
    .await?;
    let archives = archives(&builder);
    let own_kinds = builder.kinds.clone()?;
    let dns = dns_resolver(&builder)?;
    let kinds = register_kinds(own_kinds, Arc::clone(&dns), &builder.iam_url)?;
    let kinds = cli::register_kinds(kinds, Arc::clone(&archives))?;
    let payments = PaymentProviders::of(&builder, &store)?.with_metrics(&metrics);
    let billing = billing(&builder, &store, payments.interactive, &secret).await?;
    let background_billing = Arc::new(Billing {
        payments: payments.background,
        ..billing.as_ref().clone()
    });
    let kinds = register_billing(kinds, &background_billing, &builder.entropy)?;
    let parts = AppParts {
        store: &store,
        provider: &provider,
        kinds,
        after_commit: &after_commit,
        limiter: nodes.limiter,
        metrics: metrics.clone(),
        tracer: tracer.clone(),
    };
    let app = app(&builder, &secret, parts)?;
    let iam_config = iam_config(&builder, &secret)?;
    let services = Services::over(
        &app,
        &archives,
        &provider,
        &builder.settings.cli,
        &billing,
        &iam_config,
    )?;
    let remote = RemoteServices::of(&builder, &app, &services.iam, &after_commit)?;
    let gateway = gateway(
        &builder,
        &app,
        &services,
        &iam_config,
        &meter,
        remote.as_ref(),
    )?;
    after_commit.set_gateway(gateway.invalidate());
    let notices = nodes.notices;
    let notices =
        notices.map(|notices| start_receiver(notices, Arc::clone(&after_commit), &metrics));
    let worker_options = WorkerOptions {
        sole_user,
        ..builder.settings.worker
    };
    let jobs = Jobs::new(
        Arc::clone(&store),
        Arc::clone(&app.kinds),
        Arc::clone(&app.entropy),
    );
    let worker = start_metered_worker(
        worker(&app, &provider, &worker_options),
        &wake,
        worker_options,
        &metrics,
        tracer,
    );
    let usage = Usage::new(
        Arc::clone(&store),
        Arc::clone(&billing),
        Arc::clone(&app.entropy),
        &metrics,
    );
    let remote_usage = remote.as_ref().filter(|_| sole_user);
    let remote_usage = remote_usage.and_then(|remote| remote.usage(&app.clock));
    let reporter = GatewayReporter {
        meter,
        sink: match remote_usage.transpose()? {
            Some(remote) => Arc::new(remote),
            None => Arc::new(usage.clone()),
        },
        entropy: Arc::clone(&app.entropy),
        enforces_quotas: app.options.limits.enforce_quotas,
    };
    let sweeper = Sweeper::new(
        &app,
        Arc::clone(&provider.infrastructure),
        Arc::clone(&background_billing),
        builder.settings.billing.keep_usage_events,
        history(&builder, &folder),
        builder.settings.sweep,
        sole_user,
    );
    let mail_relay = MailRelay {
        store: Arc::clone(&store),
        mailer: mailer(&builder, &folder.path)?,
        cipher: app.cipher.clone(),
        entropy: Arc::clone(&app.entropy),
        options: builder.settings.mail.clone(),
    };
    let hostname_checker = HostnameChecker {
        store: Arc::clone(&store),
        dns,
        cx: Context::system(Arc::clone(&app.entropy)),
        options: builder.settings.dns.clone(),
    };
    let backlog = Arc::new(Backlog::new(
        &metrics,
        Arc::clone(&store),
        Arc::clone(&app.clock),
        billing.clock,
    ));
    let billing_ticker = BillingTicker {
        metrics: BillingMetrics::new(&metrics),
        store: Arc::clone(&store),
        billing: background_billing,
        cx: Context::system(Arc::clone(&app.entropy)),
        options: builder.settings.billing.clone(),
    };
    let sealer = Sealer {
        store: Arc::clone(&store),
        cx: Context::system(Arc::clone(&app.entropy)),
        key: app.audit_key.clone(),
        wake: after_commit.sealer(),
        metrics: SealerMetrics::new(&metrics),
    };
    let webhooks = WebhookDispatcher {
        store: Arc::clone(&store),
        sender: webhook_sender(&builder)?,
        cipher: app.cipher.clone(),
        entropy: Arc::clone(&app.entropy),
        limits: builder.settings.webhooks.limits(),
    };
    let accounting = Accounting::new(Arc::clone(&store), Arc::clone(&app.entropy));
    let plans = Plans::new(Arc::clone(&store), billing, Arc::clone(&app.entropy));
    let relay = Relay {
        store,
        outlet: builder.outlet,
        entropy: builder.entropy,
        options: builder.settings.outbox,
    };
    Ok(Suite {
        gateway,
        services,
        #[cfg(feature = "local")]
        local: provider.local,
        jobs,
        worker,
        relay: due_queue::start(relay, after_commit.relay(), &metrics),
        mail_relay: due_queue::start(mail_relay, after_commit.mail_relay(), &metrics),
        sealer: sealer.start(&metrics),
        hostname_checker: hostname_checker.start(&metrics),
        webhooks: due_queue::start(webhooks, after_commit.webhooks(), &metrics),
        sweeper: sweeper.start(&metrics),
        billing_ticker: billing_ticker.start(&metrics),
        usage,
        accounting,
        plans,
        gateway_usage: reporter.start(&metrics),
        notices,
        backlog: Arc::clone(&backlog).start(builder.settings.metrics.refresh_every, &metrics),
        metrics: SuiteMetrics {
            service: MetricsService::new(app),
            backlog,
        },
        span_sink: sink,
        _temporary: folder.temporary,
    })
}

/// Returns how long ended records are kept. The audit log is never removed if its archives would end with the process.
fn history(builder: &SuiteBuilder, folder: &Folder) -> HistoryOptions {
    let mut history = builder.settings.history;
    if folder.temporary.is_some() && !has_shared_blobs(builder) {
        history.audit = Duration::MAX;
    }
    history
}

/// Returns the secret set on the builder, or else the one stored in the data folder.
pub(crate) fn secret(
    builder: &SuiteBuilder,
    folder: &Folder,
) -> Result<InstallationSecret, SuiteError> {
    match builder.secret.clone() {
        Some(secret) => Ok(secret),
        None => InstallationSecret::load_or_create(&folder.path, builder.entropy.as_ref()),
    }
}

/// Returns the hasher set on the builder, or else Argon2id.
pub(crate) fn hasher(builder: &SuiteBuilder) -> Arc<dyn PasswordHasher> {
    let hasher = builder.hasher.clone();
    hasher.unwrap_or_else(|| Arc::new(Argon2Hasher::new(Arc::clone(&builder.entropy))))
}

/// Returns the options to open the store with.
pub(crate) fn open_options(builder: &SuiteBuilder, secret: &InstallationSecret) -> OpenOptions {
    OpenOptions {
        clock: builder.clock.clone(),
        cursor_key: secret.key("cursors").into(),
        pool: builder.settings.pool,
        postgres: builder.settings.postgres.clone(),
        replica_url: builder.replica_url.clone(),
        migrations: builder.settings.migrations.options(),
        cells: builder.cells.clone(),
        entropy: Arc::clone(&builder.entropy),
    }
}

/// Opens the chosen store. Its commits are reported to `after_commit`.
async fn open_store(
    builder: &SuiteBuilder,
    options: OpenOptions,
    after_commit: &Arc<AfterCommit>,
    metrics: &Metrics,
) -> Result<Arc<dyn Store>, SuiteError> {
    // Boxed, so that the future of every caller stays small.
    let opened = Box::pin(builder.store.clone().open(options)).await?;
    let metered = MeteredStore::new(opened, metrics, builder.settings.metrics.slow_unit);
    let listener: Arc<dyn CommitListener> = after_commit.clone();
    Ok(Arc::new(AnnouncingStore::new(Arc::new(metered), listener)))
}

/// The folder in which the suite stores its files.
pub(crate) struct Folder {
    pub(crate) path: PathBuf,
    temporary: Option<tempfile::TempDir>,
}

impl Folder {
    pub(crate) fn of(builder: &SuiteBuilder) -> Result<Self, SuiteError> {
        if let Some(path) = &builder.data_folder {
            create_private(path)?;
            return Ok(Self {
                path: path.clone(),
                temporary: None,
            });
        }
        let temporary = tempfile::Builder::new().prefix("core-suite-").tempdir()?;
        Ok(Self {
            path: temporary.path().to_owned(),
            temporary: Some(temporary),
        })
    }
}

/// Creates the data folder with access for its owner only. An existing folder keeps its permissions.
#[cfg(unix)]
pub(crate) fn create_private(path: &Path) -> std::io::Result<()> {
    use std::os::unix::fs::{DirBuilderExt, PermissionsExt};

    let mut builder = std::fs::DirBuilder::new();
    builder.recursive(true).mode(0o700).create(path)?;
    let mode = std::fs::metadata(path)?.permissions().mode() & 0o777;
    if mode & 0o077 != 0 {
        let mode = format!("{mode:o}");
        tracing::warn!(path = %path.display(), mode, "other users of this machine can read the data folder");
    }
    Ok(())
}

#[cfg(not(unix))]
pub(crate) fn create_private(path: &Path) -> std::io::Result<()> {
    std::fs::create_dir_all(path)
}

/// The parts of an [`App`] that are built before it.
struct AppParts<'a> {
    store: &'a Arc<dyn Store>,
    provider: &'a Provider,
    kinds: Kinds,
    after_commit: &'a AfterCommit,
    limiter: Arc<dyn RateLimiter>,
    metrics: Metrics,
    tracer: Option<Arc<Tracer>>,
}

fn app(
    builder: &SuiteBuilder,
    secret: &InstallationSecret,
    parts: AppParts<'_>,
) -> Result<Arc<App>, ConfigError> {
    let entropy = &builder.entropy;
    Ok(Arc::new(App {
        store: Arc::clone(parts.store),
        clock: builder.clock_or_system(),
        entropy: Arc::clone(entropy),
        kinds: Arc::new(parts.kinds),
        hasher: hasher(builder),
        blobs: Arc::clone(&parts.provider.blobs),
        limiter: parts.limiter,
        service_key: service_key(builder)?,
        issuer: builder.iam_url.clone(),
        cipher: Cipher::new(encryption_key(builder, secret), Arc::clone(entropy)),
        audit_key: Ed25519Private::from_seed(secret.key("audit")),
        sealed: parts.after_commit.seal_signal(),
        jobs: parts.after_commit.job_signal(),
        access: parts.after_commit.access(),
        options: service_options(builder)?,
        in_flight: InFlight::default(),
        streams: OpenStreams::default(),
        store_check: StoreCheck::new(Arc::clone(parts.store)),
        metrics: parts.metrics,
        tracer: parts.tracer,
    }))
}

/// The key that encrypts stored secrets.
fn encryption_key(builder: &SuiteBuilder, secret: &InstallationSecret) -> [u8; 32] {
    let given = builder.master_key.as_ref().map(MasterKey::bytes);
    given.unwrap_or_else(|| secret.key("answers"))
}

fn config_error(setting: &'static str, problem: impl ToString) -> ConfigError {
    ConfigError {
        setting,
        problem: problem.to_string(),
    }
}

fn service_key(builder: &SuiteBuilder) -> Result<Option<ServiceKey>, ConfigError> {
    let key = builder.service_key.as_ref();
    key.map(|key| ServiceKey::new(key.expose()))
        .transpose()
        .map_err(|problem| config_error("service_key", problem))
}

/// Options of the services. A service that is reached directly applies the same limits as the gateway.
fn service_options(builder: &SuiteBuilder) -> Result<ServiceOptions, ConfigError> {
    let gateway = &builder.settings.gateway;
    let origins = Origins::parse(&gateway.allowed_origins);
    Ok(ServiceOptions {
        rates: gateway.rates.clone(),
        limiter_timeout: gateway.limiter_timeout,
        trusted_proxies: trusted_proxies(builder)?,
        allowed_origins: origins.map_err(|problem| config_error("allowed_origins", problem))?,
        webhooks: builder.settings.webhooks.targets(),
        limits: Arc::new(builder.settings.limits.clone()),
        ..builder.settings.services.clone()
    })
}

/// Checks the settings that are parsed from text, and fails on a fatal contradiction.
fn check(builder: &SuiteBuilder) -> Result<(), ConfigError> {
    let mut contradictions = builder.contradictions().into_iter();
    if let Some(contradiction) = contradictions.find(|contradiction| contradiction.is_fatal) {
        return Err(contradiction.into());
    }
    builder.cells.check()?;
    service_key(builder)?;
    remote_services::check(builder)?;
    gateway_config(builder).check()?;
    check_mailer(builder)?;
    check_account(builder)?;
    check_payments(builder)?;
    check_redis(builder)?;
    check_s3(builder)?;
    check_otlp(builder)?;
    check_sites(builder)?;
    dns_resolver(builder)?;
    service_options(builder).map(drop)
}

fn iam_config(
    builder: &SuiteBuilder,
    secret: &InstallationSecret,
) -> Result<IamConfig, ConfigError> {
    Ok(IamConfig {
        secret: secret.key("cookies").to_vec(),
        base_url: builder.iam_url.clone(),
        trusted_origins: builder.settings.gateway.allowed_origins.clone(),
        trusted_proxies: trusted_proxies(builder)?,
        options: builder.settings.iam,
        passkeys: passkeys(builder),
    })
}

/// Returns the plans with a payment provider and the clock. Stores the configured versions of the plans.
pub(crate) async fn billing(
    builder: &SuiteBuilder,
    store: &Arc<dyn Store>,
    payments: Arc<dyn Payments>,
    secret: &InstallationSecret,
) -> Result<Arc<Billing>, SuiteError> {
    let options = &builder.settings.billing;
    let billing = Billing {
        plans: options.catalog()?,
        payments,
        clock: options.clock(),
        cipher: Cipher::new(
            encryption_key(builder, secret),
            Arc::clone(&builder.entropy),
        ),
        pages: PageLinks::new(
            builder.billing_url.as_deref(),
            options.portal_return_hosts.clone(),
            &secret.key("pages of billing"),
        ),
        taxes: match &builder.taxes {
            Some(taxes) => Arc::clone(taxes),
            None => Arc::new(options.taxes()?),
        },
        issuer: options.issuer.clone(),
    };
    if billing.payments.is_live() && billing.clock == BillingClock::Test {
        return Err(SuiteError::Setting(ConfigError {
            setting: "billing.test_clock",
            problem: "The clock must not be moved where charges move real money.".to_owned(),
        }));
    }
    let plans = &billing.plans;
    let stored = transact(store.as_ref(), |uow, _| {
        Box::pin(async move { plan::store_versions(uow, plans).await })
    });
    stored.await.map_err(plan_error)?;
    Ok(Arc::new(billing))
}

/// Returns the error of plans that contradict the stored versions, or of the store.
pub(crate) fn plan_error(error: Error) -> SuiteError {
    match error {
        Error::Store(error) => error.into(),
        error => SuiteError::Setting(ConfigError {
            setting: "billing.plans",
            problem: error.to_string(),
        }),
    }
}

impl Services {
    fn over(
        app: &Arc<App>,
        archives: &Arc<dyn SiteArchives>,
        provider: &Provider,
        cli: &CliConfig,
        billing: &Arc<Billing>,
        iam_config: &IamConfig,
    ) -> Result<Self, SuiteError> {
        Ok(Self {
            iam: iam::service(Arc::clone(app), iam_config)?,
            registry: registry::service(Arc::clone(app))?,
            provisioning: provisioning::service(Arc::clone(app))?,
            cli: cli_http::service(
                Arc::clone(app),
                Arc::clone(archives),
                Arc::clone(&provider.infrastructure),
                *cli,
            )?,
            billing: billing_http::service(Arc::clone(app), billing)?,
            stacks: stacks::service(Arc::clone(app))?,
        })
    }

    /// Returns the services with their names.
    fn by_name(&self) -> [(SuiteService, Service); 6] {
        [
            (SuiteService::Iam, self.iam.clone()),
            (SuiteService::Registry, self.registry.clone()),
            (SuiteService::Provisioning, self.provisioning.clone()),
            (SuiteService::Cli, self.cli.clone()),
            (SuiteService::Billing, self.billing.clone()),
            (SuiteService::Stacks, self.stacks.clone()),
        ]
    }
}

fn gateway_config(builder: &SuiteBuilder) -> GatewayConfig {
    let mut config = builder.settings.gateway.clone();
    config.service_key.clone_from(&builder.service_key);
    config.public_url.clone_from(&builder.gateway_url);
    config.authorization_server = Some(builder.iam_url.clone());
    config.upload_limit = builder.settings.cli.sites.upload_bytes;
    config
}

fn gateway(
    builder: &SuiteBuilder,
    app: &App,
    services: &Services,
    iam_config: &IamConfig,
    meter: &Arc<GatewayMeter>,
    remote: Option<&RemoteServices>,
) -> Result<Gateway, SuiteError> {
    let config = gateway_config(builder);
    let mut upstreams = Upstreams::new();
    for (name, service) in services.by_name() {
        let at = remote.and_then(|remote| remote.upstream(name, &service));
        upstreams = match at.transpose()? {
            Some(upstream) => upstreams.with(name, upstream),
            None => upstreams.with(name, InProcess::service(service)),
        };
    }
    let authority = match remote.and_then(RemoteServices::authority) {
        Some(authority) => Arc::new(authority?) as Arc<dyn Authority>,
        None => Arc::new(SessionAuthority::new(Arc::clone(&app.store), iam_config)),
    };
    let ports = Ports {
        authority,
        upstreams,
        limiter: Arc::clone(&app.limiter),
        clock: Arc::clone(&app.clock),
        entropy: Arc::clone(&app.entropy),
        meter: Some(Arc::<GatewayMeter>::clone(meter)),
        store_check: Some(app.store_check.clone()),
        metrics: app.metrics.clone(),
        tracer: app.tracer.clone(),
    };
    Ok(Gateway::new(config, ports)?)
}

fn worker(app: &App, provider: &Provider, options: &WorkerOptions) -> Worker {
    let worker = Worker::new(
        Arc::clone(&app.store),
        Arc::clone(&provider.infrastructure),
        Arc::clone(&app.blobs),
        Arc::clone(&app.kinds),
        Arc::clone(&app.entropy),
    );
    worker.with_lease(options.lease)
}
