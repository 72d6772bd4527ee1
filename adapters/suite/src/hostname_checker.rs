//! Checks periodically whether the served hostnames still belong to their platforms.

use std::sync::Arc;

use core_domain::kernel::Context;
use core_domain::port::{DnsResolver, Store};
use core_domain::use_case::registry::hostname_proofs::check_proofs;
use core_http::kernel::metrics::Metrics;
use tokio::sync::watch;

use crate::background_task::BackgroundTask;
use crate::dns_options::DnsOptions;

/// Checks the ownership records of hostnames: at the start, and then once per interval.
pub(crate) struct HostnameChecker {
    pub(crate) store: Arc<dyn Store>,
    pub(crate) dns: Arc<dyn DnsResolver>,
    pub(crate) cx: Context,
    pub(crate) options: DnsOptions,
}

impl HostnameChecker {
    /// Starts the checker on the current tokio runtime.
    pub(crate) fn start(self, metrics: &Metrics) -> BackgroundTask {
        let checker = Arc::new(self);
        BackgroundTask::start("hostnames", metrics, move |stopped| {
            Arc::clone(&checker).run(stopped)
        })
    }

    async fn run(self: Arc<Self>, mut stopped: watch::Receiver<bool>) {
        loop {
            tokio::select! {
                () = self.check() => {}
                _ = stopped.wait_for(|stopped| *stopped) => return,
            }
            tokio::select! {
                () = tokio::time::sleep(self.options.proof_interval) => {}
                _ = stopped.wait_for(|stopped| *stopped) => return,
            }
        }
    }

    async fn check(&self) {
        let (store, dns) = (self.store.as_ref(), self.dns.as_ref());
        match check_proofs(&self.cx, store, dns, self.options.proof_patience).await {
            Ok(checked) if checked.missing + checked.ended + checked.unknown > 0 => {
                tracing::info!(?checked, "the ownership records of hostnames were checked");
            }
            Ok(_) => {}
            Err(error) => tracing::warn!(
                ?error,
                "the ownership records of hostnames could not be checked"
            ),
        }
    }
}
