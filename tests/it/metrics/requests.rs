//! The metrics of requests to the gateway and to the services.

use core_suite::Suite;
use futures_util::FutureExt;
use http::Method;
use serde_json::json;
use tower::ServiceExt;

use super::exposition::Exposition;
use crate::world::{Backend, Call, Fresh, Installation, SERVICE_KEY, sign_up};

const PLATFORMS: &str = "/api/v1/platforms";
const REQUESTS: &str = "core_http_requests_total";
const GATEWAY: &str = "core_gateway_requests_total";

async fn suite() -> (Fresh, Suite) {
    let fresh = Fresh::on(Backend::Memory).await;
    let suite = fresh.suite().await;
    (fresh, suite)
}

#[tokio::test]
async fn line_57_requests_are_counted_by_endpoint_and_class_of_the_status() {
    let (_fresh, suite) = suite().await;
    let metrics = suite.metrics();
    let call = |call: Call| call.bearer(SERVICE_KEY);
    for _ in 0..3 {
        let _ = suite.get(SERVICE_KEY, PLATFORMS).await.expect(200);
    }
    let head = call(Call::get(PLATFORMS)).by(&Method::HEAD);
    let _ = suite.send("registry", head).await.expect(200);
    let invalid = call(Call::post(PLATFORMS, &json!({ "name": 7 })));
    let _ = suite.send("gateway", invalid).await.expect(400);
    let unknown = call(Call::get("/api/v1/platforms/p/q/r/s/t"));
    let _ = suite.send("registry", unknown).await.expect(404);
    let method = call(Call::get(PLATFORMS)).by(&Method::PUT);
    let _ = suite.send("registry", method).await.expect(405);
    let _ = suite
        .send("registry", Call::get("/readyz"))
        .await
        .expect(200);
    suite.shutdown().await;

    let seen = Exposition::of(&metrics);
    for (endpoint, method, status, expected) in [
        ("listPlatforms", "GET", "2xx", 4.0),
        ("createPlatform", "POST", "4xx", 1.0),
        ("createPlatform", "POST", "2xx", 0.0),
        ("unknown", "*", "4xx", 2.0),
        ("built-in", "*", "2xx", 1.0),
    ] {
        let labels = [
            ("service", "registry"),
            ("endpoint", endpoint),
            ("method", method),
            ("status", status),
        ];
        assert_eq!(seen.sum(REQUESTS, &labels), expected, "{labels:?}");
    }
    for (code, expected) in [
        ("VALIDATION_ERROR", 1.0),
        ("NOT_FOUND", 1.0),
        ("METHOD_NOT_ALLOWED", 1.0),
    ] {
        let labels = [("service", "registry"), ("code", code)];
        assert_eq!(
            seen.sum("core_http_errors_total", &labels),
            expected,
            "{code}"
        );
    }
    let listed = [("service", "registry"), ("endpoint", "listPlatforms")];
    assert_eq!(
        seen.sum("core_http_request_duration_seconds_count", &listed),
        4.0
    );
    let through_gateway = [("route", PLATFORMS), ("status", "2xx")];
    assert_eq!(seen.sum(GATEWAY, &through_gateway), 3.0);
    assert_eq!(
        seen.sum(GATEWAY, &[("route", PLATFORMS), ("status", "4xx")]),
        1.0
    );
    for name in ["request", "upstream", "own"] {
        let name = format!("core_gateway_{name}_duration_seconds_count");
        assert_eq!(seen.sum(&name, &[("route", PLATFORMS)]), 4.0, "{name}");
    }
    // The error of the service is not one of the gateway.
    assert_eq!(seen.sum("core_gateway_errors_total", &[]), 0.0);
    for gauge in [
        "core_http_requests_in_flight",
        "core_gateway_requests_in_flight",
    ] {
        assert_eq!(seen.sum(gauge, &[]), 0.0, "{gauge}");
    }
}

#[tokio::test]
async fn line_57_requests_that_the_gateway_refuses_are_counted_by_reason() {
    let (_fresh, suite) = suite().await;
    let metrics = suite.metrics();
    let get = || Call::get(PLATFORMS);
    let _ = suite.send("gateway", get()).await.expect(401);
    let wrong = get().bearer("a-wrong-token");
    let _ = suite.send("gateway", wrong).await.expect(401);
    let malformed = get().header("authorization", "Basic YTpi");
    let _ = suite.send("gateway", malformed).await.expect(401);
    let twice = get().bearer(SERVICE_KEY).bearer(SERVICE_KEY);
    let _ = suite.send("gateway", twice).await.expect(400);
    // The quota of one path is 100 requests per minute. Four of them are used up.
    for _ in 0..96 {
        let _ = suite.get(SERVICE_KEY, PLATFORMS).await.expect(200);
    }
    let _ = suite.get(SERVICE_KEY, PLATFORMS).await.expect(429);
    suite.shutdown().await;

    let seen = Exposition::of(&metrics);
    let failures = "core_gateway_authentication_failures_total";
    for (reason, expected) in [
        ("missing", 1.0),
        ("rejected", 1.0),
        ("malformed", 1.0),
        ("repeated", 1.0),
        ("unavailable", 0.0),
    ] {
        assert_eq!(
            seen.sum(failures, &[("reason", reason)]),
            expected,
            "{reason}"
        );
    }
    let limited = [("service", "gateway"), ("policy", "default")];
    assert_eq!(seen.sum("core_rate_limited_requests_total", &limited), 1.0);
    assert_eq!(seen.sum("core_rate_limited_requests_total", &[]), 1.0);
    for (code, expected) in [
        ("UNAUTHORIZED", 3.0),
        ("BAD_REQUEST", 1.0),
        ("RATE_LIMITED", 1.0),
    ] {
        let errors = seen.sum("core_gateway_errors_total", &[("code", code)]);
        assert_eq!(errors, expected, "{code}");
    }
    assert_eq!(
        seen.sum("core_session_cache_lookups_total", &[("outcome", "miss")]),
        1.0
    );
}

