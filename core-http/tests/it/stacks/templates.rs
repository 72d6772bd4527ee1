//! Stack templates: creation, changes, and unique names.

use futures_util::future::join_all;
use serde_json::{Value, json};

use super::{STACKS, template};
use crate::world::{World, on_every_store, operator};

#[tokio::test]
async fn a_template_is_shown_and_listed_as_it_was_created() {
    let world = World::new();
    let mut body = template("web");
    body["icon"] = json!("globe");
    let created = world.stacks.post(&operator(), STACKS, body).await;
    let created = created.expect(201);
    assert_eq!(created.json, json!({ "id": created.id() }));
    let wanted = json!({
        "id": created.id(), "name": "web", "display_name": "Web", "description": "A web shop", "icon": "globe",
        "domain": "shops", "latest_version": null, "status": "active",
        "created_at": 1_800_000_000, "updated_at": 1_800_000_000,
    });
    let shown = world.stack("/web").await;
    assert_eq!(
        shown.json,
        json!({ "template": wanted, "latestVersion": null })
    );
    world.tick(1);
    world.create_stack("api").await;
    let listed = world.stack("").await;
    assert_eq!(listed.json["total"], 2);
    assert_eq!(listed.each("name"), ["api", "web"]);
    assert_eq!(listed.json["data"][1], wanted);
}

async fn a_template_name_is_never_reused(world: World) {
    let caller = operator();
    let rivals = (0..4).map(|_| world.stacks.post(&caller, STACKS, template("web")));
    let answers = join_all(rivals).await;
    let created = answers.iter().filter(|answer| answer.status == 201);
    assert_eq!(created.count(), 1);
    let refused = answers.iter().filter(|answer| answer.code() == "CONFLICT");
    assert_eq!(refused.count(), 3);
    let (path, body) = ("/api/v1/stacks/web", json!({ "status": "deprecated" }));
    let _ = world.stacks.patch(&caller, path, body).await.expect(200);
    let again = world.stacks.post(&caller, STACKS, template("web")).await;
    again.expect_error(409, "CONFLICT");
}

on_every_store! { a_template_name_is_never_reused }

#[tokio::test]
async fn a_change_affects_only_the_given_fields() {
    let world = World::new();
    world.create_stack("web").await;
    let mut wanted = world.stack("/web").await.json["template"].clone();
    for (change, field, value) in [
        (
            json!({ "displayName": "Shop" }),
            "display_name",
            json!("Shop"),
        ),
        (
            json!({ "description": "Sells" }),
            "description",
            json!("Sells"),
        ),
        (json!({ "icon": "globe" }), "icon", json!("globe")),
        (json!({ "icon": null }), "icon", Value::Null),
        (
            json!({ "status": "deprecated" }),
            "status",
            json!("deprecated"),
        ),
        (json!({ "status": "active" }), "status", json!("active")),
        (
            json!({ "name": "other", "latestVersion": "9.9.9" }),
            "name",
            json!("web"),
        ),
        (
            json!({ "status": "active", "icon": null }),
            "icon",
            Value::Null,
        ),
    ] {
        world.tick(1);
        let before = world.stack("/web").await;
        let changes = wanted[field] != value;
        wanted[field] = value;
        if changes {
            let now = wanted["updated_at"].as_i64().unwrap();
            let seen = world.clock_seconds();
            assert!(now < seen);
            wanted["updated_at"] = json!(seen);
        }
        let path = "/api/v1/stacks/web";
        let done = world.stacks.patch(&operator(), path, change.clone()).await;
        let done = done.expect(200);
        assert_eq!(done.json, json!({ "ok": true }));
        let shown = world.stack("/web").await;
        assert_eq!(shown.json["template"], wanted, "{change}");
        let tags = [&before, &done, &shown].map(|answer| answer.header("etag"));
        assert_eq!(tags[0] != tags[1], changes, "{change}");
        assert_eq!(tags[1], tags[2], "{change}");
    }
    assert_eq!(world.audit("stack_template.updated").await.len(), 6);
    assert_eq!(world.audit("stack_template.created").await.len(), 1);
}
