//! Routing: the path prefix of each service, invalid paths, and health checks.

use std::time::Duration;

use core_domain::kernel::SuiteService;
use core_http::gateway::UpstreamError;
use core_http::kernel::{ForwardedPrefix, Stopping};
use core_testkit::OpenStore;
use http::Method;
use tokio::sync::watch;

use super::world::{
    FakeReply, KEY, SESSION, World, anonymous, config, failing_reply, session_request,
};
use crate::world::manual_clock;

#[tokio::test]
async fn line_35_each_prefix_reaches_its_service_with_the_whole_prefix_removed() {
    let world = World::new();
    for path in [
        "/api/v1/platforms/p-1",
        "/api/v1/onboarding/start",
        "/api/v1/iam/api/auth/get-session",
        "/api/v1/provisioning/jobs",
        "/api/v1/stacks",
        "/api/v1/cli/platforms/p-1/deploy",
        "/api/v1/platforms",
        "/api/v1/platforms/",
        "/api/v1/provisioning/api/v1/provision/jobs",
    ] {
        assert_eq!(world.get(path).await.status, 200, "{path}");
    }
    let seen: Vec<_> = world
        .received_requests()
        .iter()
        .map(|seen| (seen.service, seen.uri.clone()))
        .collect();
    assert_eq!(
        seen,
        [
            (SuiteService::Registry, "/p-1".to_owned()),
            (SuiteService::Registry, "/start".to_owned()),
            (SuiteService::Iam, "/api/auth/get-session".to_owned()),
            (SuiteService::Provisioning, "/jobs".to_owned()),
            (SuiteService::Stacks, "/".to_owned()),
            (SuiteService::Cli, "/platforms/p-1/deploy".to_owned()),
            (SuiteService::Registry, "/".to_owned()),
            (SuiteService::Registry, "/".to_owned()),
            (
                SuiteService::Provisioning,
                "/api/v1/provision/jobs".to_owned()
            ),
        ]
    );
}

#[tokio::test]
async fn line_32_the_removed_prefix_is_forwarded() {
    let world = World::new();
    world.get("/api/v1/onboarding/start").await;
    let seen = world.single_request();
    assert_eq!(seen.header("x-forwarded-prefix"), "/api/v1/onboarding");
    let prefix = seen.extensions.get::<ForwardedPrefix>().unwrap();
    assert_eq!(prefix.0, "/api/v1/onboarding");
}

#[tokio::test]
async fn line_39_whoami_reaches_iam_with_its_full_path() {
    let world = World::new();
    let request = session_request("/api/v1/cli/whoami").method(Method::POST);
    assert_eq!(world.send(request.build()).await.status, 200);
    let seen = world.single_request();
    assert_eq!(
        (seen.service, seen.uri.as_str()),
        (SuiteService::Iam, "/api/v1/cli/whoami")
    );
    // The service receives the whole path, so no prefix was removed.
    assert_eq!(seen.header("x-forwarded-prefix"), "");
}

#[tokio::test]
async fn line_35_the_query_and_the_rest_of_the_path_are_kept_byte_for_byte() {
    let world = World::new();
    let rest = "/a%20b/%C3%a9?b=2&a=1&a=%2F+x&empty=&=&%2e%2e/";
    world.get(&format!("/api/v1/platforms{rest}")).await;
    assert_eq!(world.single_request().uri, rest);
}

#[tokio::test]
async fn line_36_ambiguous_paths_are_400() {
    let world = World::new();
    for path in [
        "/api/v1/platforms/..%2fiam/x",
        "/api/v1/platforms/../iam/x",
        "/api/v1/platforms/%2e%2e/iam",
        "/api/v1/platforms//x",
        "/api/v1/platforms/a%5cb",
        "/api/v1/platforms/a%5C..%5Ciam",
        "/api/v1/platforms/a%00",
        "/api/v1/platforms/a%0d%0ab",
        "/api/v1/platforms/a%7f",
        "/api/v1/platforms/.%2e/iam",
        "/api/v1/platforms/%2E",
        "/api/v1/platforms/.",
        "/api/v1/platforms/x//",
        "/api/v1/platforms/%2fiam",
        "/api/v1/platforms/;jsessionid=1",
        "/api/v1/platforms/%",
        "/api/v1/platforms/a;b",
        "/api/v1/platforms/%zz",
        "//api/v1/platforms",
    ] {
        let answer = world.get(path).await;
        let refusal = (answer.status.as_u16(), answer.code());
        assert_eq!(refusal, (400, "BAD_REQUEST"), "{path}");
        assert_eq!(
            world.send(anonymous(path).build()).await.status,
            400,
            "{path}"
        );
    }
    assert!(world.received_requests().is_empty());
}

