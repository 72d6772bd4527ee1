//! Tests of the log stream of a platform.

use core_domain::cli::{LogContent, LogLevel};
use core_domain::kernel::{Caller, PermissionSet};
use core_domain::port::{Infrastructure, ObjectRequest, ResourceRef};
use core_domain::registry::ResourceType;
use core_http::kernel::ServiceOptions;
use serde_json::{Value, json};

use crate::world::{
    Answer, Follower, World, operator, owner, plain_member, platform_path, vouched_for,
};

/// A platform with a worker `acme-api` and a site `acme-web`, beside another platform with the worker `other-api`.
struct LogHarness {
    world: World,
    platform: String,
}

impl LogHarness {
    async fn new() -> Self {
        Self::over(World::new()).await
    }

    async fn over(world: World) -> Self {
        let platform = world.create_platform("engines").await;
        let other = world.create_platform("looms").await;
        let harness = Self { world, platform };
        for (resource_type, name, owner) in [
            (ResourceType::Worker, "acme-api", &harness.platform),
            (ResourceType::Pages, "acme-web", &harness.platform),
            (ResourceType::Kv, "acme-cache", &harness.platform),
            (ResourceType::Worker, "other-api", &other),
        ] {
            let request = ObjectRequest {
                resource: ResourceRef {
                    resource_type,
                    name: name.to_owned(),
                },
                owner: owner.clone(),
                effect_key: name.to_owned(),
                config: json!({}),
            };
            harness.world.provider.create(&request).await.unwrap();
        }
        harness
    }

    /// Writes a console line of an object.
    fn write(&self, resource: &str, text: &str) {
        let content = LogContent::console(LogLevel::Log, text);
        self.world.provider.log(resource, content);
    }

    fn path(&self, query: &str) -> String {
        platform_path(&self.platform, &format!("/logs{query}"))
    }

    async fn refusal(&self, caller: &Caller, query: &str, last: Option<&str>) -> Answer {
        let mut headers = vec![("accept", "text/event-stream")];
        headers.extend(last.map(|last| ("last-event-id", last)));
        let path = self.path(query);
        let cli = &self.world.cli;
        cli.send(caller, "GET", &path, &headers, Value::Null).await
    }

    async fn follower(&self, query: &str, last: Option<&str>) -> Follower {
        let caller = vouched_for(plain_member(&self.platform));
        let last = last.map(|id| ("last-event-id", id));
        let (cli, path) = (&self.world.cli, self.path(query));
        Follower::open(cli, &caller, &path, None, last.as_slice()).await
    }

    /// Returns the ids and texts of the lines of a stream without new lines.
    async fn lines(&self, query: &str, last: Option<&str>) -> Vec<String> {
        let mut follower = self.follower(query, last).await;
        let mut lines = Vec::new();
        while let Some(event) = follower.next().await {
            lines.push(summary(&event));
        }
        lines
    }
}

/// Returns the id of an event, and the text of its line.
fn summary(event: &str) -> String {
    let (id, data) = parse(event);
    assert_eq!(data["id"], id);
    format!("{id} {}", data["text"].as_str().unwrap())
}

fn parse(event: &str) -> (&str, Value) {
    let field = |name| event.lines().find_map(|line| line.strip_prefix(name));
    let data = serde_json::from_str(field("data: ").unwrap()).unwrap();
    (field("id: ").unwrap(), data)
}

#[tokio::test]
async fn existing_lines_of_the_platform_are_sent_and_then_new_ones() {
    let harness = LogHarness::new().await;
    harness.write("acme-api", "one");
    harness.write("other-api", "of another platform");
    let request = LogContent::request("GET", "/a?token=1", 200, 7, Some("192.0.2.1".to_owned()));
    harness.world.provider.log("acme-web", request);
    let mut follower = harness.follower("", None).await;
    let event = follower.next().await.unwrap();
    let wanted = json!({
        "id": "1", "at": "1970-01-01T00:00:00.001Z", "resource": "acme-api",
        "kind": "console", "level": "log", "text": "one",
    });
    assert_eq!(parse(&event), ("1", wanted));
    let event = follower.next().await.unwrap();
    let wanted = json!({
        "id": "3", "at": "1970-01-01T00:00:00.003Z", "resource": "acme-web", "kind": "request",
        "method": "GET", "path": "/a", "status": 200, "durationMs": 7, "clientAddress": "192.0.2.1",
    });
    assert_eq!(parse(&event), ("3", wanted));
    for text in ["new", "newer"] {
        let (event, ()) = tokio::join!(follower.next(), async {
            harness.write("acme-api", text);
        });
        assert!(summary(&event.unwrap()).ends_with(text));
    }
}

