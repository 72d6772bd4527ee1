//! Authentication of requests: credentials, public routes, and the limit on failed authentications.

use std::time::Duration;

use core_domain::kernel::Caller;
use core_domain::kernel::Secret;
use http::Method;

use super::world::{
    API_KEY, FakeReply, KEY, SESSION, World, anonymous, config, owner, session_request,
};
use core_http::gateway::GatewayConfig;

/// A change to the gateway's configuration.
type Change = Box<dyn Fn(&mut GatewayConfig)>;

const PATH: &str = "/api/v1/platforms/p-1";

fn service(name: &str) -> Caller {
    Caller::Service {
        name: name.to_owned(),
    }
}

#[tokio::test]
async fn without_a_credential_every_api_path_is_401_and_nothing_is_looked_up() {
    let world = World::new();
    for path in [
        PATH,
        "/api/v1/nothing-here",
        "/api/v1/iam/api/auth/sign-up/email",
        "/api/v1/iam/internal/platform-status",
        "/api/x",
    ] {
        let answer = world.send(anonymous(path).build()).await;
        let refusal = (answer.status.as_u16(), answer.code());
        assert_eq!(refusal, (401, "UNAUTHORIZED"), "{path}");
        assert_eq!(answer.header("www-authenticate"), "Bearer");
    }
    assert!(world.received_requests().is_empty());
    assert_eq!(world.iam.lookups(), 0);
}

#[tokio::test]
async fn with_a_credential_an_unknown_prefix_is_404() {
    World::new()
        .get("/api/v1/nothing-here")
        .await
        .expect_error(404, "NOT_FOUND");
}

#[tokio::test]
async fn outside_the_api_everything_but_health_is_404_without_authentication() {
    let world = World::new();
    for path in ["/", "/api", "/favicon.ico", "/internal/platform-status"] {
        let answer = world.send(anonymous(path).build()).await;
        let refusal = (answer.status.as_u16(), answer.code());
        assert_eq!(refusal, (404, "NOT_FOUND"), "{path}");
    }
}

#[tokio::test]
async fn the_service_key_authenticates_as_a_service_without_a_lookup() {
    let world = World::new();
    let request = anonymous(PATH).header("authorization", &format!("bearer {KEY}"));
    assert_eq!(world.send(request.build()).await.status, 200);
    assert_eq!(world.single_request().caller(), &service("service-key"));
    assert_eq!(world.iam.lookups(), 0);
}

#[tokio::test]
async fn sessions_and_api_keys_are_resolved_by_iam() {
    let world = World::new();
    world.get(PATH).await;
    world
        .send(anonymous(PATH).header("x-api-key", API_KEY).build())
        .await;
    for seen in world.received_requests() {
        assert_eq!(seen.caller(), &*owner().caller);
        assert_eq!(seen.header("x-api-key"), "");
        assert_eq!(seen.header("authorization"), "");
    }
    assert_eq!(world.received_requests().len(), 2);
}

#[tokio::test]
async fn an_invalid_bearer_token_is_401_even_with_a_valid_api_key() {
    let world = World::new();
    for value in ["Bearer wrong", "Basic abc", "Bearer", "Bearer a b"] {
        let request = anonymous(PATH)
            .header("authorization", value)
            .header("x-api-key", API_KEY);
        assert_eq!(world.send(request.build()).await.status, 401, "{value}");
    }
    assert!(world.received_requests().is_empty());
}

#[tokio::test]
async fn two_authorization_headers_are_400() {
    let world = World::new();
    let request = session_request(PATH).header("authorization", &format!("Bearer {SESSION}"));
    world
        .send(request.build())
        .await
        .expect_error(400, "BAD_REQUEST");
}

#[tokio::test]
async fn a_token_longer_than_8_kib_is_401_and_is_not_looked_up() {
    let world = World::new();
    let request = anonymous(PATH).header("authorization", &format!("Bearer {}", "x".repeat(9_000)));
    assert_eq!(world.send(request.build()).await.status, 401);
    assert_eq!(world.iam.lookups(), 0);
}

