//! The headers, traces, and failures that the gateway forwards between clients and services.

use http::{HeaderValue, Method, Response, StatusCode};

use super::world::{World, anonymous, config, failing_reply, reply_with, session_request};
use core_http::gateway::UpstreamError;
use core_http::kernel::{ClientIp, bytes_body, empty_body};

type Failure = fn() -> UpstreamError;

const PATH: &str = "/api/v1/platforms/p-1";

#[tokio::test]
async fn line_07_a_valid_request_id_of_a_client_is_kept_and_an_invalid_one_is_replaced() {
    let world = World::new();
    let good = "req-1.A_b:c";
    let answer = world
        .send(session_request(PATH).header("x-request-id", good).build())
        .await;
    assert_eq!(answer.header("x-request-id"), good);
    assert_eq!(world.single_request().header("x-core-request-id"), good);
    let long = "x".repeat(129);
    for bad in ["", "a b", "<script>", long.as_str()] {
        let answer = world
            .send(session_request(PATH).header("x-request-id", bad).build())
            .await;
        let id = answer.header("x-request-id");
        assert!(uuid::Uuid::parse_str(id).is_ok(), "{id}");
    }
    let twice = session_request(PATH)
        .header("x-request-id", "a")
        .header("x-request-id", "a");
    let answer = world.send(twice.build()).await;
    assert_ne!(answer.header("x-request-id"), "a");
}

#[tokio::test]
async fn line_28_core_headers_of_a_client_are_removed() {
    let world = World::new();
    let mut request = session_request(PATH);
    for name in [
        "X-Core-User-Id",
        "x_core_user_id",
        "X-Core_Role",
        "x-core-role",
        "x-core-platform-id",
        "x-core-request-id",
        "x-core-trace-id",
        "x-core-deploy-branch",
    ] {
        request = request.header(name, "forged");
    }
    world
        .send(request.header("idempotency-key", "k").build())
        .await;
    let seen = world.single_request();
    assert!(
        seen.headers.values().all(|value| value != "forged"),
        "{:?}",
        seen.headers
    );
    assert_eq!(seen.header("idempotency-key"), "k");
}

#[tokio::test]
async fn line_28_the_deploy_branch_header_is_forwarded_to_the_cli_service_alone() {
    let world = World::new();
    for path in ["/api/v1/cli/platforms/p-1/deploy", PATH] {
        world
            .send(
                session_request(path)
                    .header("x-core-deploy-branch", "main")
                    .build(),
            )
            .await;
    }
    let branches: Vec<_> = world
        .received_requests()
        .iter()
        .map(|seen| seen.header("x-core-deploy-branch").to_owned())
        .collect();
    assert_eq!(branches, ["main", ""]);
}

#[tokio::test]
async fn line_29_connection_cannot_remove_end_to_end_headers() {
    let world = World::new();
    for name in [
        "X-Core-User-Id",
        "Authorization",
        "Host",
        "Content-Length",
        "Cookie",
    ] {
        let answer = world
            .send(session_request(PATH).header("connection", name).build())
            .await;
        let refusal = (answer.status.as_u16(), answer.header("connection"));
        assert_eq!(refusal, (400, "close"), "{name}");
    }
    world
        .send(
            session_request(PATH)
                .header("connection", "X-Mine")
                .header("x-mine", "1")
                .build(),
        )
        .await;
    assert_eq!(world.single_request().header("x-mine"), "");
}

