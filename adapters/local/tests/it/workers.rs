//! Tests of worker bundles.

use core_domain::port::{Infrastructure, ObjectRequest, ProviderError};
use core_domain::registry::ResourceType;
use serde_json::{Value, json};

use crate::support::{World, request, script, world};

fn worker(config: Value) -> ObjectRequest {
    ObjectRequest {
        config,
        ..request(ResourceType::Worker, "acme-api")
    }
}

fn versions(world: &World) -> usize {
    let folder = world.folder.path().join("infra/worker/acme-api/versions");
    std::fs::read_dir(folder).unwrap().count()
}

#[tokio::test]
async fn each_distinct_script_is_one_version() {
    let world = world().await;
    let (one, two) = (script("one", &json!([])), script("two", &json!([])));
    let made = world.infra.create(&worker(one.clone())).await.unwrap();
    let first = world.infra.worker("acme-api").await.unwrap().unwrap();
    assert_eq!(first.script.modules["index.js"], "one");

    let again = world.infra.create(&worker(two.clone())).await.unwrap();
    assert_eq!(again, made, "it is the same worker");
    let second = world.infra.worker("acme-api").await.unwrap().unwrap();
    assert_eq!(second.script.modules["index.js"], "two");
    assert_ne!(first.version, second.version);

    world.infra.create(&worker(two)).await.unwrap();
    assert_eq!(versions(&world), 2);
    world.infra.create(&worker(one)).await.unwrap();
    assert_eq!(
        world.infra.worker("acme-api").await.unwrap().unwrap(),
        first
    );
    assert_eq!(versions(&world), 2);
}

#[tokio::test]
async fn modules_and_bindings_survive_a_restart() {
    let world = world().await;
    world
        .infra
        .create(&request(ResourceType::D1, "acme-db"))
        .await
        .unwrap();
    let config = json!({
        "mainModule": "src/index.js",
        "modules": { "src/index.js": "import './lib/a.js'", "src/lib/a.js": "export {}" },
        "bindings": [{ "name": "DB", "type": "d1", "resource": "acme-db" }],
    });
    world.infra.create(&worker(config.clone())).await.unwrap();
    let world = world.reopen().await;
    let stored = world.infra.worker("acme-api").await.unwrap().unwrap();
    assert_eq!(serde_json::to_value(stored.script).unwrap(), config);
}

#[tokio::test]
async fn binding_must_refer_to_an_object_of_the_same_owner() {
    let world = world().await;
    let mut foreign = request(ResourceType::D1, "other-db");
    foreign.owner = "platform-2".to_owned();
    world.infra.create(&foreign).await.unwrap();
    for target in ["acme-none", "other-db", "../etc"] {
        let bindings = json!([{ "name": "DB", "type": "d1", "resource": target }]);
        let refused = world.infra.create(&worker(script("x", &bindings))).await;
        assert!(
            matches!(refused, Err(ProviderError::Permanent(_))),
            "{target}"
        );
    }
    assert_eq!(world.infra.worker("acme-api").await.unwrap(), None);
}

#[tokio::test]
async fn invalid_worker_settings_are_refused_permanently() {
    let world = world().await;
    world
        .infra
        .create(&request(ResourceType::Kv, "acme-cache"))
        .await
        .unwrap();
    let binding = |name: &str| json!({ "name": name, "type": "kv", "resource": "acme-cache" });
    for config in [
        json!({}),
        json!(null),
        json!({ "mainModule": "a.js", "modules": {} }),
        json!({ "mainModule": "a.js", "modules": { "b.js": "" } }),
        json!({ "mainModule": "../a.js", "modules": { "../a.js": "" } }),
        json!({ "mainModule": "a", "modules": { "a": "", "a/b": "" } }),
        json!({ "mainModule": "a.js", "modules": { "a.js": "" }, "extra": 1 }),
        script("x", &json!([binding("not an identifier")])),
        script("x", &json!([binding("A"), binding("A")])),
        script(
            "x",
            &json!([{ "name": "A", "type": "unknown", "resource": "acme-cache" }]),
        ),
    ] {
        let refused = world.infra.create(&worker(config.clone())).await;
        assert!(
            matches!(refused, Err(ProviderError::Permanent(_))),
            "{config}"
        );
    }
    assert!(world.staging().is_empty());
}
