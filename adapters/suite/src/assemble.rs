//! Puts the services together over one store.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use core_domain::gateway::{ServiceName, TrustedProxies};
use core_domain::port::{Blobs, Infrastructure, SiteArchives, Store};
use core_domain::provisioning::Kinds;
use core_domain::use_case::provisioning::Worker;
use core_domain::use_case::{cli, registry};
use core_http::gateway::{ConfigError, Gateway, InProcess, MemoryLimiter, Ports, Upstreams};
use core_http::iam::{IamConfig, SessionAuthority};
use core_http::kernel::{App, InFlight, ServiceKey};
use core_http::{cli as cli_http, iam, provisioning, registry as registry_http, stacks};
use core_local::{FileBlobs, LocalConfig, LocalInfrastructure};
use tokio::sync::Notify;

use crate::after_commit::AfterCommit;
use crate::relay::Relay;
use crate::secret::InstallationSecret;
use crate::sweeper::Sweeper;
use crate::worker::{WorkerHandle, WorkerOptions, WorkerWake, start_worker};
use crate::{Argon2Hasher, SlowInfrastructure, Suite, SuiteBuilder, SuiteError, UnpackArchives};

/// Builds what the builder describes.
pub(crate) async fn suite(builder: SuiteBuilder) -> Result<Suite, SuiteError> {
    let folder = Folder::of(&builder)?;
    let secret = match builder.secret.clone() {
        Some(secret) => secret,
        None => InstallationSecret::keep_in(&folder.path, builder.entropy.as_ref())?,
    };
    let sole_user = builder.store.is_ours_alone();
    let cursor_key = secret.key("cursors").into();
    let store = builder
        .store
        .clone()
        .open(builder.clock.clone(), cursor_key)
        .await?;
    let provider = Provider::of(&builder, &folder.path).await?;
    let wake = WorkerWake::default();
    let relay_wake = Arc::new(Notify::new());
    let after_commit = Arc::new(AfterCommit::new(wake.clone(), Arc::clone(&relay_wake)));
    let app = app(&builder, &store, &provider, &after_commit);
    let archives: Arc<dyn SiteArchives> = Arc::new(UnpackArchives::default());
    let iam_config = iam_config(&builder, &secret)?;
    let services = Services::over(&app, &archives, &iam_config)?;
    let gateway = gateway(&builder, &app, &services, &iam_config)?;
    after_commit.tell_gateway(gateway.invalidate());
    let kinds = Kinds::new(registry::kinds().into_iter().chain(cli::kinds(archives)));
    let worker = worker(&app, &provider, kinds, &wake, sole_user);
    let sweeper = Sweeper::start(Arc::clone(&store), Arc::clone(&app.blobs));
    let relay = Relay {
        store,
        outlet: builder.outlet,
        entropy: builder.entropy,
        wake: relay_wake,
    };
    Ok(Suite {
        gateway,
        services,
        local: provider.local,
        worker,
        relay: relay.start(),
        sweeper,
        _temporary: folder.temporary,
    })
}

/// Where the suite keeps files.
struct Folder {
    path: PathBuf,
    temporary: Option<tempfile::TempDir>,
}

