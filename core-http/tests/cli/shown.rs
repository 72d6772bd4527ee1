//! A deployment as it is shown, at once or when it has ended.

use std::sync::Arc;
use std::time::Duration;

use core_domain::registry::{DeploymentChange, DeploymentStatus};
use http::StatusCode;
use serde_json::{Value, json};

use crate::world::{SITE, World};

#[tokio::test]
async fn every_field_is_there_and_times_are_seconds() {
    let world = World::new().await;
    let made = world.deploy(&[], SITE).await;
    let id = &made.json["deploymentId"];
    let queued = world.show(id, "").await;
    assert_eq!(queued.status, StatusCode::OK);
    assert_eq!(
        queued.json,
        json!({
            "deploymentId": id, "status": "queued", "cfDeploymentId": null, "url": null,
            "errorMessage": null, "startedAt": null, "completedAt": null,
        })
    );
    world.later(5);
    let up = DeploymentChange {
        status: Some(DeploymentStatus::Uploading),
        ..DeploymentChange::default()
    };
    world.advance(id, &up).await;
    world.later(7);
    let live = DeploymentChange {
        status: Some(DeploymentStatus::Active),
        cf_deployment_id: Some("cf-1".to_owned()),
        url: Some("http://shop.example".to_owned()),
        ..DeploymentChange::default()
    };
    world.advance(id, &live).await;
    let active = world.show(id, "").await;
    assert_eq!(
        active.json,
        json!({
            "deploymentId": id, "status": "active", "cfDeploymentId": "cf-1",
            "url": "http://shop.example", "errorMessage": null,
            "startedAt": 1_800_000_005, "completedAt": 1_800_000_012,
        })
    );
    assert_ne!(active.headers["etag"], queued.headers["etag"]);
}

#[tokio::test]
async fn what_there_is_not_is_not_found_and_a_wait_that_is_none_is_refused() {
    let world = World::new().await;
    let unknown = world.show(&Value::from("no-such-deployment"), "").await;
    assert_eq!(
        (unknown.status, unknown.code()),
        (StatusCode::NOT_FOUND, "NOT_FOUND")
    );
    let made = world.deploy(&[], SITE).await;
    for (wait, expected) in [
        ("0", "wait: too_small"),
        ("31", "wait: too_big"),
        ("-1", "wait: too_small"),
        ("1.5", "wait: invalid_type"),
        ("long", "wait: invalid_type"),
        ("", "wait: invalid_type"),
    ] {
        let query = format!("?wait={wait}");
        let refused = world.show(&made.json["deploymentId"], &query).await;
        assert_eq!(refused.issues(), [expected], "{wait}");
    }
}

#[tokio::test(start_paused = true)]
async fn what_has_ended_is_shown_at_once_and_what_has_not_when_the_time_is_up() {
    let world = World::new().await;
    let made = world.deploy(&[], SITE).await;
    let id = &made.json["deploymentId"];
    let began = tokio::time::Instant::now();
    let held = world.show(id, "?wait=5").await;
    assert_eq!(held.json["status"], "queued");
    assert!(began.elapsed() >= Duration::from_secs(5));
    world.activate(id).await;
    let began = tokio::time::Instant::now();
    let ended = world.show(id, "?wait=30").await;
    assert_eq!(ended.json["status"], "active");
    assert_eq!(began.elapsed(), Duration::ZERO);
}

#[tokio::test(start_paused = true)]
async fn who_waits_is_told_soon_after_the_end() {
    let world = Arc::new(World::new().await);
    let made = world.deploy(&[], SITE).await;
    let id = made.json["deploymentId"].clone();
    let waiting = {
        let (world, id) = (Arc::clone(&world), id.clone());
        tokio::spawn(async move { world.show(&id, "?wait=30").await })
    };
    tokio::time::sleep(Duration::from_secs(8)).await;
    world.activate(&id).await;
    let began = tokio::time::Instant::now();
    let told = waiting.await.unwrap();
    assert_eq!(told.json["status"], "active");
    assert!(began.elapsed() <= Duration::from_secs(1));
}
