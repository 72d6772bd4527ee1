//! Puts the suite behind sockets and waits for the signal to end.

use std::time::Duration;

use core_suite::{Suite, SuiteBuilder, SuiteError};
use serde_json::json;
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::watch;
use tokio::task::JoinSet;

use crate::config::{Config, Database};
use crate::listeners::Listeners;
use crate::service::ServiceName;
use crate::welcome;

/// How long requests under way may take to end after the signal.
const DRAIN: Duration = Duration::from_secs(25);

/// Why the server could not run.
#[derive(Debug, thiserror::Error)]
pub(crate) enum RunError {
    #[error("{0}")]
    Io(#[from] std::io::Error),
    #[error("{0}")]
    Suite(#[from] SuiteError),
}

/// Runs until SIGTERM or Ctrl-C, then drains.
pub(crate) async fn run(config: Config) -> Result<(), RunError> {
    std::fs::create_dir_all(&config.data)?;
    let listeners = Listeners::bind(&config).await?;
    let addresses = listeners.addresses()?;
    let suite = builder(&config, &addresses).build().await?;

    let (stop, stopped) = watch::channel(false);
    let mut servers = JoinSet::new();
    for (service, listener) in listeners.services {
        let shutdown = until(stopped.clone());
        match service {
            ServiceName::Gateway => servers.spawn(core_suite::serve(
                listener,
                suite.gateway(),
                shutdown,
                DRAIN,
            )),
            ServiceName::Iam => {
                servers.spawn(core_suite::serve(listener, suite.iam(), shutdown, DRAIN))
            }
            ServiceName::Registry => servers.spawn(core_suite::serve(
                listener,
                suite.registry(),
                shutdown,
                DRAIN,
            )),
            ServiceName::Provisioning => servers.spawn(core_suite::serve(
                listener,
                suite.provisioning(),
                shutdown,
                DRAIN,
            )),
            ServiceName::Cli => {
                servers.spawn(core_suite::serve(listener, suite.cli(), shutdown, DRAIN))
            }
            ServiceName::Stacks => {
                servers.spawn(core_suite::serve(listener, suite.stacks(), shutdown, DRAIN))
            }
        };
    }
    if let Some(sites) = suite.sites() {
        servers.spawn(core_suite::serve(
            listeners.sites,
            sites,
            until(stopped.clone()),
            DRAIN,
        ));
    }

    if config.auth_api_key.is_none() {
        tracing::warn!("AUTH_API_KEY is not set: every request passes unauthenticated");
    }
    announce(&config, &addresses);
    wait_for_signal().await?;
    tracing::info!("draining");
    tokio::spawn(end_at_once_on_second_signal());
    // The receivers live as long as their servers; nobody left to tell is fine.
    let _ = stop.send(true);
    while servers.join_next().await.is_some() {}
    suite.shutdown().await;
    Ok(())
}

fn builder(
    config: &Config,
    addresses: &std::collections::BTreeMap<&'static str, String>,
) -> SuiteBuilder {
    let mut builder = Suite::builder()
        .data_folder(&config.data)
        .public_routes(config.public_routes.clone());
    builder = match &config.database {
        Database::Memory => builder.in_memory(),
        Database::Sqlite(path) => builder.sqlite(path),
        Database::Postgres(url) => builder.postgres(url),
    };
    if let Some(key) = &config.auth_api_key {
        builder = builder.service_key(key);
    }
    if let Some(iam) = addresses.get("iam") {
        builder = builder.iam_url(iam);
    }
    if let Some(sites) = addresses.get("sites") {
        builder = builder.sites_url(sites);
    }
    if let Some(latency) = config.local_latency {
        builder = builder.local_latency(latency);
    }
    builder.allowed_origins(config.allowed_origins.clone())
}

#[expect(
    clippy::print_stdout,
    reason = "the ready line is this program's output"
)]
fn announce(config: &Config, addresses: &std::collections::BTreeMap<&'static str, String>) {
    eprintln!("{}", welcome::text(config, addresses));
    println!("ready {}", json!({ "addresses": addresses }));
}

async fn until(mut stopped: watch::Receiver<bool>) {
    // A closed channel means the process ends anyway.
    let _ = stopped.wait_for(|stopped| *stopped).await;
}

async fn wait_for_signal() -> std::io::Result<()> {
    let mut terminate = signal(SignalKind::terminate())?;
    tokio::select! {
        _ = terminate.recv() => Ok(()),
        interrupted = tokio::signal::ctrl_c() => interrupted,
    }
}

async fn end_at_once_on_second_signal() {
    if wait_for_signal().await.is_ok() {
        std::process::exit(1);
    }
}
