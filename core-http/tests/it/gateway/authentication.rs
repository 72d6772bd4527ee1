//! Authentication of requests: credentials, public routes, and the limit on failed authentications.

use std::time::Duration;

use core_domain::kernel::{Caller, Secret, SuiteService};
use http::Method;

use super::bodies::piecewise;
use super::captured::{self, captured_log};
use super::world::{
    API_KEY, FakeReply, KEY, SESSION, World, anonymous, api_key_identity, config, owner,
    resolves_to, session_request,
};
use core_http::gateway::{GatewayConfig, ServiceTimeouts};

/// A change to the gateway's configuration.
type Change = Box<dyn Fn(&mut GatewayConfig)>;

const PATH: &str = "/api/v1/platforms/p-1";

fn service(name: &str) -> Caller {
    Caller::Service {
        name: name.to_owned(),
    }
}

#[tokio::test]
async fn line_21_without_a_credential_every_api_path_is_401_and_nothing_is_looked_up() {
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
async fn line_21_with_a_credential_an_unknown_prefix_is_404() {
    World::new()
        .get("/api/v1/nothing-here")
        .await
        .expect_error(404, "NOT_FOUND");
}

#[tokio::test]
async fn line_21_outside_the_api_everything_but_health_is_404_without_authentication() {
    let world = World::new();
    // The probes, the API reference and the metadata of the gateway (RFC 9728) are public as well.
    for path in ["/", "/api", "/favicon.ico", "/internal/platform-status"] {
        let answer = world.send(anonymous(path).build()).await;
        let refusal = (answer.status.as_u16(), answer.code());
        assert_eq!(refusal, (404, "NOT_FOUND"), "{path}");
    }
}

#[tokio::test]
async fn line_22_the_service_key_authenticates_as_a_service_without_a_lookup() {
    let world = World::new();
    let request = anonymous(PATH).header("authorization", &format!("bearer {KEY}"));
    assert_eq!(world.send(request.build()).await.status, 200);
    assert_eq!(world.single_request().caller(), &service("service-key"));
    assert_eq!(world.iam.lookups(), 0);
}

#[tokio::test]
async fn line_22_sessions_and_api_keys_are_resolved_by_iam() {
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
async fn line_22_an_invalid_bearer_token_is_401_even_with_a_valid_api_key() {
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
async fn line_22_two_authorization_headers_are_400() {
    let world = World::new();
    let request = session_request(PATH).header("authorization", &format!("Bearer {SESSION}"));
    world
        .send(request.build())
        .await
        .expect_error(400, "BAD_REQUEST");
}

#[tokio::test]
async fn line_22_a_token_longer_than_8_kib_is_401_and_is_not_looked_up() {
    let world = World::new();
    let request = anonymous(PATH).header("authorization", &format!("Bearer {}", "x".repeat(9_000)));
    assert_eq!(world.send(request.build()).await.status, 401);
    assert_eq!(world.iam.lookups(), 0);
}

#[tokio::test]
async fn line_24_a_failing_iam_is_503_with_retry_after_and_the_service_is_not_called() {
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
async fn line_27_an_iam_that_does_not_respond_is_503_after_two_seconds() {
    let world = World::new();
    world.iam.reply_to(SESSION, FakeReply::Never);
    let began = tokio::time::Instant::now();
    assert_eq!(world.get(PATH).await.status, 503);
    assert_eq!(began.elapsed().as_secs(), 2);
}

#[tokio::test]
async fn line_23_without_a_service_key_every_request_passes_as_the_unauthenticated_service() {
    let world = World::with(GatewayConfig::default());
    assert!(world.gateway.is_open());
    assert_eq!(world.send(anonymous(PATH).build()).await.status, 200);
    assert_eq!(world.single_request().caller(), &service("unauthenticated"));
}

#[tokio::test]
async fn line_23_a_weak_or_malformed_service_key_is_refused_and_not_revealed() {
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
async fn line_56_invalid_settings_are_refused_by_name() {
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
            "hidden_routes",
            Box::new(|c| c.hidden_routes = vec!["/api/../x".into()]),
        ),
        (
            "service_timeouts",
            Box::new(|c| {
                let never = ServiceTimeouts {
                    response: Some(Duration::ZERO),
                    ..ServiceTimeouts::default()
                };
                c.service_timeouts.insert(SuiteService::Cli, never);
            }),
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
async fn line_39_public_routes_are_anonymous_whatever_credentials_are_sent() {
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
async fn line_33_only_iam_gets_sessions_and_cookies_and_no_service_gets_the_service_key() {
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

#[tokio::test]
async fn line_22_the_service_key_and_the_session_win_over_an_api_key() {
    let world = World::new();
    world
        .iam
        .reply_to(API_KEY, resolves_to(api_key_identity(600)));
    for token in [KEY, SESSION] {
        let request = anonymous(PATH)
            .header("authorization", &format!("Bearer {token}"))
            .header("x-api-key", API_KEY);
        let _ = world.send(request.build()).await.expect(200);
    }
    let seen = world.received_requests();
    assert_eq!(seen[0].caller(), &service("service-key"));
    assert_eq!(seen[1].caller(), &*owner().caller);
    // The service key is a bearer token and no API key.
    let key = anonymous(PATH).header("x-api-key", KEY);
    let _ = world.send(key.build()).await.expect(401);
}

#[tokio::test]
async fn line_22_two_api_keys_are_400_and_the_scheme_has_any_case() {
    let world = World::new();
    let two = anonymous(PATH)
        .header("x-api-key", API_KEY)
        .header("x-api-key", API_KEY);
    world
        .send(two.build())
        .await
        .expect_error(400, "BAD_REQUEST");
    for scheme in ["bearer", "BEARER", "bEaReR"] {
        let request = anonymous(PATH).header("authorization", &format!("{scheme} {SESSION}"));
        let _ = world.send(request.build()).await.expect(200);
    }
    // Nothing inside of a token is trimmed or decoded.
    for token in [
        format!("{SESSION}\t"),
        format!("\"{SESSION}\""),
        "a-session%2Dtoken".into(),
    ] {
        let request = anonymous(PATH).header("authorization", &format!("Bearer {token}"));
        let _ = world.send(request.build()).await.expect(401);
    }
}

#[tokio::test]
async fn line_23_a_gateway_without_a_service_key_warns_at_its_start() {
    let warning = "every request passes without authentication";
    captured::start();
    let _ = World::new();
    assert!(!captured_log().contains(warning));
    let _ = World::with(GatewayConfig::default());
    let log = captured_log();
    let mut lines = log.lines().filter(|line| line.contains(warning));
    assert!(
        lines.next().unwrap().contains("\"level\":\"WARN\""),
        "{log}"
    );
}

#[tokio::test]
async fn line_24_an_unavailable_iam_is_never_a_401_and_never_passes() {
    let world = World::new();
    world.iam.reply_to(API_KEY, FakeReply::Unavailable);
    for path in [PATH, "/api/v1/nothing-here", "/api/v1/iam/api/auth/ok"] {
        let request = anonymous(path).header("x-api-key", API_KEY);
        let answer = world.send(request.build()).await;
        let answer = answer.expect_error(503, "SERVICE_UNAVAILABLE");
        assert_eq!(answer.header("retry-after"), "1");
        assert_eq!(answer.header("www-authenticate"), "");
    }
    assert!(world.received_requests().is_empty());
    // A failure is no rejected credential, so it does not lock the client out.
    let _ = world.get(PATH).await.expect(200);
}

#[tokio::test(start_paused = true)]
async fn line_27_authentication_does_not_wait_for_uploads() {
    let world = World::new();
    let (senders, bodies): (Vec<_>, Vec<_>) = (0..50).map(|_| piecewise()).unzip();
    let uploads = bodies.into_iter().map(|body| {
        let path = "/api/v1/cli/platforms/p-1/deploy";
        let upload = session_request(path).method(Method::POST).body(body);
        Box::pin(world.send(upload.build()))
    });
    let mut uploads = futures_util::future::join_all(uploads);
    assert!(futures_util::poll!(&mut uploads).is_pending());
    let began = tokio::time::Instant::now();
    let other = anonymous(PATH).header("x-api-key", API_KEY);
    let _ = world.send(other.build()).await.expect(200);
    assert_eq!(began.elapsed(), Duration::ZERO);
    drop(senders);
    assert!(uploads.await.iter().all(|answer| answer.status == 200));
}

/// The headers that only the gateway may set, and their spelling with underscores.
const FORGED: [&str; 8] = [
    "x-core-user-id",
    "x-core-role",
    "x-core-platform-id",
    "x-core-operator",
    "x-core-api-key-id",
    "x-core-service-key",
    "X_CORE_USER_ID",
    "x-core_role",
];

#[tokio::test]
async fn line_30_no_identity_of_a_client_is_forwarded_on_any_path_of_authentication() {
    let mut public = config();
    public.public_routes = vec!["GET /api/v1/platforms/p-1".to_owned()];
    let with_key = format!("Bearer {KEY}");
    for (what, config, authorization, caller) in [
        (
            "service key",
            config(),
            Some(&with_key),
            service("service-key"),
        ),
        ("public route", public, None, Caller::Anonymous),
        (
            "no service key",
            GatewayConfig::default(),
            None,
            service("unauthenticated"),
        ),
    ] {
        let world = World::with(config);
        let mut request = anonymous(PATH);
        for name in FORGED {
            request = request.header(name, "forged");
        }
        if let Some(authorization) = authorization {
            request = request.header("authorization", authorization);
        }
        let _ = world.send(request.build()).await.expect(200);
        let seen = world.single_request();
        assert_eq!(seen.caller(), &caller, "{what}");
        let mut values = seen.headers.values();
        assert!(values.all(|value| value != "forged"), "{what}");
    }
}

#[tokio::test]
async fn line_33_sessions_and_cookies_reach_the_configured_services_only() {
    let mut config = config();
    config.sessions_to = vec![SuiteService::Registry];
    let world = World::with(config);
    for path in [PATH, "/api/v1/iam/api/sessions", "/api/v1/cli/x"] {
        let request = session_request(path)
            .header("cookie", "a=b")
            .header("proxy-authorization", "Basic x");
        world.send(request.build()).await;
    }
    let by_key = anonymous(PATH).header("x-api-key", API_KEY);
    world.send(by_key.header("cookie", "a=b").build()).await;
    let seen = world.received_requests();
    let session = format!("Bearer {SESSION}");
    let received: Vec<_> = seen
        .iter()
        .map(|seen| (seen.header("authorization"), seen.header("cookie")))
        .collect();
    let nothing = ("", "");
    assert_eq!(received, [(&*session, "a=b"), nothing, nothing, nothing]);
    for seen in &seen {
        assert_eq!(seen.header("x-api-key"), "");
        assert_eq!(seen.header("proxy-authorization"), "");
    }
}
