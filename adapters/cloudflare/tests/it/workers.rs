//! Tests of workers: upload, secrets, bindings, and protection of other scripts.

use core_cloudflare_fake::{Fault, Settings};
use core_domain::kernel::Secret;
use core_domain::port::{Infrastructure, ObjectRequest, ProviderError, SetSecrets};
use core_domain::registry::ResourceType;
use serde_json::{Value, json};

use crate::world::{OWNER, STRANGER, World, name_for, request, resource, script};

fn worker(config: Value) -> ObjectRequest {
    ObjectRequest {
        config,
        ..request(ResourceType::Worker)
    }
}

fn name() -> String {
    resource(ResourceType::Worker).name
}

fn bound_to(resource_type: ResourceType, resource: &str) -> Value {
    let mut config = script("export default {}");
    config["bindings"] = json!([{ "name": "B", "type": resource_type, "resource": resource }]);
    config
}

#[tokio::test]
async fn worker_is_uploaded_with_modules_bindings_and_owner() {
    let world = World::new().await;
    let stores = [
        ResourceType::D1,
        ResourceType::Kv,
        ResourceType::R2,
        ResourceType::Queue,
    ];
    let mut bindings = Vec::new();
    for (of, called) in stores.into_iter().zip(["DB", "CACHE", "ASSETS", "EVENTS"]) {
        world.make(of).await;
        bindings.push(json!({ "name": called, "type": of, "resource": resource(of).name }));
    }
    let config = json!({
        "mainModule": "src/worker.js",
        "modules": { "src/worker.js": "import './data.json'", "src/data.json": "{}", "a.txt": "t" },
        "bindings": bindings,
        "vars": { "MODE": "live" },
    });
    let made = world.cloudflare.create(&worker(config)).await.unwrap();
    let url = format!("https://{}.fake-account.workers.dev", name());
    assert_eq!((made.id, made.url), (name(), Some(url)));
    let script = world.fake.script(&name()).unwrap();
    assert_eq!(script.main_module, "src/worker.js");
    assert_eq!(script.modules["src/worker.js"], "import './data.json'");
    assert_eq!(script.modules.len(), 3);
    assert_eq!(script.tags, ["core-owner:p1"]);
    assert_eq!(script.compatibility_date.as_deref(), Some("2026-11-01"));
    let kinds = script
        .bindings
        .iter()
        .map(|binding| binding["type"].as_str().unwrap());
    assert_eq!(
        kinds.collect::<Vec<_>>(),
        ["d1", "kv_namespace", "r2_bucket", "queue", "plain_text"]
    );
    let var = json!({ "type": "plain_text", "name": "MODE", "text": "live" });
    assert_eq!(script.bindings.last(), Some(&var));
}

#[tokio::test]
async fn second_upload_replaces_the_script_and_keeps_the_secrets() {
    let world = World::new().await;
    world.make(ResourceType::Worker).await;
    let secrets = SetSecrets {
        resource: resource(ResourceType::Worker),
        owner: OWNER.to_owned(),
        secrets: vec![("KEY".to_owned(), Secret::new("v"))],
        deleted: Vec::new(),
    };
    world.cloudflare.set_secrets(&secrets).await.unwrap();
    let changed = worker(script("export default { fetch() {} }"));
    world.cloudflare.create(&changed).await.unwrap();
    let module = world.fake.script(&name()).unwrap().modules["worker.js"].clone();
    assert_eq!(module, "export default { fetch() {} }");
    assert_eq!(world.fake.secrets(&name())["KEY"], "v");
}

