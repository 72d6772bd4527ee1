//! Trust in credentials, origins and forwarding headers when clients reach a service without a gateway.

use std::time::Duration;

use core_domain::gateway::{Origins, TrustedProxies};
use core_http::kernel::testing::SERVICE_KEY;
use core_http::kernel::{ViaGateway, empty_body};
use http::{Method, StatusCode};

use super::rows::{CLIENT, Direct, from};

#[tokio::test]
async fn after_ten_wrong_bearer_tokens_the_service_key_is_429_until_the_window_ends() {
    let direct = Direct::new();
    let bearer = |token: &str, path: &str| {
        let request = from(CLIENT, Method::GET, path);
        request.header("authorization", format!("Bearer {token}"))
    };
    for n in 0..10 {
        // A public route counts too, because it would also reveal whether the guess is right.
        let (path, status) = match n % 2 {
            0 => ("/own/1", StatusCode::UNAUTHORIZED),
            _ => ("/things/1", StatusCode::NO_CONTENT),
        };
        // A repeated token is not counted as a new guess.
        let times = if n < 9 { 3 } else { 1 };
        for _ in 0..times {
            let wrong = direct.send(bearer(&format!("guess-{n}"), path), empty_body());
            assert_eq!(wrong.await.status, status, "{path}");
        }
    }
    direct.clock.advance(Duration::from_secs(20));
    for request in [
        bearer("guess-10", "/own/1"),
        bearer(SERVICE_KEY, "/own/1"),
        from(CLIENT, Method::GET, "/own/1").header("x-core-service-key", SERVICE_KEY),
    ] {
        let refused = direct.send(request, empty_body()).await;
        let refused = refused.expect_error(429, "RATE_LIMITED");
        assert_eq!(refused.header("retry-after"), "40");
        assert_eq!(
            refused.header("ratelimit-policy"),
            "\"authentication\";q=10;w=60"
        );
    }
    let without = direct.get("/things/1").await;
    assert_eq!(without.status, StatusCode::NO_CONTENT);
    direct.clock.advance(Duration::from_secs(40));
    let right = direct
        .send(bearer(SERVICE_KEY, "/own/1"), empty_body())
        .await;
    assert_eq!(right.status, StatusCode::NO_CONTENT);
}

#[tokio::test]
async fn wrong_gateway_keys_count_as_failed_authentications() {
    let direct = Direct::new();
    let hop = |key: &str| {
        let request = from(CLIENT, Method::GET, "/things/1");
        request.header("x-core-service-key", key)
    };
    for n in 0..10 {
        let answer = direct.send(hop(&format!("guess-{n}")), empty_body()).await;
        assert_eq!(answer.status, StatusCode::NO_CONTENT);
    }
    let refused = direct.send(hop(SERVICE_KEY), empty_body()).await;
    refused.expect_error(429, "RATE_LIMITED");
}

#[tokio::test]
async fn without_a_service_key_only_allowed_origins_can_send_cross_origin_requests() {
    let allowed = "https://app.example.com";
    let direct = Direct::with(|app| {
        app.service_key = None;
        app.options.allowed_origins = Origins::parse([allowed]).unwrap();
    });
    for (origin, via_gateway, expected) in [
        (None, false, StatusCode::NO_CONTENT),
        (Some("http://127.0.0.1:8082"), false, StatusCode::NO_CONTENT),
        (Some(allowed), false, StatusCode::NO_CONTENT),
        (Some("http://evil.test"), true, StatusCode::NO_CONTENT),
        (Some("http://evil.test"), false, StatusCode::FORBIDDEN),
        (Some("http://127.0.0.1:3000"), false, StatusCode::FORBIDDEN),
        (Some("null"), false, StatusCode::FORBIDDEN),
    ] {
        let mut request = from(CLIENT, Method::POST, "/tick");
        if let Some(origin) = origin {
            request = request.header("origin", origin);
        }
        if via_gateway {
            request = request.extension(ViaGateway);
        }
        let answer = direct.send(request, empty_body()).await;
        assert_eq!(answer.status, expected, "{origin:?}");
        if expected == StatusCode::FORBIDDEN {
            assert_eq!(answer.code(), "INVALID_ORIGIN");
        }
    }
    let probe = from(CLIENT, Method::GET, "/health").header("origin", "http://evil.test");
    assert_eq!(
        direct.send(probe, empty_body()).await.status,
        StatusCode::OK
    );
    let keyed = Direct::new();
    let request = from(CLIENT, Method::POST, "/tick").header("origin", "http://evil.test");
    let answer = keyed.send(request, empty_body()).await;
    assert_eq!(answer.status, StatusCode::NO_CONTENT);
}

#[tokio::test]
async fn a_forwarded_prefix_is_trusted_only_from_key_holders_and_trusted_proxies() {
    let direct = Direct::with(|app| {
        app.options.trusted_proxies = TrustedProxies::parse(["10.0.0.1"]).unwrap();
    });
    let key = format!("Bearer {SERVICE_KEY}");
    // Without the prefix this path does not exist.
    let path = "/some-id";
    for (peer, header, expected) in [
        (CLIENT, None, StatusCode::NOT_FOUND),
        (
            CLIENT,
            Some(("authorization", key.as_str())),
            StatusCode::NO_CONTENT,
        ),
        (
            CLIENT,
            Some(("x-core-service-key", SERVICE_KEY)),
            StatusCode::NO_CONTENT,
        ),
        (
            CLIENT,
            Some(("x-core-service-key", "not-the-service-key")),
            StatusCode::NOT_FOUND,
        ),
        ("10.0.0.1:1", None, StatusCode::NO_CONTENT),
    ] {
        let mut request = from(peer, Method::GET, path)
            .header("x-forwarded-for", "198.51.100.7")
            .header("x-forwarded-prefix", "/api/v1/onboarding");
        if let Some((name, value)) = header {
            request = request.header(name, value);
        }
        let answer = direct.send(request, empty_body()).await;
        assert_eq!(answer.status, expected, "{peer} {header:?}");
    }
}
