//! Platforms that end, and billing that outlives them.

use serde_json::{Value, json};

use super::paying_platform;
use crate::world::{World, operator, platform_path};

async fn subscription_after(path: &str, method: &str) -> (Value, Value) {
    let world = World::new();
    world.set_time("2027-11-01T00:00:00Z");
    let (platform, customer) = paying_platform(&world, "growth").await;
    world.set_time("2027-11-10T00:00:00Z");
    let path = platform_path(&platform, path);
    let changed = world
        .registry
        .send(&operator(), method, &path, &[], json!({}))
        .await;
    assert!(changed.is_success(), "{}", changed.json);
    world.bill().await;
    let path = format!("/customers/{customer}/subscriptions");
    let ended = world.billing.get(&operator(), &path).await.expect(200);
    world.bill_until("2028-01-01T00:00:00Z").await;
    let later = world.billing.get(&operator(), &path).await.expect(200);
    world.assert_books_balance().await;
    (ended.json["data"][0].clone(), later.json["data"][0].clone())
}

#[tokio::test]
async fn a_deleted_platform_ends_its_subscription_at_once() {
    let (ended, _) = subscription_after("", "DELETE").await;
    assert_eq!(ended["status"], "canceled");
    assert_eq!(ended["endedAt"], "2027-11-10T00:00:00.000Z");
    assert_eq!(ended["cancellationReason"], "The platform was deleted.");
}

#[tokio::test]
async fn a_cancelled_platform_ends_its_subscription_with_the_period() {
    let (planned, later) = subscription_after("/cancel", "POST").await;
    assert_eq!(planned["status"], "active");
    assert_eq!(planned["cancelAt"], "2027-12-01T00:00:00.000Z");
    assert_eq!(later["status"], "canceled");
    assert_eq!(later["endedAt"], "2027-12-01T00:00:00.000Z");
}

#[tokio::test]
async fn a_suspended_platform_is_still_billed() {
    let (_, later) = subscription_after("/suspend", "POST").await;
    assert_eq!(later["status"], "active");
    assert_eq!(later["currentPeriodStart"], "2028-01-01T00:00:00.000Z");
}
