//! The rate limits of a service for clients that reach it without a gateway.

use std::time::Duration;

use core_domain::gateway::{RateKind, TrustedProxies};
use core_http::kernel::testing::SERVICE_KEY;
use core_http::kernel::{ViaGateway, empty_body};
use http::{Method, Request, StatusCode};

use super::rows::{CLIENT, Direct, from};

#[tokio::test]
async fn an_endpoint_has_one_limit_per_client_for_all_path_parameters() {
    let direct = Direct::new();
    for n in 0..100 {
        let answer = direct.get(&format!("/things/{n}")).await;
        assert_eq!(answer.status, StatusCode::NO_CONTENT);
        assert_eq!(answer.header("ratelimit-policy"), "\"default\";q=100;w=60");
        let left = format!("\"default\";r={};t=60", 99 - n);
        assert_eq!(answer.header("ratelimit"), left);
        assert_eq!(answer.header("retry-after"), "");
    }
    direct.clock.advance(Duration::from_millis(10_500));
    let refused = direct.get("/api/v1/things/new").await;
    let refused = refused.expect_error(429, "RATE_LIMITED");
    assert_eq!(refused.header("ratelimit"), "\"default\";r=0;t=50");
    assert_eq!(refused.header("retry-after"), "50");
    assert_eq!(direct.post("/tick").await.status, StatusCode::NO_CONTENT);
    let other = from("203.0.113.10:1", Method::GET, "/things/1");
    let other = direct.send(other, empty_body()).await;
    assert_eq!(other.status, StatusCode::NO_CONTENT);
}

#[tokio::test]
async fn a_strict_endpoint_is_limited_to_ten_requests() {
    let direct = Direct::new();
    for _ in 0..10 {
        assert_eq!(direct.post("/guess").await.status, StatusCode::NO_CONTENT);
    }
    let refused = direct.post("/guess").await;
    let refused = refused.expect_error(429, "RATE_LIMITED");
    assert_eq!(refused.header("ratelimit-policy"), "\"strict\";q=10;w=60");
}

#[tokio::test]
async fn unknown_routes_share_one_window_and_all_endpoints_one_limit_per_client() {
    let direct = Direct::new();
    for n in 0..100 {
        let answer = direct.get(&format!("/nothing/at/{n}")).await;
        assert_eq!(answer.status, StatusCode::NOT_FOUND);
    }
    assert_eq!(direct.get("/nothing/more").await.code(), "RATE_LIMITED");
    assert_eq!(direct.get("/tick").await.code(), "RATE_LIMITED");
    assert_eq!(direct.get("/things/1").await.status, StatusCode::NO_CONTENT);
    for _ in 0..900 {
        direct.get("/nothing/more").await;
    }
    let refused = direct.post("/tick").await;
    assert_eq!(refused.header("ratelimit-policy"), "\"client\";q=1000;w=60");
}

#[tokio::test]
async fn requests_from_a_gateway_or_with_the_service_key_are_not_counted_again() {
    let direct = Direct::new();
    let key = format!("Bearer {SERVICE_KEY}");
    for _ in 0..20 {
        let guess = || from(CLIENT, Method::POST, "/guess");
        for request in [
            guess().extension(ViaGateway),
            guess().header("authorization", &key),
            guess()
                .header("authorization", "Bearer the-session-of-a-client")
                .header("x-core-service-key", SERVICE_KEY),
        ] {
            let answer = direct.send(request, empty_body()).await;
            assert_eq!(answer.status, StatusCode::NO_CONTENT);
            assert_eq!(answer.header("ratelimit"), "");
        }
    }
}

#[tokio::test]
async fn health_checks_and_in_process_requests_are_not_counted() {
    let direct = Direct::new();
    for _ in 0..150 {
        assert_eq!(direct.get("/health").await.status, StatusCode::OK);
        let inside = Request::post("/guess");
        let answer = direct.send(inside, empty_body()).await;
        assert_eq!(answer.status, StatusCode::NO_CONTENT);
    }
}

#[tokio::test]
async fn behind_a_trusted_proxy_the_client_is_counted_and_not_the_proxy() {
    let direct = Direct::with(|app| {
        app.options.trusted_proxies = TrustedProxies::parse(["10.0.0.1"]).unwrap();
        let minute = Duration::from_secs(60);
        app.options.rates.set(RateKind::Default, 1, minute).unwrap();
    });
    for (client, expected) in [
        ("198.51.100.7", StatusCode::NO_CONTENT),
        ("198.51.100.8", StatusCode::NO_CONTENT),
        ("198.51.100.7", StatusCode::TOO_MANY_REQUESTS),
    ] {
        let request = from("10.0.0.1:1", Method::GET, "/things/1");
        let request = request.header("x-forwarded-for", format!("6.6.6.6, {client}"));
        assert_eq!(direct.send(request, empty_body()).await.status, expected);
    }
}
