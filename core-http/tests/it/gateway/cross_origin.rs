//! Cross-origin requests when no service key is configured.

use core_http::gateway::GatewayConfig;
use http::Method;

use super::world::{Req, World, anonymous, config, session_request};

const PATH: &str = "/api/v1/platforms";
const ALLOWED: &str = "https://app.example.com";

fn open_world() -> World {
    World::with(GatewayConfig {
        allowed_origins: vec![ALLOWED.to_owned()],
        ..GatewayConfig::default()
    })
}

fn local(path: &str) -> Req {
    anonymous(path)
        .without_header("host")
        .header("host", "127.0.0.1:8080")
        .method(Method::POST)
}

#[tokio::test]
async fn without_a_service_key_cross_origin_requests_are_403() {
    let world = open_world();
    for request in [
        local(PATH).header("origin", "http://evil.test"),
        local(PATH).header("origin", "null"),
        local(PATH).header("origin", "http://127.0.0.1:3000"),
        local(PATH).header("sec-fetch-site", "cross-site"),
        local(PATH)
            .method(Method::GET)
            .header("sec-fetch-site", "same-site"),
        local(PATH)
            .header("origin", "http://127.0.0.1:8080")
            .header("origin", "http://evil.test"),
        // DNS rebinding: a name that resolves to this machine.
        anonymous(PATH).header("origin", "http://api.example.org"),
    ] {
        world
            .send(request.build())
            .await
            .expect_error(403, "INVALID_ORIGIN");
    }
    assert!(world.received_requests().is_empty());
}

#[tokio::test]
async fn without_a_service_key_programs_same_origin_pages_and_allowed_origins_may_call() {
    let world = open_world();
    for request in [
        local(PATH),
        anonymous(PATH),
        local(PATH)
            .header("origin", "http://127.0.0.1:8080")
            .header("sec-fetch-site", "same-origin"),
        local(PATH)
            .header("origin", ALLOWED)
            .header("sec-fetch-site", "cross-site"),
        local(PATH)
            .method(Method::GET)
            .header("sec-fetch-site", "cross-site")
            .header("sec-fetch-mode", "navigate")
            .header("sec-fetch-dest", "document"),
    ] {
        assert_eq!(world.send(request.build()).await.status, 200);
    }
    assert_eq!(world.received_requests().len(), 5);
}

#[tokio::test]
async fn behind_a_trusted_proxy_same_origin_means_the_forwarded_host() {
    let world = World::with(GatewayConfig {
        trusted_proxies: vec!["10.0.0.1".to_owned()],
        ..GatewayConfig::default()
    });
    let through = |peer: &str| {
        local(PATH)
            .peer(peer)
            .header("x-forwarded-host", "localhost:9000")
            .header("origin", "http://localhost:9000")
            .build()
    };
    assert_eq!(world.send(through("10.0.0.1:1")).await.status, 200);
    assert_eq!(world.send(through("203.0.113.9:1")).await.status, 403);
}

#[tokio::test]
async fn health_checks_and_preflights_work_for_every_origin() {
    let world = open_world();
    let health = anonymous("/health").header("origin", "http://evil.test");
    assert_eq!(world.send(health.build()).await.status, 200);
    let preflight = local(PATH)
        .method(Method::OPTIONS)
        .header("origin", "http://evil.test")
        .header("access-control-request-method", "POST");
    let answer = world.send(preflight.build()).await;
    assert_eq!(answer.status, 204);
    assert_eq!(answer.header("access-control-allow-origin"), "");
}

#[tokio::test]
async fn with_a_service_key_the_origin_does_not_matter() {
    let world = World::with(config());
    let foreign = session_request(PATH).header("origin", "http://evil.test");
    assert_eq!(world.send(foreign.build()).await.status, 200);
}
