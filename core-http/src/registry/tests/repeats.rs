//! The same request again, and two at once.

use core_domain::kernel::Caller;
use serde_json::{Value, json};

use super::world::{PLATFORMS, Says, World, admin, at, owner, resource_body};
use crate::kernel::testing::{Answer, operator};

struct Write {
    method: &'static str,
    path: String,
    body: Value,
    other: Value,
}

/// Every write of the table, in an order in which all of them succeed.
async fn writes(world: &World) -> Vec<Write> {
    let platform = world.platform("engines").await;
    let entity = world.tenant(&platform, "tenant").await;
    let leaf = world.tenant(&platform, "leaf").await;
    let resource = world.resource(&platform, &entity, "engines-db").await;
    let write = |method, path: String, body: Value, other: Value| Write {
        method,
        path,
        body,
        other,
    };
    let of = |rest: &str| at(&platform, rest);
    let (why, else_why) = (json!({ "reason": "a" }), json!({ "reason": "b" }));
    let entity_body = |slug: &str| json!({ "name": "E", "slug": slug, "type": "tenant" });
    let named = |name: &str| json!({ "name": name });
    let none = Value::Null;
    let start = |slug: &str| json!({ "platformName": "P", "slug": slug });
    vec![
        write(
            "POST",
            PLATFORMS.to_owned(),
            json!({ "name": "P", "slug": "p" }),
            json!({ "name": "P", "slug": "q" }),
        ),
        write("PATCH", of(""), named("A"), named("B")),
        write("POST", of("/entities"), entity_body("a"), entity_body("b")),
        write(
            "PATCH",
            of(&format!("/entities/{entity}")),
            named("A"),
            named("B"),
        ),
        write(
            "DELETE",
            of(&format!("/entities/{leaf}")),
            none.clone(),
            none.clone(),
        ),
        write(
            "POST",
            of(&format!("/entities/{entity}/resources")),
            resource_body("a"),
            resource_body("b"),
        ),
        write(
            "PATCH",
            of(&format!("/resources/{resource}")),
            json!({ "cfId": "a" }),
            json!({ "cfId": "b" }),
        ),
        write(
            "DELETE",
            of(&format!("/resources/{resource}")),
            none.clone(),
            none.clone(),
        ),
        write("POST", of("/suspend"), why.clone(), else_why.clone()),
        write("POST", of("/restore"), why.clone(), else_why.clone()),
        write("POST", of("/cancel"), why.clone(), else_why.clone()),
        write("DELETE", of(""), none.clone(), none),
        write("POST", of("/delete"), why, else_why),
        write(
            "POST",
            "/api/v1/onboarding/start".to_owned(),
            start("a"),
            start("b"),
        ),
    ]
}

async fn keyed(world: &World, caller: &Caller, write: &Write, key: &str, body: &Value) -> Answer {
    let headers = [("idempotency-key", key)];
    world
        .send(caller, write.method, &write.path, &headers, body.clone())
        .await
}

#[tokio::test]
async fn every_write_repeated_with_its_key_answers_the_same_and_does_nothing() {
    let world = World::new();
    let writes = writes(&world).await;
    let in_table = world
        .service
        .endpoints()
        .iter()
        .filter(|row| row.method() != http::Method::GET);
    assert_eq!(writes.len(), in_table.count(), "every write of the table");
    for (number, write) in writes.iter().enumerate() {
        let what = format!("{} {}", write.method, write.path);
        let key = format!("key-{number}");
        let first = keyed(&world, &operator(), write, &key, &write.body).await;
        assert!(first.status.is_success(), "{what}: {}", first.json);
        assert_eq!(first.header("idempotency-replayed"), "");
        let audit =
            world.get(&operator(), "/api/v1/audit").await.json["pagination"]["total"].clone();
        let again = keyed(
            &world,
            &operator(),
            write,
            &format!("\"{key}\""),
            &write.body,
        )
        .await;
        assert_eq!(
            (again.status, &again.json),
            (first.status, &first.json),
            "{what}"
        );
        assert_eq!(again.header("idempotency-replayed"), "true", "{what}");
        let now = world.get(&operator(), "/api/v1/audit").await.json["pagination"]["total"].clone();
        assert_eq!(audit, now, "{what}");
        if !write.other.is_null() {
            let reused = keyed(&world, &operator(), write, &key, &write.other).await;
            assert_eq!(
                (reused.status.as_u16(), reused.code()),
                (422, "IDEMPOTENCY_KEY_REUSED"),
                "{what}"
            );
        }
        world.tick(1);
    }
}