#[tokio::test]
async fn tail_resource_and_last_event_id_select_the_existing_lines() {
    let harness = LogHarness::new().await;
    for (resource, text) in [
        ("acme-api", "a"),
        ("acme-web", "b"),
        ("acme-api", "c"),
        ("acme-web", "d"),
        ("other-api", "x"),
    ] {
        harness.write(resource, text);
    }
    for (query, last, wanted) in [
        ("", None, &["1 a", "2 b", "3 c", "4 d"][..]),
        ("&tail=0", None, &[]),
        ("&tail=1", None, &["4 d"]),
        ("&tail=3", None, &["2 b", "3 c", "4 d"]),
        ("&tail=1000", None, &["1 a", "2 b", "3 c", "4 d"]),
        ("&resource=acme-api", None, &["1 a", "3 c"]),
        ("&resource=acme-api&tail=1", None, &["3 c"]),
        ("", Some("0"), &["1 a", "2 b", "3 c", "4 d"]),
        ("&tail=1", Some("2"), &["3 c", "4 d"]),
        ("&resource=acme-web", Some("2"), &["4 d"]),
        ("", Some("4"), &[]),
    ] {
        let query = format!("?follow=false{query}");
        assert_eq!(
            harness.lines(&query, last).await,
            wanted,
            "{query} {last:?}"
        );
    }
}

#[tokio::test]
async fn invalid_queries_and_event_ids_are_refused() {
    let harness = LogHarness::new().await;
    let caller = plain_member(&harness.platform);
    for query in [
        "?tail=1001",
        "?tail=-1",
        "?tail=x",
        "?follow=x",
        "?resource=",
    ] {
        let refused = harness.refusal(&caller, query, None).await;
        refused.expect_error(400, "VALIDATION_ERROR");
    }
    for last in ["", "-1", "one", "99999999999999999999"] {
        let refused = harness.refusal(&caller, "", Some(last)).await;
        refused.expect_error(400, "VALIDATION_ERROR");
    }
}

#[tokio::test]
async fn logs_of_other_platforms_are_reported_as_missing() {
    let harness = LogHarness::new().await;
    let own = plain_member(&harness.platform);
    for resource in ["other-api", "acme-none", "acme-cache"] {
        let query = format!("?resource={resource}");
        for caller in [&own, &operator()] {
            let refused = harness.refusal(caller, &query, None).await;
            refused.expect_error(404, "NOT_FOUND");
        }
    }
    let refused = harness.refusal(&owner("another"), "", None).await;
    refused.expect_error(404, "NOT_FOUND");
}

#[tokio::test]
async fn callers_without_the_permission_to_read_logs_are_refused() {
    let harness = LogHarness::new().await;
    let mut deployer = plain_member(&harness.platform);
    if let Caller::User { membership, .. } = &mut deployer {
        let permissions = PermissionSet::new(["deployment:read", "deployment:create"]);
        membership.as_mut().unwrap().permissions = permissions;
    }
    let refused = harness.refusal(&deployer, "", None).await;
    refused.expect_error(403, "FORBIDDEN");
    let refused = harness.refusal(&Caller::Anonymous, "", None).await;
    refused.expect_error(401, "UNAUTHORIZED");
}

#[tokio::test]
async fn open_log_streams_of_a_caller_are_limited() {
    let world = World::with(|app| {
        app.options = ServiceOptions {
            streams_per_caller: 2,
            ..app.options.clone()
        };
    });
    let harness = LogHarness::over(world).await;
    let first = harness.follower("", None).await;
    let _second = harness.follower("", None).await;
    let caller = vouched_for(plain_member(&harness.platform));
    let refused = harness.refusal(&caller, "", None).await;
    refused.expect_error(429, "RATE_LIMITED");
    drop(first);
    let _third = harness.follower("", None).await;
}

#[tokio::test(start_paused = true)]
async fn the_stream_ends_when_the_platform_is_suspended() {
    let harness = LogHarness::new().await;
    let mut follower = harness.follower("", None).await;
    assert_eq!(follower.next().await.unwrap(), ":\n\n");
    let world = &harness.world;
    let suspended = world.change_lifecycle_as_operator(&harness.platform, "suspend");
    suspended.await;
    harness.write("acme-api", "after the suspension");
    assert_eq!(follower.next().await, None);
}