impl Folder {
    fn of(builder: &SuiteBuilder) -> Result<Self, SuiteError> {
        if let Some(path) = &builder.data_folder {
            std::fs::create_dir_all(path)?;
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

/// What jobs work with.
struct Provider {
    infrastructure: Arc<dyn Infrastructure>,
    local: Option<LocalInfrastructure>,
    blobs: Arc<dyn Blobs>,
}

impl Provider {
    async fn of(builder: &SuiteBuilder, folder: &Path) -> Result<Self, SuiteError> {
        let local_error = |error: core_local::LocalError| SuiteError::Local(error.to_string());
        let blobs: Arc<dyn Blobs> = match &builder.blobs {
            Some(blobs) => Arc::clone(blobs),
            None => {
                let blobs = FileBlobs::open(folder.join("uploads")).await;
                Arc::new(blobs.map_err(local_error)?)
            }
        };
        if let Some(infrastructure) = &builder.infrastructure {
            return Ok(Self {
                infrastructure: Arc::clone(infrastructure),
                local: None,
                blobs,
            });
        }
        let config = LocalConfig::new(
            folder.join("infrastructure"),
            builder.site_port,
            builder.clock_or_system(),
        );
        let local = LocalInfrastructure::open(config)
            .await
            .map_err(local_error)?;
        let mut infrastructure: Arc<dyn Infrastructure> = Arc::new(local.clone());
        if !builder.local_latency.is_zero() {
            let slow = SlowInfrastructure::new(infrastructure, builder.local_latency);
            infrastructure = Arc::new(slow);
        }
        Ok(Self {
            infrastructure,
            local: Some(local),
            blobs,
        })
    }
}

fn app(
    builder: &SuiteBuilder,
    store: &Arc<dyn Store>,
    provider: &Provider,
    after_commit: &Arc<AfterCommit>,
) -> Arc<App> {
    let hasher = builder.hasher.clone();
    Arc::new(App {
        store: Arc::clone(store),
        clock: builder.clock_or_system(),
        entropy: Arc::clone(&builder.entropy),
        wake: Arc::clone(after_commit) as _,
        hasher: hasher.unwrap_or_else(|| Arc::new(Argon2Hasher::new(Arc::clone(&builder.entropy)))),
        blobs: Arc::clone(&provider.blobs),
        service_key: builder
            .service_key
            .as_ref()
            .map(|key| ServiceKey::new(key.expose())),
        in_flight: InFlight::default(),
    })
}

fn iam_config(
    builder: &SuiteBuilder,
    secret: &InstallationSecret,
) -> Result<IamConfig, ConfigError> {
    let proxies = TrustedProxies::parse(&builder.gateway.trusted_proxies);
    Ok(IamConfig {
        secret: secret.key("cookies").to_vec(),
        base_url: builder.iam_url.clone(),
        trusted_origins: builder.gateway.allowed_origins.clone(),
        trusted_proxies: proxies.map_err(|problem| ConfigError {
            setting: "trusted_proxies",
            problem,
        })?,
    })
}

/// The services behind the gateway.
#[derive(Debug)]
pub(crate) struct Services {
    pub(crate) iam: core_http::kernel::Service,
    pub(crate) registry: core_http::kernel::Service,
    pub(crate) provisioning: core_http::kernel::Service,
    pub(crate) cli: core_http::kernel::Service,
    pub(crate) stacks: core_http::kernel::Service,
}

impl Services {
    fn over(
        app: &Arc<App>,
        archives: &Arc<dyn SiteArchives>,
        iam_config: &IamConfig,
    ) -> Result<Self, SuiteError> {
        Ok(Self {
            iam: iam::service(Arc::clone(app), iam_config)?,
            registry: registry_http::service(Arc::clone(app))?,
            provisioning: provisioning::service(Arc::clone(app))?,
            cli: cli_http::service(Arc::clone(app), Arc::clone(archives))?,
            stacks: stacks::service(Arc::clone(app))?,
        })
    }
}

fn gateway(
    builder: &SuiteBuilder,
    app: &App,
    services: &Services,
    iam_config: &IamConfig,
) -> Result<Gateway, SuiteError> {
    let mut config = builder.gateway.clone();
    config.service_key.clone_from(&builder.service_key);
    let authority = SessionAuthority::new(Arc::clone(&app.store), iam_config);
    let upstreams = Upstreams::new()
        .with(ServiceName::Iam, InProcess::new(services.iam.clone()))
        .with(
            ServiceName::Registry,
            InProcess::new(services.registry.clone()),
        )
        .with(
            ServiceName::Provisioning,
            InProcess::new(services.provisioning.clone()),
        )
        .with(ServiceName::Cli, InProcess::new(services.cli.clone()))
        .with(ServiceName::Stacks, InProcess::new(services.stacks.clone()));
    let ports = Ports {
        authority: Arc::new(authority),
        upstreams,
        limiter: Arc::new(MemoryLimiter::new()),
        clock: Arc::clone(&app.clock),
        entropy: Arc::clone(&app.entropy),
    };
    Ok(Gateway::new(config, ports)?)
}

fn worker(
    app: &App,
    provider: &Provider,
    kinds: Kinds,
    wake: &WorkerWake,
    sole_user: bool,
) -> WorkerHandle {
    let worker = Worker::new(
        Arc::clone(&app.store),
        Arc::clone(&provider.infrastructure),
        Arc::clone(&app.blobs),
        Arc::new(kinds),
        Arc::clone(&app.entropy),
    );
    let options = WorkerOptions {
        sole_user,
        ..WorkerOptions::default()
    };
    start_worker(worker, wake, options)
}
