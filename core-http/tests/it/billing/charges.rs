//! Charges: idempotency keys, lost responses and an unreachable provider.

use std::sync::Arc;

use core_domain::billing::usage::{UsagePeriod, UsagePeriodQuery};
use core_domain::billing::{LedgerCharge, LedgerChargeQuery, LedgerOutcome};
use core_domain::kernel::{Context, InvoiceId, PlatformId};
use core_domain::use_case::billing::{Billing, recovery};
use futures_util::future::join_all;
use serde_json::{Value, json};

use super::{named_platform_with_card, paying_platform, platform_with_card};
use crate::world::{Answer, PaymentFault, World, on_every_store, operator};

const KEY: &str = "idempotency-key";

/// Upgrades a platform with an idempotency key.
async fn upgrade_with_key(world: &World, platform: &str, key: &str) -> Answer {
    let body = json!({ "platformId": platform, "tier": "growth" });
    let path = "/subscription/change-tier";
    let headers = [(KEY, key)];
    world
        .billing
        .send(&operator(), "POST", path, &headers, body)
        .await
}

#[tokio::test]
async fn a_lost_response_is_found_again_with_the_same_key_and_nothing_is_charged_twice() {
    let world = World::new();
    let payments = &world.payments;
    let (platform, _) = paying_platform(&world, "starter").await;
    world.tick(86_400);
    payments.fail_next(PaymentFault::AnswerLost);
    let lost = upgrade_with_key(&world, &platform, "once").await;
    lost.expect_error(502, "PAYMENT_OUTCOME_UNKNOWN");
    assert_eq!(world.subscription_of(&platform).await["tier"], "starter");
    let other = world.change_tier(&platform, "scale", json!({})).await;
    other.expect_error(409, "OPERATION_IN_PROGRESS");
    let found = upgrade_with_key(&world, &platform, "once")
        .await
        .expect(200);
    assert_eq!(found.json["tier"], "growth");
    let replayed = upgrade_with_key(&world, &platform, "once")
        .await
        .expect(200);
    assert_eq!(replayed.header("idempotency-replayed"), "true");
    assert_eq!(replayed.json, found.json);
    // The first invoice and the upgrade.
    assert_eq!(payments.charges().len(), 2);
    world.assert_books_balance().await;
}

#[tokio::test]
async fn an_unreachable_provider_undoes_the_change_which_can_be_repeated() {
    let world = World::new();
    let payments = &world.payments;
    let (platform, _) = paying_platform(&world, "starter").await;
    world.tick(86_400);
    payments.fail_next(PaymentFault::Unreachable);
    let refused = upgrade_with_key(&world, &platform, "once").await;
    refused.expect_error(502, "PAYMENT_PROVIDER_UNAVAILABLE");
    assert_eq!(world.last_invoice(&platform).await["status"], "void");
    world.assert_books_balance().await;
    let done = upgrade_with_key(&world, &platform, "once")
        .await
        .expect(200);
    assert_eq!(done.json["tier"], "growth");
    world.assert_books_balance().await;
}

pub(super) async fn recover(world: &World, billing: &Billing) -> usize {
    let cx = Context::system(Arc::clone(&world.app.entropy));
    let store = world.app.store.as_ref();
    recovery::recover(&cx, store, billing).await.unwrap()
}

#[tokio::test]
async fn an_interrupted_charge_without_a_key_is_settled_by_itself() {
    let world = World::new();
    let payments = &world.payments;
    let billing = Arc::clone(&world.billing_parts);
    let (platform, _) = paying_platform(&world, "starter").await;
    world.tick(86_400);
    payments.fail_next(PaymentFault::AnswerLost);
    let lost = world.change_tier(&platform, "growth", json!({})).await;
    lost.expect_error(502, "PAYMENT_OUTCOME_UNKNOWN");
    assert_eq!(
        recover(&world, &billing).await,
        0,
        "it may still be running"
    );
    world.tick(61);
    assert_eq!(recover(&world, &billing).await, 1);
    assert_eq!(world.subscription_of(&platform).await["tier"], "growth");
    assert_eq!(recover(&world, &billing).await, 0);
    world.assert_books_balance().await;
}

#[tokio::test]
async fn a_charge_of_unknown_outcome_stays_unknown_while_the_provider_is_unreachable() {
    let world = World::new();
    let payments = &world.payments;
    let (platform, _) = paying_platform(&world, "starter").await;
    world.tick(86_400);
    payments.fail_next(PaymentFault::AnswerLost);
    for _ in 0..2 {
        let lost = upgrade_with_key(&world, &platform, "once").await;
        lost.expect_error(502, "PAYMENT_OUTCOME_UNKNOWN");
        payments.fail_next(PaymentFault::Unreachable);
    }
    assert_eq!(world.last_invoice(&platform).await["status"], "open");
    world.assert_books_balance().await;
    let lost = upgrade_with_key(&world, &platform, "once").await;
    lost.expect_error(502, "PAYMENT_OUTCOME_UNKNOWN");
    let found = upgrade_with_key(&world, &platform, "once")
        .await
        .expect(200);
    assert_eq!(found.json["tier"], "growth");
    assert_eq!(payments.charges().len(), 2);
    world.assert_books_balance().await;
}