#[tokio::test]
async fn line_32_forwarding_headers_are_replaced_unless_the_peer_is_a_trusted_proxy() {
    let mut config = config();
    config.trusted_proxies = vec!["10.0.0.1".to_owned()];
    let world = World::with(config);
    let told = |peer: &str| {
        session_request(PATH)
            .peer(peer)
            .header("x-forwarded-for", "198.51.100.7")
            .header("x-forwarded-proto", "https")
            .header("x-forwarded-host", "public.example.org")
            .header("x-forwarded-prefix", "/forged")
            .header("x-real-ip", "1.1.1.1")
            .header("forwarded", "for=1.1.1.1")
            .build()
    };
    world.send(told("203.0.113.9:1")).await;
    world.send(told("10.0.0.1:1")).await;
    let seen = world.received_requests();
    let lines = |at: usize| {
        ["x-forwarded-for", "x-forwarded-proto", "x-forwarded-host"].map(|n| seen[at].header(n))
    };
    assert_eq!(lines(0), ["203.0.113.9", "http", "api.example.org"]);
    assert_eq!(
        lines(1),
        ["198.51.100.7, 10.0.0.1", "https", "public.example.org"]
    );
    for request in &seen {
        assert_eq!(request.header("x-forwarded-prefix"), "/api/v1/platforms");
        assert_eq!(
            (request.header("x-real-ip"), request.header("forwarded")),
            ("", "")
        );
    }
    assert_eq!(
        seen[1].extensions.get(),
        Some(&ClientIp("198.51.100.7".to_owned()))
    );
}

#[tokio::test]
async fn line_08_a_valid_trace_is_continued_and_an_invalid_one_is_replaced() {
    let world = World::new();
    let trace = "4bf92f3577b34da6a3ce929d0e0e4736";
    let parent = format!("00-{trace}-00f067aa0ba902b7-00");
    let good = session_request(PATH)
        .header("traceparent", &parent)
        .header("tracestate", "a=1");
    let answer = world.send(good.build()).await;
    assert_eq!(answer.header("x-core-trace-id"), trace);
    let bad = session_request(PATH)
        .header("traceparent", "00-zz")
        .header("tracestate", "a=1");
    let other = world.send(bad.build()).await;
    let seen = world.received_requests();
    assert_eq!(seen[0].header("x-core-trace-id"), trace);
    let sent = seen[0].header("traceparent");
    assert!(
        sent.contains(trace) && sent != parent && sent.ends_with("-01"),
        "{sent}"
    );
    assert_eq!(seen[0].header("tracestate"), "a=1");
    assert_eq!(seen[1].header("tracestate"), "");
    let begun = other.header("x-core-trace-id");
    assert!(begun != trace && seen[1].header("traceparent").contains(begun));
}

#[tokio::test]
async fn line_03_every_response_has_each_security_header_exactly_once() {
    let world = World::new();
    world.set_reply(reply_with(|| {
        let mut response = Response::new(bytes_body("x"));
        for name in [
            "x-frame-options",
            "referrer-policy",
            "x-content-type-options",
            "cache-control",
        ] {
            response
                .headers_mut()
                .append(name, HeaderValue::from_static("theirs"));
        }
        response
    }));
    let answers = [
        world.get(PATH).await,
        world.get("/api/v1/nothing").await,
        world.get("/api//").await,
        world.send(anonymous(PATH).build()).await,
        world.send(anonymous("/health").build()).await,
    ];
    for answer in answers {
        assert_eq!(answer.header("x-content-type-options"), "nosniff");
        assert_eq!(answer.header("x-frame-options"), "DENY");
        assert_eq!(answer.header("referrer-policy"), "no-referrer");
        assert_ne!(answer.header("x-request-id"), "");
        assert_ne!(answer.header("x-core-trace-id"), "");
        let health = &answer.bytes[..] == b"ok";
        let expected = if health { "" } else { "no-store" };
        assert_eq!(answer.header("cache-control"), expected);
    }
}

#[tokio::test]
async fn line_34_service_responses_and_errors_pass_without_internal_and_hop_by_hop_headers() {
    let world = World::new();
    world.set_reply(reply_with(|| {
        let mut response = Response::new(bytes_body("<oops>"));
        *response.status_mut() = StatusCode::INTERNAL_SERVER_ERROR;
        let headers = response.headers_mut();
        headers.append("set-cookie", HeaderValue::from_static("a=1"));
        headers.append("set-cookie", HeaderValue::from_static("b=2"));
        headers.insert("allow", HeaderValue::from_static("GET"));
        headers.insert("server", HeaderValue::from_static("secret/1"));
        headers.insert("x-core-user-id", HeaderValue::from_static("u-1"));
        headers.insert("connection", HeaderValue::from_static("close, x-hop"));
        headers.insert("x-hop", HeaderValue::from_static("1"));
        response
    }));
    let answer = world.get(PATH).await;
    let answer = answer.expect(500);
    assert_eq!(&answer.bytes[..], b"<oops>");
    assert_eq!(answer.headers.get_all("set-cookie").iter().count(), 2);
    assert_eq!(answer.header("allow"), "GET");
    for name in ["server", "x-core-user-id", "connection", "x-hop"] {
        assert_eq!(answer.header(name), "", "{name}");
    }
}

