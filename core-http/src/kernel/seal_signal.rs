//! How those who follow the change feed learn at once that it goes on.

use std::sync::Arc;

use tokio::sync::watch;

/// Told when entries of the audit were sealed. A hint only: other processes seal as well, so whoever waits also polls.
#[derive(Clone, Debug, Default)]
pub struct SealSignal(Arc<watch::Sender<()>>);

impl SealSignal {
    /// Entries were sealed.
    pub fn announce(&self) {
        self.0.send_replace(());
    }

    pub(crate) fn subscribe(&self) -> watch::Receiver<()> {
        self.0.subscribe()
    }
}
