//! Extensions of requests that announce the shutdown of the server. See [`serve`](crate::serve()) for its phases.

use http::Extensions;
use tokio::sync::watch;

/// Whether the shutdown of the server has begun. An extension of requests. The server may still accept requests for the
/// drain delay, but `/readyz` responds with 503.
#[derive(Clone, Debug)]
pub struct Stopping(watch::Receiver<bool>);

impl Stopping {
    /// Creates the extension. The value becomes `true` when this phase of the shutdown begins.
    #[must_use]
    pub const fn new(begins: watch::Receiver<bool>) -> Self {
        Self(begins)
    }

    /// Returns whether the shutdown has begun.
    pub(crate) fn has_begun(&self) -> bool {
        *self.0.borrow()
    }

    /// Returns whether the shutdown of the server of a request has begun. `false` without this extension.
    pub(crate) fn is_in(extensions: &Extensions) -> bool {
        extensions.get::<Self>().is_some_and(Self::has_begun)
    }
}

/// Whether the server has stopped accepting requests and waits for those in progress. An extension of requests.
/// Responses without an end, such as event streams, must then end.
#[derive(Clone, Debug)]
pub struct Draining(watch::Receiver<bool>);

impl Draining {
    /// Creates the extension. The value becomes `true` when this phase of the shutdown begins.
    #[must_use]
    pub const fn new(begins: watch::Receiver<bool>) -> Self {
        Self(begins)
    }

    /// Waits until the server drains or has stopped.
    pub(crate) async fn wait(&mut self) {
        // A closed channel means that the server has stopped.
        let _ = self.0.wait_for(|begun| *begun).await;
    }
}
