//! Subscriptions: trials, cancellation, previews and refused changes.

use futures_util::future::join_all;
use serde_json::{Value, json};

use super::paying_platform;
use crate::world::{World, admin, on_every_store, operator};

const OWN: &str = "/subscription";

#[tokio::test]
async fn the_first_subscription_of_a_platform_is_a_trial_of_14_days_without_a_card() {
    let world = World::new();
    let platform = world.create_platform("engines").await;
    world.set_time("2028-01-20T10:00:00Z");
    let body = json!({ "tier": "growth", "billingEmail": "ada@example.org" });
    let created = world.billing.post(&admin(&platform), OWN, body).await;
    let created = created.expect(201);
    for (field, expected) in [
        ("status", json!("trialing")),
        ("tier", json!("growth")),
        ("planId", json!("growth")),
        ("priceId", json!("price_growth_month")),
        ("amount", json!(9900)),
        ("trialEndsAt", json!("2028-02-03T10:00:00.000Z")),
        ("currentPeriodEnd", json!("2028-02-03T10:00:00.000Z")),
        ("latestInvoiceId", Value::Null),
        ("version", json!(1)),
    ] {
        assert_eq!(created.json[field], expected, "{field}");
    }
    let shown = world.platform(&platform).await;
    assert_eq!(shown["tier"], "growth");
    assert_eq!(shown["trialEndsAt"], "2028-02-03T10:00:00.000Z");
}

#[tokio::test]
async fn a_change_in_a_trial_is_made_at_once_and_costs_nothing() {
    let world = World::new();
    let platform = world.create_platform("engines").await;
    let body =
        json!({ "platformId": platform, "tier": "growth", "billingEmail": "ada@example.org" });
    let _ = world.billing.post(&operator(), OWN, body).await.expect(201);
    for tier in ["scale", "starter"] {
        let changed = world
            .change_tier(&platform, tier, json!({}))
            .await
            .expect(200);
        assert_eq!(changed.json["tier"], tier);
        assert_eq!(changed.json["status"], "trialing");
    }
    let path = format!("/invoices?platformId={platform}");
    let listed = world.billing.get(&operator(), &path).await;
    assert_eq!(listed.json["data"], json!([]));
}

#[tokio::test]
async fn a_later_subscription_without_a_card_is_incomplete_until_a_card_is_attached() {
    let world = World::new();
    let platform = world.create_platform("engines").await;
    let created = world.subscribe(&platform, "starter").await.expect(201);
    assert_eq!(created.json["status"], "incomplete");
    assert_eq!(world.platform(&platform).await["tier"], "starter");
    let invoice = world.last_invoice(&platform).await;
    assert_eq!(invoice["status"], "open");
    assert_eq!(invoice["amountRemaining"], 2900);
    let customer = created.text("customerId").to_owned();
    world.attach_card(&customer, "pm_card_visa").await;
    let seen = world.subscription_of(&platform).await;
    assert_eq!(seen["status"], "active");
    let invoice = world.last_invoice(&platform).await;
    assert_eq!(invoice["status"], "paid");
    assert_eq!(invoice["amountPaid"], 2900);
    assert_eq!(invoice["attemptCount"], 1);
    world.assert_books_balance().await;
}

#[tokio::test]
async fn a_declined_card_leaves_the_subscription_incomplete() {
    for card in [
        "pm_card_chargeDeclined",
        "pm_card_chargeCustomerFail",
        "pm_card_authenticationRequired",
    ] {
        let world = World::new();
        let platform = world.create_platform("engines").await;
        let body = json!({ "platformId": platform, "tier": "starter", "trialDays": 0,
            "paymentMethodId": card, "billingEmail": "ada@example.org" });
        let created = world.billing.post(&operator(), OWN, body).await.expect(201);
        assert_eq!(created.json["status"], "incomplete", "{card}");
        world.assert_books_balance().await;
    }
}

