//! The metadata of the gateway as an OAuth protected resource (RFC 9728).

use core_http::gateway::GatewayConfig;
use http::Method;
use serde_json::json;

use super::world::{World, anonymous, config, session_request};

const PATH: &str = "/.well-known/oauth-protected-resource";

fn config_with_urls() -> GatewayConfig {
    GatewayConfig {
        public_url: Some("https://api.example.org/".to_owned()),
        authorization_server: Some("https://iam.example.org".to_owned()),
        ..config()
    }
}

#[tokio::test]
async fn the_document_names_the_gateway_and_iam_without_a_credential() {
    let world = World::with(config_with_urls());
    let document = world.send(anonymous(PATH).build()).await.expect(200);
    let expected = json!({
        "resource": "https://api.example.org",
        "authorization_servers": ["https://iam.example.org"],
        "bearer_methods_supported": ["header"],
        "resource_name": "Platform Control API",
    });
    assert_eq!(document.json, expected);
    assert_eq!(document.header("content-type"), "application/json");
    assert_eq!(document.header("cache-control"), "public, max-age=300");
    assert_eq!(document.header("x-content-type-options"), "nosniff");
    assert_eq!(world.iam.lookups(), 0);
    assert!(world.received_requests().is_empty());
}

#[tokio::test]
async fn only_reading_methods_are_supported() {
    let world = World::with(config_with_urls());
    let head = anonymous(PATH).method(Method::HEAD).build();
    let _ = world.send(head).await.expect(200);
    let post = world
        .send(anonymous(PATH).method(Method::POST).build())
        .await;
    let post = post.expect_error(405, "METHOD_NOT_ALLOWED");
    assert_eq!(post.header("allow"), "GET, HEAD");
}

#[tokio::test]
async fn without_a_public_url_there_is_no_document() {
    for config in [
        config(),
        GatewayConfig {
            public_url: None,
            ..config_with_urls()
        },
        GatewayConfig {
            authorization_server: None,
            ..config_with_urls()
        },
    ] {
        let world = World::with(config);
        let missing = world.send(anonymous(PATH).build()).await;
        missing.expect_error(404, "NOT_FOUND");
        let refused = world.send(anonymous("/api/v1/platforms").build()).await;
        let refused = refused.expect_error(401, "UNAUTHORIZED");
        assert_eq!(refused.header("www-authenticate"), "Bearer");
    }
}

#[tokio::test]
async fn every_401_of_the_gateway_names_the_document() {
    let world = World::with(config_with_urls());
    let missing = anonymous("/api/v1/platforms");
    let wrong = anonymous("/api/v1/platforms").header("authorization", "Bearer wrong");
    let malformed = anonymous("/api/v1/platforms").header("authorization", "Basic eA==");
    for request in [missing, wrong, malformed] {
        let refused = world.send(request.build()).await;
        let refused = refused.expect_error(401, "UNAUTHORIZED");
        assert_eq!(
            refused.header("www-authenticate"),
            "Bearer resource_metadata=\"https://api.example.org/.well-known/oauth-protected-resource\""
        );
    }
    let unknown = world.send(session_request("/api/v1/unknown").build()).await;
    let unknown = unknown.expect_error(404, "NOT_FOUND");
    assert_eq!(unknown.header("www-authenticate"), "");
}

#[test]
fn urls_that_clients_cannot_use_are_refused() {
    for bad in [
        "",
        "api.example.org",
        "ftp://api.example.org",
        "https://api.example.org/v1",
        "https://api.example.org?x",
        "https://api.example.org#x",
        "https://me@api.example.org",
    ] {
        let config = GatewayConfig {
            public_url: Some(bad.to_owned()),
            ..config_with_urls()
        };
        let error = World::refused_setting(config);
        assert!(error.starts_with("public_url: "), "{bad}: {error}");
    }
    let config = GatewayConfig {
        authorization_server: Some("iam.example.org".to_owned()),
        ..config_with_urls()
    };
    let error = World::refused_setting(config);
    assert!(error.starts_with("authorization_server: "), "{error}");
}
