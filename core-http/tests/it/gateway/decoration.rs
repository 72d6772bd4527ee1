//! The parts that every response has, whichever component produced it: the order of the steps, the headers of the
//! gateway, and the envelope of errors.

use std::sync::Arc;
use std::time::Duration;

use core_domain::gateway::RateKind;
use core_http::gateway::{GatewayConfig, ResolvedCredential, UpstreamError};
use core_http::kernel::{Body, bytes_body};
use http::{HeaderValue, Method, Response, StatusCode};
use serde_json::json;

use super::captured::{self, captured_log};
use super::world::{
    Req, World, anonymous, config, failing_reply, owner, reply_with, resolves_to, session_request,
};
use crate::world::Answer;

const PAGE: &str = "https://app.example.com";
const PATH: &str = "/api/v1/platforms/p-1";
const SUSPENDED: &str = "the-session-of-a-suspended-platform";

/// A response of the gateway to a page of an allowed origin.
struct Sample {
    /// The situation in which the response arises.
    what: &'static str,
    /// Whether the gateway itself responded with an error.
    is_refusal: bool,
    answer: Answer,
}

fn with_page() -> GatewayConfig {
    GatewayConfig {
        allowed_origins: vec![PAGE.to_owned()],
        ..config()
    }
}

/// Creates a gateway with this many requests per window, and a session of a suspended platform.
fn world_with_quota(requests: u32, mut config: GatewayConfig) -> World {
    let minute = Duration::from_secs(60);
    config
        .rates
        .set(RateKind::Default, requests, minute)
        .unwrap();
    let world = World::with(config);
    let suspended = ResolvedCredential {
        suspended: true,
        ..owner()
    };
    world.iam.reply_to(SUSPENDED, resolves_to(suspended));
    world
}

fn of_page(path: &str) -> Req {
    session_request(path)
        .header("origin", PAGE)
        .header("x-request-id", "r-1")
}

fn with_token(request: Req, token: &str) -> Req {
    request
        .without_header("authorization")
        .header("authorization", &format!("Bearer {token}"))
}

fn preflight(path: &str) -> Req {
    anonymous(path)
        .method(Method::OPTIONS)
        .header("origin", PAGE)
        .header("x-request-id", "r-1")
        .header("access-control-request-method", "GET")
}

fn response(status: u16, body: &'static str) -> Response<Body> {
    let mut response = Response::new(bytes_body(body));
    *response.status_mut() = StatusCode::from_u16(status).unwrap();
    response
}

/// Returns the responses that the gateway itself makes.
async fn own_responses(world: &World) -> Vec<Sample> {
    let long = format!("/api/v1/platforms/{}", "x".repeat(8_192));
    let anonymous = of_page(PATH).without_header("authorization");
    let large = of_page(PATH)
        .method(Method::POST)
        .header("content-length", "9999999");
    let two_tokens = of_page(PATH).header("authorization", "Bearer other");
    let mut samples = Vec::new();
    for (what, status, request) in [
        ("a health check", 200, of_page("/health")),
        ("a preflight", 204, preflight(PATH)),
        ("an invalid path", 400, of_page("/api/v1//x")),
        ("two credentials", 400, two_tokens),
        ("no credential", 401, anonymous),
        ("an unknown route", 404, of_page("/api/v1/nothing")),
        ("a path outside the API", 404, of_page("/nothing")),
        ("a method", 405, of_page(PATH).method(Method::TRACE)),
        ("a large body", 413, large),
        ("a long target", 414, of_page(&long)),
        ("a suspension", 451, with_token(of_page(PATH), SUSPENDED)),
        ("no service", 503, of_page("/api/v1/billing/plans")),
    ] {
        let answer = world.send(request.build()).await;
        assert_eq!(answer.status, status, "{what}");
        samples.push(Sample {
            what,
            is_refusal: status >= 400,
            answer,
        });
    }
    samples
}

type Failure = fn() -> UpstreamError;

