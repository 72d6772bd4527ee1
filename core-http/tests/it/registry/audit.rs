//! Reading the audit log.

use core_domain::testing::named_uuid;
use core_http::kernel::testing::session_of;
use serde_json::json;

use crate::world::{
    World, api_key, on_every_store, operator, owner, plain_member, platform_path,
    user_without_organization,
};

const AUDIT: &str = "/api/v1/audit";

/// Creates a platform that its owner renames, another platform, and a tenant of the first one. Returns their ids.
async fn renamed_platform(world: &World) -> (String, String, String) {
    let platform = world.create_platform("engines").await;
    let other = world.create_platform("looms").await;
    let entity = world.tenant(&platform, "tenant").await;
    let body = json!({ "name": "Motors" });
    let path = platform_path(&platform, "");
    let renamed = world.registry.patch(&owner(&platform), &path, body).await;
    let _ = renamed.expect(200);
    world.tick(1);
    (platform, other, entity)
}

#[tokio::test]
async fn an_entry_has_its_actor_action_record_credential_and_request() {
    let world = World::new();
    let platform = world.create_platform("engines").await;
    // The address that a client claims in a header is not trusted.
    let headers = [
        ("x-request-id", "req-7"),
        ("user-agent", "test/1"),
        ("x-forwarded-for", "203.0.113.9"),
    ];
    let olga = format!("user olga session {}", session_of("olga"));
    for (caller, who) in [
        (owner(&platform), &*olga),
        (api_key(&platform), "api_key key-1 api_key key-1"),
        (operator(), "service service-key service service-key"),
    ] {
        let (path, body) = (platform_path(&platform, ""), json!({ "name": who }));
        let sent = world.registry.send(&caller, "PATCH", &path, &headers, body);
        let changed = sent.await.expect(200);
        world.tick(1);
        let path = platform_path(&platform, "/audit?action=platform.updated&limit=1");
        let entries = world.registry.get(&caller, &path).await.expect(200);
        let entry = &entries.json["data"][0];
        let who: Vec<_> = who.split(' ').collect();
        let wanted = json!({
            "id": entry["id"], "platformId": platform, "actorType": who[0], "actorId": who[1],
            "action": "platform.updated", "entityType": "platform", "entityId": platform,
            "before": entry["before"], "after": entry["after"], "createdAt": changed.text("updatedAt"),
            "metadata": {
                "requestId": "req-7", "ip": "192.0.2.7", "userAgent": "test/1",
                "credential": { "type": who[2], "id": who[3] },
            },
        });
        assert_eq!(entry, &wanted);
        assert_eq!(entry["after"]["name"], changed.json["name"]);
        assert_ne!(entry["before"]["name"], changed.json["name"]);
    }
}

#[tokio::test]
async fn the_audit_log_of_a_platform_is_filtered_by_action_and_entity() {
    let world = World::new();
    let (platform, _, entity) = renamed_platform(&world).await;
    let of_entity = format!("?entity={entity}");
    for (query, wanted) in [
        ("", "platform.updated entity.created platform.created"),
        ("?action=entity.created", "entity.created"),
        ("?action=platform", ""),
        ("?entity=entity", "entity.created"),
        (&of_entity, "entity.created"),
        ("?entity=platform", "platform.updated platform.created"),
        ("?entity=entity&action=platform.created", ""),
        ("?entity=nothing", ""),
    ] {
        let path = platform_path(&platform, &format!("/audit{query}"));
        let entries = world.registry.get(&plain_member(&platform), &path).await;
        assert_eq!(entries.each("action").join(" "), wanted, "{query}");
        let total = wanted.split_whitespace().count() as u64;
        assert_eq!(entries.total(), Some(total), "{query}");
    }
}

