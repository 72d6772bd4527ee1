use std::time::Duration;

use core_domain::gateway::Secret;
use core_domain::kernel::Caller;
use http::Method;

use super::world::{API_KEY, KEY, SESSION, Says, World, anonymous, config, owner, signed};
use crate::gateway::{Gateway, GatewayConfig, MemoryLimiter, Ports, Upstreams};

/// A change of the settings.
type Change = Box<dyn Fn(&mut GatewayConfig)>;

const PATH: &str = "/api/v1/platforms/p-1";

fn service(name: &str) -> Caller {
    Caller::Service {
        name: name.to_owned(),
    }
}

#[tokio::test]
async fn without_a_credential_every_api_path_is_401_and_nothing_is_asked() {
    let world = World::new();
    for path in [
        PATH,
        "/api/v1/nothing-here",
        "/api/v1/iam/api/auth/sign-up/email",
        "/api/v1/iam/internal/platform-status",
        "/api/x",
    ] {
        let answer = world.send(anonymous(path).build()).await;
        assert_eq!(
            (answer.status, answer.code().as_str()),
            (401, "UNAUTHORIZED"),
            "{path}"
        );
        assert_eq!(answer.header("www-authenticate"), Some("Bearer"));
    }
    assert!(world.seen().is_empty());
    assert_eq!(world.iam.asked(), 0);
}

#[tokio::test]
async fn with_a_credential_an_unknown_prefix_is_404() {
    let answer = World::new().get("/api/v1/nothing-here").await;
    assert_eq!((answer.status, answer.code().as_str()), (404, "NOT_FOUND"));
}

#[tokio::test]
async fn outside_the_api_everything_but_health_is_404_without_asking_who() {
    let world = World::new();
    for path in ["/", "/api", "/favicon.ico", "/internal/platform-status"] {
        let answer = world.send(anonymous(path).build()).await;
        assert_eq!(
            (answer.status, answer.code().as_str()),
            (404, "NOT_FOUND"),
            "{path}"
        );
    }
}

#[tokio::test]
async fn the_service_key_is_a_service_and_iam_is_not_asked() {
    let world = World::new();
    let request = anonymous(PATH).header("authorization", &format!("bearer {KEY}"));
    assert_eq!(world.send(request.build()).await.status, 200);
    assert_eq!(world.only().caller(), &service("service-key"));
    assert_eq!(world.iam.asked(), 0);
}

#[tokio::test]
async fn a_session_and_an_api_key_are_whoever_iam_says() {
    let world = World::new();
    world.get(PATH).await;
    world
        .send(anonymous(PATH).header("x-api-key", API_KEY).build())
        .await;
    for seen in world.seen() {
        assert_eq!(seen.caller(), &owner().caller);
        assert_eq!(seen.header("x-api-key"), None);
        assert_eq!(seen.header("authorization"), None);
    }
    assert_eq!(world.seen().len(), 2);
}

#[tokio::test]
async fn a_bad_bearer_is_401_even_beside_a_good_api_key() {
    let world = World::new();
    for value in ["Bearer wrong", "Basic abc", "Bearer", "Bearer a b"] {
        let request = anonymous(PATH)
            .header("authorization", value)
            .header("x-api-key", API_KEY);
        assert_eq!(world.send(request.build()).await.status, 401, "{value}");
    }
    assert!(world.seen().is_empty());
}

#[tokio::test]
async fn two_authorization_lines_are_400() {
    let world = World::new();
    let request = signed(PATH).header("authorization", &format!("Bearer {SESSION}"));
    let answer = world.send(request.build()).await;
    assert_eq!(
        (answer.status, answer.code().as_str()),
        (400, "BAD_REQUEST")
    );
}

#[tokio::test]
async fn a_token_longer_than_8_kib_is_401_and_iam_is_not_asked() {
    let world = World::new();
    let request = anonymous(PATH).header("authorization", &format!("Bearer {}", "x".repeat(9_000)));
    assert_eq!(world.send(request.build()).await.status, 401);
    assert_eq!(world.iam.asked(), 0);
}