#[tokio::test]
async fn a_failed_call_does_not_cancel_an_invoice_that_another_process_charges() {
    let world = World::new();
    let payments = &world.payments;
    let billing = Arc::clone(&world.billing_parts);
    let (platform, _) = paying_platform(&world, "starter").await;
    world.tick(86_400);
    payments.fail_next(PaymentFault::AnswerLost);
    payments.fail_next(PaymentFault::UnreachableLater);
    let slow = upgrade_with_key(&world, &platform, "once");
    let other_process = async {
        payments.charge_begun().await;
        world.tick(61);
        let recovered = recover(&world, &billing).await;
        payments.let_fail();
        recovered
    };
    let (slow, recovered) = tokio::join!(slow, other_process);
    assert_eq!(recovered, 0, "the response of the other process was lost");
    slow.expect_error(502, "PAYMENT_OUTCOME_UNKNOWN");
    assert_eq!(world.last_invoice(&platform).await["status"], "open");
    world.tick(61);
    assert_eq!(recover(&world, &billing).await, 1);
    assert_eq!(world.subscription_of(&platform).await["tier"], "growth");
    assert_eq!(world.last_invoice(&platform).await["status"], "paid");
    assert_eq!(payments.charges().len(), 2);
    world.assert_books_balance().await;
}

#[tokio::test]
async fn no_customer_owes_the_usage_of_a_subscription_that_was_not_made() {
    let world = World::new();
    let payments = &world.payments;
    let (platform, _) = platform_with_card(&world).await;
    payments.fail_next(PaymentFault::UnreachableLater);
    let time_passes = async {
        payments.charge_begun().await;
        world.tick(2);
        payments.let_fail();
    };
    let (failed, ()) = tokio::join!(world.subscribe(&platform, "starter"), time_passes);
    failed.expect_error(502, "PAYMENT_PROVIDER_UNAVAILABLE");
    let platform = PlatformId::parse(&platform).unwrap();
    let of_platform = UsagePeriodQuery::Of(platform);
    let periods = world.all::<UsagePeriod>(&of_platform).await;
    assert!(!periods.is_empty());
    for period in periods {
        assert_eq!(
            (&period.customer_id, &period.subscription_id),
            (&None, &None)
        );
    }
}

#[tokio::test]
async fn an_invoice_is_not_cancelled_while_the_outcome_of_its_charge_is_open() {
    let world = World::new();
    let payments = &world.payments;
    let billing = Arc::clone(&world.billing_parts);
    let (platform, _) = platform_with_card(&world).await;
    payments.fail_next(PaymentFault::AnswerLost);
    let lost = world.subscribe(&platform, "starter").await;
    lost.expect_error(502, "PAYMENT_OUTCOME_UNKNOWN");
    let cancel = json!({ "platformId": platform, "immediately": true });
    let path = "/subscription/cancel";
    let refused = world.billing.post(&operator(), path, cancel.clone()).await;
    refused.expect_error(409, "OPERATION_IN_PROGRESS");
    world.tick(61);
    assert_eq!(recover(&world, &billing).await, 1);
    assert_eq!(world.subscription_of(&platform).await["status"], "active");
    assert_eq!(world.last_invoice(&platform).await["amountPaid"], 2900);
    let canceled = world.billing.post(&operator(), path, cancel).await;
    assert_eq!(canceled.expect(200).json["status"], "canceled");
    world.assert_books_balance().await;
}

#[tokio::test]
async fn what_is_not_paid_within_23_hours_is_undone() {
    let world = World::new();
    let (platform, customer) = paying_platform(&world, "starter").await;
    world.tick(60);
    world
        .use_card(&customer, "pm_card_authenticationRequired")
        .await;
    let waiting = world.change_tier(&platform, "growth", json!({})).await;
    waiting.expect_error(402, "PAYMENT_REQUIRED");
    let other = world.create_platform("looms").await;
    let incomplete = world.subscribe(&other, "starter").await.expect(201);
    assert_eq!(incomplete.json["status"], "incomplete");
    world.tick(22 * 3_600);
    world.bill().await;
    assert_eq!(world.last_invoice(&platform).await["status"], "open");
    world.tick(3_601);
    world.bill().await;
    assert_eq!(world.subscription_of(&platform).await["status"], "active");
    assert_eq!(world.last_invoice(&platform).await["status"], "void");
    assert_eq!(
        world.subscription_of(&other).await["status"],
        "incomplete_expired"
    );
    assert_eq!(world.last_invoice(&other).await["status"], "void");
    world.assert_books_balance().await;
}

