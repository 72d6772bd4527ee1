use http::{HeaderValue, Method, Response, StatusCode};

use super::world::{World, anonymous, answer, config, fails, signed};
use crate::gateway::UpstreamError;
use crate::kernel::{ClientIp, bytes_body, empty_body};

type Failure = fn() -> UpstreamError;

const PATH: &str = "/api/v1/platforms/p-1";

#[tokio::test]
async fn a_clients_request_id_is_kept_when_it_is_harmless_and_replaced_otherwise() {
    let world = World::new();
    let good = "req-1.A_b:c";
    let answer = world
        .send(signed(PATH).header("x-request-id", good).build())
        .await;
    assert_eq!(answer.header("x-request-id"), Some(good));
    assert_eq!(world.only().header("x-core-request-id"), Some(good));
    let long = "x".repeat(129);
    for bad in ["", "a b", "<script>", long.as_str()] {
        let answer = world
            .send(signed(PATH).header("x-request-id", bad).build())
            .await;
        let id = answer.header("x-request-id").unwrap();
        assert!(uuid::Uuid::parse_str(id).is_ok(), "{id}");
    }
    let twice = signed(PATH)
        .header("x-request-id", "a")
        .header("x-request-id", "a");
    let answer = world.send(twice.build()).await;
    assert_ne!(answer.header("x-request-id"), Some("a"));
}

#[tokio::test]
async fn what_a_client_says_in_our_name_does_not_get_through() {
    let world = World::new();
    let mut request = signed(PATH);
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
    let seen = world.only();
    assert!(
        seen.headers.values().all(|value| value != "forged"),
        "{:?}",
        seen.headers
    );
    assert_eq!(seen.header("idempotency-key"), Some("k"));
}

#[tokio::test]
async fn the_branch_of_a_deployment_reaches_the_command_lines_service_alone() {
    let world = World::new();
    for path in ["/api/v1/cli/platforms/p-1/deploy", PATH] {
        world
            .send(signed(path).header("x-core-deploy-branch", "main").build())
            .await;
    }
    let branches: Vec<_> = world
        .seen()
        .iter()
        .map(|seen| seen.header("x-core-deploy-branch").map(str::to_owned))
        .collect();
    assert_eq!(branches, [Some("main".to_owned()), None]);
}

#[tokio::test]
async fn connection_cannot_name_away_the_identity() {
    let world = World::new();
    for name in [
        "X-Core-User-Id",
        "Authorization",
        "Host",
        "Content-Length",
        "Cookie",
    ] {
        let answer = world
            .send(signed(PATH).header("connection", name).build())
            .await;
        assert_eq!(
            (answer.status, answer.header("connection")),
            (400, Some("close")),
            "{name}"
        );
    }
    world
        .send(
            signed(PATH)
                .header("connection", "X-Mine")
                .header("x-mine", "1")
                .build(),
        )
        .await;
    assert_eq!(world.only().header("x-mine"), None);
}