/// Returns the responses to requests that reach a service.
async fn proxied_responses(world: &World) -> Vec<Sample> {
    let mut samples = Vec::new();
    let mut add = |what, is_refusal, answer| {
        samples.push(Sample {
            what,
            is_refusal,
            answer,
        });
    };
    for status in [200, 404, 500, 503] {
        world.set_reply(reply_with(move || response(status, "of the service")));
        let answer = world.send(of_page(PATH).build()).await.expect(status);
        add("a response of the service", false, answer);
    }
    let broken: Failure = || UpstreamError::Broken("x".to_owned());
    let unavailable: Failure = || UpstreamError::Unavailable("x".to_owned());
    let late: Failure = || UpstreamError::Timeout("x".to_owned());
    for (failure, status) in [(broken, 502), (unavailable, 503), (late, 504)] {
        world.set_reply(failing_reply(failure));
        let answer = world.send(of_page(PATH).build()).await.expect(status);
        add("a failing service", true, answer);
    }
    world.set_reply(Arc::new(|| panic!("the handler is broken")));
    let answer = world.send(of_page(PATH).build()).await.expect(500);
    add("a panic", true, answer);
    samples
}

/// Returns a response of every kind.
async fn samples() -> Vec<Sample> {
    let world = world_with_quota(100, with_page());
    let mut samples = own_responses(&world).await;
    samples.extend(proxied_responses(&world).await);
    let spent = world_with_quota(1, with_page());
    spent.send(of_page(PATH).build()).await;
    for (what, request) in [
        ("a spent window", of_page(PATH)),
        ("a preflight in a spent window", preflight(PATH)),
    ] {
        samples.push(Sample {
            what,
            is_refusal: true,
            answer: spent.send(request.build()).await.expect(429),
        });
    }
    samples
}

#[tokio::test]
async fn line_01_the_steps_run_in_the_order_of_the_interface() {
    captured::start();
    let config = GatewayConfig {
        server_timing: true,
        ..with_page()
    };
    let world = world_with_quota(4, config);
    // No service is configured for this path, so only the proxy responds with 503.
    let path = "/api/v1/billing/plans";
    let send = |request: Req| world.send(request.build());
    // CORS runs before authentication, authentication before suspension, and suspension before the proxy.
    let _ = send(preflight(path)).await.expect(204);
    let _ = send(anonymous(path)).await.expect(401);
    assert_eq!(world.iam.lookups(), 0);
    let _ = send(with_token(of_page(path), SUSPENDED)).await.expect(451);
    let _ = send(of_page(path)).await.expect(503);
    let lookups = world.iam.lookups();
    // The rate limit runs before CORS and before authentication.
    for refused in [
        preflight(path),
        anonymous(path),
        with_token(of_page(path), "wrong"),
    ] {
        let refused = send(refused).await.expect_error(429, "RATE_LIMITED");
        // Security headers, envelope, request id, log and time run before the rate limit.
        assert_eq!(refused.header("x-frame-options"), "DENY");
        assert_ne!(refused.header("x-request-id"), "");
        assert!(refused.header("server-timing").starts_with("total;dur="));
    }
    assert_eq!(world.iam.lookups(), lookups);
    let log = captured_log();
    assert_eq!(log.matches("\"status\":429").count(), 3, "{log}");
}

#[tokio::test]
async fn line_02_every_response_is_decorated_whoever_made_it() {
    for Sample { what, answer, .. } in samples().await {
        let what = format!("{what}: {}", answer.status);
        let trace = answer.header("x-core-trace-id");
        assert!(
            trace.len() == 32 && trace.bytes().all(|b| b.is_ascii_hexdigit()),
            "{what}"
        );
        for (name, value) in [
            ("x-content-type-options", "nosniff"),
            ("x-frame-options", "DENY"),
            ("referrer-policy", "no-referrer"),
            ("x-request-id", "r-1"),
            ("access-control-allow-origin", PAGE),
            ("vary", "Origin"),
            (
                "access-control-expose-headers",
                "X-Request-Id, Retry-After, ETag, RateLimit, RateLimit-Policy",
            ),
        ] {
            assert_eq!(answer.header(name), value, "{what}: {name}");
        }
        let is_limited = !what.starts_with("a health check");
        for name in ["ratelimit", "ratelimit-policy"] {
            assert_eq!(
                !answer.header(name).is_empty(),
                is_limited,
                "{what}: {name}"
            );
        }
    }
}