#[tokio::test]
async fn line_34_not_modified_no_content_and_head_responses_have_no_body_or_length() {
    let world = World::new();
    for status in [StatusCode::NOT_MODIFIED, StatusCode::NO_CONTENT] {
        world.set_reply(reply_with(move || {
            let mut response = Response::new(empty_body());
            *response.status_mut() = status;
            response
        }));
        for method in [Method::GET, Method::HEAD] {
            let answer = world
                .send(session_request(PATH).method(method).build())
                .await;
            assert_eq!((answer.status, answer.bytes.len()), (status, 0));
            assert_eq!(answer.header("content-length"), "");
        }
    }
    assert!(
        world
            .received_requests()
            .iter()
            .any(|seen| seen.method == Method::HEAD)
    );
}

#[tokio::test]
async fn line_04_an_error_to_head_has_the_headers_of_the_error_to_get() {
    let world = World::new();
    let get = world
        .send(anonymous(PATH).header("x-request-id", "a").build())
        .await;
    let head = anonymous(PATH)
        .header("x-request-id", "a")
        .method(Method::HEAD);
    let head = world.send(head.build()).await;
    assert_eq!((head.status.as_u16(), head.bytes.len()), (401, 0));
    assert_eq!(head.header("content-type"), get.header("content-type"));
    assert_eq!(
        head.header("content-length"),
        get.bytes.len().to_string().as_str()
    );
}

#[tokio::test]
async fn upstream_failures_are_502_503_and_504_without_their_cause() {
    let world = World::new();
    let cases: [(Failure, u16, &str); 3] = [
        (
            || UpstreamError::Broken("db-7.internal".to_owned()),
            502,
            "UPSTREAM_ERROR",
        ),
        (
            || UpstreamError::Unavailable("db-7.internal".to_owned()),
            503,
            "SERVICE_UNAVAILABLE",
        ),
        (
            || UpstreamError::Timeout("db-7.internal".to_owned()),
            504,
            "UPSTREAM_TIMEOUT",
        ),
    ];
    for (make, status, code) in cases {
        world.set_reply(failing_reply(make));
        let answer = world.get(PATH).await.expect_error(status, code);
        assert!(!String::from_utf8_lossy(&answer.bytes).contains("db-7"));
        assert_eq!(!answer.header("retry-after").is_empty(), status == 503);
        assert_ne!(answer.header("ratelimit"), "");
    }
}

#[tokio::test]
async fn line_04_a_service_that_panics_is_a_500_with_the_envelope_and_all_headers() {
    let world = World::new();
    world.set_reply(std::sync::Arc::new(|| panic!("the handler is broken")));
    let answer = world.get(PATH).await.expect_error(500, "INTERNAL_ERROR");
    assert_ne!(answer.header("ratelimit"), "");
    assert_ne!(answer.header("x-frame-options"), "");
    world.set_reply(super::world::reply_with(|| Response::new(empty_body())));
    assert_eq!(world.get(PATH).await.status, 200);
}

#[tokio::test]
async fn line_34_a_service_that_responds_with_an_informational_status_is_502() {
    let world = World::new();
    world.set_reply(reply_with(|| {
        let mut response = Response::new(empty_body());
        *response.status_mut() = StatusCode::SWITCHING_PROTOCOLS;
        response
    }));
    let upgrade = session_request(PATH)
        .header("connection", "upgrade")
        .header("upgrade", "websocket");
    assert_eq!(world.send(upgrade.build()).await.status, 502);
    assert_eq!(world.single_request().header("upgrade"), "");
}