async fn a_platform_never_has_two_live_subscriptions(world: World) {
    let platform = world.create_platform("engines").await;
    let rivals = (0..8).map(|_| world.subscribe(&platform, "starter"));
    let answers = join_all(rivals).await;
    let created = answers.iter().filter(|answer| answer.status == 201);
    assert_eq!(created.count(), 1);
    for refused in answers.iter().filter(|answer| answer.status != 201) {
        assert_eq!(refused.code(), "SUBSCRIPTION_EXISTS");
    }
    world.assert_books_balance().await;
}

async fn one_of_a_change_and_a_cancellation_wins(world: World) {
    let (platform, _) = paying_platform(&world, "starter").await;
    let cancel = json!({ "platformId": platform, "immediately": true });
    let (operator, cancel_path) = (operator(), "/subscription/cancel");
    let (changed, canceled) = tokio::join!(
        world.change_tier(&platform, "growth", json!({})),
        world.billing.post(&operator, cancel_path, cancel),
    );
    let seen = world.subscription_of(&platform).await;
    match (changed.status.as_u16(), canceled.status.as_u16()) {
        (200, 409) => assert_eq!(seen["tier"], "growth"),
        (404 | 409, 200) => assert_eq!(seen["status"], "canceled"),
        (200, 200) => assert_eq!(
            (&seen["tier"], &seen["status"]),
            (&json!("growth"), &json!("canceled"))
        ),
        statuses => panic!("{statuses:?}: {} {}", changed.json, canceled.json),
    }
    world.assert_books_balance().await;
}

on_every_store! {
    a_platform_never_has_two_live_subscriptions,
    one_of_a_change_and_a_cancellation_wins,
}

#[tokio::test]
async fn a_preview_costs_what_the_change_with_its_date_costs() {
    let world = World::new();
    world.set_time("2027-11-01T00:00:00Z");
    let (platform, _) = paying_platform(&world, "starter").await;
    world.set_time("2027-11-11T09:30:17Z");
    let path = format!("/subscription/proration-preview?tier=growth&platformId={platform}");
    let preview = world.billing.get(&operator(), &path).await.expect(200).json;
    let listed = format!("/invoices?platformId={platform}");
    let listed = world.billing.get(&operator(), &listed).await;
    assert_eq!(
        listed.json["pagination"]["total"], 1,
        "a preview stores nothing"
    );
    world.tick(14 * 60);
    let dated = json!({ "prorationDate": preview["prorationDate"] });
    let _ = world
        .change_tier(&platform, "growth", dated)
        .await
        .expect(200);
    let invoice = world.last_invoice(&platform).await;
    for (shown, charged) in [
        ("subtotal", "subtotal"),
        ("amountDueNow", "amountDue"),
        ("taxTotal", "taxTotal"),
        ("creditsApplied", "creditsApplied"),
    ] {
        assert_eq!(preview[shown], invoice[charged], "{shown}");
    }
    let without_ids = |lines: &Value| -> Vec<Value> {
        let mut lines = lines.as_array().unwrap().clone();
        lines.iter_mut().for_each(|line| line["id"] = Value::Null);
        lines
    };
    assert_eq!(
        without_ids(&preview["lines"]),
        without_ids(&invoice["lines"])
    );
    assert_eq!(preview["direction"], "upgrade");
    assert_eq!(preview["effective"], "immediate");
    assert_eq!(preview["nextInvoiceAmount"], 9900);
}

#[tokio::test]
async fn a_change_with_an_old_or_a_wrong_preview_is_refused() {
    let world = World::new();
    world.set_time("2027-11-01T00:00:00Z");
    let (platform, _) = paying_platform(&world, "starter").await;
    world.set_time("2027-11-16T00:20:00Z");
    let caller = admin(&platform);
    let change = |at: &str| {
        let body = json!({ "tier": "growth", "prorationDate": at });
        let caller = caller.clone();
        let billing = world.billing.clone();
        async move {
            billing
                .post(&caller, "/subscription/change-tier", body)
                .await
        }
    };
    change("2027-11-16T00:04:59Z")
        .await
        .expect_error(409, "PREVIEW_EXPIRED");
    change("2027-11-16T00:20:01Z")
        .await
        .expect_error(400, "VALIDATION_ERROR");
    let _ = change("2027-11-16T00:05:00Z").await.expect(200);
    let body =
        json!({ "tier": "scale", "prorationDate": "2027-11-16T00:04:00Z", "platformId": platform });
    let superseded = world
        .billing
        .post(&operator(), "/subscription/change-tier", body)
        .await;
    superseded.expect_error(409, "QUOTE_EXPIRED");
}

