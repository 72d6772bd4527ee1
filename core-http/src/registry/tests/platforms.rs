//! Making and changing platforms.

use serde_json::{Value, json};

use super::world::{PLATFORMS, Says, World, admin, at, owner};
use crate::kernel::testing::operator;

#[tokio::test]
async fn a_new_platform_is_active_and_what_was_not_said_is_null_or_the_default() {
    let world = World::new();
    let body = json!({ "name": "Engines", "slug": "engines", "repoName": "org/engines" });
    let made = world.post(&operator(), PLATFORMS, body).await.expect(201);
    assert_eq!(made.header("etag"), "\"1\"");
    let id = made.id();
    let instant = "2027-01-15T08:00:00.000Z";
    let wanted = json!({
        "id": id, "name": "Engines", "slug": "engines", "status": "active", "tier": "starter",
        "cfAccountId": null, "repoName": "org/engines", "paymentCustomerId": null, "ownerUserId": null,
        "cancelledAt": null, "cancellationReason": null, "suspendedAt": null, "suspensionReason": null,
        "trialEndsAt": null, "createdAt": instant, "updatedAt": instant, "deletedAt": null,
    });
    assert_eq!(made.json, wanted);
    let read = world.get(&operator(), &at(&id, "")).await.expect(200);
    assert_eq!((&read.json, read.header("etag")), (&wanted, "\"1\""));
    let known = [("if-none-match", "\"1\"")];
    let again = world
        .send(&operator(), "GET", &at(&id, ""), &known, Value::Null)
        .await
        .expect(304);
    assert!(again.bytes.is_empty());
}

#[tokio::test]
async fn a_slug_belongs_to_one_platform_that_is_not_deleted() {
    let world = World::new();
    let first = world.platform("engines").await;
    let again = json!({ "name": "Others", "slug": "engines" });
    world
        .post(&operator(), PLATFORMS, again.clone())
        .await
        .refused(409, "SLUG_TAKEN");
    world
        .post(&operator(), &at(&first, "/cancel"), Value::Null)
        .await
        .expect(200);
    world
        .post(&operator(), PLATFORMS, again.clone())
        .await
        .refused(409, "SLUG_TAKEN");
    world.delete(&operator(), &at(&first, "")).await.expect(200);
    world.post(&operator(), PLATFORMS, again).await.expect(201);
    world
        .post(&operator(), &at(&first, "/restore"), Value::Null)
        .await
        .refused(409, "SLUG_TAKEN");
    let back = json!({ "status": "active" });
    world
        .patch(&operator(), &at(&first, ""), back)
        .await
        .refused(409, "SLUG_TAKEN");
    let still = world.get(&operator(), &at(&first, "")).await.expect(200);
    assert_eq!(still.json["status"], "deleted");
}

#[tokio::test]
async fn the_slug_of_an_open_onboarding_is_taken() {
    let world = World::new();
    let body = json!({ "platformName": "Engines", "slug": "engines" });
    world
        .post(&operator(), "/api/v1/onboarding/start", body)
        .await
        .expect(202);
    let same = json!({ "name": "Others", "slug": "engines" });
    world
        .post(&operator(), PLATFORMS, same)
        .await
        .refused(409, "SLUG_TAKEN");
    world.run_jobs().await;
    let listed = world.get(&operator(), PLATFORMS).await.expect(200);
    assert_eq!(listed.each("slug"), ["engines"]);
}

#[tokio::test]
async fn a_change_changes_what_it_names_and_nothing_else() {
    let world = World::new();
    let platform = world.platform("engines").await;
    let path = at(&platform, "");
    let body =
        json!({ "name": "Looms", "tier": "scale", "cfAccountId": "acc", "repoName": "org/looms" });
    let changed = world
        .patch(&admin(&platform), &path, body)
        .await
        .expect(200);
    assert_eq!(changed.header("etag"), "\"2\"");
    for (field, value) in [
        ("name", "Looms"),
        ("tier", "scale"),
        ("cfAccountId", "acc"),
        ("repoName", "org/looms"),
    ] {
        assert_eq!(changed.json[field], value);
    }
    assert_eq!(changed.json["updatedAt"], "2027-01-15T08:00:01.000Z");
    let cleared = world
        .patch(
            &admin(&platform),
            &path,
            json!({ "repoName": null, "name": null }),
        )
        .await
        .expect(200);
    assert_eq!(
        (&cleared.json["repoName"], &cleared.json["name"]),
        (&Value::Null, &json!("Looms"))
    );
    assert_eq!(cleared.json["cfAccountId"], "acc");
    // Nothing to change: no new version, no entry in the audit.
    let entries =
        world.get(&operator(), &at(&platform, "/audit")).await.json["pagination"]["total"].clone();
    for body in [
        json!({}),
        Value::Null,
        json!({ "tier": "scale", "status": "active" }),
    ] {
        let same = world
            .patch(&admin(&platform), &path, body)
            .await
            .expect(200);
        assert_eq!(same.header("etag"), "\"3\"");
    }
    let now = world.get(&operator(), &at(&platform, "/audit")).await;
    assert_eq!(now.json["pagination"]["total"], entries);
}

