//! The paths that every service has without a row (`/health`, `/livez`, `/readyz`, `/openapi.json`), and the health
//! check of the store.

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

/// Returns whether every service responds to this path without a row.
pub(crate) fn is_path(path: &str) -> bool {
    matches!(path, "/health" | "/livez" | "/readyz" | "/openapi.json")
}

/// Returns whether the path is a health check. Health checks have no rate limit.
pub(crate) fn is_probe(path: &str) -> bool {
    matches!(path, "/health" | "/livez" | "/readyz")
}

/// Returns the response to `/health`, `/livez` or `/readyz`; `None` for other paths.
///
/// - `/livez` responds with 200 while the process runs.
/// - `/readyz` responds with 503 if the store fails or the server is about to stop.
/// - `/health` responds with 200 and reports the state of the store in the body.
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

/// The last health check of a store. The store is queried at most once per second, however many requests ask for its
/// state. Clones share their state.
#[derive(Clone, Debug, Default)]
pub struct StoreCheck(Arc<Mutex<Option<Check>>>);

impl StoreCheck {
    /// Returns whether the store is healthy according to the last check. Starts a check if the last one has completed
    /// and started more than one second ago. Waits for the outcome of a check in progress.
    pub(crate) async fn is_healthy(&self, store: &Arc<dyn Store>) -> bool {
        let mut outcome = self.current(store);
        // A sender that is dropped without an outcome has panicked, or its runtime has ended.
        let outcome = outcome.wait_for(Option::is_some).await;
        outcome.is_ok_and(|outcome| *outcome == Some(true))
    }

    /// Returns the current check, after starting one if the last is too old.
    fn current(&self, store: &Arc<dyn Store>) -> watch::Receiver<Option<bool>> {
        let mut last = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(check) = &*last
            && (check.began_at.elapsed() < INTERVAL || is_in_progress(&check.outcome))
        {
            return check.outcome.clone();
        }
        let (sender, outcome) = watch::channel(None);
        let store = Arc::clone(store);
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