#[tokio::test]
async fn line_07_a_request_id_has_1_to_128_characters_and_occurs_once() {
    let world = World::new();
    let longest = "x".repeat(128);
    for good in ["1", longest.as_str(), "A.b_c:d-9"] {
        let request = session_request(PATH).header("x-request-id", good);
        let answer = world.send(request.build()).await;
        assert_eq!(answer.header("x-request-id"), good);
    }
    let long = "x".repeat(4_096);
    for bad in [long.as_str(), "a/b", "a,b", "a\tb", "\u{e9}", "a;b", "{a}"] {
        let request = session_request(PATH).header("x-request-id", bad);
        let answer = world.send(request.build()).await;
        assert_ne!(answer.header("x-request-id"), bad);
    }
    for second in ["a", "b"] {
        let request = session_request(PATH)
            .header("x-request-id", "a")
            .header("x-request-id", second);
        let answer = world.send(request.build()).await;
        let id = answer.header("x-request-id").to_owned();
        assert!(uuid::Uuid::parse_str(&id).is_ok(), "{id}");
        let seen = world.received_requests();
        assert_eq!(seen.last().unwrap().header("x-core-request-id"), id);
    }
    for seen in world.received_requests() {
        let lines = seen.headers.get_all("x-core-request-id").iter().count();
        assert_eq!((lines, seen.header("x-request-id")), (1, ""));
    }
}

#[tokio::test]
async fn line_08_the_trace_does_not_depend_on_the_request_id_or_the_sampled_flag() {
    let world = World::new();
    let id = "0af7651916cd43dd8448eb211c80319c";
    let mut traces = std::collections::HashSet::new();
    for _ in 0..2 {
        let request = session_request(PATH).header("x-request-id", id);
        let answer = world.send(request.build()).await;
        let trace = answer.header("x-core-trace-id").to_owned();
        assert_ne!(trace, id);
        assert!(traces.insert(trace), "two requests have two traces");
    }
    for flags in ["00", "01", "ff"] {
        let parent = format!("00-{id}-00f067aa0ba902b7-{flags}");
        let request = session_request(PATH).header("traceparent", &parent);
        world.send(request.build()).await;
        let seen = world.received_requests();
        let sent = seen.last().unwrap().header("traceparent");
        assert!(sent.starts_with(&format!("00-{id}-")) && sent.ends_with("-01"));
        assert!(!sent.contains("00f067aa0ba902b7"), "{sent}");
    }
}

#[tokio::test]
async fn line_08_a_malformed_or_missing_parent_drops_the_state_of_the_trace() {
    let world = World::new();
    let trace = "4bf92f3577b34da6a3ce929d0e0e4736";
    let good = format!("00-{trace}-00f067aa0ba902b7-01");
    let zero = format!("00-{}-00f067aa0ba902b7-01", "0".repeat(32));
    let no_parent = format!("00-{trace}-{}-01", "0".repeat(16));
    for lines in [
        &[][..],
        &[zero.as_str()],
        &[no_parent.as_str()],
        &[&good.to_uppercase()],
        &[good.as_str(), good.as_str()],
        &[""],
    ] {
        let mut request = session_request(PATH).header("tracestate", "a=1");
        for line in lines {
            request = request.header("traceparent", line);
        }
        let answer = world.send(request.build()).await;
        let seen = world.received_requests();
        let seen = seen.last().unwrap();
        assert_eq!(seen.header("tracestate"), "", "{lines:?}");
        let own = answer.header("x-core-trace-id");
        assert!(!own.eq_ignore_ascii_case(trace), "{lines:?}");
        assert_eq!(seen.header("x-core-trace-id"), own);
        assert!(seen.header("traceparent").contains(own), "{lines:?}");
        let parents = seen.headers.get_all("traceparent").iter().count();
        assert_eq!(parents, 1, "{lines:?}");
    }
}

