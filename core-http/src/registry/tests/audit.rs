//! Reading the audit.

use serde_json::{Value, json};

use super::world::{Says, World, at, owner};
use crate::kernel::testing::operator;

async fn told(world: &World) -> (String, String, String) {
    let platform = world.platform("engines").await;
    let other = world.platform("looms").await;
    let entity = world.tenant(&platform, "tenant").await;
    let caller = owner(&platform);
    // What a client says about its address is not believed.
    let headers = [
        ("x-request-id", "req-7"),
        ("user-agent", "test/1"),
        ("x-forwarded-for", "203.0.113.9"),
    ];
    let body = json!({ "reason": "late" });
    world
        .send(&caller, "POST", &at(&platform, "/suspend"), &headers, body)
        .await
        .expect(200);
    world.tick(1);
    (platform, other, entity)
}

#[tokio::test]
async fn an_entry_says_who_did_what_to_which_thing_for_which_request() {
    let world = World::new();
    let (platform, _, _) = told(&world).await;
    let path = at(&platform, "/audit?action=platform.suspended");
    let entries = world.get(&owner(&platform), &path).await.expect(200);
    let entry = &entries.json["data"][0];
    let wanted = [
        ("platformId", json!(platform)),
        ("actorId", json!("olga")),
        ("actorType", json!("user")),
        ("action", json!("platform.suspended")),
        ("entityType", json!("platform")),
        ("entityId", json!(platform)),
        ("createdAt", json!("2027-01-15T08:00:03.000Z")),
    ];
    for (field, value) in wanted {
        assert_eq!(entry[field], value, "{field}");
    }
    assert_eq!(
        (&entry["before"]["status"], &entry["after"]["status"]),
        (&json!("active"), &json!("suspended"))
    );
    assert_eq!(
        entry["metadata"],
        json!({ "requestId": "req-7", "ip": "192.0.2.7", "userAgent": "test/1" })
    );
}

#[tokio::test]
async fn the_audit_of_a_platform_is_filtered_by_action_and_by_thing() {
    let world = World::new();
    let (platform, _, entity) = told(&world).await;
    for (query, wanted) in [
        (
            "",
            vec!["platform.suspended", "entity.created", "platform.created"],
        ),
        ("?action=entity.created", vec!["entity.created"]),
        ("?action=platform", vec![]),
        ("?entity=entity", vec!["entity.created"]),
        (&format!("?entity={entity}"), vec!["entity.created"]),
        (
            "?entity=platform&action=platform.created",
            vec!["platform.created"],
        ),
        ("?entity=nothing", vec![]),
    ] {
        let entries = world
            .get(&owner(&platform), &at(&platform, &format!("/audit{query}")))
            .await
            .expect(200);
        let mut actions = entries.each("action");
        let mut wanted = wanted;
        actions.sort_unstable();
        wanted.sort_unstable();
        assert_eq!(actions, wanted, "{query}");
        assert_eq!(entries.json["pagination"]["total"], wanted.len(), "{query}");
    }
}

#[tokio::test]
async fn the_audit_across_platforms_is_filtered_by_platform_actor_event_and_time() {
    let world = World::new();
    let (platform, other, _) = told(&world).await;
    let count = async |query: &str| {
        let answer = world
            .get(&operator(), &format!("/api/v1/audit{query}"))
            .await
            .expect(200);
        answer.json["pagination"]["total"].as_u64().unwrap()
    };
    assert_eq!(count("").await, 4);
    assert_eq!(count(&format!("?platformId={platform}")).await, 3);
    assert_eq!(count(&format!("?platformId={other}")).await, 1);
    assert_eq!(count("?platformId=nothing").await, 0);
    assert_eq!(count("?actorId=olga").await, 1);
    assert_eq!(count("?actorId=service-key").await, 3);
    assert_eq!(count("?eventType=platform").await, 3);
    assert_eq!(count("?eventType=platform.created").await, 2);
    assert_eq!(count("?eventType=plat").await, 0);
    // From is inclusive, to is not.
    assert_eq!(count("?from=2027-01-15T08:00:01.000Z").await, 3);
    assert_eq!(count("?from=2027-01-15T08:00:01.001Z").await, 2);
    assert_eq!(count("?to=2027-01-15T08:00:01.000Z").await, 1);
    assert_eq!(
        count("?from=2027-01-15T08:00:01Z&to=2027-01-15T09:00:03%2B01:00").await,
        2
    );
    assert_eq!(
        count(&format!(
            "?platformId={platform}&actorId=olga&eventType=platform"
        ))
        .await,
        1
    );
}

#[tokio::test]
async fn whoever_is_no_operator_sees_the_audit_of_what_they_reach_alone() {
    let world = World::new();
    let (platform, other, _) = told(&world).await;
    let own = world
        .get(&owner(&platform), "/api/v1/audit")
        .await
        .expect(200);
    assert_eq!(own.json["pagination"]["total"], 3);
    let foreign = format!("/api/v1/audit?platformId={other}");
    world
        .get(&owner(&platform), &foreign)
        .await
        .refused(404, "NOT_FOUND");
}

#[tokio::test]
async fn no_settings_of_a_resource_are_kept_in_the_audit() {
    let world = World::new();
    let (platform, _, _) = told(&world).await;
    world
        .post(&operator(), &at(&platform, "/restore"), Value::Null)
        .await
        .expect(200);
    let entity = world.tenant(&platform, "second").await;
    let resource = world.resource(&platform, &entity, "engines-db").await;
    let path = at(&platform, &format!("/resources/{resource}"));
    let body = json!({ "config": { "password": "hunter2" }, "cfId": "cf1" });
    world.patch(&operator(), &path, body).await.expect(200);
    let entries = world.get(&operator(), "/api/v1/audit").await.expect(200);
    assert!(entries.each("action").contains(&"resource.updated"));
    assert!(!entries.json.to_string().contains("hunter2"));
}
