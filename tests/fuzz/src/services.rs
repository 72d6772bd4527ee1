//! A suite in memory, and requests to its services.

use std::sync::Arc;
use std::time::Duration;

use core_domain::gateway::RateKind;
use core_domain::kernel::Timestamp;
use core_domain::testing::{ManualClock, SeededEntropy};
use core_http::kernel::testing::{Answer, worthless_hasher};
use core_http::kernel::{Body, Service, bytes_body, empty_body};
use core_suite::Suite;
use http::{HeaderMap, Method, Request};
use tower::ServiceExt;

const SERVICE_KEY: &str = "a-service-key-for-tests";

/// Builds a suite in memory. Its ids and keys follow from the seed.
pub(crate) async fn suite(seed: u64) -> Suite {
    let now = Timestamp::from_seconds(1_793_491_200);
    let builder = Suite::builder()
        .in_memory()
        .service_key(SERVICE_KEY)
        .clock(Arc::new(ManualClock::at(now)))
        .entropy(Arc::new(SeededEntropy::new(seed)))
        .password_hasher(worthless_hasher());
    let builder = builder.settings(|settings| {
        for kind in RateKind::ALL {
            let _ = settings
                .gateway
                .rates
                .set(*kind, 1_000_000, Duration::from_secs(60));
        }
    });
    builder.build().await.unwrap()
}

pub(crate) fn request(
    method: Method,
    uri: &str,
    media_type: &str,
    body: impl Into<Vec<u8>>,
) -> Request<Body> {
    let body = body.into();
    let mut headers = HeaderMap::new();
    if !media_type.is_empty() && !body.is_empty() {
        headers.insert(
            "content-type",
            http::HeaderValue::from_str(media_type).unwrap(),
        );
    }
    let body = if body.is_empty() {
        empty_body()
    } else {
        bytes_body(body)
    };
    let mut request = Request::new(body);
    *request.method_mut() = method;
    *request.uri_mut() = uri.parse().unwrap_or_default();
    *request.headers_mut() = headers;
    request
}

pub(crate) fn with_service_key(mut request: Request<Body>) -> Request<Body> {
    let value = format!("Bearer {SERVICE_KEY}");
    let value = http::HeaderValue::from_str(&value).unwrap();
    request.headers_mut().insert("authorization", value);
    request
}

/// Sends a request. Returns `None` for a stream, which does not end.
pub(crate) async fn send(service: &Service, request: Request<Body>) -> Option<Answer> {
    let Ok(response) = service.clone().oneshot(request).await;
    let media_type = response.headers().get("content-type");
    let is_stream =
        media_type.is_some_and(|value| value.as_bytes().starts_with(b"text/event-stream"));
    if is_stream {
        None
    } else {
        Some(Answer::of(response).await)
    }
}
