//! Activation and deactivation of the registry's features through the provisioning service.

use core_domain::port::{Infrastructure, ObjectRequest, ResourceRef};
use core_domain::registry::ResourceType;
use core_domain::use_case::provisioning::NoSupervisor;
use serde_json::{Value, json};

use crate::world::{Answer, World, on_every_store, operator, owner, platform_path};

const ACTIVATE: &str = "/api/v1/provision/feature/activate";
const DEACTIVATE: &str = "/api/v1/provision/feature/deactivate";

on_every_store! { a_feature_is_created_and_removed_and_repeated_requests_return_the_job }

fn feature(platform: &str, entity: &str) -> Value {
    json!({
        "platformId": platform, "entityId": entity, "featureId": "search", "featureVersion": "1",
        "environment": "prod",
    })
}

async fn a_feature_is_created_and_removed_and_repeated_requests_return_the_job(world: World) {
    let platform = world.create_platform("engines").await;
    let entity = world.tenant(&platform, "tenant").await;
    let wanted = feature(&platform, &entity);
    let path = platform_path(&platform, &format!("/entities/{entity}/features/search"));
    let caller = owner(&platform);
    let status = async || world.get_record(&path).await.text("status").to_owned();
    let made = world.queue_job(&caller, ACTIVATE, wanted.clone()).await;
    for ran in [false, true] {
        if ran {
            world.run_jobs().await;
        }
        let again = world.queue_job(&caller, ACTIVATE, wanted.clone()).await;
        assert_eq!(again, made);
        assert_eq!(status().await, if ran { "active" } else { "pending" });
    }
    let mut other = wanted.clone();
    other["featureVersion"] = json!("2");
    let refused = world.provisioning.post(&caller, ACTIVATE, other).await;
    refused.expect_error(409, "CONFLICT");
    let removed = world.queue_job(&caller, DEACTIVATE, wanted.clone()).await;
    let again = world.queue_job(&caller, DEACTIVATE, wanted.clone()).await;
    assert_eq!(again, removed);
    world.run_jobs().await;
    assert_eq!(status().await, "inactive");
    assert!(world.provider.names().is_empty());
    let refused = world.provisioning.post(&caller, DEACTIVATE, wanted).await;
    refused.expect_error(409, "INVALID_STATE");
    assert_eq!(world.jobs(&platform).await.len(), 2);
}

/// Creates an object of the platform at the provider, with its record in the registry.
async fn make(world: &World, path: &str, kind: ResourceType, service: &str, name: &str) {
    let body = json!({
        "stackId": "s1", "resourceType": kind, "serviceName": service, "environment": "prod",
        "cfName": name,
    });
    let entered = world.registry.post(&operator(), path, body).await;
    let entered = entered.expect(201);
    let request = ObjectRequest {
        resource: ResourceRef {
            resource_type: kind,
            name: name.to_owned(),
        },
        owner: entered.text("platformId").to_owned(),
        effect_key: name.to_owned(),
        config: json!({}),
    };
    world.provider.create(&request).await.unwrap();
}

#[tokio::test]
async fn the_data_of_a_feature_is_deleted_only_on_request_even_after_a_deactivation() {
    let world = World::new();
    let platform = world.create_platform("engines").await;
    let entity = world.tenant(&platform, "tenant").await;
    let wanted = feature(&platform, &entity);
    let resources = platform_path(&platform, &format!("/entities/{entity}/resources"));
    // A resource that was recorded before the feature existed does not belong to the feature.
    make(&world, &resources, ResourceType::D1, "search", "old-db").await;
    world.queue_job(&operator(), ACTIVATE, wanted.clone()).await;
    world.run_jobs().await;
    make(&world, &resources, ResourceType::D1, "search", "own-db").await;
    make(&world, &resources, ResourceType::D1, "other", "other-db").await;
    make(
        &world,
        &resources,
        ResourceType::Pages,
        "search",
        "own-site",
    )
    .await;
    let steps = async |job: &str| -> Vec<String> {
        let job = world.job(job).await;
        let steps = job["steps"].as_array().unwrap().iter();
        steps
            .map(|s| s["name"].as_str().unwrap().to_owned())
            .collect()
    };
    let kept = world
        .queue_job(&operator(), DEACTIVATE, wanted.clone())
        .await;
    let mut with_data = wanted;
    with_data["deleteData"] = json!(true);
    let deleted = world.queue_job(&operator(), DEACTIVATE, with_data).await;
    assert_eq!(steps(&kept).await, ["worker"]);
    assert_eq!(steps(&deleted).await, ["worker", "data"]);
    let _ = world.worker().run_one(&NoSupervisor).await.unwrap();
    let left = ["old-db", "other-db", "own-db", "own-site"];
    assert_eq!(world.provider.names(), left);
    world.run_jobs().await;
    assert_eq!(world.provider.names(), ["old-db", "other-db", "own-site"]);
    let listed = world.get_record(&resources).await;
    let mut listed = listed.each("cfName");
    listed.sort_unstable();
    assert_eq!(listed, ["old-db", "other-db", "own-site"]);
    let path = platform_path(&platform, &format!("/entities/{entity}/features/search"));
    assert_eq!(world.get_record(&path).await.text("status"), "inactive");
}

#[tokio::test]
async fn features_of_unknown_suspended_or_other_tenants_entities_are_refused() {
    let world = World::new();
    let platform = world.create_platform("engines").await;
    let entity = world.tenant(&platform, "tenant").await;
    let other = world.create_platform("looms").await;
    let foreign = world.tenant(&other, "foreign").await;
    for path in [ACTIVATE, DEACTIVATE] {
        for entity in ["nobody", &foreign] {
            let body = feature(&platform, entity);
            let refused = world.provisioning.post(&operator(), path, body).await;
            refused.expect_error(404, "NOT_FOUND");
        }
    }
    // A feature that the entity never had cannot be deactivated.
    let never: Answer = world
        .provisioning
        .post(&operator(), DEACTIVATE, feature(&platform, &entity))
        .await;
    never.expect_error(404, "NOT_FOUND");
    let path = platform_path(&platform, &format!("/entities/{entity}"));
    let _ = world
        .patch_record(&path, json!({ "status": "suspended" }))
        .await;
    let body = feature(&platform, &entity);
    let refused = world.provisioning.post(&operator(), ACTIVATE, body).await;
    refused.expect_error(409, "INVALID_STATE");
    assert!(world.jobs(&platform).await.is_empty());
}
