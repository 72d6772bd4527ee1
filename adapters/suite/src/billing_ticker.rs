//! Makes what time changes in billing: renewals, the ends of trials, charges that are tried again, and expiries.

use std::sync::Arc;

use core_domain::kernel::Context;
use core_domain::port::Store;
use core_domain::use_case::billing::Billing;
use core_domain::use_case::billing::advance_job::queue_due;
use core_domain::use_case::billing::follow::follow_changes;
use core_domain::use_case::billing::usage_invoice::close_usage;
use core_http::kernel::metrics::Metrics;
use tokio::sync::watch;

use crate::background_task::BackgroundTask;
use crate::billing_options::BillingOptions;
use crate::metrics::BillingMetrics;

/// Queues a job for each customer for whom something is due: at the start, and then once per interval. Every node does
/// so; a job is queued only once.
pub(crate) struct BillingTicker {
    pub(crate) store: Arc<dyn Store>,
    pub(crate) billing: Arc<Billing>,
    pub(crate) cx: Context,
    pub(crate) options: BillingOptions,
    pub(crate) metrics: BillingMetrics,
}

impl BillingTicker {
    /// Starts the ticker on the current tokio runtime.
    pub(crate) fn start(self, metrics: &Metrics) -> BackgroundTask {
        let ticker = Arc::new(self);
        BackgroundTask::start("billing", metrics, move |stopped| {
            Arc::clone(&ticker).run(stopped)
        })
    }

    async fn run(self: Arc<Self>, mut stopped: watch::Receiver<bool>) {
        loop {
            tokio::select! {
                () = self.queue_due() => {}
                _ = stopped.wait_for(|stopped| *stopped) => return,
            }
            tokio::select! {
                () = tokio::time::sleep(self.options.tick_every) => {}
                _ = stopped.wait_for(|stopped| *stopped) => return,
            }
        }
    }

    async fn queue_due(&self) {
        let (store, billing) = (self.store.as_ref(), self.billing.as_ref());
        if let Err(error) = follow_changes(&self.cx, store, billing).await {
            self.metrics.count_failure();
            tracing::warn!(
                ?error,
                "the subscriptions of ended platforms could not be ended"
            );
        }
        if let Err(error) = close_usage(&self.cx, store, billing).await {
            self.metrics.count_failure();
            tracing::warn!(?error, "usage could not be invoiced");
        }
        let queued = queue_due(&self.cx, store, billing).await;
        match &queued {
            Ok(customers) => self.metrics.set_due(customers),
            Err(_) => self.metrics.count_failure(),
        }
        match queued {
            Ok(customers) if customers.waiting > 0 => {
                let waiting = customers.waiting;
                tracing::warn!(
                    waiting,
                    "billing of customers waits for the payment provider, or has failed"
                );
            }
            Ok(_) => {}
            Err(error) => tracing::warn!(?error, "due billing could not be queued"),
        }
    }
}