#[tokio::test]
async fn the_way_a_request_came_is_told_by_us_and_believed_from_proxies_alone() {
    let mut config = config();
    config.trusted_proxies = vec!["10.0.0.1".to_owned()];
    let world = World::with(config);
    let told = |peer: &str| {
        signed(PATH)
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
    let seen = world.seen();
    let lines = |at: usize| {
        ["x-forwarded-for", "x-forwarded-proto", "x-forwarded-host"]
            .map(|n| seen[at].header(n).unwrap())
    };
    assert_eq!(lines(0), ["203.0.113.9", "http", "api.example.org"]);
    assert_eq!(
        lines(1),
        ["198.51.100.7, 10.0.0.1", "https", "public.example.org"]
    );
    for request in &seen {
        assert_eq!(
            request.header("x-forwarded-prefix"),
            Some("/api/v1/platforms")
        );
        assert_eq!(
            (request.header("x-real-ip"), request.header("forwarded")),
            (None, None)
        );
    }
    assert_eq!(
        seen[1].extensions.get(),
        Some(&ClientIp("198.51.100.7".to_owned()))
    );
}

#[tokio::test]
async fn a_trace_is_continued_when_it_is_well_formed_and_begun_otherwise() {
    let world = World::new();
    let trace = "4bf92f3577b34da6a3ce929d0e0e4736";
    let parent = format!("00-{trace}-00f067aa0ba902b7-00");
    let good = signed(PATH)
        .header("traceparent", &parent)
        .header("tracestate", "a=1");
    let answer = world.send(good.build()).await;
    assert_eq!(answer.header("x-core-trace-id"), Some(trace));
    let bad = signed(PATH)
        .header("traceparent", "00-zz")
        .header("tracestate", "a=1");
    let other = world.send(bad.build()).await;
    let seen = world.seen();
    assert_eq!(seen[0].header("x-core-trace-id"), Some(trace));
    let sent = seen[0].header("traceparent").unwrap();
    assert!(
        sent.contains(trace) && sent != parent && sent.ends_with("-01"),
        "{sent}"
    );
    assert_eq!(seen[0].header("tracestate"), Some("a=1"));
    assert_eq!(seen[1].header("tracestate"), None);
    let begun = other.header("x-core-trace-id").unwrap();
    assert!(begun != trace && seen[1].header("traceparent").unwrap().contains(begun));
}

#[tokio::test]
async fn security_headers_are_on_every_answer_once_whatever_a_service_says() {
    let world = World::new();
    world.reply(answer(|| {
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
        assert_eq!(answer.header("x-content-type-options"), Some("nosniff"));
        assert_eq!(answer.header("x-frame-options"), Some("DENY"));
        assert_eq!(answer.header("referrer-policy"), Some("no-referrer"));
        assert!(
            answer.header("x-request-id").is_some() && answer.header("x-core-trace-id").is_some()
        );
        let health = &answer.body[..] == b"ok";
        assert_eq!(
            answer.header("cache-control"),
            (!health).then_some("no-store")
        );
    }
}

#[tokio::test]
async fn what_a_service_answers_passes_through_unchanged_errors_too() {
    let world = World::new();
    world.reply(answer(|| {
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
    assert_eq!((answer.status, &answer.body[..]), (500, &b"<oops>"[..]));
    assert_eq!(answer.headers.get_all("set-cookie").iter().count(), 2);
    assert_eq!(answer.header("allow"), Some("GET"));
    for name in ["server", "x-core-user-id", "connection", "x-hop"] {
        assert_eq!(answer.header(name), None, "{name}");
    }
}

#[tokio::test]
async fn not_modified_no_content_and_head_get_no_invented_body_or_length() {
    let world = World::new();
    for status in [StatusCode::NOT_MODIFIED, StatusCode::NO_CONTENT] {
        world.reply(answer(move || {
            let mut response = Response::new(empty_body());
            *response.status_mut() = status;
            response
        }));
        for method in [Method::GET, Method::HEAD] {
            let answer = world.send(signed(PATH).method(method).build()).await;
            assert_eq!((answer.status, answer.body.len()), (status.as_u16(), 0));
            assert_eq!(answer.header("content-length"), None);
        }
    }
    assert!(world.seen().iter().any(|seen| seen.method == Method::HEAD));
}

#[tokio::test]
async fn an_error_to_head_is_the_head_of_the_error_to_get() {
    let world = World::new();
    let get = world
        .send(anonymous(PATH).header("x-request-id", "a").build())
        .await;
    let head = anonymous(PATH)
        .header("x-request-id", "a")
        .method(Method::HEAD);
    let head = world.send(head.build()).await;
    assert_eq!((head.status, head.body.len()), (401, 0));
    assert_eq!(head.header("content-type"), get.header("content-type"));
    assert_eq!(
        head.header("content-length"),
        Some(get.body.len().to_string().as_str())
    );
}

#[tokio::test]
async fn failures_to_get_an_answer_are_502_503_and_504_and_say_nothing_of_the_cause() {
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
        world.reply(fails(make));
        let answer = world.get(PATH).await;
        assert_eq!((answer.status, answer.code().as_str()), (status, code));
        assert!(!String::from_utf8_lossy(&answer.body).contains("db-7"));
        assert_eq!(answer.header("retry-after").is_some(), status == 503);
        assert!(answer.header("ratelimit").is_some());
    }
}

#[tokio::test]
async fn a_service_that_panics_is_a_500_with_the_envelope_and_all_headers() {
    let world = World::new();
    world.reply(std::sync::Arc::new(|| panic!("the handler is broken")));
    let answer = world.get(PATH).await;
    assert_eq!(
        (answer.status, answer.code().as_str()),
        (500, "INTERNAL_ERROR")
    );
    assert!(answer.header("ratelimit").is_some() && answer.header("x-frame-options").is_some());
    world.reply(super::world::answer(|| Response::new(empty_body())));
    assert_eq!(world.get(PATH).await.status, 200);
}

#[tokio::test]
async fn a_service_that_ends_with_an_informational_status_is_502() {
    let world = World::new();
    world.reply(answer(|| {
        let mut response = Response::new(empty_body());
        *response.status_mut() = StatusCode::SWITCHING_PROTOCOLS;
        response
    }));
    let upgrade = signed(PATH)
        .header("connection", "upgrade")
        .header("upgrade", "websocket");
    assert_eq!(world.send(upgrade.build()).await.status, 502);
    assert_eq!(world.only().header("upgrade"), None);
}
