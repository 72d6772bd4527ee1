//! Tails of workers and deployments.

use tokio::sync::broadcast;

/// Maximum number of messages that wait for a slow client.
const MAX_WAITING: usize = 1_024;

/// A tail of a worker or of a deployment.
pub(crate) struct Tail {
    pub(crate) id: String,
    /// The name of the worker or the project.
    pub(crate) target: String,
    messages: broadcast::Sender<String>,
}

impl Tail {
    pub(crate) fn new(id: String, target: &str) -> Self {
        Self {
            id,
            target: target.to_owned(),
            messages: broadcast::Sender::new(MAX_WAITING),
        }
    }

    /// Connects a client, which receives the messages until the tail is deleted.
    pub(crate) fn connect(&self) -> broadcast::Receiver<String> {
        self.messages.subscribe()
    }

    /// Returns the number of connected clients.
    pub(crate) fn connections(&self) -> usize {
        self.messages.receiver_count()
    }

    /// Sends a message to the connected clients.
    pub(crate) fn send(&self, message: String) {
        // Without a client the message is lost, as at Cloudflare.
        let _ = self.messages.send(message);
    }
}
