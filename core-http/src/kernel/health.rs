//! The paths every service answers by itself.

use http::StatusCode;
use serde_json::json;

use super::answer::reply;
use super::app::App;
use super::reply::{Content, Reply};

/// Tells whether the path is one that every service answers.
pub(super) fn is_path(path: &str) -> bool {
    matches!(path, "/health" | "/livez" | "/readyz" | "/openapi.json")
}

/// Tells whether the path asks how the service is, which may be asked at any rate.
pub(super) fn is_probe(path: &str) -> bool {
    matches!(path, "/health" | "/livez" | "/readyz")
}

/// The answer to `/health`, `/livez` and `/readyz`; `None` for another path.
pub(super) async fn answer(app: &App, service: &str, path: &str) -> Option<Reply> {
    let (status, body) = match path {
        "/livez" => (
            StatusCode::OK,
            json!({ "status": "ok", "service": service }),
        ),
        "/health" | "/readyz" => {
            let store = app.check_store().await;
            let word = if store.is_ok() { "ok" } else { "degraded" };
            let checks = json!({ "store": if store.is_ok() { "ok" } else { "failed" } });
            let status = if path == "/readyz" && store.is_err() {
                StatusCode::SERVICE_UNAVAILABLE
            } else {
                StatusCode::OK
            };
            (
                status,
                json!({ "status": word, "service": service, "checks": checks }),
            )
        }
        _ => return None,
    };
    Some(reply(status, Content::Json(body.to_string())))
}