#[tokio::test]
async fn script_of_unknown_origin_is_never_replaced() {
    let world = World::new().await;
    let path = world.account(&format!("workers/scripts/{}", name()));
    let form = "--b\r\nContent-Disposition: form-data; name=\"metadata\"\r\n\r\n\
        {\"main_module\":\"x.js\",\"compatibility_date\":\"2026-01-01\"}\r\n\
        --b\r\nContent-Disposition: form-data; name=\"x.js\"; filename=\"x.js\"\r\n\
        Content-Type: application/javascript+module\r\n\r\nexport default 1\r\n--b--\r\n";
    world.put_form(&path, form).await;
    let taken = ProviderError::NameTaken(name());
    let made = world
        .cloudflare
        .create(&request(ResourceType::Worker))
        .await;
    assert_eq!(made, Err(taken.clone()));
    let removed = world
        .cloudflare
        .remove(&resource(ResourceType::Worker), OWNER)
        .await;
    assert_eq!(removed, Err(taken));
    assert_eq!(world.fake.script(&name()).unwrap().main_module, "x.js");
}

#[tokio::test]
async fn bindings_to_missing_and_other_owners_objects_are_refused_alike() {
    let world = World::new().await;
    let theirs = name_for(STRANGER, ResourceType::Kv);
    let of_stranger = ObjectRequest {
        resource: core_domain::port::ResourceRef {
            resource_type: ResourceType::Kv,
            name: theirs.clone(),
        },
        owner: STRANGER.to_owned(),
        ..request(ResourceType::Kv)
    };
    world.cloudflare.create(&of_stranger).await.unwrap();
    let mine = resource(ResourceType::Kv).name;
    for target in [&theirs, &mine] {
        let made = world
            .cloudflare
            .create(&worker(bound_to(ResourceType::Kv, target)))
            .await;
        let expected = format!("the binding B refers to kv {target}, which does not exist");
        assert_eq!(made, Err(ProviderError::Permanent(expected)));
    }
    assert_eq!(world.fake.script(&name()), None);
}

#[tokio::test]
async fn worker_can_be_bound_to_a_worker_but_not_to_a_site() {
    let world = World::new().await;
    world.make(ResourceType::Worker).await;
    world.make(ResourceType::Pages).await;
    let other = |config| ObjectRequest {
        resource: core_domain::port::ResourceRef {
            resource_type: ResourceType::Worker,
            name: "engines-search-worker".to_owned(),
        },
        ..worker(config)
    };
    let made = world
        .cloudflare
        .create(&other(bound_to(ResourceType::Worker, &name())))
        .await;
    made.unwrap();
    let site = resource(ResourceType::Pages).name;
    let made = world
        .cloudflare
        .create(&other(bound_to(ResourceType::Pages, &site)))
        .await;
    assert!(matches!(made, Err(ProviderError::Permanent(_))), "{made:?}");
}

#[tokio::test]
async fn invalid_worker_settings_are_refused_without_requests() {
    let world = World::new().await;
    let unknown = json!({ "mainModule": "a", "modules": { "a": "" }, "routes": [] });
    for config in [
        json!({}),
        json!({ "mainModule": "a", "modules": {} }),
        unknown,
    ] {
        let made = world.cloudflare.create(&worker(config)).await;
        assert!(matches!(made, Err(ProviderError::Permanent(_))), "{made:?}");
    }
    assert_eq!(world.fake.requests(), []);
}

#[tokio::test]
async fn refused_script_is_reported_with_its_reason() {
    let world = World::new().await;
    let fault = Fault::Refusal {
        status: 400,
        code: 10_021,
    };
    world
        .fake
        .inject(world.matcher("PUT", "workers/scripts/*"), fault);
    let made = world
        .cloudflare
        .create(&request(ResourceType::Worker))
        .await;
    let Err(ProviderError::Permanent(text)) = made else {
        panic!("{made:?}");
    };
    assert!(text.starts_with("the script is not valid: "), "{text}");
}

#[tokio::test]
async fn worker_has_no_url_without_an_account_subdomain() {
    let settings = Settings {
        workers_subdomain: None,
        ..Settings::default()
    };
    let world = World::with(settings, |_| ()).await;
    assert_eq!(world.make(ResourceType::Worker).await.url, None);
    let world = World::with(Settings::default(), |options| options.workers_dev = false).await;
    assert_eq!(world.make(ResourceType::Worker).await.url, None);
    assert!(!world.fake.script(&name()).unwrap().workers_dev);
}
