//! Serves the suite on sockets until a signal stops the process.

use std::convert::Infallible;
use std::time::Duration;

use core_suite::{
    BoxError, ConfigError, IncomingBody, ServeOptions, Suite, SuiteBuilder, SuiteError,
    SuiteService, TrustedProxies,
};
use http::{Request, Response};
use serde_json::json;
use tokio::net::TcpListener;
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::sync::watch;
use tokio::task::JoinSet;
use tower::Service;

use crate::config::{Config, Database};
use crate::listeners::Listeners;
use crate::run_error::RunError;
use crate::{service_manager, welcome, workers};

/// The accept loops of the listeners.
struct Servers {
    tasks: JoinSet<std::io::Result<()>>,
    options: ServeOptions,
    stopped: watch::Receiver<bool>,
}

impl Servers {
    fn spawn<S, B>(&mut self, listener: TcpListener, service: S)
    where
        S: Service<Request<IncomingBody>, Response = Response<B>, Error = Infallible>
            + Clone
            + Send
            + 'static,
        S::Future: Send,
        B: http_body::Body<Data: Send, Error: Into<BoxError>> + Send + 'static,
    {
        let mut stopped = self.stopped.clone();
        let shutdown = async move {
            // A closed channel means that the process ends anyway.
            let _ = stopped.wait_for(|stopped| *stopped).await;
        };
        let options = self.options.clone();
        self.tasks
            .spawn(core_suite::serve(listener, service, shutdown, options));
    }
}

/// Time between the end of the longest drain and the forced end of the process.
const STOP_MARGIN: Duration = Duration::from_secs(5);

/// Runs until SIGTERM or Ctrl-C. Then `/readyz` fails and no more jobs are claimed. After the drain delay all listeners
/// and workers drain at the same time.
pub(crate) async fn run(config: Config) -> Result<(), RunError> {
    let listeners = Listeners::bind(&config).await?;
    let addresses = listeners.addresses()?;
    let mut builder = builder(&config).site_port(listeners.site_port()?);
    if config.options.iam_public_url.is_none()
        && let Some(iam) = addresses.get("iam")
    {
        builder = builder.iam_url(iam);
    }
    if config.options.gateway_public_url.is_none()
        && config.options.bind.is_loopback()
        && let Some(gateway) = addresses.get("gateway")
    {
        builder = builder.gateway_url(gateway);
    }
    if config.options.billing_public_url.is_none()
        && config.options.bind.is_loopback()
        && let Some(billing) = addresses.get("billing")
    {
        builder = builder.billing_url(billing);
    }
    for contradiction in &config.contradictions {
        tracing::warn!(contradiction, "options contradict each other");
    }
    let suite = service_manager::extending_start(builder.build()).await?;

    let (stop, stopped) = watch::channel(false);
    let mut servers = Servers {
        tasks: JoinSet::new(),
        options: listener_options(&config)?,
        stopped,
    };
    for (service, listener) in listeners.services {
        match service {
            SuiteService::Gateway => servers.spawn(listener, suite.gateway()),
            SuiteService::Iam => servers.spawn(listener, suite.iam()),
            SuiteService::Registry => servers.spawn(listener, suite.registry()),
            SuiteService::Provisioning => servers.spawn(listener, suite.provisioning()),
            SuiteService::Cli => servers.spawn(listener, suite.cli()),
            SuiteService::Billing => servers.spawn(listener, suite.billing()),
            SuiteService::Stacks => servers.spawn(listener, suite.stacks()),
        }
    }
    servers.spawn(listeners.metrics, suite.metrics());
    if let Some(sites) = suite.sites() {
        servers.spawn(listeners.sites, sites);
    }

    if config.options.auth_api_key.is_none() {
        tracing::warn!("AUTH_API_KEY is not set: every request passes unauthenticated");
    }
    // Signals are handled before the ready line is printed, because a reader of that line may send one at once.
    let mut signals = EndSignals::listen()?;
    print_startup_messages(&config, &addresses);
    service_manager::notify_ready();
    signals.next().await;
    tracing::info!("stopping");
    service_manager::notify_stopping();
    tokio::spawn(async move {
        signals.next().await;
        std::process::exit(1);
    });
    suite.stop_claiming();
    // Sending fails only if no server is left, which is fine.
    let _ = stop.send(true);
    let listener = &config.options.settings.listener;
    tokio::time::sleep(listener.drain_delay).await;
    tracing::info!("draining");
    let listeners = async { while servers.tasks.join_next().await.is_some() {} };
    let longest = listener.drain.max(config.options.settings.worker.drain) + STOP_MARGIN;
    let drained = tokio::time::timeout(longest, suite.shutdown_with(listeners)).await;
    if drained.is_err() {
        tracing::warn!("the drain timed out; unfinished work continues at the next start");
    }
    Ok(())
}