#[tokio::test]
async fn a_session_is_looked_up_once_and_then_found_in_the_cache() {
    let (_fresh, suite) = suite().await;
    let metrics = suite.metrics();
    let person = sign_up(&suite, "engines", "Analytical Engines").await;
    let before = Exposition::of(&metrics);
    for _ in 0..3 {
        let _ = suite.get(&person.token, PLATFORMS).await.expect(200);
    }
    let seen = Exposition::of(&metrics);
    let lookups = |outcome| {
        let labels = [("outcome", outcome)];
        let name = "core_session_cache_lookups_total";
        seen.sum(name, &labels) - before.sum(name, &labels)
    };
    assert_eq!(lookups("hit") + lookups("miss"), 3.0);
    assert!(lookups("miss") >= 1.0);
    suite.shutdown().await;
}

#[tokio::test]
async fn a_failed_sign_in_is_an_error_of_iam() {
    let (_fresh, suite) = suite().await;
    let metrics = suite.metrics();
    let body = json!({ "email": "nobody@example.org", "password": "correct horse battery" });
    let refused = suite.send("iam", Call::post("/api/auth/sign-in/email", &body));
    let code = refused.await.expect(401).text("code").to_owned();
    let seen = Exposition::of(&metrics);
    let labels = [("service", "iam"), ("code", code.as_str())];
    assert_eq!(seen.sum("core_http_errors_total", &labels), 1.0);
    let requests = [("service", "iam"), ("status", "4xx")];
    assert_eq!(seen.sum(REQUESTS, &requests), 1.0);
    suite.shutdown().await;
}

#[tokio::test]
async fn line_57_a_request_whose_client_disconnects_is_counted_as_canceled() {
    let (_fresh, suite) = suite().await;
    let metrics = suite.metrics();
    let body = json!({ "email": "nobody@example.org", "password": "correct horse battery" });
    let sign_in = Call::post("/api/auth/sign-in/email", &body).header("host", "suite.test");
    // Hashing the password takes a while, so the first poll does not complete the request.
    let response = suite.iam().oneshot(sign_in.at("")).now_or_never();
    assert!(response.is_none(), "{response:?}");
    let seen = Exposition::of(&metrics);
    let canceled = [("service", "iam"), ("status", "canceled")];
    assert_eq!(seen.sum(REQUESTS, &canceled), 1.0);
    assert_eq!(seen.sum("core_http_requests_in_flight", &[]), 0.0);
    suite.shutdown().await;
}

/// Sends requests that a crawler or an attacker might send: each with another path, and odd methods and headers.
async fn crawl(suite: &Suite, numbers: std::ops::Range<u32>) {
    for number in numbers {
        let paths = [
            format!("/api/v1/platforms/{number}"),
            format!("/api/v1/platforms/{number}/entities/{number}"),
            format!("/{number}/%22%7D%0A{number}"),
            format!("/api/v1/{number}?{{}}={number}"),
        ];
        let method = Method::from_bytes(format!("ODD{number}").as_bytes()).unwrap();
        for path in &paths {
            let get = Call::get(path).bearer(&format!("token-{number}"));
            let _ = suite.send("gateway", get.clone()).await;
            let _ = suite.send("registry", get).await;
            let odd = Call::get(path).by(&method).header("x-request-id", "\"}\\");
            let _ = suite.send("registry", odd.clone()).await;
            let _ = suite.send("gateway", odd).await;
        }
    }
}

#[tokio::test]
async fn thousands_of_different_requests_add_no_series() {
    let (_fresh, suite) = suite().await;
    let metrics = suite.metrics();
    // More than the quotas of the gateway, so that every kind of response has occurred.
    crawl(&suite, 0..120).await;
    metrics.refresh().await;
    let before = Exposition::of(&metrics);
    crawl(&suite, 120..620).await;
    let after = Exposition::of(&metrics);
    let new: Vec<_> = after
        .series()
        .difference(&before.series())
        .cloned()
        .collect();
    // The sweeper asks the payment provider for missed events in the background.
    let new: Vec<_> = new
        .iter()
        .filter(|series| !series.contains("payment"))
        .collect();
    assert!(new.is_empty(), "{new:?}");
    let counted = |seen: &Exposition| seen.sum(REQUESTS, &[]) + seen.sum(GATEWAY, &[]);
    assert!(counted(&after) - counted(&before) >= 8_000.0);
    suite.shutdown().await;
}