#[tokio::test]
async fn line_37_internal_routes_are_404_for_every_credential() {
    let world = World::new();
    for path in [
        "/api/v1/iam/internal/platform-status",
        "/api/v1/provisioning/internal/platform-status",
        "/api/v1/iam/%69nternal/platform-status",
        "/api/v1/platforms/internal",
    ] {
        let answer = world.get(path).await;
        let refusal = (answer.status.as_u16(), answer.code());
        assert_eq!(refusal, (404, "NOT_FOUND"), "{path}");
    }
    assert!(world.received_requests().is_empty());
}

#[tokio::test]
async fn line_06_health_is_ok_in_plain_text_without_a_credential_and_calls_no_service() {
    let world = World::new();
    let answer = world.send(anonymous("/health").build()).await;
    let answer = answer.expect(200);
    assert_eq!(&answer.bytes[..], b"ok");
    assert!(answer.header("content-type").starts_with("text/plain"));
    assert_eq!(answer.header("ratelimit"), "");
    let head = anonymous("/health").method(Method::HEAD).build();
    let _ = world.send(head).await.expect(200);
    let post = anonymous("/health").method(Method::POST).build();
    let post = world
        .send(post)
        .await
        .expect_error(405, "METHOD_NOT_ALLOWED");
    assert_eq!(post.header("allow"), "GET, HEAD");
    assert!(world.received_requests().is_empty());
    assert_eq!(world.iam.lookups(), 0);
}

#[tokio::test]
async fn line_54_a_gateway_is_ready_until_its_server_is_asked_to_stop() {
    let world = World::new();
    let (stop, stopping) = watch::channel(false);
    let probe = |path| {
        let stopping = Stopping::new(stopping.clone());
        world.send(anonymous(path).extension(stopping).build())
    };
    for (is_stopping, status) in [(false, 200), (true, 503)] {
        stop.send_replace(is_stopping);
        let _ = probe("/readyz").await.expect(status);
        let _ = probe("/livez").await.expect(200);
        let _ = probe("/health").await.expect(200);
    }
    let _ = world.send(anonymous("/readyz").build()).await.expect(200);
    let post = anonymous("/readyz").method(Method::POST).build();
    world
        .send(post)
        .await
        .expect_error(405, "METHOD_NOT_ALLOWED");
    assert!(world.received_requests().is_empty());
}

#[tokio::test(start_paused = true)]
async fn line_54_a_gateway_is_not_ready_while_the_store_of_its_process_fails() {
    let (opened, store) = OpenStore::in_memory(manual_clock()).faulty();
    let world = World::with_store(opened.store);
    for (fails, status) in [(false, 200), (true, 503), (false, 200)] {
        store.fail_from_call(if fails { 1 } else { u32::MAX });
        tokio::time::advance(Duration::from_secs(2)).await;
        let _ = world
            .send(anonymous("/readyz").build())
            .await
            .expect(status);
        for path in ["/livez", "/health"] {
            let _ = world.send(anonymous(path).build()).await.expect(200);
        }
    }
}

#[tokio::test]
async fn line_42_trace_and_connect_are_405() {
    let world = World::new();
    for method in [Method::TRACE, Method::CONNECT] {
        for request in [
            session_request("/api/v1/platforms"),
            // Refused at the door, before authentication.
            anonymous("/api/v1/platforms"),
            anonymous("/health"),
        ] {
            let answer = world
                .send(request.method(method.clone()).build())
                .await
                .expect_error(405, "METHOD_NOT_ALLOWED");
            assert!(answer.header("allow").contains("GET"));
            assert_eq!(answer.header("connection"), "close");
        }
    }
    assert!(world.received_requests().is_empty());
    assert_eq!(world.iam.lookups(), 0);
}

#[tokio::test]
async fn line_44_a_target_longer_than_8_kib_is_414() {
    let world = World::new();
    let path = format!("/api/v1/platforms/{}", "x".repeat(8_192));
    world.get(&path).await.expect_error(414, "URI_TOO_LONG");
}

#[tokio::test]
async fn line_38_absolute_targets_of_another_host_are_never_proxied() {
    let world = World::new();
    let other = session_request("http://other.example/api/v1/platforms");
    assert_eq!(world.send(other.build()).await.status, 400);
    let same = session_request("http://API.example.org/api/v1/platforms");
    assert_eq!(world.send(same.build()).await.status, 200);
    assert_eq!(world.single_request().uri, "/");
}

