//! The catalogue of infrastructure resources.

use core_domain::kernel::{Environment, Limits, PlatformId, Slug};
use core_domain::registry::{ResourceType, resource_name};
use serde_json::{Value, json};

use crate::world::{
    Answer, PLATFORMS, World, on_every_store, operator, owner, platform_path, resource_body,
    user_without_organization,
};

fn one(platform: &str, resource: &str) -> String {
    platform_path(platform, &format!("/resources/{resource}"))
}

/// Returns a valid body with these fields replaced.
fn body_with(fields: Value) -> Value {
    let mut body = resource_body("engines-db");
    for (field, value) in fields.as_object().unwrap() {
        body[field] = value.clone();
    }
    body
}

impl World {
    async fn enter(&self, platform: &str, entity: &str, body: Value) -> Answer {
        let path = platform_path(platform, &format!("/entities/{entity}/resources"));
        let entered = self.registry.post(&operator(), &path, body).await;
        self.tick(1);
        entered
    }

    /// Moves a resource through these statuses, in order.
    async fn move_through(&self, platform: &str, resource: &str, statuses: &str) {
        for status in statuses.split_whitespace() {
            let moved = self.change(platform, resource, json!({ "status": status }));
            let _ = moved.await.expect(200);
        }
    }

    async fn change(&self, platform: &str, resource: &str, body: Value) -> Answer {
        let path = one(platform, resource);
        self.registry.patch(&operator(), &path, body).await
    }
}

#[tokio::test]
async fn a_new_resource_is_pending_and_its_config_is_stored_unchanged() {
    let world = World::new();
    let platform = world.create_platform("engines").await;
    let entity = world.tenant(&platform, "tenant").await;
    let job = world.provision(&platform).await;
    let config =
        json!({ "big": 9_007_199_254_740_993_i64, "nested": [{ "z": null, "a": 0.1 }], "": "x" });
    let shown = json!({
        "serviceName": "api", "resourceType": "worker", "environment": "stg", "cfName": "engines-api",
        "cfId": "cf1", "cfUrl": "https://api.engines.test/x", "provisionJobId": job, "config": config,
    });
    let entered = world.enter(&platform, &entity, body_with(shown.clone()));
    let entered = entered.await.expect(201);
    let now = "2027-01-15T08:00:02.000Z";
    let mut wanted = json!({
        "id": entered.id(), "platformId": platform, "entityId": entity, "status": "pending",
        "createdAt": now, "updatedAt": now, "deletedAt": null,
    });
    for (field, value) in shown.as_object().unwrap() {
        wanted[field] = value.clone();
    }
    assert_eq!(entered.json, wanted);
    let path = one(&platform, &entered.id());
    let read = world.registry.get(&owner(&platform), &path).await;
    assert_eq!((&read.json, read.header("etag")), (&wanted, "\"1\""));
    let bare = world.enter(&platform, &entity, resource_body("bare")).await;
    let bare = bare.expect(201).json;
    for field in ["cfId", "cfUrl", "provisionJobId", "config"] {
        assert_eq!(bare[field], Value::Null, "{field}");
    }
}

#[tokio::test]
async fn a_status_moves_by_the_table_and_a_refused_change_has_no_effect() {
    const ALL: [&str; 5] = ["pending", "provisioning", "active", "failed", "deleted"];
    let world = World::new();
    let platform = world.create_platform("engines").await;
    let entity = world.tenant(&platform, "tenant").await;
    for (from, way, allowed) in [
        ("pending", "", "provisioning deleted"),
        ("provisioning", "provisioning", "active failed deleted"),
        ("active", "provisioning active", "deleted"),
        ("failed", "provisioning failed", "provisioning deleted"),
    ] {
        for to in ALL {
            let name = format!("{from}-{to}");
            let resource = world.resource(&platform, &entity, &name).await;
            world.move_through(&platform, &resource, way).await;
            let both = json!({ "status": to, "cfId": "x" });
            let answer = world.change(&platform, &resource, both).await;
            if from == to || allowed.split(' ').any(|status| status == to) {
                let changed = answer.expect(200).json;
                let seen = (&changed["status"], changed["deletedAt"].is_string());
                assert_eq!(seen, (&json!(to), to == "deleted"), "{name}");
            } else {
                answer.expect_error(409, "INVALID_STATE");
                let path = one(&platform, &resource);
                let kept = world.registry.get(&operator(), &path).await.json;
                assert_eq!(
                    (&kept["status"], &kept["cfId"]),
                    (&json!(from), &json!(null))
                );
            }
        }
    }
    // Four resources were deleted by a change of their status, and each change is audited as a deletion.
    assert_eq!(world.audit("resource.deleted").await.len(), 4);
}

