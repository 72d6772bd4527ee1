//! The paths every service answers by itself.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use core_domain::port::Store;
use http::{Extensions, StatusCode};
use serde_json::json;
use tokio::sync::watch;
use tokio::time::{Instant, timeout};

use super::service::App;
use crate::kernel::answer::reply::{Content, Reply, reply};
use crate::kernel::request::draining::Stopping;

/// Tells whether the path is one that every service answers.
pub(crate) fn is_path(path: &str) -> bool {
    matches!(path, "/health" | "/livez" | "/readyz" | "/openapi.json")
}

/// Tells whether the path asks how the service is, which may be asked at any rate.
pub(crate) fn is_probe(path: &str) -> bool {
    matches!(path, "/health" | "/livez" | "/readyz")
}

/// Returns the answer to `/health`, `/livez` and `/readyz`; `None` for another path. A server that was asked to stop is not
/// ready.
pub(crate) async fn answer(
    app: &App,
    service: &str,
    path: &str,
    extensions: &Extensions,
) -> Option<Reply> {
    let is_readiness = path == "/readyz";
    let (is_good, body) = match path {
        "/livez" => (true, json!({ "status": "ok", "service": service })),
        "/readyz" if Stopping::is_in(extensions) => {
            (false, json!({ "status": "stopping", "service": service }))
        }
        "/health" | "/readyz" => {
            let is_healthy = app.is_store_healthy().await;
            let [status, store] = match is_healthy {
                true => ["ok", "ok"],
                false => ["degraded", "failed"],
            };
            let checks = json!({ "store": store });
            let body = json!({ "status": status, "service": service, "checks": checks });
            (is_healthy, body)
        }
        _ => return None,
    };
    let status = match is_readiness && !is_good {
        true => StatusCode::SERVICE_UNAVAILABLE,
        false => StatusCode::OK,
    };
    Some(reply(status, Content::Json(body.to_string())))
}

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
    pub(crate) async fn is_healthy(&self, store: &Arc<dyn Store>) -> bool {
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