#[tokio::test]
async fn a_status_is_set_from_any_other_one_by_whoever_manages_the_platform() {
    let world = World::new();
    for from in ["active", "suspended", "cancelled", "deleted"] {
        for to in ["active", "suspended", "deleted"] {
            let platform = world.platform(&format!("{from}-{to}")).await;
            let path = at(&platform, "");
            match from {
                "active" => {}
                "cancelled" => {
                    world
                        .post(&operator(), &at(&platform, "/cancel"), Value::Null)
                        .await
                        .expect(200);
                }
                status => {
                    world
                        .patch(&operator(), &path, json!({ "status": status }))
                        .await
                        .expect(200);
                }
            }
            let changed = world
                .patch(&owner(&platform), &path, json!({ "status": to }))
                .await
                .expect(200);
            assert_eq!(changed.json["status"], to, "{from}");
            let dates =
                ["suspendedAt", "deletedAt", "cancelledAt"].map(|f| !changed.json[f].is_null());
            assert_eq!(dates[1], to == "deleted", "{from} {to}: {}", changed.json);
            assert!(
                to != "suspended" || dates[0],
                "{from} {to}: {}",
                changed.json
            );
            assert!(
                to != "active" || dates == [false; 3],
                "{from} {to}: {}",
                changed.json
            );
        }
    }
    let platform = world.platform("engines").await;
    let both = json!({ "status": "deleted", "name": "Last", "tier": "scale" });
    let changed = world
        .patch(&owner(&platform), &at(&platform, ""), both)
        .await
        .expect(200);
    assert_eq!(
        (&changed.json["status"], &changed.json["name"]),
        (&json!("deleted"), &json!("Last"))
    );
    let both = json!({ "status": "active", "name": "First" });
    let changed = world
        .patch(&owner(&platform), &at(&platform, ""), both)
        .await
        .expect(200);
    assert_eq!(
        (&changed.json["status"], &changed.json["name"]),
        (&json!("active"), &json!("First"))
    );
    let body = json!({ "status": "suspended" });
    world
        .patch(&admin(&platform), &at(&platform, ""), body)
        .await
        .refused(403, "FORBIDDEN");
}

#[tokio::test]
async fn nothing_of_a_deleted_platform_changes_and_it_can_still_be_read() {
    let world = World::new();
    let platform = world.platform("engines").await;
    let entity = world.tenant(&platform, "tenant").await;
    let resource = world.resource(&platform, &entity, "engines-db").await;
    world
        .delete(&operator(), &at(&platform, ""))
        .await
        .expect(200);
    let deleted = world
        .get(&owner(&platform), &at(&platform, ""))
        .await
        .expect(200);
    assert_eq!(deleted.json["status"], "deleted");
    let of = |rest: &str| at(&platform, rest);
    let resources = format!("/entities/{entity}/resources");
    for (method, path, body) in [
        ("PATCH", of(""), json!({ "name": "X" })),
        ("DELETE", of(""), Value::Null),
        (
            "POST",
            of("/entities"),
            json!({ "name": "E", "slug": "e", "type": "tenant" }),
        ),
        (
            "PATCH",
            of(&format!("/entities/{entity}")),
            json!({ "name": "X" }),
        ),
        ("DELETE", of(&format!("/entities/{entity}")), Value::Null),
        ("POST", of(&resources), super::world::resource_body("x")),
        (
            "PATCH",
            of(&format!("/resources/{resource}")),
            json!({ "cfId": "x" }),
        ),
        ("DELETE", of(&format!("/resources/{resource}")), Value::Null),
    ] {
        let answer = world.send(&operator(), method, &path, &[], body).await;
        assert_eq!(
            (answer.status.as_u16(), answer.code()),
            (409, "INVALID_STATE"),
            "{method} {path}"
        );
    }
    for rest in ["/lifecycle", "/entities", "/resources", "/audit"] {
        world.get(&owner(&platform), &of(rest)).await.expect(200);
    }
}
