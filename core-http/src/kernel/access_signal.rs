//! How answers without an end learn at once that what somebody may do has changed.

use core_domain::kernel::Effect;
use tokio::sync::broadcast;

/// How many changes are kept for a receiver that is late; one that missed some has to expect that they concerned it.
const CAPACITY: usize = 256;

/// Told of the changes of access that were committed. A hint only: other processes commit as well, so whoever waits also
/// polls.
#[derive(Clone, Debug)]
pub struct AccessSignal(broadcast::Sender<Effect>);

impl Default for AccessSignal {
    fn default() -> Self {
        Self(broadcast::Sender::new(CAPACITY))
    }
}

impl AccessSignal {
    /// What somebody may do has changed.
    pub fn announce(&self, effect: &Effect) {
        if self.0.receiver_count() > 0 {
            // Whoever received may just have gone.
            let _ = self.0.send(effect.clone());
        }
    }

    pub(crate) fn subscribe(&self) -> broadcast::Receiver<Effect> {
        self.0.subscribe()
    }
}
