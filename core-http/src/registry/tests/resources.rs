//! The catalogue of resources.

use serde_json::{Value, json};

use super::world::{Says, World, at, owner, resource_body};
use crate::kernel::testing::operator;

fn one(platform: &str, resource: &str) -> String {
    at(platform, &format!("/resources/{resource}"))
}

#[tokio::test]
async fn an_entry_is_pending_and_keeps_its_settings_as_they_came() {
    let world = World::new();
    let platform = world.platform("engines").await;
    let entity = world.tenant(&platform, "tenant").await;
    let config =
        json!({ "big": 9_007_199_254_740_993_i64, "nested": [{ "z": null, "a": 0.1 }], "": "x" });
    let body = json!({
        "stackId": "st1", "resourceType": "worker", "serviceName": "api", "environment": "stg", "cfName": "engines-api",
        "cfId": "cf1", "cfUrl": "https://api.engines.test/x", "provisionJobId": "j1", "config": config,
    });
    let path = at(&platform, &format!("/entities/{entity}/resources"));
    let made = world.post(&owner(&platform), &path, body).await.expect(201);
    let now = "2027-01-15T08:00:02.000Z";
    let wanted = json!({
        "id": made.id(), "platformId": platform, "entityId": entity, "serviceName": "api", "resourceType": "worker",
        "environment": "stg", "cfName": "engines-api", "cfId": "cf1", "cfUrl": "https://api.engines.test/x",
        "status": "pending", "provisionJobId": "j1", "config": config, "createdAt": now, "updatedAt": now,
        "deletedAt": null,
    });
    assert_eq!(made.json, wanted);
    let read = world
        .get(&owner(&platform), &one(&platform, &made.id()))
        .await
        .expect(200);
    assert_eq!((&read.json, read.header("etag")), (&wanted, "\"1\""));
    let bare = world
        .post(&owner(&platform), &path, resource_body("bare"))
        .await
        .expect(201);
    for field in ["cfId", "cfUrl", "provisionJobId", "config"] {
        assert_eq!(bare.json[field], Value::Null, "{field}");
    }
}

#[tokio::test]
async fn a_status_moves_as_the_table_says() {
    let moves = [
        ("pending", "provisioning"),
        ("provisioning", "active"),
        ("provisioning", "failed"),
        ("failed", "provisioning"),
        ("pending", "deleted"),
        ("provisioning", "deleted"),
        ("active", "deleted"),
        ("failed", "deleted"),
    ];
    let ways = [
        ("pending", vec![]),
        ("provisioning", vec!["provisioning"]),
        ("active", vec!["provisioning", "active"]),
        ("failed", vec!["provisioning", "failed"]),
    ];
    let world = World::new();
    let platform = world.platform("engines").await;
    let entity = world.tenant(&platform, "tenant").await;
    for (from, way) in &ways {
        for to in ["pending", "provisioning", "active", "failed", "deleted"] {
            let resource = world
                .resource(&platform, &entity, &format!("{from}-{to}"))
                .await;
            let path = one(&platform, &resource);
            for status in way {
                world
                    .patch(&operator(), &path, json!({ "status": status }))
                    .await
                    .expect(200);
            }
            let answer = world
                .patch(&operator(), &path, json!({ "status": to, "cfId": "x" }))
                .await;
            if *from == to || moves.contains(&(from, to)) {
                let changed = answer.expect(200);
                assert_eq!(changed.json["status"], to, "{from}");
                assert_eq!(
                    changed.json["deletedAt"].is_null(),
                    to != "deleted",
                    "{from} {to}"
                );
            } else {
                answer.refused(409, "INVALID_STATE");
                let kept = world.get(&operator(), &path).await.expect(200);
                assert_eq!(
                    (&kept.json["status"], &kept.json["cfId"]),
                    (&json!(from), &Value::Null)
                );
            }
        }
    }
}

#[tokio::test]
async fn a_change_sets_clears_and_keeps() {
    let world = World::new();
    let platform = world.platform("engines").await;
    let entity = world.tenant(&platform, "tenant").await;
    let resource = world.resource(&platform, &entity, "engines-db").await;
    let path = one(&platform, &resource);
    let set =
        json!({ "cfId": "a", "cfUrl": "http://x.test/", "config": [1], "provisionJobId": "j1" });
    let changed = world
        .patch(&operator(), &path, set.clone())
        .await
        .expect(200);
    for (field, value) in set.as_object().unwrap() {
        assert_eq!(&changed.json[field], value);
    }
    let kept = world
        .patch(&operator(), &path, json!({ "cfId": "b" }))
        .await
        .expect(200);
    assert_eq!(
        (&kept.json["cfUrl"], &kept.json["config"]),
        (&json!("http://x.test/"), &json!([1]))
    );
    let clear = json!({ "cfId": null, "cfUrl": null, "config": null, "provisionJobId": null, "status": null });
    let cleared = world.patch(&operator(), &path, clear).await.expect(200);
    for field in ["cfId", "cfUrl", "config", "provisionJobId"] {
        assert_eq!(cleared.json[field], Value::Null, "{field}");
    }
    assert_eq!(cleared.header("etag"), "\"4\"");
    let same = world.patch(&operator(), &path, json!({})).await.expect(200);
    assert_eq!(same.header("etag"), "\"4\"");
}

