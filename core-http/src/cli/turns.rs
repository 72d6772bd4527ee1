//! How many uploads are taken at once: each is held in memory, and unpacked there for a look.

use std::sync::Arc;
use std::time::Duration;

use core_domain::kernel::{Code, Error, Result};
use serde_json::json;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// How long an upload waits for its turn, unread.
const PATIENCE: Duration = Duration::from_secs(5);

/// What who got no turn is told, in seconds.
const COME_BACK_IN: u64 = 5;

/// The right to have an upload in memory; given back when dropped.
pub(super) type Turn = OwnedSemaphorePermit;

/// The turns of all uploads of a service.
#[derive(Clone, Debug)]
pub(super) struct Turns(Arc<Semaphore>);

impl Turns {
    pub(super) fn new(at_once: usize) -> Self {
        Self(Arc::new(Semaphore::new(at_once)))
    }

    /// Waits for a turn, but not for long.
    ///
    /// # Errors
    /// `SERVICE_UNAVAILABLE` with `Retry-After` when nobody gave one back meanwhile.
    pub(super) async fn take(&self) -> Result<Turn> {
        let turn = Arc::clone(&self.0).acquire_owned();
        match tokio::time::timeout(PATIENCE, turn).await {
            Ok(Ok(turn)) => Ok(turn),
            _ => Err(Error::Refused {
                code: Code::ServiceUnavailable,
                message: "Too many sites are being uploaded at the moment.".to_owned(),
                details: json!({ "retryAfter": COME_BACK_IN }),
            }),
        }
    }
}