#[tokio::test]
async fn line_28_every_name_with_an_underscore_is_removed() {
    let world = World::new();
    let mut request = session_request(PATH).header("x-plain", "1");
    for name in [
        "my_header",
        "x_plain",
        "Authorization_",
        "content_type",
        "_",
    ] {
        request = request.header(name, "forged");
    }
    world.send(request.build()).await;
    let seen = world.single_request();
    assert_eq!(seen.header("x-plain"), "1");
    assert!(!seen.headers.keys().any(|name| name.as_str().contains('_')));
}

#[tokio::test]
async fn line_29_no_hop_by_hop_header_reaches_a_service() {
    let world = World::new();
    let mut request = session_request(PATH)
        .header("connection", "keep-alive, X-Private")
        .header("connection", "x-other")
        .header("te", "gzip, trailers")
        .header("x-private", "1")
        .header("x-other", "1");
    let names = [
        "keep-alive",
        "proxy-connection",
        "proxy-authorization",
        "proxy-authenticate",
        "trailer",
        "upgrade",
        "http2-settings",
    ];
    for name in names {
        request = request.header(name, "1");
    }
    world.send(request.build()).await;
    let seen = world.single_request();
    for name in names {
        assert_eq!(seen.header(name), "", "{name}");
    }
    for name in ["connection", "x-private", "x-other", "transfer-encoding"] {
        assert_eq!(seen.header(name), "", "{name}");
    }
    assert_eq!(seen.header("te"), "trailers");
}

#[tokio::test]
async fn line_29_connection_cannot_remove_the_headers_of_the_gateway() {
    let world = World::new();
    let request = session_request(PATH)
        .header("connection", "x-forwarded-for, X-Forwarded-Prefix")
        .header("connection", "traceparent, x-request-id");
    let _ = world.send(request.build()).await.expect(200);
    let seen = world.single_request();
    for name in [
        "x-forwarded-for",
        "x-forwarded-prefix",
        "x-forwarded-host",
        "x-core-request-id",
        "x-core-trace-id",
        "traceparent",
    ] {
        assert_ne!(seen.header(name), "", "{name}");
    }
    let api_key = session_request(PATH).header("connection", "close, x-API-key");
    let _ = world.send(api_key.build()).await.expect(400);
    let core = session_request(PATH).header("connection", "x-core-anything");
    let _ = world.send(core.build()).await.expect(400);
}

#[tokio::test]
async fn line_32_no_forwarding_header_of_an_untrusted_peer_remains() {
    let world = World::new();
    let mut request = session_request(PATH);
    let names = [
        "forwarded",
        "x-real-ip",
        "x-forwarded-for",
        "x-forwarded-host",
        "x-forwarded-port",
        "x-forwarded-prefix",
        "x-forwarded-proto",
        "x-forwarded-server",
    ];
    for name in names {
        request = request.header(name, "forged").header(name, "forged again");
    }
    world.send(request.build()).await;
    let seen = world.single_request();
    for name in names {
        let lines: Vec<_> = seen.headers.get_all(name).iter().collect();
        assert!(lines.len() <= 1, "{name}: {lines:?}");
        assert!(!seen.header(name).contains("forged"), "{name}");
    }
    assert_eq!(seen.header("x-forwarded-for"), "203.0.113.9");
}

#[tokio::test]
async fn line_34_no_internal_or_hop_by_hop_header_of_a_service_reaches_the_client() {
    let world = World::new();
    let names = [
        "x-core-user-id",
        "x-core-role",
        "x-core-platform-id",
        "x-core-service-key",
        "server",
        "keep-alive",
        "proxy-authenticate",
        "proxy-connection",
        "trailer",
        "transfer-encoding",
        "upgrade",
    ];
    world.set_reply(reply_with(move || {
        let mut response = Response::new(bytes_body("x"));
        for name in names {
            let value = HeaderValue::from_static("theirs");
            response.headers_mut().insert(name, value);
        }
        response
    }));
    let answer = world.get(PATH).await.expect(200);
    for name in names {
        assert_eq!(answer.header(name), "", "{name}");
    }
}
