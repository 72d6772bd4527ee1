//! Stack versions: publication, deprecation, and validation of definitions.

use futures_util::future::join_all;
use serde_json::{Value, json};

use crate::world::{World, on_every_store, operator};

#[tokio::test]
async fn a_definition_is_stored_unchanged_and_its_digest_is_the_entity_tag() {
    let world = World::new();
    for name in ["web", "api"] {
        world.create_stack(name).await;
    }
    let given: Value =
        serde_json::from_str(r#"{"b":9007199254740993,"a":{"y":null,"x":[1,2.5,"é"]}}"#).unwrap();
    let published = world.publish("web", "1.0.0", &given).await.expect(201);
    world.tick(1);
    let shown = world.stack("/web/1.0.0").await;
    let template = world.stack("/web").await.json["template"]["id"].clone();
    let text = shown.text("stack_definition");
    assert_eq!(serde_json::from_str::<Value>(text).unwrap(), given);
    let wanted = json!({
        "id": published.id(), "template_id": template, "version": "1.0.0", "stack_definition": text,
        "core_sdk_version": "1.0.0", "status": "active", "published_at": 1_800_000_000, "created_at": 1_800_000_000,
    });
    assert_eq!(shown.json, wanted);
    let tag = shown.header("etag");
    assert_eq!((tag, tag.len()), (published.header("etag"), 66));
    // The digest does not depend on the order of the keys.
    let same = serde_json::from_str(r#"{"a":{"x":[1,2.5,"é"],"y":null},"b":9007199254740993}"#);
    let same = world.publish("api", "1.0.0", &same.unwrap()).await;
    assert_eq!(same.expect(201).header("etag"), tag);
    let other = world.publish("api", "1.0.1", &json!({ "b": 1 })).await;
    assert_ne!(other.expect(201).header("etag"), tag);
    let entry = world.audit("stack_version.published").await.pop().unwrap();
    let after = entry.after.unwrap().value();
    assert_eq!(format!("\"{}\"", after["digest"].as_str().unwrap()), tag);
    assert!(after.get("stack_definition").is_none());
}

#[tokio::test]
async fn versions_are_listed_by_precedence_and_every_change_updates_the_latest() {
    let world = World::new();
    world.create_stack("web").await;
    let latest = async |wanted: &str| {
        world.tick(1);
        let shown = world.stack("/web").await;
        assert_eq!(shown.json["template"]["latest_version"], wanted);
        assert_eq!(shown.json["latestVersion"]["version"], wanted);
        let changed = shown.json["template"]["updated_at"].as_i64().unwrap();
        assert_eq!(changed, world.clock_seconds() - 1);
        shown.header("etag").to_owned()
    };
    let mut tags = Vec::new();
    for (version, wanted) in [
        ("1.0.0-rc.1", "1.0.0-rc.1"),
        ("1.10.0-beta", "1.10.0-beta"),
        ("1.2.0", "1.2.0"),
        ("1.10.0", "1.10.0"),
        ("1.9.0", "1.10.0"),
    ] {
        let published = world.publish("web", version, &json!({})).await;
        let _ = published.expect(201);
        tags.push(latest(wanted).await);
    }
    let listed = world.stack("/web/versions").await;
    let sorted = ["1.10.0", "1.10.0-beta", "1.9.0", "1.2.0", "1.0.0-rc.1"];
    assert_eq!(listed.each("version"), sorted);
    assert_eq!(listed.json["total"], 5);
    for (version, wanted) in [
        ("1.10.0", "1.9.0"),
        ("1.9.0", "1.2.0"),
        ("1.2.0", "1.10.0-beta"),
        ("1.10.0-beta", "1.0.0-rc.1"),
        ("1.0.0-rc.1", "1.10.0"),
    ] {
        world.deprecate("web", version).await;
        tags.push(latest(wanted).await);
    }
    tags.dedup();
    assert_eq!(
        tags.len(),
        10,
        "each change gives the template a new entity tag"
    );
    assert_eq!(world.stack("/web/1.2.0").await.text("status"), "deprecated");
}

async fn a_version_is_published_once_in_any_spelling_even_after_its_deprecation(world: World) {
    world.create_stack("web").await;
    let definition = json!({});
    let rivals = (0..4).map(|_| world.publish("web", "1.0.0", &definition));
    let answers = join_all(rivals).await;
    let published = answers.iter().filter(|answer| answer.status == 201);
    assert_eq!(published.count(), 1);
    let refused = answers.iter().filter(|answer| answer.code() == "CONFLICT");
    assert_eq!(refused.count(), 3);
    assert_eq!(world.stack("/web/01.0.0").await.text("version"), "1.0.0");
    // The second deprecation has no effect.
    for version in ["1.0.0", "01.0.0"] {
        world.deprecate("web", version).await;
        let again = world.publish("web", version, &definition).await;
        again.expect_error(409, "CONFLICT");
    }
    for action in ["stack_version.published", "stack_version.deprecated"] {
        assert_eq!(world.audit(action).await.len(), 1, "{action}");
    }
}

on_every_store! { a_version_is_published_once_in_any_spelling_even_after_its_deprecation }

#[tokio::test]
async fn a_deprecated_template_accepts_no_versions_until_it_is_active_again() {
    let world = World::new();
    world.create_stack("web").await;
    for (status, published) in [("deprecated", false), ("active", true)] {
        let (path, body) = ("/api/v1/stacks/web", json!({ "status": status }));
        let _ = world
            .stacks
            .patch(&operator(), path, body)
            .await
            .expect(200);
        let answer = world.publish("web", "1.0.0", &json!({})).await;
        if published {
            let _ = answer.expect(201);
        } else {
            let refused = answer.expect_error(409, "INVALID_STATE");
            let details = json!({ "status": "deprecated", "allowedFrom": ["active"] });
            assert_eq!(refused.json["error"]["details"], details);
        }
    }
}

#[tokio::test]
async fn the_known_keys_of_a_definition_are_validated_and_every_issue_has_a_path() {
    let world = World::new();
    world.create_stack("web").await;
    for (definition, issues) in [
        (
            json!({ "resources": [{ "name": "Db", "type": "disk" }, {}], "apps": {} }),
            vec![
                "stackDefinition.apps: invalid_type",
                "stackDefinition.resources.0.name: pattern",
                "stackDefinition.resources.0.type: invalid_enum",
                "stackDefinition.resources.1.name: required",
                "stackDefinition.resources.1.type: required",
            ],
        ),
        (
            json!({ "resources": [
                { "name": "api", "type": "worker", "bindings": [{ "name": "DB", "resource": "db" }] },
                { "name": "api", "type": "kv" },
            ] }),
            vec![
                "stackDefinition.resources.0.bindings.0.resource: unknown_resource",
                "stackDefinition.resources.1.name: duplicate",
            ],
        ),
    ] {
        let refused = world.publish("web", "1.0.0", &definition).await;
        let refused = refused.expect_error(400, "VALIDATION_ERROR");
        assert_eq!(refused.issues(), issues);
    }
}

#[tokio::test]
async fn a_definition_has_at_most_256_kib() {
    let world = World::new();
    world.create_stack("web").await;
    let of_bytes = |bytes: usize| json!({ "a": "x".repeat(bytes - 8) });
    let largest = world.publish("web", "1.0.0", &of_bytes(256 * 1024)).await;
    let _ = largest.expect(201);
    let larger = world
        .publish("web", "1.0.1", &of_bytes(256 * 1024 + 1))
        .await;
    let refused = larger.expect_error(400, "VALIDATION_ERROR");
    assert_eq!(refused.issues(), ["stackDefinition: too_long"]);
}

#[tokio::test]
async fn the_pages_of_a_list_of_large_versions_are_limited_to_about_a_mebibyte() {
    let world = World::new();
    world.create_stack("web").await;
    let definition = json!({ "text": "x".repeat(200 * 1024) });
    for patch in 0..12 {
        let number = format!("1.0.{patch}");
        let published = world.publish("web", &number, &definition);
        let _ = published.await.expect(201);
    }
    let (mut numbers, mut path) = (Vec::new(), "/web/versions".to_owned());
    let mut pages = 0;
    loop {
        let page = world.stack(&path).await;
        assert_eq!(page.json["total"], 12);
        assert!(page.json.to_string().len() < 1_100 * 1024);
        let data = page.json["data"].as_array().unwrap();
        numbers.extend(data.iter().map(|version| version["version"].clone()));
        pages += 1;
        match page.json["cursor"].as_str() {
            Some(cursor) => path = format!("/web/versions?cursor={cursor}"),
            None => break,
        }
    }
    let expected: Vec<Value> = (0..12).rev().map(|n| json!(format!("1.0.{n}"))).collect();
    assert_eq!((pages, numbers), (3, expected));
}
