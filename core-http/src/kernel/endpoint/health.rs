//! The paths that every service has without a row: `/health`, `/livez`, `/readyz`, `/openapi.json`, and `/docs` with the
//! feature `docs`.

use http::{Extensions, StatusCode};
use serde_json::json;

use crate::kernel::answer::reply::{Content, Reply, reply};
use crate::kernel::process::app::App;
use crate::kernel::reference;
use crate::kernel::request::draining::Stopping;

/// Returns whether every service responds to this path without a row.
pub(crate) fn is_path(path: &str) -> bool {
    is_probe(path) || path == "/openapi.json" || reference::is_path(path)
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
            let is_healthy = app.store_check.is_healthy().await;
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
