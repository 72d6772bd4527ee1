//! CORS: preflights, allowed origins, and the headers of responses.

use http::{Method, Response};

use super::world::{World, anonymous, config, failing_reply, reply_with, session_request};
use core_http::gateway::UpstreamError;
use core_http::kernel::bytes_body;

const PAGE: &str = "https://app.example.com";
const PATH: &str = "/api/v1/platforms";

fn world() -> World {
    let mut config = config();
    config.allowed_origins = vec![PAGE.to_owned()];
    World::with(config)
}

#[tokio::test]
async fn line_18_a_preflight_gets_a_response_before_authentication_and_is_never_proxied() {
    let world = world();
    let request = anonymous(PATH)
        .method(Method::OPTIONS)
        .header("origin", PAGE)
        .header("access-control-request-method", "PATCH");
    let answer = world.send(request.build()).await;
    assert_eq!((answer.status.as_u16(), answer.bytes.len()), (204, 0));
    assert_eq!(answer.header("access-control-allow-origin"), PAGE);
    assert_eq!(
        answer.header("access-control-allow-headers"),
        "Content-Type, Authorization, X-Request-Id"
    );
    assert_eq!(
        answer.header("access-control-allow-methods"),
        "GET, POST, PUT, PATCH, DELETE, OPTIONS"
    );
    assert_eq!(answer.header("access-control-max-age"), "600");
    assert_eq!(answer.header("access-control-allow-credentials"), "");
    assert_eq!(answer.header("x-content-type-options"), "nosniff");
    assert!(world.received_requests().is_empty());
}

#[tokio::test]
async fn line_18_options_without_preflight_headers_is_authenticated_and_proxied() {
    let world = world();
    let request = anonymous(PATH)
        .method(Method::OPTIONS)
        .header("origin", PAGE);
    assert_eq!(world.send(request.build()).await.status, 401);
    world
        .send(session_request(PATH).method(Method::OPTIONS).build())
        .await;
    assert_eq!(world.single_request().method, Method::OPTIONS);
}

#[tokio::test]
async fn line_19_an_origin_that_is_not_listed_gets_no_cors_headers_and_no_error() {
    let world = world();
    for origin in [
        "https://app.example.com.evil.test",
        "null",
        "http://app.example.com",
    ] {
        let answer = world
            .send(session_request(PATH).header("origin", origin).build())
            .await;
        assert_eq!(answer.status, 200);
        assert!(
            !answer
                .headers
                .keys()
                .any(|n| n.as_str().starts_with("access-control"))
        );
        let preflight = anonymous(PATH)
            .method(Method::OPTIONS)
            .header("origin", origin)
            .header("access-control-request-method", "GET");
        let answer = world.send(preflight.build()).await;
        assert_eq!(answer.status, 204);
        assert!(
            !answer
                .headers
                .keys()
                .any(|n| n.as_str().starts_with("access-control"))
        );
    }
}

#[tokio::test]
async fn line_02_responses_of_every_status_have_the_cors_headers() {
    let world = world();
    let page = |path: &str| session_request(path).header("origin", PAGE);
    let mut answers = vec![
        world.send(page(PATH).build()).await,
        world
            .send(page(PATH).without_header("authorization").build())
            .await,
        world.send(page("/api/v1/nothing").build()).await,
        world.send(page("/api/v1//x").build()).await,
        world.send(page("/health").build()).await,
    ];
    world.set_reply(failing_reply(|| UpstreamError::Broken("x".to_owned())));
    answers.push(world.send(page(PATH).build()).await);
    for _ in 0..100 {
        answers.push(world.send(page("/api/v1/stacks").build()).await);
    }
    answers.push(world.send(page("/api/v1/stacks").build()).await);
    assert_eq!(answers.last().unwrap().status, 429);
    for answer in answers {
        assert_eq!(
            answer.header("access-control-allow-origin"),
            PAGE,
            "{answer:?}"
        );
        assert_eq!(answer.header("vary"), "Origin");
        let exposed = answer.header("access-control-expose-headers");
        assert_eq!(
            exposed,
            "X-Request-Id, Retry-After, ETag, RateLimit, RateLimit-Policy"
        );
    }
}

#[tokio::test]
async fn line_19_responses_vary_by_origin_even_without_an_origin_and_keep_other_vary_values() {
    let world = world();
    assert_eq!(world.get(PATH).await.header("vary"), "Origin");
    world.set_reply(reply_with(|| {
        let mut response = Response::new(bytes_body("x"));
        let vary = http::HeaderValue::from_static("Accept, origin");
        response.headers_mut().insert("vary", vary);
        response
    }));
    assert_eq!(world.get(PATH).await.header("vary"), "Accept, origin");
}