#[tokio::test]
async fn a_subscription_that_cannot_be_charged_at_all_is_not_kept() {
    let world = World::new();
    let payments = &world.payments;
    let platform = world.create_platform("engines").await;
    let subscribe = |method: &str| {
        let body = json!({ "platformId": platform, "tier": "growth", "trialDays": 0,
            "paymentMethodId": method, "billingEmail": "ada@example.org" });
        let billing = world.billing.clone();
        async move { billing.post(&operator(), "/subscription", body).await }
    };
    payments.fail_next(PaymentFault::Unreachable);
    subscribe("pm_card_visa")
        .await
        .expect_error(502, "PAYMENT_PROVIDER_UNAVAILABLE");
    subscribe("pm_unknown").await.expect_error(404, "NOT_FOUND");
    let path = format!("/subscription?platformId={platform}");
    world
        .billing
        .get(&operator(), &path)
        .await
        .expect_error(404, "NOT_FOUND");
    world.assert_books_balance().await;
    let created = subscribe("pm_card_visa").await.expect(201);
    assert_eq!(created.json["status"], "active");
    world.assert_books_balance().await;
}

#[tokio::test]
async fn a_declined_charge_is_the_stored_answer_of_its_key() {
    let world = World::new();
    let (platform, customer) = paying_platform(&world, "starter").await;
    world.tick(60);
    world
        .use_card(&customer, "pm_card_chargeCustomerFail")
        .await;
    let first = upgrade_with_key(&world, &platform, "once").await;
    let first = first.expect_error(402, "PAYMENT_REQUIRED");
    let again = upgrade_with_key(&world, &platform, "once").await;
    assert_eq!(again.header("idempotency-replayed"), "true");
    assert_eq!(
        again.json["error"]["details"],
        first.json["error"]["details"]
    );
    let reused = json!({ "platformId": platform, "tier": "scale" });
    let path = "/subscription/change-tier";
    let reused = world
        .billing
        .send(&operator(), "POST", path, &[(KEY, "once")], reused)
        .await;
    reused.expect_error(422, "IDEMPOTENCY_KEY_REUSED");
}

async fn sixteen_equal_requests_charge_once(world: World) {
    let (platform, _) = paying_platform(&world, "starter").await;
    world.tick(86_400);
    let requests = (0..16).map(|_| upgrade_with_key(&world, &platform, "once"));
    let answers = join_all(requests).await;
    for answer in &answers {
        let is_expected = answer.status == 200 || answer.code() == "IDEMPOTENCY_IN_PROGRESS";
        assert!(is_expected, "{}", answer.json);
    }
    let last = upgrade_with_key(&world, &platform, "once")
        .await
        .expect(200);
    assert_eq!(last.json["tier"], "growth");
    let path = format!("/invoices?platformId={platform}");
    let listed = world.billing.get(&operator(), &path).await;
    assert_eq!(listed.json["pagination"]["total"], 2);
    world.assert_books_balance().await;
}

async fn sixteen_invoices_never_use_a_credit_twice(world: World) {
    let (platform, customer) = paying_platform(&world, "starter").await;
    let credit = json!({ "customerId": customer, "amount": 1000, "description": "Sorry" });
    let credit = world
        .billing
        .post(&operator(), "/operator/credits", credit)
        .await;
    let _ = credit.expect(201);
    world.tick(86_400);
    let tiers = ["growth", "scale"].into_iter().cycle().take(16);
    let changes = tiers.map(|tier| world.change_tier(&platform, tier, json!({})));
    join_all(changes).await;
    world.assert_books_balance().await;
}

async fn an_invoice_is_charged_or_cancelled_but_never_both(world: World) {
    world.set_time("2027-11-01T00:00:00Z");
    let mut cards = Vec::new();
    for name in ["anna", "bela", "cleo", "dora", "emma", "fritz"] {
        let (platform, customer) = named_platform_with_card(&world, name).await;
        let _ = world.subscribe(&platform, "growth").await.expect(201);
        let declined = "pm_card_chargeCustomerFail";
        world.use_card(&customer, declined).await;
        cards.push((platform, customer));
    }
    world.bill_until("2027-12-01T00:00:00Z").await;
    for (platform, customer) in &cards {
        let subscription = world.subscription_of(platform).await;
        assert_eq!(subscription["status"], "past_due");
        // A trial cancels what is open, and another card is charged at once.
        let trial = format!(
            "/operator/subscriptions/{}/trial",
            subscription["id"].as_str().unwrap()
        );
        let card = world.attach_card(customer, "pm_card_visa").await;
        let default = format!("/payment-methods/{card}/set-default");
        let operator = operator();
        let (canceled, charged) = tokio::join!(
            world
                .billing
                .post(&operator, &trial, json!({ "trialDays": 7 })),
            world
                .billing
                .post(&operator, &default, json!({ "customerId": customer })),
        );
        for answer in [&canceled, &charged] {
            assert!([200, 409].contains(&answer.status.as_u16()), "{answer:?}");
        }
        let invoices = world.invoices(platform).await;
        let renewal = invoices
            .iter()
            .find(|invoice| invoice["billingReason"] == "subscription_cycle")
            .unwrap();
        let id = InvoiceId::parse(renewal["id"].as_str().unwrap()).unwrap();
        let charges = world.all::<LedgerCharge>(&LedgerChargeQuery::Of(id)).await;
        let is_charged = charges
            .iter()
            .any(|charge| charge.outcome == LedgerOutcome::Paid);
        let expected = if is_charged { "paid" } else { "void" };
        assert_eq!(renewal["status"], expected, "{renewal}");
    }
    world.assert_books_balance().await;
}

