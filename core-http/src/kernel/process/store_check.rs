//! The health check of the store.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use core_domain::port::Store;
use tokio::sync::watch;
use tokio::time::{Instant, timeout};

/// The minimum time between the starts of two checks.
const INTERVAL: Duration = Duration::from_secs(1);

/// The time limit of a check. A store that needs longer is unhealthy.
const CHECK_TIMEOUT: Duration = Duration::from_millis(1_500);

/// A check that is in progress or has completed.
#[derive(Clone, Debug)]
struct Check {
    began_at: Instant,
    /// Whether the store is healthy; `None` while the check is in progress.
    outcome: watch::Receiver<Option<bool>>,
}

/// A store and its last health check. The store is queried at most once per second, however many requests ask for its
/// state. Clones share their state.
#[derive(Clone, Debug)]
pub struct StoreCheck {
    store: Arc<dyn Store>,
    last: Arc<Mutex<Option<Check>>>,
}

impl StoreCheck {
    /// Creates the check of a store.
    #[must_use]
    pub fn new(store: Arc<dyn Store>) -> Self {
        Self {
            store,
            last: Arc::default(),
        }
    }

    /// Returns whether the store is healthy according to the last check. Starts a check if the last one has completed
    /// and started more than one second ago. Waits for the outcome of a check in progress, at most two seconds.
    pub(crate) async fn is_healthy(&self) -> bool {
        let mut outcome = self.current();
        // A sender that is dropped without an outcome has panicked, or its runtime has ended.
        let outcome = outcome.wait_for(Option::is_some).await;
        outcome.is_ok_and(|outcome| *outcome == Some(true))
    }

    /// Returns the current check, after starting one if the last is too old.
    fn current(&self) -> watch::Receiver<Option<bool>> {
        let mut last = self.last.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(check) = &*last
            && (check.began_at.elapsed() < INTERVAL || is_in_progress(&check.outcome))
        {
            return check.outcome.clone();
        }
        let (sender, outcome) = watch::channel(None);
        let store = Arc::clone(&self.store);
        // A separate task, so that the check continues if the client that caused it disconnects.
        tokio::spawn(async move {
            let checked = timeout(CHECK_TIMEOUT, store.check()).await;
            sender.send_replace(Some(matches!(checked, Ok(Ok(())))));
        });
        *last = Some(Check {
            began_at: Instant::now(),
            outcome: outcome.clone(),
        });
        outcome
    }
}

fn is_in_progress(outcome: &watch::Receiver<Option<bool>>) -> bool {
    outcome.borrow().is_none() && outcome.has_changed().is_ok()
}