/// Returns the limits of the listeners, which all have the same trusted proxies.
fn listener_options(config: &Config) -> Result<ServeOptions, SuiteError> {
    let proxies = TrustedProxies::parse(&config.options.trusted_proxies);
    let trusted_proxies = proxies.map_err(|problem| ConfigError {
        setting: "trusted_proxies",
        problem,
    })?;
    Ok(ServeOptions {
        trusted_proxies,
        ..config.options.settings.listener.clone()
    })
}

/// Checks that a suite can be built from the configuration.
///
/// # Errors
/// [`SuiteError`] for the first invalid setting.
pub(crate) fn check(config: &Config) -> Result<(), SuiteError> {
    builder(config).check()
}

/// Returns the contradictions of a configuration, as sentences. The server works in spite of them.
pub(crate) fn contradictions(config: &Config) -> Vec<String> {
    let settings = builder(config).contradictions().into_iter();
    let settings = settings.map(|contradiction| format!("settings.{contradiction}"));
    config
        .contradictions
        .iter()
        .cloned()
        .chain(settings)
        .collect()
}

/// Returns the builder for the suite that the configuration describes.
pub(crate) fn builder(config: &Config) -> SuiteBuilder {
    let options = &config.options;
    let mut builder = Suite::builder()
        .settings(|settings| settings.clone_from(&options.settings))
        .data_folder(&options.data)
        .public_routes(options.public_routes.clone())
        .trusted_proxies(options.trusted_proxies.clone())
        .allowed_origins(options.allowed_origins.clone())
        .local_latency(Duration::from_millis(options.local_latency_ms));
    builder = with_database(builder, &config.database).cells(config.cells.clone());
    if let Some(workerd) = &config.workerd {
        builder = builder.workerd(workerd.clone());
        if let Some(command) = workers::command(config) {
            builder = builder.worker_host(command);
        }
    }
    if let Some(url) = &options.redis_url {
        builder = builder.redis(url);
    }
    if let Some(bucket) = &config.bucket {
        builder = builder.s3(&bucket.url, bucket.credentials.clone());
    }
    if let Some(url) = &options.smtp_url {
        builder = builder.smtp(url);
    }
    if let Some(sender) = &options.mail_from {
        builder = builder.mail_from(sender);
    }
    if let Some(account) = &config.cloudflare {
        builder = builder.cloudflare(account.clone());
    }
    if let Some(account) = &config.stripe {
        builder = builder.stripe(account.clone());
    }
    if let Some(collector) = &config.collector {
        builder = builder.otlp(collector.clone());
    }
    if let Some(secret) = config.secret {
        builder = builder.secret(secret);
    }
    if let Some(key) = config.master_key {
        builder = builder.master_key(key);
    }
    if let Some(key) = &options.auth_api_key {
        builder = builder.service_key(key);
    }
    if let Some(iam) = &options.iam_public_url {
        builder = builder.iam_url(iam);
    }
    if let Some(gateway) = &options.gateway_public_url {
        builder = builder.gateway_url(gateway);
    }
    if let Some(billing) = &options.billing_public_url {
        builder = builder.billing_url(billing);
    }
    for (service, url) in options.remote_services() {
        builder = builder.remote_service(service, url);
    }
    builder
}

/// Sets the store of a builder.
pub(crate) fn with_database(builder: SuiteBuilder, database: &Database) -> SuiteBuilder {
    match database {
        Database::Memory => builder.in_memory(),
        Database::Sqlite(path) => builder.sqlite(path),
        Database::Postgres {
            url,
            direct_url,
            replica_url,
        } => {
            let builder = match direct_url {
                Some(direct_url) => builder.pooled_postgres(url, direct_url),
                None => builder.postgres(url),
            };
            match replica_url {
                Some(replica_url) => builder.postgres_replica(replica_url),
                None => builder,
            }
        }
    }
}

#[expect(
    clippy::print_stdout,
    reason = "the ready line is this program's output"
)]
fn print_startup_messages(
    config: &Config,
    addresses: &std::collections::BTreeMap<&'static str, String>,
) {
    eprintln!("{}", welcome::text(config, addresses));
    println!("ready {}", json!({ "addresses": addresses }));
}

/// The signals that stop the process: SIGTERM and Ctrl-C.
struct EndSignals {
    terminate: Signal,
    interrupt: Signal,
}

impl EndSignals {
    /// Starts to handle the signals. They no longer end the process on their own.
    fn listen() -> std::io::Result<Self> {
        Ok(Self {
            terminate: signal(SignalKind::terminate())?,
            interrupt: signal(SignalKind::interrupt())?,
        })
    }

    async fn next(&mut self) {
        tokio::select! {
            _ = self.terminate.recv() => {}
            _ = self.interrupt.recv() => {}
        }
    }
}
