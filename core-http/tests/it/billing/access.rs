//! Access to the billing of others, beyond the generated tests.

use serde_json::json;

use super::paying_platform;
use crate::world::{World, admin, operator, plain_member, platform_path};

#[tokio::test]
async fn a_foreign_customer_subscription_invoice_and_platform_are_missing_in_every_spelling() {
    let world = World::new();
    let (platform, customer) = paying_platform(&world, "starter").await;
    let subscription = world.subscription_of(&platform).await;
    let subscription = subscription["id"].as_str().unwrap().to_owned();
    let invoice = world.last_invoice(&platform).await["id"]
        .as_str()
        .unwrap()
        .to_owned();
    let other = world.create_platform("looms").await;
    for caller in [admin(&other), plain_member(&other)] {
        for path in [
            format!("/customers/{customer}"),
            format!("/customers/{customer}/subscriptions"),
            format!("/customers/{customer}/payment-methods"),
            format!("/subscriptions/{subscription}"),
            format!("/invoices/{invoice}"),
            format!("/api/billing/invoices/{invoice}"),
            format!("/subscription?platformId={platform}"),
            format!("/api/billing/subscription?platformId={platform}"),
            format!("/invoices?platformId={platform}"),
            format!("/api/billing/payment-methods?platformId={platform}"),
        ] {
            let foreign = world.billing.get(&caller, &path).await;
            let foreign = foreign.expect_error(404, "NOT_FOUND");
            assert!(foreign.json["error"]["details"]["resource"].is_string());
        }
    }
    let named = format!("/invoices/{invoice}?platformId={other}");
    world
        .billing
        .get(&operator(), &named)
        .await
        .expect_error(404, "NOT_FOUND");
}

#[tokio::test]
async fn a_service_must_name_the_platform() {
    let world = World::new();
    let missing = world
        .billing
        .post(&operator(), "/subscription/cancel", json!({}))
        .await;
    missing.expect_error(400, "VALIDATION_ERROR");
}

#[tokio::test]
async fn billing_outlives_its_platform_for_operators() {
    let world = World::new();
    let (platform, customer) = paying_platform(&world, "growth").await;
    let path = platform_path(&platform, "/delete");
    let removed = world.registry.post(&operator(), &path, json!({})).await;
    assert!(removed.is_success(), "{}", removed.json);
    world.finish_jobs().await;
    let gone = world
        .registry
        .get(&operator(), &platform_path(&platform, ""))
        .await;
    gone.expect_error(404, "NOT_FOUND");
    let invoice = world.last_invoice(&platform).await;
    assert_eq!(invoice["customerId"], customer);
    assert_eq!(world.subscription_of(&platform).await["tier"], "growth");
    world.assert_books_balance().await;
}