#[tokio::test]
async fn a_tenant_can_undo_an_upgrade_for_15_minutes_and_an_operator_always() {
    let world = World::new();
    let (platform, _) = paying_platform(&world, "starter").await;
    world.tick(86_400);
    let path = "/subscription/change-tier";
    let tenant = admin(&platform);
    let upgraded = world
        .billing
        .post(&tenant, path, json!({ "tier": "growth" }))
        .await;
    let _ = upgraded.expect(200);
    world.tick(15 * 60 + 1);
    let down = json!({ "tier": "starter", "effective": "now" });
    let refused = world.billing.post(&tenant, path, down.clone()).await;
    refused.expect_error(409, "INVALID_STATE");
    let done = world
        .change_tier(&platform, "starter", json!({ "effective": "now" }))
        .await;
    assert_eq!(done.expect(200).json["tier"], "starter");
    let again = world
        .billing
        .post(&tenant, path, json!({ "tier": "growth" }))
        .await;
    let _ = again.expect(200);
    let undone = world.billing.post(&tenant, path, down).await.expect(200);
    assert_eq!(undone.json["tier"], "starter");
    world.assert_books_balance().await;
}

#[tokio::test]
async fn the_current_tier_removes_what_is_planned_and_is_refused_otherwise() {
    let world = World::new();
    let (platform, _) = paying_platform(&world, "growth").await;
    let same = || world.change_tier(&platform, "growth", json!({}));
    same().await.expect_error(409, "TIER_UNCHANGED");
    let _ = world
        .change_tier(&platform, "starter", json!({}))
        .await
        .expect(200);
    assert_eq!(same().await.expect(200).json["pendingChange"], Value::Null);
    let body = json!({ "platformId": platform, "reason": "too expensive" });
    let canceled = world
        .billing
        .post(&operator(), "/subscription/cancel", body)
        .await;
    let canceled = canceled.expect(200);
    assert_eq!(canceled.json["cancelAtPeriodEnd"], true);
    assert_eq!(canceled.json["cancelAt"], canceled.json["currentPeriodEnd"]);
    assert_eq!(canceled.json["cancellationReason"], "too expensive");
    let kept = same().await.expect(200);
    assert_eq!(kept.json["cancelAtPeriodEnd"], false);
    assert_eq!(kept.json["canceledAt"], Value::Null);
}

#[tokio::test]
async fn an_upgrade_without_a_card_is_refused_and_changes_nothing() {
    let world = World::new();
    let (platform, customer) = paying_platform(&world, "starter").await;
    let methods = format!("/customers/{customer}/payment-methods");
    let methods = world.billing.get(&operator(), &methods).await;
    assert_eq!(methods.json["data"].as_array().unwrap().len(), 1);
    world.tick(60);
    let method = methods.json["data"][0]["id"].as_str().unwrap();
    let detach = format!("/payment-methods/{method}/detach");
    let refused = world.billing.post(&operator(), &detach, json!({})).await;
    refused.expect_error(409, "PAYMENT_METHOD_IN_USE");
    world
        .use_card(&customer, "pm_card_chargeCustomerFail")
        .await;
    let before = world.subscription_of(&platform).await;
    let refused = world.change_tier(&platform, "growth", json!({})).await;
    let refused = refused.expect_error(402, "PAYMENT_REQUIRED");
    assert_eq!(refused.json["error"]["details"]["reason"], "card_declined");
    let after = world.subscription_of(&platform).await;
    assert_eq!(after["tier"], before["tier"]);
    assert_eq!(after["status"], "active");
    assert_eq!(world.last_invoice(&platform).await["status"], "void");
    world.assert_books_balance().await;
    // The subscription is not locked by the failed change.
    let _ = world.attach_card(&customer, "pm_card_visa").await;
    let default = format!("/payment-methods/{method}/set-default");
    let set = world
        .billing
        .post(&operator(), &default, json!({ "customerId": customer }))
        .await;
    let _ = set.expect(200);
    let done = world.change_tier(&platform, "growth", json!({})).await;
    assert_eq!(done.expect(200).json["tier"], "growth");
}