#[tokio::test]
async fn line_03_the_policies_for_frames_and_referrers_are_configurable() {
    let config = GatewayConfig {
        frame_options: "SAMEORIGIN".to_owned(),
        referrer_policy: "same-origin".to_owned(),
        ..config()
    };
    let world = World::with(config);
    world.set_reply(reply_with(|| {
        let mut response = response(200, "x");
        for name in [
            "x-frame-options",
            "referrer-policy",
            "x-content-type-options",
        ] {
            for theirs in ["first", "second"] {
                let value = HeaderValue::from_static(theirs);
                response.headers_mut().append(name, value);
            }
        }
        response
    }));
    // `World::send` asserts that no header is repeated.
    for answer in [world.get(PATH).await, world.get("/api//").await] {
        assert_eq!(answer.header("x-frame-options"), "SAMEORIGIN");
        assert_eq!(answer.header("referrer-policy"), "same-origin");
        assert_eq!(answer.header("x-content-type-options"), "nosniff");
    }
}

#[tokio::test]
async fn line_04_every_error_of_the_gateway_has_the_envelope() {
    let mut refusals = 0;
    for sample in samples().await {
        let Sample { what, answer, .. } = sample;
        if !sample.is_refusal {
            assert!(answer.json["error"].is_null(), "{what}");
            continue;
        }
        refusals += 1;
        assert_eq!(answer.header("content-type"), "application/json", "{what}");
        let body = answer.json.as_object().unwrap();
        assert_eq!(body.keys().collect::<Vec<_>>(), ["error"], "{what}");
        let error = body["error"].as_object().unwrap();
        let mut names: Vec<_> = error.keys().map(String::as_str).collect();
        names.sort_unstable();
        assert_eq!(names, ["code", "details", "message", "requestId"], "{what}");
        assert_eq!(error["requestId"], "r-1", "{what}");
        let has_details = answer.status == 429;
        assert_eq!(error["details"] != json!({}), has_details, "{what}");
        assert!(error["details"].is_object(), "{what}");
    }
    assert!(refusals > 10, "{refusals}");
}

#[tokio::test]
async fn line_05_an_error_of_a_service_passes_byte_for_byte() {
    let world = World::new();
    let envelope =
        "{ \"error\" : {\"code\":\"GONE\",\"message\":\"\",\"requestId\":\"theirs\"} }\n";
    for (status, content_type, body) in [
        (400, "application/json", envelope),
        (401, "text/plain", "who are you?"),
        (404, "application/problem+json; charset=utf-8", "{}"),
        (429, "application/json", envelope),
        (500, "text/html", "<h1>Oops</h1>"),
        (502, "text/html", "<h1>Bad Gateway</h1>"),
        (503, "application/octet-stream", "\0\u{1}not json"),
        (504, "application/json", ""),
    ] {
        world.set_reply(reply_with(move || {
            let mut response = response(status, body);
            let value = HeaderValue::from_static(content_type);
            response.headers_mut().insert("content-type", value);
            response
        }));
        let sent = session_request(PATH).build();
        // Without `World::send`, which expects the request id of the gateway in every envelope.
        let answer = tower::ServiceExt::oneshot(world.gateway.clone(), sent).await;
        let answer = Answer::of(answer.unwrap()).await.expect(status);
        assert_eq!(&answer.bytes[..], body.as_bytes(), "{status}");
        assert_eq!(answer.header("content-type"), content_type);
        assert_eq!(answer.header("www-authenticate"), "", "{status}");
    }
}
