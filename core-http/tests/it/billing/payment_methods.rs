//! Payment methods: test cards, the default, and limits.

use std::time::Duration;

use core_domain::billing::{LedgerSetupIntent, LedgerSetupIntentQuery};
use core_domain::kernel::Clock;
use serde_json::json;

use super::paying_platform;
use crate::world::{World, assert_limit, operator};

#[tokio::test]
async fn the_first_method_is_the_default_and_the_newest_other_one_replaces_it() {
    let world = World::new();
    let platform = world.create_platform("engines").await;
    let customer = world.customer(&platform).await;
    let first = world.attach_card(&customer, "pm_card_visa").await;
    world.tick(1);
    let second = world.attach_card(&customer, "pm_card_visa").await;
    let path = format!("/customers/{customer}/payment-methods");
    let listed = world.billing.get(&operator(), &path).await.expect(200);
    assert_eq!(listed.each("id"), [first.as_str(), second.as_str()]);
    assert_eq!(listed.json["data"][0]["isDefault"], true);
    assert_eq!(listed.json["data"][1]["isDefault"], false);
    let card = json!({ "brand": "visa", "last4": "4242", "expMonth": 12, "expYear": 2034,
        "country": "US", "funding": "credit" });
    assert_eq!(listed.json["data"][0]["card"], card);
    assert_eq!(listed.json["data"][0]["expired"], false);
    let path_of_first = format!("/payment-methods/{first}/detach");
    let detached = world
        .billing
        .post(&operator(), &path_of_first, json!({}))
        .await;
    assert_eq!(detached.expect(200).json["customerId"], json!(null));
    let default = format!("/customers/{customer}/payment-methods/default");
    let default = world.billing.get(&operator(), &default).await.expect(200);
    assert_eq!(default.id(), second);
}

#[tokio::test]
async fn a_detached_method_cannot_be_attached_or_charged_again() {
    let world = World::new();
    let platform = world.create_platform("engines").await;
    let customer = world.customer(&platform).await;
    let method = world.attach_card(&customer, "pm_card_visa").await;
    let path = format!("/payment-methods/{method}/detach");
    let detached = world.billing.post(&operator(), &path, json!({})).await;
    let _ = detached.expect(200);
    let again = json!({ "customerId": customer });
    let path = format!("/payment-methods/{method}/attach");
    let refused = world.billing.post(&operator(), &path, again).await;
    refused.expect_error(409, "CONFLICT");
    let subscription =
        json!({ "platformId": platform, "tier": "scale", "paymentMethodId": method });
    let refused = world
        .billing
        .post(&operator(), "/subscription", subscription)
        .await;
    refused.expect_error(409, "CONFLICT");
}

#[tokio::test]
async fn a_card_that_the_issuer_refuses_cannot_be_attached() {
    let world = World::new();
    let platform = world.create_platform("engines").await;
    let customer = world.customer(&platform).await;
    for (card, reason) in [
        ("pm_card_chargeDeclined", "card_declined"),
        (
            "pm_card_chargeDeclinedInsufficientFunds",
            "insufficient_funds",
        ),
    ] {
        let path = format!("/payment-methods/{card}/attach");
        let body = json!({ "customerId": customer });
        let refused = world.billing.post(&operator(), &path, body).await;
        let refused = refused.expect_error(402, "PAYMENT_REQUIRED");
        assert_eq!(refused.json["error"]["details"]["reason"], reason);
    }
    let default = format!("/customers/{customer}/payment-methods/default");
    world
        .billing
        .get(&operator(), &default)
        .await
        .expect_error(404, "NOT_FOUND");
}

#[tokio::test]
async fn a_method_of_another_customer_is_refused_and_not_found_by_its_tenants() {
    let world = World::new();
    let (_, customer) = paying_platform(&world, "starter").await;
    let path = format!("/customers/{customer}/payment-methods/default");
    let method = world.billing.get(&operator(), &path).await.id();
    let other = world.create_platform("looms").await;
    let theirs = world.customer(&other).await;
    for step in ["attach", "set-default"] {
        let path = format!("/payment-methods/{method}/{step}");
        let body = json!({ "customerId": theirs });
        let refused = world.billing.post(&operator(), &path, body).await;
        refused.expect_error(409, "CONFLICT");
    }
    let stranger = crate::world::admin(&other);
    let path = format!("/payment-methods/{method}");
    world
        .billing
        .get(&stranger, &path)
        .await
        .expect_error(404, "NOT_FOUND");
    let path = format!("/payment-methods/{method}/detach");
    let refused = world.billing.post(&stranger, &path, json!({})).await;
    refused.expect_error(404, "NOT_FOUND");
}

#[tokio::test]
async fn a_customer_has_at_most_20_payment_methods() {
    let world = World::new();
    let platform = world.create_platform("engines").await;
    let customer = world.customer(&platform).await;
    for _ in 0..20 {
        world.attach_card(&customer, "pm_card_visa").await;
    }
    let path = "/payment-methods/pm_card_visa/attach";
    let body = json!({ "customerId": customer });
    let refused = world.billing.post(&operator(), path, body).await;
    assert_limit(&refused, 20, "attachPaymentMethod");
}

#[tokio::test]
async fn a_setup_intent_belongs_to_the_customer_and_its_secret_is_not_stored() {
    let world = World::new();
    let platform = world.create_platform("engines").await;
    let body = json!({ "platformId": platform, "billingEmail": "ada@example.org" });
    let created = world.billing.post(&operator(), "/setup-intent", body).await;
    let created = created.expect(201);
    assert!(created.id().starts_with("seti_"));
    assert_eq!(created.json["status"], "requires_payment_method");
    assert_eq!(created.json["usage"], "off_session");
    assert_eq!(created.json["provider"], "ledger");
    let secret = created.text("clientSecret");
    assert!(secret.starts_with(&format!("{}_secret_", created.id())));
    let later = world.clock.now().plus(Duration::from_secs(1));
    let before = LedgerSetupIntentQuery::Before(later);
    let stored = format!("{:?}", world.all::<LedgerSetupIntent>(&before).await);
    assert!(stored.contains(&created.id()) && !stored.contains(secret));
}