#[tokio::test]
async fn a_change_sets_clears_and_keeps_fields() {
    let world = World::new();
    let platform = world.create_platform("engines").await;
    let entity = world.tenant(&platform, "tenant").await;
    let resource = world.resource(&platform, &entity, "engines-db").await;
    let job = world.provision(&platform).await;
    let change = async |body| world.change(&platform, &resource, body).await.expect(200);
    let set =
        json!({ "cfId": "a", "cfUrl": "http://x.test/", "config": [1], "provisionJobId": job });
    let changed = change(set.clone()).await;
    for (field, value) in set.as_object().unwrap() {
        assert_eq!(&changed.json[field], value);
    }
    let kept = change(json!({ "cfId": "b" })).await.json;
    let kept = (&kept["cfUrl"], &kept["config"]);
    assert_eq!(kept, (&json!("http://x.test/"), &json!([1])));
    let clear = json!({ "cfId": null, "cfUrl": null, "config": null, "provisionJobId": null });
    let cleared = change(clear.clone()).await;
    for (field, value) in clear.as_object().unwrap() {
        assert_eq!(&cleared.json[field], value);
    }
    assert_eq!(cleared.header("etag"), "\"4\"");
    let same = change(json!({ "status": null })).await;
    assert_eq!(same.header("etag"), "\"4\"");
}

#[tokio::test]
async fn a_config_is_limited_to_64_kib_and_a_job_must_be_of_the_same_platform() {
    let world = World::new();
    let platform = world.create_platform("engines").await;
    let other = world.create_platform("looms").await;
    let entity = world.tenant(&platform, "tenant").await;
    let resource = world.resource(&platform, &entity, "first-db").await;
    let foreign = world.provision(&other).await;
    let both = async |fields: Value| {
        let entered = world.enter(&platform, &entity, body_with(fields.clone()));
        [
            entered.await,
            world.change(&platform, &resource, fields).await,
        ]
    };
    // The quotes of the JSON string count too.
    let settings = |bytes: usize| json!({ "config": "x".repeat(bytes - 2) });
    for refused in both(settings(64 * 1024 + 1)).await {
        let refused = refused.expect_error(400, "VALIDATION_ERROR");
        assert_eq!(refused.issues(), ["config: too_long"]);
    }
    for job in [foreign.as_str(), "nothing"] {
        for refused in both(json!({ "provisionJobId": job })).await {
            refused.expect_error(404, "NOT_FOUND");
        }
    }
    for taken in both(settings(64 * 1024)).await {
        assert!(taken.status.is_success(), "{}", taken.json);
    }
}

async fn a_name_is_unique_per_resource_type_in_a_provider_account(world: World) {
    let mut places = Vec::new();
    for (slug, account) in [
        ("one", None),
        ("two", None),
        ("three", Some("acc")),
        ("four", Some("acc")),
    ] {
        let body = json!({ "name": slug, "slug": slug, "cfAccountId": account });
        let created = world.registry.post(&operator(), PLATFORMS, body).await;
        let platform = created.expect(201).id();
        let entity = world.tenant(&platform, "tenant").await;
        places.push((platform, entity));
    }
    let enter = async |place: usize, kind: &str, environment: &str| {
        let (platform, entity) = &places[place];
        let body = body_with(json!({ "resourceType": kind, "environment": environment }));
        world.enter(platform, entity, body).await
    };
    let first = enter(0, "d1", "prod").await.expect(201).id();
    for (place, kind, environment, free) in [
        (0, "d1", "prod", false),
        (0, "d1", "dev", false),
        (1, "d1", "prod", false),
        (1, "kv", "prod", true),
        (2, "d1", "prod", true),
        (3, "d1", "prod", false),
    ] {
        let answer = enter(place, kind, environment).await;
        if free {
            let _ = answer.expect(201);
        } else {
            answer.expect_error(409, "CONFLICT");
        }
    }
    world.delete_record(&one(&places[0].0, &first)).await;
    let _ = enter(1, "d1", "prod").await.expect(201);
}