#[tokio::test]
async fn iam_that_fails_is_503_with_retry_after_and_never_a_pass() {
    let world = World::new();
    world.iam.say(SESSION, Says::Down);
    let answer = world.get(PATH).await;
    assert_eq!(
        (answer.status, answer.code().as_str()),
        (503, "SERVICE_UNAVAILABLE")
    );
    assert_eq!(answer.header("retry-after"), Some("1"));
    assert!(!String::from_utf8_lossy(&answer.body).contains("the store is away"));
    assert!(world.seen().is_empty());
}

#[tokio::test(start_paused = true)]
async fn iam_that_does_not_answer_is_503_after_two_seconds() {
    let world = World::new();
    world.iam.say(SESSION, Says::Nothing);
    let began = tokio::time::Instant::now();
    assert_eq!(world.get(PATH).await.status, 503);
    assert_eq!(began.elapsed().as_secs(), 2);
}

#[tokio::test]
async fn without_a_service_key_everything_passes_as_the_unauthenticated_service() {
    let world = World::with(GatewayConfig::default());
    assert!(world.gateway.is_open());
    assert_eq!(world.send(anonymous(PATH).build()).await.status, 200);
    assert_eq!(world.only().caller(), &service("unauthenticated"));
}

#[tokio::test]
async fn an_empty_service_key_is_refused_at_construction_and_not_shown() {
    for key in ["", "with space"] {
        let config = GatewayConfig {
            service_key: Some(Secret::new(key)),
            ..GatewayConfig::default()
        };
        let world = World::new();
        let ports = Ports {
            authority: world.iam.clone(),
            upstreams: Upstreams::new(),
            limiter: std::sync::Arc::new(MemoryLimiter::new()),
            clock: world.clock.clone(),
            entropy: std::sync::Arc::new(core_domain::kernel::SeededEntropy::new(1)),
        };
        let error = Gateway::new(config, ports).unwrap_err();
        assert_eq!(error.setting, "service_key");
        assert!(!error.to_string().contains("with space"));
    }
}

#[tokio::test]
async fn settings_that_make_no_sense_are_refused_by_name() {
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
        let error = crate::gateway::config::Settings::try_from(config).unwrap_err();
        assert_eq!(error.setting, setting);
    }
}

#[tokio::test]
async fn a_public_route_needs_nobody_and_believes_nobody() {
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
    for seen in world.seen() {
        assert_eq!(seen.caller(), &Caller::Anonymous);
        assert_eq!(seen.header("authorization"), None);
        assert_eq!(seen.header("x-core-user-id"), None);
    }
    let other_method = anonymous(path).method(Method::DELETE);
    assert_eq!(world.send(other_method.build()).await.status, 401);
    let beside = "/api/v1/iam/api/auth/sign-upX";
    assert_eq!(world.send(anonymous(beside).build()).await.status, 401);
}

#[tokio::test]
async fn sessions_and_cookies_reach_iam_alone_and_the_service_key_nobody() {
    let world = World::new();
    let iam = "/api/v1/iam/api/auth/get-session";
    for path in [iam, PATH] {
        world
            .send(signed(path).header("cookie", "a=b").build())
            .await;
    }
    let key = anonymous(iam)
        .header("authorization", &format!("Bearer {KEY}"))
        .header("cookie", "a=b");
    world.send(key.build()).await;
    let shown: Vec<_> = world
        .seen()
        .iter()
        .map(|seen| {
            (
                seen.header("authorization").is_some(),
                seen.header("cookie").is_some(),
            )
        })
        .collect();
    assert_eq!(shown, [(true, true), (false, false), (false, false)]);
}

#[tokio::test]
async fn what_a_caller_of_the_service_puts_into_extensions_is_not_believed() {
    let world = World::new();
    world
        .send(signed(PATH).extension(Caller::System).build())
        .await;
    assert_eq!(world.only().caller(), &owner().caller);
}