#[tokio::test]
async fn line_20_cors_headers_of_a_service_are_replaced() {
    let world = world();
    world.set_reply(reply_with(|| {
        let mut response = Response::new(bytes_body("x"));
        for name in [
            "access-control-allow-origin",
            "access-control-allow-credentials",
        ] {
            response
                .headers_mut()
                .insert(name, http::HeaderValue::from_static("*"));
        }
        response
    }));
    let answer = world
        .send(session_request(PATH).header("origin", PAGE).build())
        .await;
    assert_eq!(answer.header("access-control-allow-origin"), PAGE);
    assert_eq!(answer.header("access-control-allow-credentials"), "");
}

#[tokio::test]
async fn line_17_credentials_and_additional_headers_are_allowed_when_configured() {
    let mut config = config();
    config.allowed_origins = vec![PAGE.to_owned()];
    config.cors_credentials = true;
    config.extra_cors_headers = vec!["Idempotency-Key".to_owned()];
    let request = anonymous(PATH)
        .method(Method::OPTIONS)
        .header("origin", PAGE)
        .header("access-control-request-method", "POST");
    let answer = World::with(config).send(request.build()).await;
    assert_eq!(answer.header("access-control-allow-credentials"), "true");
    assert_eq!(
        answer.header("access-control-allow-headers"),
        "Content-Type, Authorization, X-Request-Id, Idempotency-Key"
    );
}

#[tokio::test]
async fn line_17_an_api_key_is_not_for_browsers() {
    let request = anonymous(PATH)
        .method(Method::OPTIONS)
        .header("origin", PAGE)
        .header("access-control-request-method", "GET")
        .header("access-control-request-headers", "x-api-key, authorization");
    let answer = world().send(request.build()).await.expect(204);
    assert_eq!(
        answer.header("access-control-allow-headers"),
        "Content-Type, Authorization, X-Request-Id"
    );
}

#[tokio::test]
async fn line_18_only_options_with_both_headers_is_a_preflight() {
    let world = world();
    let method = |request: super::world::Req, method| request.method(method).build();
    let no_origin = anonymous(PATH).header("access-control-request-method", "GET");
    let get = anonymous(PATH)
        .header("origin", PAGE)
        .header("access-control-request-method", "GET");
    for request in [method(no_origin, Method::OPTIONS), method(get, Method::GET)] {
        world.send(request).await.expect_error(401, "UNAUTHORIZED");
    }
}

#[tokio::test]
async fn line_19_an_origin_must_be_equal_in_scheme_host_and_port() {
    let world = world();
    let mut requests: Vec<_> = [
        "https://app.example.com:443",
        "https://app.example.com:8443",
        "https://APP.example.com",
        "https://app.example.com/",
        "https://app.example.com.",
        "https://evil.test/https://app.example.com",
        "https://xapp.example.com",
        "*",
        "",
    ]
    .into_iter()
    .map(|origin| session_request(PATH).header("origin", origin))
    .collect();
    let two_lines = session_request(PATH)
        .header("origin", PAGE)
        .header("origin", PAGE);
    requests.push(two_lines);
    for request in requests {
        let request = request.build();
        let origin = format!("{:?}", request.headers().get_all("origin"));
        let answer = world.send(request).await.expect(200);
        let allowed = answer.header("access-control-allow-origin");
        assert_eq!(allowed, "", "{origin}");
        assert_eq!(answer.header("vary"), "Origin");
    }
}

#[tokio::test]
async fn line_19_with_credentials_the_allowed_origin_is_never_an_asterisk() {
    let mut config = config();
    config.allowed_origins = vec![PAGE.to_owned(), "https://b.example.com".to_owned()];
    config.cors_credentials = true;
    let world = World::with(config);
    for origin in [PAGE, "https://b.example.com"] {
        let answer = world
            .send(session_request(PATH).header("origin", origin).build())
            .await;
        assert_eq!(answer.header("access-control-allow-origin"), origin);
        assert_eq!(answer.header("access-control-allow-credentials"), "true");
    }
    let answer = world.get(PATH).await;
    assert_eq!(answer.header("access-control-allow-origin"), "");
    assert_eq!(answer.header("access-control-allow-credentials"), "");
}

#[tokio::test]
async fn line_20_an_origin_that_is_not_listed_gets_no_cors_header_of_the_service() {
    let world = world();
    world.set_reply(reply_with(|| {
        let mut response = Response::new(bytes_body("x"));
        for name in [
            "access-control-allow-origin",
            "access-control-allow-methods",
            "access-control-allow-headers",
            "access-control-allow-credentials",
            "access-control-allow-private-network",
            "access-control-expose-headers",
            "access-control-max-age",
        ] {
            let value = http::HeaderValue::from_static("*");
            response.headers_mut().append(name, value);
        }
        response
    }));
    for origin in ["https://evil.test", PAGE] {
        let answer = world
            .send(session_request(PATH).header("origin", origin).build())
            .await;
        let mut names = answer.headers.keys().map(http::HeaderName::as_str);
        let is_listed = origin == PAGE;
        let has_own = names.any(|name| name.starts_with("access-control-"));
        assert_eq!(has_own, is_listed, "{origin}");
        let mut values = answer.headers.values();
        assert!(values.all(|value| value != "*"), "{origin}");
    }
}