on_every_store! { a_name_is_unique_per_resource_type_in_a_provider_account }

#[tokio::test]
async fn a_lookup_by_provider_name_returns_the_newest_accessible_resource() {
    let world = World::new().with_limits(Limits {
        platforms_per_organization: 1_000,
        ..Limits::default()
    });
    let caller = owner("home");
    let first = world.platform_by(&caller, "engines").await;
    let second = world.platform_by(&caller, "second").await;
    let foreign = world.create_platform("looms").await;
    let mut ids = Vec::new();
    for (platform, kind) in [(&second, "kv"), (&first, "d1"), (&foreign, "r2")] {
        let entity = world.tenant(platform, "tenant").await;
        let body = body_with(json!({ "cfName": "engines db", "resourceType": kind }));
        ids.push(world.enter(platform, &entity, body).await.expect(201).id());
    }
    let found = async |caller, path: &str| world.registry.get(&caller, path).await;
    let path = "/api/v1/lookup?cfName=engines%20db";
    for path in [path, "/api/v1/resources/lookup?cfName=engines+db"] {
        let own = found(caller.clone(), path).await.expect(200);
        let newest = found(operator(), path).await.expect(200);
        assert_eq!((own.id(), newest.id()), (ids[0].clone(), ids[2].clone()));
    }
    found(user_without_organization(), path)
        .await
        .expect_error(404, "NOT_FOUND");
    let acting = found(owner(&foreign), path).await.expect(200);
    assert_eq!(acting.id(), ids[2]);
    found(owner("another"), path)
        .await
        .expect_error(404, "NOT_FOUND");
    for bad in ["/api/v1/lookup", "/api/v1/lookup?cfName="] {
        found(operator(), bad)
            .await
            .expect_error(400, "VALIDATION_ERROR");
    }
    // The lookup skips the suspended platform and works with any number of platforms.
    world.change_lifecycle_as_operator(&second, "suspend").await;
    for number in 0..100 {
        let slug = format!("further-{number}");
        world.platform_by(&caller, &slug).await;
    }
    assert_eq!(found(caller.clone(), path).await.expect(200).id(), ids[1]);
    world.delete_record(&one(&first, &ids[1])).await;
    found(caller.clone(), path)
        .await
        .expect_error(404, "NOT_FOUND");
}

#[tokio::test]
async fn a_job_activates_existing_records_in_every_status_and_adds_no_second_one() {
    let world = World::new();
    let platform = world.create_platform("engines").await;
    world.tenant(&platform, "first").await;
    let second = world.tenant(&platform, "second").await;
    let (id, slug) = (
        PlatformId::parse(&platform).unwrap(),
        Slug::parse("engines").unwrap(),
    );
    let mut known = Vec::new();
    for (kind, way) in [
        (ResourceType::D1, ""),
        (ResourceType::Kv, "provisioning"),
        (ResourceType::R2, "provisioning failed"),
        (ResourceType::Queue, "provisioning active"),
        (ResourceType::Worker, "deleted"),
    ] {
        let name = resource_name(&id, &slug, Environment::Prod, kind);
        let fields = json!({ "cfName": name, "resourceType": kind, "config": { "a": 1 } });
        let entered = world.enter(&platform, &second, body_with(fields)).await;
        let resource = entered.expect(201).id();
        world.move_through(&platform, &resource, way).await;
        if way != "deleted" {
            known.push(resource);
        }
    }
    let job = world.provision(&platform).await;
    world.run_jobs().await;
    for resource in &known {
        let path = one(&platform, resource);
        let shown = world.get_record(&path).await;
        let fields = ["status", "provisionJobId", "entityId"].map(|field| shown.text(field));
        assert_eq!(fields, ["active", job.as_str(), second.as_str()]);
        assert_eq!(shown.json["config"], json!({ "a": 1 }));
        let name = shown.text("cfName");
        let known = (shown.text("cfId"), shown.text("cfUrl"));
        assert_eq!(
            known,
            (&*format!("id-of-{name}"), &*format!("http://{name}.test"))
        );
    }
    let listed = platform_path(&platform, "/resources");
    let listed = world.get_record(&listed).await;
    assert_eq!(listed.each("status"), ["active"; 6]);
    let all = platform_path(&platform, "/resources?includeDeleted=true");
    assert_eq!(world.count(&all).await, 7);
}