#[tokio::test]
async fn a_name_means_one_living_thing_per_platform_type_and_environment() {
    let world = World::new();
    let platform = world.platform("engines").await;
    let other = world.platform("looms").await;
    let entity = world.tenant(&platform, "tenant").await;
    let second = world.tenant(&platform, "second").await;
    let there = world.tenant(&other, "tenant").await;
    let first = world.resource(&platform, &entity, "shared").await;
    let of = |entity: &str| at(&platform, &format!("/entities/{entity}/resources"));
    for entity in [&entity, &second] {
        world
            .post(&operator(), &of(entity), resource_body("shared"))
            .await
            .refused(409, "CONFLICT");
    }
    let another = |field: &str, value: &str| {
        let mut body = resource_body("shared");
        body[field] = json!(value);
        body
    };
    world
        .post(&operator(), &of(&entity), another("environment", "dev"))
        .await
        .expect(201);
    world
        .post(&operator(), &of(&entity), another("resourceType", "kv"))
        .await
        .expect(201);
    world.resource(&other, &there, "shared").await;
    let done = world
        .delete(&operator(), &one(&platform, &first))
        .await
        .expect(200);
    assert_eq!(done.json, json!({ "success": true }));
    world
        .delete(&operator(), &one(&platform, &first))
        .await
        .refused(404, "NOT_FOUND");
    world.resource(&platform, &entity, "shared").await;
}

#[tokio::test]
async fn a_lookup_finds_what_lives_among_what_the_caller_reaches() {
    let world = World::new();
    let platform = world.platform("engines").await;
    let other = world.platform("looms").await;
    let entity = world.tenant(&platform, "tenant").await;
    let there = world.tenant(&other, "tenant").await;
    let old = world.resource(&platform, &entity, "engines db").await;
    world
        .delete(&operator(), &one(&platform, &old))
        .await
        .expect(200);
    let path = "/api/v1/lookup?cfName=engines%20db";
    world.get(&operator(), path).await.refused(404, "NOT_FOUND");
    let here = world.resource(&platform, &entity, "engines db").await;
    world
        .get(&owner(&other), path)
        .await
        .refused(404, "NOT_FOUND");
    let theirs = world.resource(&other, &there, "engines db").await;
    for path in [
        path,
        "/api/v1/resources/lookup?cfName=engines+db",
        "/lookup?cfName=engines+db",
    ] {
        assert_eq!(
            world.get(&owner(&platform), path).await.expect(200).id(),
            here
        );
        assert_eq!(
            world.get(&owner(&other), path).await.expect(200).id(),
            theirs
        );
        assert_eq!(world.get(&operator(), path).await.expect(200).id(), theirs);
    }
    world.delete(&operator(), &at(&other, "")).await.expect(200);
}

#[tokio::test]
async fn every_alias_leads_to_the_same_rows() {
    let world = World::new();
    let platform = world.platform("engines").await;
    let entity = world.tenant(&platform, "tenant").await;
    let below = format!("/platforms/{platform}");
    for prefix in ["/api/v1/resources", "/resources"] {
        let of_entity = format!("{prefix}{below}/entities/{entity}/resources");
        let name = format!("by{}", prefix.replace('/', "-"));
        let made = world
            .post(&operator(), &of_entity, resource_body(&name))
            .await
            .expect(201);
        let one = format!("{prefix}{below}/resources/{}", made.id());
        assert_eq!(
            world.get(&operator(), &one).await.expect(200).json,
            made.json
        );
        world
            .patch(&operator(), &one, json!({ "status": "provisioning" }))
            .await
            .expect(200);
        for list in [format!("{prefix}{below}/resources"), of_entity] {
            let listed = world.get(&operator(), &list).await.expect(200);
            assert_eq!(listed.each("id"), [&made.id()], "{list}");
        }
        world.delete(&operator(), &one).await.expect(200);
    }
}