#[tokio::test]
async fn a_failing_iam_is_503_with_retry_after_and_the_service_is_not_called() {
    let world = World::new();
    world.iam.reply_to(SESSION, FakeReply::Unavailable);
    let answer = world
        .get(PATH)
        .await
        .expect_error(503, "SERVICE_UNAVAILABLE");
    assert_eq!(answer.header("retry-after"), "1");
    assert!(!String::from_utf8_lossy(&answer.bytes).contains("the store is away"));
    assert!(world.received_requests().is_empty());
}

#[tokio::test(start_paused = true)]
async fn an_iam_that_does_not_respond_is_503_after_two_seconds() {
    let world = World::new();
    world.iam.reply_to(SESSION, FakeReply::Never);
    let began = tokio::time::Instant::now();
    assert_eq!(world.get(PATH).await.status, 503);
    assert_eq!(began.elapsed().as_secs(), 2);
}

#[tokio::test]
async fn without_a_service_key_every_request_passes_as_the_unauthenticated_service() {
    let world = World::with(GatewayConfig::default());
    assert!(world.gateway.is_open());
    assert_eq!(world.send(anonymous(PATH).build()).await.status, 200);
    assert_eq!(world.single_request().caller(), &service("unauthenticated"));
}

#[tokio::test]
async fn a_weak_or_malformed_service_key_is_refused_and_not_revealed() {
    for key in ["", "with space in between", "sesame", "fifteen-letters"] {
        let config = GatewayConfig {
            service_key: Some(Secret::new(key)),
            ..GatewayConfig::default()
        };
        let error = World::refused_setting(config);
        assert!(error.starts_with("service_key: must "), "{error}");
        assert!(key.is_empty() || !error.contains(key), "{error}");
    }
}

#[tokio::test]
async fn invalid_settings_are_refused_by_name() {
    let cases: Vec<(&str, Change)> = vec![
        (
            "trusted_proxies",
            Box::new(|c| c.trusted_proxies = vec!["*".into()]),
        ),
        (
            "allowed_origins",
            Box::new(|c| c.allowed_origins = vec!["*".into()]),
        ),
        (
            "public_routes",
            Box::new(|c| c.public_routes = vec!["/health".into()]),
        ),
        (
            "public_routes",
            Box::new(|c| c.public_routes = vec!["/api/../x".into()]),
        ),
        (
            "extra_cors_headers",
            Box::new(|c| c.extra_cors_headers = vec!["a b".into()]),
        ),
        (
            "session_cache",
            Box::new(|c| c.session_cache = Duration::from_secs(6)),
        ),
        (
            "response_timeout",
            Box::new(|c| c.response_timeout = Duration::ZERO),
        ),
        (
            "frame_options",
            Box::new(|c| c.frame_options = "a\nb".into()),
        ),
    ];
    for (setting, change) in cases {
        let mut config = config();
        change(&mut config);
        let error = World::refused_setting(config);
        assert!(error.starts_with(&format!("{setting}: ")), "{error}");
    }
}

#[tokio::test]
async fn public_routes_are_anonymous_whatever_credentials_are_sent() {
    let mut config = config();
    config.public_routes = vec!["POST /api/v1/iam/api/auth/sign-up".to_owned()];
    let world = World::with(config);
    let path = "/api/v1/iam/api/auth/sign-up/email";
    for request in [
        anonymous(path),
        anonymous(path).header("authorization", &format!("Bearer {KEY}")),
        anonymous(path).header("x-core-user-id", "forged"),
    ] {
        let answer = world.send(request.method(Method::POST).build()).await;
        assert_eq!(answer.status, 200);
    }
    for seen in world.received_requests() {
        assert_eq!(seen.caller(), &Caller::Anonymous);
        assert_eq!(seen.header("authorization"), "");
        assert_eq!(seen.header("x-core-user-id"), "");
    }
    let other_method = anonymous(path).method(Method::DELETE);
    assert_eq!(world.send(other_method.build()).await.status, 401);
    let beside = "/api/v1/iam/api/auth/sign-upX";
    assert_eq!(world.send(anonymous(beside).build()).await.status, 401);
}

