use core_domain::gateway::ServiceName;
use http::Method;

use super::world::{World, anonymous, signed};
use crate::kernel::ForwardedPrefix;

#[tokio::test]
async fn each_prefix_reaches_its_service_with_the_whole_prefix_removed() {
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
        .seen()
        .iter()
        .map(|seen| (seen.service, seen.uri.clone()))
        .collect();
    assert_eq!(
        seen,
        [
            (ServiceName::Registry, "/p-1".to_owned()),
            (ServiceName::Registry, "/start".to_owned()),
            (ServiceName::Iam, "/api/auth/get-session".to_owned()),
            (ServiceName::Provisioning, "/jobs".to_owned()),
            (ServiceName::Stacks, "/".to_owned()),
            (ServiceName::Cli, "/platforms/p-1/deploy".to_owned()),
            (ServiceName::Registry, "/".to_owned()),
            (ServiceName::Registry, "/".to_owned()),
            (
                ServiceName::Provisioning,
                "/api/v1/provision/jobs".to_owned()
            ),
        ]
    );
}

#[tokio::test]
async fn the_service_is_told_which_prefix_was_removed() {
    let world = World::new();
    world.get("/api/v1/onboarding/start").await;
    let seen = world.only();
    assert_eq!(
        seen.header("x-forwarded-prefix"),
        Some("/api/v1/onboarding")
    );
    let prefix = seen.extensions.get::<ForwardedPrefix>().unwrap();
    assert_eq!(prefix.0, "/api/v1/onboarding");
}

#[tokio::test]
async fn whoami_reaches_iam_whole() {
    let world = World::new();
    let request = signed("/api/v1/cli/whoami").method(Method::POST);
    assert_eq!(world.send(request.build()).await.status, 200);
    let seen = world.only();
    assert_eq!(
        (seen.service, seen.uri.as_str()),
        (ServiceName::Iam, "/api/v1/cli/whoami")
    );
    assert_eq!(seen.header("x-forwarded-prefix"), None);
}

#[tokio::test]
async fn the_query_and_the_rest_of_the_path_are_kept_byte_for_byte() {
    let world = World::new();
    let rest = "/a%20b/%C3%a9?b=2&a=1&a=%2F+x&empty=&=&%2e%2e/";
    world.get(&format!("/api/v1/platforms{rest}")).await;
    assert_eq!(world.only().uri, rest);
}

#[tokio::test]
async fn a_path_that_could_be_read_in_two_ways_is_400_for_everybody() {
    let world = World::new();
    for path in [
        "/api/v1/platforms/..%2fiam/x",
        "/api/v1/platforms/../iam/x",
        "/api/v1/platforms/%2e%2e/iam",
        "/api/v1/platforms//x",
        "/api/v1/platforms/a%5cb",
        "/api/v1/platforms/a%00",
        "/api/v1/platforms/a;b",
        "/api/v1/platforms/%zz",
        "//api/v1/platforms",
    ] {
        let answer = world.get(path).await;
        assert_eq!(
            (answer.status, answer.code().as_str()),
            (400, "BAD_REQUEST"),
            "{path}"
        );
        assert_eq!(
            world.send(anonymous(path).build()).await.status,
            400,
            "{path}"
        );
    }
    assert!(world.seen().is_empty());
}

#[tokio::test]
async fn internal_routes_are_404_whoever_asks() {
    let world = World::new();
    for path in [
        "/api/v1/iam/internal/platform-status",
        "/api/v1/provisioning/internal/platform-status",
        "/api/v1/iam/%69nternal/platform-status",
        "/api/v1/platforms/internal",
    ] {
        let answer = world.get(path).await;
        assert_eq!(
            (answer.status, answer.code().as_str()),
            (404, "NOT_FOUND"),
            "{path}"
        );
    }
    assert!(world.seen().is_empty());
}

#[tokio::test]
async fn health_is_ok_in_plain_text_for_anybody_and_asks_no_service() {
    let world = World::new();
    let answer = world.send(anonymous("/health").build()).await;
    assert_eq!((answer.status, &answer.body[..]), (200, &b"ok"[..]));
    assert!(
        answer
            .header("content-type")
            .unwrap()
            .starts_with("text/plain")
    );
    assert_eq!(answer.header("ratelimit"), None);
    let post = world
        .send(anonymous("/health").method(Method::POST).build())
        .await;
    assert_eq!(
        (post.status, post.header("allow")),
        (405, Some("GET, HEAD"))
    );
    assert!(world.seen().is_empty());
    assert_eq!(world.iam.asked(), 0);
}

#[tokio::test]
async fn trace_and_connect_are_405() {
    let world = World::new();
    for method in [Method::TRACE, Method::CONNECT] {
        let answer = world
            .send(signed("/api/v1/platforms").method(method).build())
            .await;
        assert_eq!(
            (answer.status, answer.code().as_str()),
            (405, "METHOD_NOT_ALLOWED")
        );
        assert!(answer.header("allow").unwrap().contains("GET"));
    }
    assert!(world.seen().is_empty());
}

#[tokio::test]
async fn a_target_longer_than_8_kib_is_414() {
    let world = World::new();
    let path = format!("/api/v1/platforms/{}", "x".repeat(8_192));
    let answer = world.get(&path).await;
    assert_eq!(
        (answer.status, answer.code().as_str()),
        (414, "URI_TOO_LONG")
    );
}

#[tokio::test]
async fn a_target_on_another_host_is_never_a_way_out() {
    let world = World::new();
    let other = signed("http://other.example/api/v1/platforms");
    assert_eq!(world.send(other.build()).await.status, 400);
    let same = signed("http://API.example.org/api/v1/platforms");
    assert_eq!(world.send(same.build()).await.status, 200);
    assert_eq!(world.only().uri, "/");
}

#[tokio::test]
async fn a_service_that_is_not_there_is_503() {
    let answer = World::new().get("/api/v1/billing/plans").await;
    assert_eq!(
        (answer.status, answer.code().as_str()),
        (503, "SERVICE_UNAVAILABLE")
    );
    assert!(answer.header("retry-after").is_some());
}
