//! Seals the audit behind the writers, on tokio.

use std::sync::Arc;
use std::time::Duration;

use core_domain::kernel::{Context, Ed25519Private, Result};
use core_domain::port::Store;
use core_domain::use_case::shared::{seal, sign_due_checkpoints, sign_due_installation_checkpoint};
use tokio::sync::{Notify, watch};

use crate::background_task::BackgroundTask;

/// How often is looked for entries that wait when nobody calls.
const POLL: Duration = Duration::from_secs(1);

/// How long an entry may wait for others, so that one unit of work seals them all.
const GATHER: Duration = Duration::from_millis(50);

/// What the sealer works with.
pub(crate) struct Sealer {
    pub(crate) store: Arc<dyn Store>,
    pub(crate) cx: Context,
    pub(crate) key: Ed25519Private,
    pub(crate) wake: Arc<Notify>,
}

impl Sealer {
    /// Starts sealing on the current tokio runtime; asked to end, it seals what waits. What one that is cut off did not seal is
    /// sealed at the next start.
    pub(crate) fn start(self) -> BackgroundTask {
        BackgroundTask::start(|stopped| self.run(stopped))
    }

    async fn run(self, mut stopped: watch::Receiver<bool>) {
        loop {
            let more = match self.seal().await {
                Ok(more) => more,
                Err(error) => {
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

    /// Seals all that waits; tells whether another node does, so that some may still wait.
    async fn seal(&self) -> Result<bool> {
        let store = self.store.as_ref();
        loop {
            let sealed = seal(&self.cx, store, &self.key).await?;
            sign_due_installation_checkpoint(&self.cx, store, &self.key).await?;
            if !sealed.more {
                break;
            }
            if sealed.entries == 0 {
                return Ok(true);
            }
        }
        while sign_due_checkpoints(&self.cx, store, &self.key).await? > 0 {}
        Ok(false)
    }
}