#[tokio::test]
async fn only_iam_gets_sessions_and_cookies_and_no_service_gets_the_service_key() {
    let world = World::new();
    let iam = "/api/v1/iam/api/auth/get-session";
    for path in [iam, PATH] {
        world
            .send(session_request(path).header("cookie", "a=b").build())
            .await;
    }
    let key = anonymous(iam)
        .header("authorization", &format!("Bearer {KEY}"))
        .header("cookie", "a=b");
    world.send(key.build()).await;
    let shown: Vec<_> = world
        .received_requests()
        .iter()
        .map(|seen| {
            (
                !seen.header("authorization").is_empty(),
                !seen.header("cookie").is_empty(),
            )
        })
        .collect();
    assert_eq!(shown, [(true, true), (false, false), (false, false)]);
}

#[tokio::test]
async fn extensions_set_by_the_caller_of_the_gateway_are_removed() {
    let world = World::new();
    world
        .send(
            session_request(PATH)
                .extension(std::sync::Arc::new(Caller::System))
                .build(),
        )
        .await;
    assert_eq!(world.single_request().caller(), &*owner().caller);
}

fn guess(n: usize) -> super::world::Req {
    anonymous(PATH).header("authorization", &format!("Bearer guess-number-{n}"))
}

fn with_service_key() -> super::world::Req {
    anonymous(PATH).header("authorization", &format!("Bearer {KEY}"))
}

#[tokio::test]
async fn after_ten_rejected_credentials_a_valid_one_is_429_until_the_window_ends() {
    let world = World::new();
    assert_eq!(world.send(with_service_key().build()).await.status, 200);
    for n in 0..10 {
        assert_eq!(world.send(guess(n).build()).await.status, 401, "{n}");
    }
    let asked = world.iam.lookups();
    world.clock.advance(Duration::from_millis(20_500));
    let by_key = anonymous(PATH).header("x-api-key", API_KEY);
    for request in [guess(10), with_service_key(), session_request(PATH), by_key] {
        let refused = world
            .send(request.build())
            .await
            .expect_error(429, "RATE_LIMITED");
        assert_eq!(
            refused.header("ratelimit-policy"),
            "\"authentication\";q=10;w=60"
        );
        assert_eq!(refused.header("retry-after"), "40");
    }
    assert_eq!(world.iam.lookups(), asked, "no credential may be looked up");
    assert_eq!(world.send(anonymous(PATH).build()).await.status, 401);
    let elsewhere = with_service_key().peer("203.0.113.10:1");
    assert_eq!(world.send(elsewhere.build()).await.status, 200);
    world.clock.advance(Duration::from_secs(40));
    assert_eq!(world.send(with_service_key().build()).await.status, 200);
}

#[tokio::test]
async fn rejected_api_keys_count_as_failed_authentications() {
    let world = World::new();
    for n in 0..10 {
        let wrong = anonymous(PATH).header("x-api-key", &format!("core_{n}"));
        assert_eq!(world.send(wrong.build()).await.status, 401);
    }
    assert_eq!(world.send(with_service_key().build()).await.status, 429);
}

#[tokio::test]
async fn repeated_and_missing_credentials_do_not_count_as_failed_authentications() {
    let world = World::new();
    for _ in 0..30 {
        assert_eq!(world.send(guess(1).build()).await.status, 401);
        assert_eq!(world.send(anonymous(PATH).build()).await.status, 401);
    }
    assert_eq!(world.send(with_service_key().build()).await.status, 200);
}

#[tokio::test]
async fn failed_authentications_at_different_paths_count_together() {
    let world = World::new();
    for n in 0..10 {
        let path = format!("/api/v1/stacks/{n}");
        let wrong = anonymous(&path).header("authorization", &format!("Bearer wrong-{n}"));
        assert_eq!(world.send(wrong.build()).await.status, 401);
    }
    assert_eq!(world.get(PATH).await.status, 429);
}
