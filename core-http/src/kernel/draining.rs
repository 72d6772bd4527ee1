//! How answers without an end learn that the server is about to stop.

use tokio::sync::watch;

/// Whether the server that took the request has stopped to accept others. An extension of requests, see
/// [`serve`](crate::serve); a request without it is never told.
#[derive(Clone, Debug)]
pub struct Draining(watch::Receiver<bool>);

impl Draining {
    /// Begins with the value `true`.
    #[must_use]
    pub const fn new(begins: watch::Receiver<bool>) -> Self {
        Self(begins)
    }

    /// Waits until it begins; also when the server is gone.
    pub(crate) async fn begun(&mut self) {
        // A closed channel means that the server has stopped.
        let _ = self.0.wait_for(|begun| *begun).await;
    }
}
