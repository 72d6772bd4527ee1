//! The health check of the store, shared by all who ask.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use core_domain::port::Store;
use tokio::sync::watch;
use tokio::time::{Instant, timeout};

/// The shortest time between the beginnings of two checks.
const INTERVAL: Duration = Duration::from_secs(1);

/// How long a check may take. A store that needs longer is not healthy.
const CHECK_TIMEOUT: Duration = Duration::from_millis(1_500);

/// A check that was begun.
#[derive(Clone, Debug)]
struct Check {
    began_at: Instant,
    /// `None` while the check is in progress.
    outcome: watch::Receiver<Option<bool>>,
}

/// The last health check of a store. The store is queried once a second at most, however often and by whomever it is asked
/// for. Clones share their state.
#[derive(Clone, Debug, Default)]
pub struct StoreCheck(Arc<Mutex<Option<Check>>>);

impl StoreCheck {
    /// Returns whether the store works, as of the last check. Begins a check if the last one began a second ago.
    pub(super) async fn is_healthy(&self, store: &Arc<dyn Store>) -> bool {
        let mut outcome = self.current(store);
        // A sender that is dropped without an outcome has panicked, or its runtime has ended.
        let outcome = outcome.wait_for(Option::is_some).await;
        outcome.is_ok_and(|outcome| *outcome == Some(true))
    }

    fn current(&self, store: &Arc<dyn Store>) -> watch::Receiver<Option<bool>> {
        let mut last = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(check) = &*last
            && (check.began_at.elapsed() < INTERVAL || is_in_progress(&check.outcome))
        {
            return check.outcome.clone();
        }
        let (sender, outcome) = watch::channel(None);
        let store = Arc::clone(store);
        // A task of its own, so that it goes on when the client that asked for it leaves.
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