#[tokio::test]
async fn a_key_belongs_to_its_caller_and_its_path_for_a_day_and_refusals_of_the_request_itself_are_not_kept()
 {
    let world = World::new();
    let platform = world.platform("engines").await;
    let entities = Write {
        method: "POST",
        path: at(&platform, "/entities"),
        body: json!({ "name": "E", "slug": "a", "type": "tenant" }),
        other: json!({ "name": "E", "slug": "b", "type": "tenant" }),
    };
    let bad = json!({ "name": "E", "slug": "Not A Slug", "type": "tenant" });
    keyed(&world, &owner(&platform), &entities, "k", &bad)
        .await
        .refused(400, "VALIDATION_ERROR");
    keyed(&world, &owner(&platform), &entities, "k", &entities.body)
        .await
        .expect(201);
    keyed(&world, &admin(&platform), &entities, "k", &entities.other)
        .await
        .expect(201);
    // A refusal for what is stored is an answer as any other.
    let taken = keyed(
        &world,
        &owner(&platform),
        &entities,
        "taken",
        &entities.other,
    )
    .await;
    let taken = taken.refused(409, "SLUG_TAKEN");
    let again = keyed(
        &world,
        &owner(&platform),
        &entities,
        "taken",
        &entities.other,
    )
    .await;
    assert_eq!(
        (again.header("idempotency-replayed"), &again.json),
        ("true", &taken.json)
    );
    world.tick(86_400);
    keyed(&world, &owner(&platform), &entities, "k", &entities.body)
        .await
        .refused(409, "SLUG_TAKEN");
}

#[tokio::test]
async fn a_change_names_the_version_it_was_made_for() {
    let world = World::new();
    let platform = world.platform("engines").await;
    let entity = world.tenant(&platform, "tenant").await;
    let resource = world.resource(&platform, &entity, "engines-db").await;
    let records = [
        (
            at(&platform, &format!("/resources/{resource}")),
            json!({ "cfId": "a" }),
            json!({ "cfId": "b" }),
        ),
        (
            at(&platform, &format!("/entities/{entity}")),
            json!({ "name": "A" }),
            json!({ "name": "B" }),
        ),
        (
            at(&platform, ""),
            json!({ "name": "A" }),
            json!({ "name": "B" }),
        ),
    ];
    for (path, first, second) in records {
        let seen = world.get(&operator(), &path).await.expect(200);
        let tag = seen.header("etag").to_owned();
        let changed = world
            .send(&operator(), "PATCH", &path, &[("if-match", &tag)], first)
            .await
            .expect(200);
        assert_ne!(changed.header("etag"), tag);
        for method in ["PATCH", "DELETE"] {
            let body = if method == "PATCH" {
                second.clone()
            } else {
                Value::Null
            };
            let late = world
                .send(&operator(), method, &path, &[("if-match", &tag)], body)
                .await;
            assert_eq!(
                (late.status.as_u16(), late.code()),
                (412, "VERSION_CONFLICT"),
                "{method} {path}"
            );
        }
        let tag = changed.header("etag").to_owned();
        world
            .send(
                &operator(),
                "DELETE",
                &path,
                &[("if-match", &tag)],
                Value::Null,
            )
            .await
            .expect(200);
    }
}

#[tokio::test]
async fn of_two_changes_for_the_same_version_one_wins() {
    for _ in 0..20 {
        let world = World::new();
        let platform = world.platform("engines").await;
        let entity = world.tenant(&platform, "tenant").await;
        let resource = world.resource(&platform, &entity, "engines-db").await;
        for (path, field) in [
            (at(&platform, ""), "name"),
            (at(&platform, &format!("/entities/{entity}")), "name"),
            (at(&platform, &format!("/resources/{resource}")), "cfId"),
        ] {
            let caller = operator();
            let match_one = [("if-match", "\"1\"")];
            let (a, b) = tokio::join!(
                world.send(&caller, "PATCH", &path, &match_one, json!({ field: "a" })),
                world.send(&caller, "PATCH", &path, &match_one, json!({ field: "b" })),
            );
            let mut statuses = [a.status.as_u16(), b.status.as_u16()];
            statuses.sort_unstable();
            assert_eq!(statuses, [200, 412], "{path}");
            let kept = world.get(&operator(), &path).await;
            let winner = if a.status.is_success() { "a" } else { "b" };
            assert_eq!(
                (&kept.json[field], kept.header("etag")),
                (&json!(winner), "\"2\"")
            );
        }
    }
}

#[tokio::test]
async fn of_two_creations_of_the_same_thing_one_wins() {
    for _ in 0..20 {
        let world = World::new();
        let platform = world.platform("engines").await;
        let entity = world.tenant(&platform, "tenant").await;
        let caller = operator();
        for (path, body, code) in [
            (
                PLATFORMS.to_owned(),
                json!({ "name": "P", "slug": "p" }),
                "SLUG_TAKEN",
            ),
            (
                at(&platform, "/entities"),
                json!({ "name": "E", "slug": "e", "type": "tenant" }),
                "SLUG_TAKEN",
            ),
            (
                at(&platform, &format!("/entities/{entity}/resources")),
                resource_body("x"),
                "CONFLICT",
            ),
            (
                "/api/v1/onboarding/start".to_owned(),
                json!({ "platformName": "O", "slug": "o" }),
                "SLUG_TAKEN",
            ),
        ] {
            let (a, b) = tokio::join!(
                world.post(&caller, &path, body.clone()),
                world.post(&caller, &path, body.clone()),
            );
            let (won, lost) = if a.status.is_success() {
                (a, b)
            } else {
                (b, a)
            };
            assert!(won.status.is_success(), "{path}: {}", won.json);
            lost.refused(409, code);
        }
    }
}
