//! The names and statuses of the secrets of resources.

use futures_util::future::join_all;
use serde_json::{Value, json};

use crate::world::{Answer, World, on_every_store, operator, owner, platform_path};

async fn platform_with_resource(world: &World) -> (String, String) {
    let platform = world.create_platform("engines").await;
    let entity = world.tenant(&platform, "tenant").await;
    let resource = world.resource(&platform, &entity, "engines-db").await;
    (platform, resource)
}

#[tokio::test]
async fn a_secret_is_recorded_once_and_is_rotated_when_it_is_set_again() {
    let world = World::new();
    let (platform, resource) = platform_with_resource(&world).await;
    let first = world
        .set_secret_status(&platform, &resource, "API_KEY", "missing")
        .await;
    let (first, now) = (first.expect(201), "2027-01-15T08:00:03.000Z");
    let wanted = json!({
        "id": first.id(), "resourceId": resource, "secretName": "API_KEY", "status": "missing",
        "lastSetAt": null, "createdAt": now, "updatedAt": now,
    });
    assert_eq!((&first.json, first.header("etag")), (&wanted, "\"1\""));
    let mut last_set_at = Value::Null;
    for (status, seen) in [
        ("missing", "missing"),
        ("set", "set"),
        ("set", "rotated"),
        ("error", "error"),
        ("set", "set"),
        ("rotated", "rotated"),
        ("set", "rotated"),
        ("missing", "missing"),
    ] {
        let noted = world
            .set_secret_status(&platform, &resource, "API_KEY", status)
            .await;
        let noted = noted.expect(200);
        assert_eq!((noted.id(), noted.text("status")), (first.id(), seen));
        let moves = ["set", "rotated"].contains(&seen);
        assert_eq!(noted.json["lastSetAt"] != last_set_at, moves, "{status}");
        last_set_at = noted.json["lastSetAt"].clone();
    }
    let set = world
        .set_secret_status(&platform, &resource, "Z", "set")
        .await
        .expect(201);
    assert_eq!(set.json["lastSetAt"], set.json["createdAt"]);
    let listed = platform_path(&platform, &format!("/resources/{resource}/secrets"));
    assert_eq!(
        world.get_record(&listed).await.each("secretName"),
        ["Z", "API_KEY"]
    );
}

#[tokio::test]
async fn a_malformed_name_is_a_validation_error_and_a_value_is_never_stored() {
    let world = World::new();
    let (platform, resource) = platform_with_resource(&world).await;
    let note = async |name: &str, body: Value| {
        let path = platform_path(&platform, &format!("/resources/{resource}/secrets/{name}"));
        world.registry.post(&owner(&platform), &path, body).await
    };
    let longest = format!("A{}", "9".repeat(127));
    for bad in [
        "api_key",
        "9A",
        "_A",
        "A-B",
        "A%20",
        "%C3%84",
        &format!("{longest}9"),
    ] {
        let refused = note(bad, json!({ "status": "set" })).await;
        assert_eq!(
            refused.expect_error(400, "VALIDATION_ERROR").issues(),
            ["secretName: pattern"]
        );
    }
    let value = json!({ "status": "set", "value": "hunter2", "secretName": "OTHER" });
    let noted = note(&longest, value).await.expect(201);
    assert_eq!(noted.text("secretName"), longest);
    let entries = world.audit("resource_secret.created").await;
    let told = entries[0].after.as_ref().unwrap().as_str();
    assert!(
        told.contains(&longest) && !told.contains("hunter2"),
        "{told}"
    );
}

#[tokio::test]
async fn the_secrets_of_a_deleted_resource_are_not_shown() {
    let world = World::new();
    let (platform, resource) = platform_with_resource(&world).await;
    world
        .set_secret_status(&platform, &resource, "API_KEY", "set")
        .await;
    world
        .delete_record(&platform_path(&platform, &format!("/resources/{resource}")))
        .await;
    let listed = platform_path(&platform, &format!("/resources/{resource}/secrets"));
    world.assert_missing(&listed).await;
    let (path, body) = (format!("{listed}/API_KEY"), json!({ "status": "set" }));
    let late = world.registry.post(&operator(), &path, body).await;
    late.expect_error(404, "NOT_FOUND");
}

on_every_store! { of_concurrent_first_requests_one_creates_the_secret }

async fn of_concurrent_first_requests_one_creates_the_secret(world: World) {
    let (platform, resource) = platform_with_resource(&world).await;
    let path = platform_path(&platform, &format!("/resources/{resource}/secrets/API_KEY"));
    let noted = (0..4).map(|_| {
        let (api, path, caller) = (world.registry.clone(), path.clone(), owner(&platform));
        tokio::spawn(async move { api.post(&caller, &path, json!({ "status": "set" })).await })
    });
    let answers: Vec<Answer> = join_all(noted)
        .await
        .into_iter()
        .map(Result::unwrap)
        .collect();
    let mut seen: Vec<(u16, &str)> = answers
        .iter()
        .map(|a| (a.status.as_u16(), a.text("status")))
        .collect();
    seen.sort_unstable();
    assert_eq!(
        seen,
        [
            (200, "rotated"),
            (200, "rotated"),
            (200, "rotated"),
            (201, "set")
        ]
    );
}