on_every_store! {
    sixteen_equal_requests_charge_once,
    sixteen_invoices_never_use_a_credit_twice,
    an_invoice_is_charged_or_cancelled_but_never_both,
}

#[tokio::test]
async fn a_user_is_subscribed_and_charged_or_nothing_is_kept() {
    let world = World::new();
    let person = world.sign_up("ada@example.org").await;
    let subscribe = |method: &str| {
        let body = json!({ "userId": person.user_id, "priceId": "price_starter_month",
            "paymentMethodId": method, "quantity": 3 });
        let billing = world.billing.clone();
        async move { billing.post(&operator(), "/subscriptions", body).await }
    };
    for (method, reason) in [
        ("pm_card_chargeDeclined", "card_declined"),
        (
            "pm_card_chargeDeclinedInsufficientFunds",
            "insufficient_funds",
        ),
        ("pm_card_chargeCustomerFail", "card_declined"),
        ("pm_card_authenticationRequired", "authentication_required"),
    ] {
        let refused = subscribe(method)
            .await
            .expect_error(402, "PAYMENT_REQUIRED");
        assert_eq!(
            refused.json["error"]["details"]["reason"], reason,
            "{method}"
        );
        world.assert_books_balance().await;
    }
    subscribe("pm_unknown").await.expect_error(404, "NOT_FOUND");
    let created = subscribe("pm_card_visa").await.expect(201);
    assert_eq!(created.json["status"], "active");
    assert_eq!(created.json["platformId"], Value::Null);
    assert_eq!(created.json["amount"], 8700);
    let customer = created.text("customerId");
    let path = format!("/customers/{customer}/subscriptions");
    let listed = world.billing.get(&operator(), &path).await;
    assert_eq!(listed.json["data"].as_array().unwrap().len(), 1);
    world.assert_books_balance().await;
}

#[tokio::test]
async fn an_upgrade_with_a_new_card_returns_the_subscription_and_its_invoice() {
    let world = World::new();
    let (platform, _) = paying_platform(&world, "starter").await;
    world.tick(86_400);
    let upgrade = |plan: &str, method: &str, key: &str| {
        let body = json!({ "platformId": platform, "planId": plan, "paymentMethodId": method,
            "billingEmail": "money@example.org", "idempotencyKey": key });
        let billing = world.billing.clone();
        async move {
            billing
                .post(&operator(), "/api/billing/upgrade", body)
                .await
        }
    };
    let keys = ["1", "2", "3", "4"].map(|n| format!("00000000-0000-4000-8000-00000000000{n}"));
    upgrade("platinum", "pm_card_visa", &keys[0])
        .await
        .expect_error(404, "NOT_FOUND");
    upgrade("starter", "pm_card_visa", &keys[0])
        .await
        .expect_error(409, "CONFLICT");
    let done = upgrade("growth", "pm_card_visa", &keys[1])
        .await
        .expect(200);
    assert_eq!(done.json["status"], "active");
    assert_eq!(done.json["subscription"]["tier"], "growth");
    assert_eq!(done.json["invoice"]["status"], "paid");
    assert_eq!(done.json["idempotencyKey"], keys[1]);
    let again = upgrade("growth", "pm_card_visa", &keys[1])
        .await
        .expect(200);
    assert_eq!(again.json, done.json);
    let on_plan = upgrade("growth", "pm_card_visa", &keys[2]).await;
    on_plan.expect_error(409, "ALREADY_ON_PLAN");
    let action = upgrade("scale", "pm_card_authenticationRequired", &keys[3]).await;
    let action = action.expect(200);
    assert_eq!(action.json["status"], "requires_action");
    assert!(action.json["clientSecret"].is_string());
    assert_eq!(action.json["subscription"]["tier"], "growth");
    world.assert_books_balance().await;
}
