//! Extensions of requests that announce the stop of the server.

use http::Extensions;
use tokio::sync::watch;

/// Whether the server that took the request was asked to stop. It may accept requests for a while, but `/readyz` responds with
/// 503. An extension of requests, see [`serve`](crate::serve).
#[derive(Clone, Debug)]
pub struct Stopping(watch::Receiver<bool>);

impl Stopping {
    /// Begins with the value `true`.
    #[must_use]
    pub const fn new(begins: watch::Receiver<bool>) -> Self {
        Self(begins)
    }

    /// Returns whether the server was asked to stop.
    pub(crate) fn has_begun(&self) -> bool {
        *self.0.borrow()
    }

    /// Returns whether the server of a request was asked to stop.
    pub(crate) fn is_in(extensions: &Extensions) -> bool {
        extensions.get::<Self>().is_some_and(Self::has_begun)
    }
}

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
