//! Seals audit entries in the background, on tokio.

use std::sync::Arc;
use std::time::Duration;

use core_domain::kernel::{Context, Ed25519Private, Result};
use core_domain::port::Store;
use core_domain::use_case::shared::{seal, sign_due_checkpoints, sign_due_installation_checkpoint};
use core_http::kernel::metrics::Metrics;
use tokio::sync::{Notify, watch};

use crate::background_task::BackgroundTask;
use crate::metrics::SealerMetrics;

/// Time between two polls for waiting entries if the sealer is not woken.
const POLL: Duration = Duration::from_secs(1);

/// How long an entry waits for others, so that one unit of work seals them together.
const GATHER: Duration = Duration::from_millis(50);

/// The background task that seals and signs audit entries.
pub(crate) struct Sealer {
    pub(crate) store: Arc<dyn Store>,
    pub(crate) cx: Context,
    pub(crate) key: Ed25519Private,
    pub(crate) wake: Arc<Notify>,
    pub(crate) metrics: SealerMetrics,
}

impl Sealer {
    /// Starts sealing on the current tokio runtime. After a stop it seals the waiting entries before it ends. Entries
    /// that are not sealed before the task is aborted are sealed at the next start.
    pub(crate) fn start(self, metrics: &Metrics) -> BackgroundTask {
        let sealer = Arc::new(self);
        BackgroundTask::start("sealer", metrics, move |stopped| {
            Arc::clone(&sealer).run(stopped)
        })
    }

    async fn run(self: Arc<Self>, mut stopped: watch::Receiver<bool>) {
        loop {
            let more = match self.seal().await {
                Ok(more) => more,
                Err(error) => {
                    self.metrics.count_failure();
                    tracing::warn!(?error, "the audit could not be sealed");
                    false
                }
            };
            if *stopped.borrow() {
                return;
            }
            if !more {
                tokio::select! {
                    () = self.wake.notified() => {}
                    () = tokio::time::sleep(POLL) => {}
                    _ = stopped.wait_for(|stopped| *stopped) => continue,
                }
            }
            tokio::time::sleep(GATHER).await;
        }
    }

    /// Seals all waiting entries. Returns whether another node is sealing, so that entries may still be waiting.
    async fn seal(&self) -> Result<bool> {
        let store = self.store.as_ref();
        // It needs all databases, and the rest does not.
        let mut of_installation = Ok(false);
        loop {
            let sealed = seal(&self.cx, store, &self.key).await?;
            self.metrics.count_sealed(sealed.entries);
            of_installation = of_installation
                .and(sign_due_installation_checkpoint(&self.cx, store, &self.key).await);
            if !sealed.has_more {
                break;
            }
            if sealed.entries == 0 {
                return of_installation.map(|_| true);
            }
        }
        while sign_due_checkpoints(&self.cx, store, &self.key).await? > 0 {}
        of_installation.map(|_| false)
    }
}