#[tokio::test]
async fn line_56_a_service_that_is_not_configured_is_503() {
    // This is no error at the start, because a process may run any subset of the services.
    let answer = World::new()
        .get("/api/v1/billing/plans")
        .await
        .expect_error(503, "SERVICE_UNAVAILABLE");
    assert_ne!(answer.header("retry-after"), "");
}

#[tokio::test]
async fn line_35_prefixes_are_whole_segments_and_case_sensitive() {
    let world = World::new();
    for path in [
        "/api/v1/platformsX",
        "/api/v1/platforms-x/p-1",
        "/api/v1/Platforms",
        "/API/v1/platforms",
        "/api/v1/%70latforms",
        "/api/v1",
    ] {
        let answer = world.get(path).await;
        assert_eq!(
            (answer.status.as_u16(), answer.code()),
            (404, "NOT_FOUND"),
            "{path}"
        );
    }
    assert!(world.received_requests().is_empty());
}

#[tokio::test]
async fn line_35_an_empty_query_is_kept() {
    let world = World::new();
    for rest in ["/p-1?", "/p-1??", "/p-1?a", "/p-1?&&"] {
        world.get(&format!("/api/v1/platforms{rest}")).await;
        let seen = world.received_requests();
        assert_eq!(seen.last().unwrap().uri, rest);
    }
    world.get("/api/v1/platforms?limit=1").await;
    let seen = world.received_requests();
    assert_eq!(seen.last().unwrap().uri, "/?limit=1");
}

#[tokio::test]
async fn line_36_double_encoding_is_forwarded_unchanged() {
    let world = World::new();
    let rest = "/%252e%252e/%252F/a%25b/...";
    let _ = world
        .get(&format!("/api/v1/platforms{rest}"))
        .await
        .expect(200);
    assert_eq!(world.single_request().uri, rest);
}

#[tokio::test]
async fn line_37_configured_routes_are_404_in_every_spelling_for_every_credential() {
    let mut config = config();
    config.hidden_routes = vec![
        "/api/v1/iam/api/core/bootstrap".to_owned(),
        "/api/v1/stacks/".to_owned(),
    ];
    let world = World::with(config);
    let with_key = |path| anonymous(path).header("authorization", &format!("Bearer {KEY}"));
    for path in [
        "/api/v1/iam/api/core/bootstrap",
        "/api/v1/iam/api/core/bootstrap/",
        "/api/v1/iam/api/core/bootstrap/x?y",
        "/api/v1/iam/api/core/%62ootstrap",
        "/api/v1/iam/api/core/Bootstrap",
        "/api/v1/stacks",
        "/api/v1/stacks/s-1",
    ] {
        for request in [session_request(path), with_key(path)] {
            let answer = world.send(request.build()).await;
            let refusal = (answer.status.as_u16(), answer.code());
            assert_eq!(refusal, (404, "NOT_FOUND"), "{path}");
        }
        let _ = world.send(anonymous(path).build()).await.expect(401);
    }
    assert!(world.received_requests().is_empty());
    let _ = world
        .get("/api/v1/iam/api/core/bootstraps")
        .await
        .expect(200);
    // The other services have such a path.
    let _ = world
        .get("/api/v1/cli/api/core/bootstrap")
        .await
        .expect(200);
}

#[tokio::test]
async fn line_38_an_absolute_target_never_selects_the_destination() {
    let world = World::new();
    for target in [
        "http://other.example/api/v1/platforms",
        "http://api.example.org:8080/api/v1/platforms",
        "http://user@api.example.org/api/v1/platforms",
        "https://other.example/health",
    ] {
        let answer = world.get(target).await;
        assert_eq!(answer.status, 400, "{target}");
        assert_eq!(answer.header("connection"), "close");
    }
    assert!(world.received_requests().is_empty());
}

#[tokio::test]
async fn line_38_the_asterisk_is_404_for_options_and_400_for_other_methods() {
    let world = World::new();
    let asterisk = |method: Method| world.send(session_request("*").method(method).build());
    asterisk(Method::OPTIONS)
        .await
        .expect_error(404, "NOT_FOUND");
    asterisk(Method::GET).await.expect_error(400, "BAD_REQUEST");
    assert!(world.received_requests().is_empty());
}

#[tokio::test]
async fn line_54_health_and_readiness_do_not_depend_on_the_services() {
    let world = World::new();
    world.set_reply(failing_reply(|| UpstreamError::Broken("down".to_owned())));
    world.iam.reply_to(SESSION, FakeReply::Unavailable);
    let _ = world.get("/api/v1/platforms").await.expect(503);
    for path in ["/health", "/livez", "/readyz"] {
        let _ = world.send(anonymous(path).build()).await.expect(200);
    }
}