#[tokio::test]
async fn the_audit_log_across_platforms_is_filtered_by_platform_actor_event_and_time() {
    let world = World::new();
    let (platform, other, _) = renamed_platform(&world).await;
    let between = "from=2027-01-15T08:00:01Z&to=2027-01-15T09:00:03%2B01:00";
    let together = format!("platformId={platform}&actorId=olga&eventType=platform");
    for (query, count) in [
        ("", 4),
        (&*format!("platformId={platform}"), 3),
        (&format!("platformId={other}"), 1),
        ("platformId=nothing", 0),
        ("actorId=olga", 1),
        ("actorId=service-key", 3),
        ("eventType=platform", 3),
        ("eventType=platform.created", 2),
        ("eventType=plat", 0),
        // `from` is inclusive, `to` is exclusive.
        ("from=2027-01-15T08:00:01.000Z", 3),
        ("from=2027-01-15T08:00:01.001Z", 2),
        ("to=2027-01-15T08:00:01.000Z", 1),
        (between, 2),
        (&together, 1),
    ] {
        let found = world.count(&format!("{AUDIT}?{query}")).await;
        assert_eq!(found, count, "{query}");
    }
    for bad in ["from=yesterday", "to=2027-13-01T00:00:00Z"] {
        let path = format!("{AUDIT}?{bad}");
        let answer = world.registry.get(&operator(), &path).await;
        answer.expect_error(400, "VALIDATION_ERROR");
    }
}

#[tokio::test]
async fn callers_other_than_operators_see_one_platform_of_their_organization() {
    let world = World::new();
    let (platform, other, _) = renamed_platform(&world).await;
    let second = world.platform_by(&owner(&platform), "second").await;
    let member = plain_member(&platform);
    let ask = async |caller, query: &str| {
        let path = format!("{AUDIT}{query}");
        world.registry.get(&caller, &path).await
    };
    let own = ask(member.clone(), "").await.expect(200);
    assert_eq!(own.each("platformId"), [&platform; 3]);
    let of_second = format!("?platformId={second}");
    let seen = ask(member.clone(), &of_second).await.expect(200);
    assert_eq!(seen.each("platformId"), [&second]);
    for (caller, query) in [
        (member, format!("?platformId={other}")),
        (owner(&other), of_second),
        (user_without_organization(), String::new()),
    ] {
        ask(caller, &query).await.expect_error(404, "NOT_FOUND");
    }
}

async fn reads_are_audited_without_changing_the_totals_of_the_reader(world: World) {
    let (platform, other, _) = renamed_platform(&world).await;
    let of_platform = platform_path(&platform, "/audit");
    let foreign = format!("{AUDIT}?platformId={other}");
    // No platform ever had these ids, so their reads are in the log of the installation.
    let unknown = named_uuid("unknown");
    let of_unknown = [&unknown, "nothing"].map(|id| format!("{AUDIT}?platformId={id}"));
    for (caller, path, entries) in [
        (plain_member(&platform), of_platform.as_str(), Some(3)),
        (owner(&platform), AUDIT, Some(3)),
        (operator(), AUDIT, Some(4)),
        (operator(), &of_unknown[0], Some(0)),
        (operator(), &of_unknown[1], Some(0)),
        (owner(&platform), &foreign, None),
    ] {
        let answer = world.registry.get(&caller, path).await;
        assert_eq!(answer.total(), entries, "{path}");
        world.tick(1);
    }
    let reads = world.audit("audit.read").await;
    let told = reads.iter().rev().map(|read| {
        let read = serde_json::to_value(read).unwrap();
        ["actorId", "entityId", "platformId", "after"].map(|field| read[field].clone())
    });
    let wanted = json!([
        ["mary", platform, platform, { "entries": 3 }],
        ["olga", platform, platform, { "entries": 3 }],
        ["service-key", "all", null, { "entries": 4 }],
        ["service-key", unknown, null, { "entries": 0 }],
        ["service-key", "nothing", null, { "entries": 0 }],
    ]);
    assert_eq!(json!(told.collect::<Vec<_>>()), wanted);
}

on_every_store! { reads_are_audited_without_changing_the_totals_of_the_reader }

#[tokio::test]
async fn the_config_of_a_resource_is_not_stored_in_the_audit_log() {
    let world = World::new();
    let (platform, _, entity) = renamed_platform(&world).await;
    let resource = world.resource(&platform, &entity, "engines-db").await;
    let path = platform_path(&platform, &format!("/resources/{resource}"));
    let body = json!({ "config": { "password": "hunter2" }, "cfId": "cf1" });
    let changed = world.patch_record(&path, body).await;
    assert_eq!(changed.expect(200).json["config"]["password"], "hunter2");
    let entries = world.get_record(AUDIT).await;
    assert!(entries.each("action").contains(&"resource.updated"));
    assert!(!entries.json.to_string().contains("hunter2"));
}
