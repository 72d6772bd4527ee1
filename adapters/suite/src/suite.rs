//! A built suite.

use std::sync::Arc;

use core_domain::port::SpanSink;
use core_http::gateway::Gateway;
use core_http::kernel::Service;
#[cfg(feature = "local")]
use core_local::{LocalInfrastructure, SiteHost};

use crate::accounting::Accounting;
use crate::background_task::BackgroundTask;
use crate::jobs::Jobs;
use crate::metrics::SuiteMetrics;
use crate::plans::Plans;
use crate::units::Units;
use crate::usage::Usage;
use crate::worker::WorkerHandle;

/// Every service of the suite over one store, and the worker that runs its jobs.
///
/// ```
/// # #[tokio::main] async fn main() -> Result<(), core_suite::SuiteError> {
/// use core_suite::Suite;
///
/// let suite = Suite::builder().in_memory().build().await?;
/// let gateway = suite.gateway(); // tower::Service<http::Request<B>>; so are .iam(), .registry(), ..
/// # drop(gateway);
/// suite.shutdown().await;
/// # Ok(()) }
/// ```
#[derive(Debug)]
pub struct Suite {
    pub(crate) gateway: Gateway,
    pub(crate) services: Services,
    #[cfg(feature = "local")]
    pub(crate) local: Option<LocalInfrastructure>,
    pub(crate) jobs: Jobs,
    pub(crate) worker: WorkerHandle,
    pub(crate) relay: BackgroundTask,
    pub(crate) mail_relay: BackgroundTask,
    pub(crate) sealer: BackgroundTask,
    pub(crate) hostname_checker: BackgroundTask,
    pub(crate) webhooks: BackgroundTask,
    pub(crate) sweeper: BackgroundTask,
    pub(crate) billing_ticker: BackgroundTask,
    pub(crate) usage: Usage,
    pub(crate) accounting: Accounting,
    pub(crate) plans: Plans,
    pub(crate) gateway_usage: BackgroundTask,
    /// Receives the notices of other processes; `None` without a channel.
    pub(crate) notices: Option<BackgroundTask>,
    pub(crate) metrics: SuiteMetrics,
    pub(crate) backlog: BackgroundTask,
    /// Receives the spans; `None` if no traces are exported.
    pub(crate) span_sink: Option<Arc<dyn SpanSink>>,
    /// Keeps the temporary folder until the suite is dropped; `None` if a data folder was set.
    pub(crate) _temporary: Option<tempfile::TempDir>,
}

impl Suite {
    /// Returns the gateway, which is the public entry point.
    #[must_use]
    pub fn gateway(&self) -> Gateway {
        self.gateway.clone()
    }

    /// Returns the identity and access service.
    #[must_use]
    pub fn iam(&self) -> Service {
        self.services.iam.clone()
    }

    /// Returns the registry service: platforms, their entities and everything else that belongs to them.
    #[must_use]
    pub fn registry(&self) -> Service {
        self.services.registry.clone()
    }

    /// Returns the provisioning service, which manages jobs.
    #[must_use]
    pub fn provisioning(&self) -> Service {
        self.services.provisioning.clone()
    }

    /// Returns the service that is the backend of the command-line client.
    #[must_use]
    pub fn cli(&self) -> Service {
        self.services.cli.clone()
    }

    /// Returns the billing service: plans, customers, subscriptions and invoices.
    #[must_use]
    pub fn billing(&self) -> Service {
        self.services.billing.clone()
    }

    /// Returns the stack registry service.
    #[must_use]
    pub fn stacks(&self) -> Service {
        self.services.stacks.clone()
    }

    /// Returns the host of the sites and workers of the local provider, or `None` with another provider.
    #[cfg(feature = "local")]
    #[must_use]
    pub fn sites(&self) -> Option<SiteHost> {
        self.local.as_ref().map(LocalInfrastructure::site_host)
    }

    /// Returns the handle for jobs of the host program.
    #[must_use]
    pub fn jobs(&self) -> Jobs {
        self.jobs.clone()
    }

    /// Returns the handle for units of work of the host program.
    #[must_use]
    pub fn units(&self) -> Units {
        self.jobs.units()
    }

    /// Returns the handle with which the host program reports metered usage.
    #[must_use]
    pub fn usage(&self) -> Usage {
        self.usage.clone()
    }

    /// Returns the handle with which the host program exports and verifies the journal of billing.
    #[must_use]
    pub fn accounting(&self) -> Accounting {
        self.accounting.clone()
    }

    /// Returns the handle with which the host program moves subscriptions between versions of plans.
    #[must_use]
    pub fn plans(&self) -> Plans {
        self.plans.clone()
    }

    /// Returns the metrics, as a service for the scraper. It requires no credential.
    #[must_use]
    pub fn metrics(&self) -> SuiteMetrics {
        self.metrics.clone()
    }

    /// Returns the worker that runs jobs.
    #[must_use]
    pub fn worker(&self) -> &WorkerHandle {
        &self.worker
    }

    /// Stops claiming jobs, while everything else continues. See [`WorkerHandle::stop_claiming`].
    pub fn stop_claiming(&self) {
        self.worker.stop_claiming();
    }

    /// Stops the worker, the relays, the webhook dispatcher, the sealer, and the platform workers that run here.
    /// Running steps, mails and webhooks are released, so that the next start can continue them at once.
    pub async fn shutdown(self) {
        self.shutdown_with(std::future::ready(())).await;
    }

    /// Stops like [`Self::shutdown`], while the listeners of the host drain. The platform workers stop after the
    /// listeners, because they may serve the last requests.
    pub async fn shutdown_with(self, listeners: impl Future<Output = ()>) {
        tokio::join!(
            self.worker.stop(),
            self.relay.stop(),
            self.mail_relay.stop(),
            self.webhooks.stop(),
            self.hostname_checker.stop(),
            self.billing_ticker.stop(),
            self.backlog.stop(),
            listeners,
        );
        // The last requests are counted.
        self.gateway_usage.stop().await;
        // The last steps and requests may have written audit entries.
        self.sealer.stop().await;
        self.sweeper.stop().await;
        if let Some(notices) = self.notices {
            notices.stop().await;
        }
        #[cfg(feature = "local")]
        if let Some(local) = self.local {
            local.stop_workers().await;
        }
        // Nothing creates spans any more.
        if let Some(sink) = self.span_sink {
            sink.flush().await;
        }
    }
}

/// The services that the gateway routes to.
#[derive(Debug)]
pub(crate) struct Services {
    pub(crate) iam: core_http::kernel::Service,
    pub(crate) registry: core_http::kernel::Service,
    pub(crate) provisioning: core_http::kernel::Service,
    pub(crate) cli: core_http::kernel::Service,
    pub(crate) billing: core_http::kernel::Service,
    pub(crate) stacks: core_http::kernel::Service,
}
