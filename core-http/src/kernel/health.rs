//! The paths every service answers by itself.

use http::{Extensions, StatusCode};
use serde_json::json;

use super::answer::reply;
use super::app::App;
use super::draining::Stopping;
use super::reply::{Content, Reply};

/// Tells whether the path is one that every service answers.
pub(super) fn is_path(path: &str) -> bool {
    matches!(path, "/health" | "/livez" | "/readyz" | "/openapi.json")
}

/// Tells whether the path asks how the service is, which may be asked at any rate.
pub(super) fn is_probe(path: &str) -> bool {
    matches!(path, "/health" | "/livez" | "/readyz")
}

/// Returns the answer to `/health`, `/livez` and `/readyz`; `None` for another path. A server that was asked to stop is not
/// ready.
pub(super) async fn answer(
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
