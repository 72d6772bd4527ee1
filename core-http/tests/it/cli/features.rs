//! The features of a platform.

use serde_json::{Value, json};

use crate::world::{Answer, World, admin, plain_member, platform_path};

async fn activate(world: &World, platform: &str, body: Value) -> Answer {
    let path = platform_path(platform, "/features/activate");
    world.cli.post(&admin(platform), &path, body).await
}

async fn deactivate(world: &World, platform: &str, feature: &str) -> Answer {
    let path = platform_path(platform, "/features/deactivate");
    let body = json!({ "featureId": feature });
    world.cli.post(&admin(platform), &path, body).await
}

async fn features(world: &World, platform: &str) -> Vec<Value> {
    let path = platform_path(platform, "/features");
    let list = world
        .cli
        .get(&plain_member(platform), &path)
        .await
        .expect(200);
    list.json["data"].as_array().unwrap().clone()
}

#[tokio::test]
async fn a_feature_of_a_platform_belongs_to_its_default_tenant_in_production() {
    let world = World::new();
    let platform = world.create_platform("engines").await;
    assert!(features(&world, &platform).await.is_empty());
    let body = json!({ "featureId": "chat", "version": "1.0.0", "config": { "theme": "dark" } });
    let view = json!({ "status": "activated", "featureId": "chat", "version": "1.0.0" });
    let queued = activate(&world, &platform, body.clone()).await.expect(202);
    assert_eq!(queued.json, view);
    assert_eq!(features(&world, &platform).await[0]["status"], "pending");
    let again = activate(&world, &platform, body.clone()).await.expect(200);
    assert_eq!(again.json, view);
    world.run_jobs().await;
    let listed = features(&world, &platform).await;
    assert_eq!(listed[0]["status"], "active");
    assert_eq!(listed[0]["config"], json!({ "theme": "dark" }));
    let _ = activate(&world, &platform, body).await.expect(200);
    // The registry shows the same feature.
    let tenant = platform_path(&platform, "/entities?type=tenant");
    let tenant = world.get_record(&tenant).await.json["data"][0]["id"].clone();
    let path = format!("/entities/{}/features/chat", tenant.as_str().unwrap());
    let shown = world.get_record(&platform_path(&platform, &path)).await;
    assert_eq!(shown.text("environment"), "prod");
}

#[tokio::test]
async fn another_version_or_configuration_needs_a_deactivation_first() {
    let world = World::new();
    let platform = world.create_platform("engines").await;
    let with = |version: &str, config: Value| json!({ "featureId": "chat", "version": version, "config": config });
    let _ = activate(&world, &platform, with("1", json!({ "a": 1 })))
        .await
        .expect(202);
    world.run_jobs().await;
    for body in [
        with("2", json!({ "a": 1 })),
        with("1", json!({ "a": 2 })),
        with("1", json!({})),
    ] {
        let refused = activate(&world, &platform, body).await;
        refused.expect_error(409, "CONFLICT");
    }
    let gone = deactivate(&world, &platform, "chat").await.expect(202);
    assert_eq!(
        gone.json,
        json!({ "status": "deactivated", "featureId": "chat" })
    );
    let _ = deactivate(&world, &platform, "chat").await.expect(200);
    world.run_jobs().await;
    deactivate(&world, &platform, "chat")
        .await
        .expect_error(409, "INVALID_STATE");
    deactivate(&world, &platform, "other")
        .await
        .expect_error(404, "NOT_FOUND");
    let _ = activate(&world, &platform, with("2", json!({})))
        .await
        .expect(202);
    world.run_jobs().await;
    let listed = features(&world, &platform).await;
    assert_eq!(
        (&listed[0]["version"], &listed[0]["config"]),
        (&json!("2"), &json!({}))
    );
}

#[tokio::test]
async fn the_configuration_is_an_object_of_at_most_64_kib() {
    let world = World::new();
    let platform = world.create_platform("engines").await;
    for config in [
        json!([]),
        json!("x"),
        json!(1),
        json!({ "a": "x".repeat(64 * 1024) }),
    ] {
        let body = json!({ "featureId": "chat", "version": "1", "config": config });
        let refused = activate(&world, &platform, body).await;
        refused.expect_error(400, "VALIDATION_ERROR");
    }
    assert!(features(&world, &platform).await.is_empty());
}
