//! Requests that wait at the server for the end of a job or deployment.

use std::time::Duration;

use tokio::time::{Instant, sleep_until};

/// Number of seconds for which one request waits.
pub(crate) const WAIT_SECONDS: u32 = 20;

/// Minimum time between the starts of two requests, in case a server or proxy responds at once.
const MIN_INTERVAL: Duration = Duration::from_secs(2);

/// The pause between two requests that wait.
#[derive(Debug)]
pub(crate) struct WaitPause {
    next: Instant,
}

impl WaitPause {
    pub(crate) fn new() -> Self {
        Self {
            next: Instant::now(),
        }
    }

    /// Waits until the next request may start.
    pub(crate) async fn start(&mut self) {
        sleep_until(self.next).await;
        self.next = Instant::now() + MIN_INTERVAL;
    }
}
