//! The check of services in other processes.

use std::time::Instant;

use core_http::gateway::{HttpUpstream, Upstream, UpstreamError};
use core_http::kernel::{empty_body, read_body};
use http::{Request, StatusCode, Uri};
use serde_json::Value;
use tokio::time::timeout;

use super::{CHECK_TIMEOUT, Finding};

/// Maximum size of the response to a readiness check, in bytes.
const MAX_READINESS_BYTES: usize = 16 * 1024;

/// Asks a service at an address such as `http://10.0.0.2:8081` whether it is ready, and returns a finding with what to
/// do. `name` is the name of the service.
pub async fn check_service(name: &str, url: &str) -> Finding {
    let subject = "services";
    let upstream = match HttpUpstream::new(url) {
        Ok(upstream) => upstream,
        Err(error) => return Finding::failure(subject, format!("{name}: {}", error.problem)),
    };
    let began = Instant::now();
    let (status, body) = match timeout(CHECK_TIMEOUT, readiness(&upstream)).await {
        Ok(Ok(response)) => response,
        Ok(Err(error)) => {
            let text = format!("{name} at {url}: {error}; start it, or correct its URL");
            return Finding::failure(subject, text);
        }
        Err(_) => {
            let text = format!(
                "{name} at {url} accepts connections, but does not respond; look at its log, or correct its URL"
            );
            return Finding::failure(subject, text);
        }
    };
    if status.is_success() && body["service"] == name {
        let took = began.elapsed();
        return Finding::fine(subject, format!("{name} is ready ({took:.0?})"));
    }
    let reason = match (status, body["status"].as_str()) {
        (StatusCode::SERVICE_UNAVAILABLE, Some("stopping")) => "is stopping; wait for its restart",
        (StatusCode::SERVICE_UNAVAILABLE, Some("degraded")) => {
            "has no database; run doctor on its machine"
        }
        (StatusCode::SERVICE_UNAVAILABLE, _) => "is not ready; look at its log",
        _ => "is not this service; correct its URL",
    };
    Finding::failure(subject, format!("{name} at {url} {reason} ({status})"))
}

/// Returns the status and the body of the response to a readiness check; `null` if the body is not JSON.
async fn readiness(upstream: &HttpUpstream) -> Result<(StatusCode, Value), UpstreamError> {
    let mut request = Request::new(empty_body());
    *request.uri_mut() = Uri::from_static("/readyz");
    let response = upstream.send(request).await?;
    let status = response.status();
    let body = read_body(response.into_body(), MAX_READINESS_BYTES).await;
    let body = body
        .ok()
        .and_then(|body| serde_json::from_slice(&body).ok());
    Ok((status, body.unwrap_or_default()))
}