#[tokio::test]
async fn a_charge_that_must_be_confirmed_locks_the_subscription() {
    let world = World::new();
    let (platform, customer) = paying_platform(&world, "starter").await;
    world.tick(60);
    world
        .use_card(&customer, "pm_card_authenticationRequired")
        .await;
    let refused = world.change_tier(&platform, "growth", json!({})).await;
    let refused = refused.expect_error(402, "PAYMENT_REQUIRED");
    let details = &refused.json["error"]["details"];
    assert_eq!(details["reason"], "authentication_required");
    assert!(details["clientSecret"].is_string());
    world
        .change_tier(&platform, "scale", json!({}))
        .await
        .expect_error(409, "OPERATION_IN_PROGRESS");
    let cancel = json!({ "platformId": platform, "immediately": true });
    let cancel = world
        .billing
        .post(&operator(), "/subscription/cancel", cancel)
        .await;
    cancel.expect_error(409, "OPERATION_IN_PROGRESS");
    assert_eq!(world.subscription_of(&platform).await["tier"], "starter");
    world.assert_books_balance().await;
}

#[tokio::test]
async fn an_ended_subscription_stays_ended_and_the_platform_can_subscribe_again() {
    let world = World::new();
    let (platform, _) = paying_platform(&world, "growth").await;
    let cancel = json!({ "platformId": platform, "immediately": true });
    let canceled = world
        .billing
        .post(&operator(), "/subscription/cancel", cancel.clone())
        .await;
    let canceled = canceled.expect(200);
    assert_eq!(canceled.json["status"], "canceled");
    assert_eq!(world.platform(&platform).await["tier"], "starter");
    let again = world
        .billing
        .post(&operator(), "/subscription/cancel", cancel)
        .await;
    again.expect_error(409, "INVALID_STATE");
    let id = canceled.id();
    let path = format!("/subscriptions/{id}");
    let deleted = world.billing.delete(&operator(), &path).await.expect(200);
    assert_eq!(deleted.json["status"], "canceled");
    world.tick(1);
    let next = world.subscribe(&platform, "starter").await.expect(201);
    assert_eq!(next.json["status"], "active", "there is no second trial");
    assert_ne!(next.id(), id);
}

#[tokio::test]
async fn a_trial_of_an_operator_returns_the_paid_rest_to_the_balance() {
    let world = World::new();
    world.set_time("2027-11-01T00:00:00Z");
    let (platform, customer) = paying_platform(&world, "starter").await;
    world.set_time("2027-11-16T00:00:00Z");
    let id = world.subscription_of(&platform).await["id"].clone();
    let path = format!("/operator/subscriptions/{}/trial", id.as_str().unwrap());
    let started = world
        .billing
        .post(&operator(), &path, json!({ "trialDays": 30 }))
        .await;
    let started = started.expect(200);
    assert_eq!(started.json["status"], "trialing");
    assert_eq!(started.json["trialEndsAt"], "2027-12-16T00:00:00.000Z");
    let path_of_customer = format!("/customers/{customer}");
    let seen = world.billing.get(&operator(), &path_of_customer).await;
    assert_eq!(seen.json["balance"], -1450);
    let extended = world
        .billing
        .post(&operator(), &path, json!({ "trialDays": 365 }))
        .await;
    assert_eq!(
        extended.expect(200).json["trialEndsAt"],
        "2028-12-15T00:00:00.000Z"
    );
    let too_long = world
        .billing
        .post(&operator(), &path, json!({ "trialDays": 365 }))
        .await;
    too_long.expect_error(400, "VALIDATION_ERROR");
    let fraction = world
        .billing
        .post(&operator(), &path, json!({ "trialDays": 1.5 }))
        .await;
    fraction.expect_error(400, "VALIDATION_ERROR");
    world.assert_books_balance().await;
}
