//! Signals between the tasks of a process: changes of access, and sealed audit entries.

use std::sync::Arc;

use core_domain::kernel::Effect;
use tokio::sync::{broadcast, watch};

/// The number of changes that are buffered for a slow receiver. A receiver that misses some assumes that its access
/// has changed.
const CAPACITY: usize = 256;

/// Announces committed changes of access to the event streams of this process. It is only a hint: other processes
/// commit changes as well, so receivers also poll. Clones share their state.
#[derive(Clone, Debug)]
pub struct AccessSignal(broadcast::Sender<Effect>);

impl Default for AccessSignal {
    fn default() -> Self {
        Self(broadcast::Sender::new(CAPACITY))
    }
}

impl AccessSignal {
    /// Notifies the receivers of a change of access.
    pub fn notify(&self, effect: &Effect) {
        if self.0.receiver_count() > 0 {
            // Sending fails only if the last receiver was dropped in the meantime.
            let _ = self.0.send(effect.clone());
        }
    }

    pub(crate) fn subscribe(&self) -> broadcast::Receiver<Effect> {
        self.0.subscribe()
    }
}

/// Announces sealed audit entries to the event streams of this process. It is only a hint: other processes seal entries
/// as well, so receivers also poll. Clones share their state.
#[derive(Clone, Debug, Default)]
pub struct SealSignal(Arc<watch::Sender<()>>);

impl SealSignal {
    /// Notifies the receivers that audit entries were sealed.
    pub fn notify(&self) {
        self.0.send_replace(());
    }

    pub(crate) fn subscribe(&self) -> watch::Receiver<()> {
        self.0.subscribe()
    }
}
