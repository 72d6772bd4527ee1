//! Charges that fail: repeated attempts, suspension, recovery and the end of collection.

use serde_json::{Value, json};

use super::webhooks::CONFIRMED;
use super::{billing_records, named_platform_with_card, paying_platform, platform_with_card};
use crate::world::{PaymentFault, World, on_every_store, operator, platform_path};

/// Creates a platform whose renewal on 1 December 2027 cannot be charged, and returns its id with that of its customer.
async fn behind(world: &World, card: &str) -> (String, String) {
    world.set_time("2027-11-01T00:00:00Z");
    let (platform, customer) = paying_platform(world, "growth").await;
    world.use_card(&customer, card).await;
    renew_in_vain(world, &platform).await;
    (platform, customer)
}

async fn renew_in_vain(world: &World, platform: &str) {
    world.bill_until("2027-12-01T00:00:00Z").await;
    assert_eq!(world.subscription_of(platform).await["status"], "past_due");
}

const DECLINED: &str = "pm_card_chargeCustomerFail";

on_every_store! { an_invoice_is_charged_five_times_then_the_platform_is_suspended_until_it_is_paid }

async fn an_invoice_is_charged_five_times_then_the_platform_is_suspended_until_it_is_paid(
    world: World,
) {
    let (platform, customer) = behind(&world, DECLINED).await;
    let invoice = world.last_invoice(&platform).await;
    assert_eq!(invoice["attemptCount"], 1);
    assert_eq!(invoice["nextPaymentAttemptAt"], "2027-12-02T00:00:00.000Z");
    assert_eq!(world.platform(&platform).await["tier"], "growth");
    let mut seen = Vec::new();
    for day in 2..=9 {
        world
            .bill_until(&format!("2027-12-{day:02}T00:00:00Z"))
            .await;
        seen.push(world.last_invoice(&platform).await["attemptCount"].clone());
    }
    assert_eq!(json!(seen), json!([2, 2, 3, 3, 4, 4, 5, 5]));
    let unpaid = world.subscription_of(&platform).await;
    assert_eq!(unpaid["status"], "unpaid");
    let suspended = world.platform(&platform).await;
    assert_eq!(suspended["status"], "suspended");
    assert_eq!(suspended["suspensionReason"], "payment_overdue");
    world.set_time("2027-12-20T00:00:00Z");
    world.use_card(&customer, "pm_card_visa").await;
    assert_eq!(world.subscription_of(&platform).await["status"], "active");
    assert_eq!(world.platform(&platform).await["status"], "active");
    assert_eq!(world.last_invoice(&platform).await["status"], "paid");
    world.assert_books_balance().await;
}

#[tokio::test]
async fn an_invoice_is_charged_again_after_two_charges_in_one_second() {
    let world = World::new();
    world.set_time("2027-11-01T00:00:00Z");
    let mut platforms = Vec::new();
    // Ids of attempts are random, so one platform alone proves nothing.
    for number in 0..8 {
        let slug = format!("engines-{number}");
        let (platform, customer) = named_platform_with_card(&world, &slug).await;
        let _ = world.subscribe(&platform, "growth").await.expect(201);
        world.use_card(&customer, CONFIRMED).await;
        platforms.push((platform, customer));
    }
    world.bill_until("2027-12-01T00:00:00Z").await;
    for (_, customer) in &platforms {
        world.use_card(customer, DECLINED).await;
    }
    let due = world.bill_until("2027-12-02T00:00:00Z").await;
    assert_eq!(due.waiting, 0);
    for (platform, _) in &platforms {
        let invoice = world.last_invoice(platform).await;
        assert_eq!(invoice["attemptCount"], 3);
        assert_eq!(invoice["nextPaymentAttemptAt"], "2027-12-04T00:00:00.000Z");
    }
}

#[tokio::test]
async fn one_late_run_has_the_result_of_runs_in_time() {
    let mut results = Vec::new();
    for stops in [vec![40], vec![1, 2, 5, 8, 20, 31, 38, 40]] {
        let world = World::new();
        let (platform, _) = behind(&world, DECLINED).await;
        for day in stops {
            world.set_time("2027-12-01T00:00:00Z");
            world.tick(day * 86_400);
            world.bill().await;
        }
        let records = billing_records(&world, &platform).await;
        world.assert_books_balance().await;
        results.push(records);
    }
    assert_eq!(results[0], results[1]);
    let (invoices, subscription) = (&results[0]["invoices"], &results[0]["subscription"]);
    assert_eq!(subscription["status"], "canceled");
    assert_eq!(subscription["endedAt"], "2028-01-07T00:00:00.000Z");
    assert_eq!(invoices[1]["status"], "uncollectible");
}

/// Creates a platform whose card is declined for good at the renewal, and returns its id with that of its customer.
async fn with_lost_card(world: &World) -> (String, String) {
    world.set_time("2027-11-01T00:00:00Z");
    let (platform, customer) = paying_platform(world, "growth").await;
    world.payments.fail_next(PaymentFault::DeclinedForGood);
    renew_in_vain(world, &platform).await;
    let invoice = world.last_invoice(&platform).await;
    assert_eq!(invoice["nextPaymentAttemptAt"], Value::Null);
    (platform, customer)
}

#[tokio::test]
async fn a_card_that_is_declined_for_good_is_not_tried_again_but_another_one_is_at_once() {
    let world = World::new();
    let (platform, customer) = with_lost_card(&world).await;
    world.bill_until("2027-12-04T00:00:00Z").await;
    assert_eq!(world.last_invoice(&platform).await["attemptCount"], 1);
    world.use_card(&customer, "pm_card_visa").await;
    assert_eq!(world.last_invoice(&platform).await["status"], "paid");
    assert_eq!(world.subscription_of(&platform).await["status"], "active");
    world.assert_books_balance().await;
}

#[tokio::test]
async fn a_subscription_is_unpaid_after_seven_days_without_another_card() {
    let world = World::new();
    let (platform, _) = with_lost_card(&world).await;
    world.bill_until("2027-12-07T23:59:59Z").await;
    assert_eq!(world.subscription_of(&platform).await["status"], "past_due");
    world.bill_until("2027-12-08T00:00:00Z").await;
    assert_eq!(world.subscription_of(&platform).await["status"], "unpaid");
    assert_eq!(world.last_invoice(&platform).await["attemptCount"], 1);
    world.assert_books_balance().await;
}

#[tokio::test]
async fn a_subscription_that_is_paid_after_its_period_begins_a_new_one() {
    let world = World::new();
    let (platform, customer) = behind(&world, DECLINED).await;
    world.bill_until("2028-01-03T08:00:00Z").await;
    assert_eq!(world.subscription_of(&platform).await["status"], "unpaid");
    world.use_card(&customer, "pm_card_visa").await;
    world.bill().await;
    let subscription = world.subscription_of(&platform).await;
    assert_eq!(subscription["status"], "active");
    assert_eq!(
        subscription["currentPeriodStart"],
        "2028-01-03T08:00:00.000Z"
    );
    assert_eq!(subscription["anchor"], "2028-01-03T08:00:00.000Z");
    let invoices = world.invoices(&platform).await;
    assert_eq!(invoices.len(), 3);
    assert!(invoices.iter().all(|invoice| invoice["status"] == "paid"));
    world.assert_books_balance().await;
}

#[tokio::test]
async fn a_payment_lifts_only_the_suspension_by_billing() {
    let world = World::new();
    let (platform, customer) = behind(&world, DECLINED).await;
    world.bill_until("2027-12-08T00:00:00Z").await;
    let path = platform_path(&platform, "/suspend");
    let suspended = world
        .registry
        .post(&operator(), &path, json!({ "reason": "a review" }))
        .await;
    let _ = suspended.expect(200);
    world.use_card(&customer, "pm_card_visa").await;
    assert_eq!(world.subscription_of(&platform).await["status"], "active");
    assert_eq!(world.platform(&platform).await["status"], "suspended");
    let path = platform_path(&platform, "/restore");
    let restored = world.registry.post(&operator(), &path, json!({})).await;
    let _ = restored.expect(200);
    assert_eq!(world.platform(&platform).await["status"], "active");
}

#[tokio::test]
async fn a_subscription_that_is_cancelled_while_unpaid_stays_suspended_and_is_not_charged_again() {
    let world = World::new();
    let (platform, _) = behind(&world, DECLINED).await;
    world.bill_until("2027-12-08T00:00:00Z").await;
    let body = json!({ "platformId": platform, "immediately": true });
    let ended = world
        .billing
        .post(&operator(), "/subscription/cancel", body)
        .await;
    assert_eq!(ended.expect(200).json["status"], "canceled");
    assert_eq!(
        world.last_invoice(&platform).await["status"],
        "uncollectible"
    );
    assert_eq!(world.platform(&platform).await["status"], "suspended");
    world.bill_until("2028-03-01T00:00:00Z").await;
    assert_eq!(world.last_invoice(&platform).await["attemptCount"], 5);
    world.assert_books_balance().await;
}

#[tokio::test]
async fn an_outage_of_the_provider_is_no_failed_attempt() {
    let world = World::new();
    world.set_time("2027-11-01T00:00:00Z");
    let (platform, _) = paying_platform(&world, "growth").await;
    for _ in 0..3 {
        world.payments.fail_next(PaymentFault::Unreachable);
    }
    let due = world.bill_until("2027-12-01T00:00:00Z").await;
    assert_eq!((due.running, due.waiting), (0, 1));
    let open = world.last_invoice(&platform).await;
    assert_eq!(
        (&open["status"], &open["attemptCount"]),
        (&json!("open"), &json!(0))
    );
    for _ in 0..4 {
        world.tick(31);
        world.bill().await;
    }
    let paid = world.last_invoice(&platform).await;
    assert_eq!(
        (&paid["status"], &paid["attemptCount"]),
        (&json!("paid"), &json!(1))
    );
    assert_eq!(world.subscription_of(&platform).await["status"], "active");
    world.assert_books_balance().await;
}

#[tokio::test]
async fn a_charge_whose_response_is_lost_is_looked_up_and_not_repeated() {
    let world = World::new();
    world.set_time("2027-11-01T00:00:00Z");
    let (platform, _) = paying_platform(&world, "growth").await;
    world.payments.fail_next(PaymentFault::AnswerLost);
    let due = world.bill_until("2027-12-01T00:00:00Z").await;
    assert_eq!(due.waiting, 1);
    let refused = world.change_tier(&platform, "scale", json!({})).await;
    refused.expect_error(409, "OPERATION_IN_PROGRESS");
    world.tick(11);
    world.bill().await;
    assert_eq!(world.last_invoice(&platform).await["status"], "paid");
    assert_eq!(world.payments.charges().len(), 2);
    world.assert_books_balance().await;
}

#[tokio::test]
async fn an_incomplete_subscription_ends_after_23_hours() {
    let world = World::new();
    world.set_time("2027-11-01T00:00:00Z");
    let (platform, customer) = platform_with_card(&world).await;
    world.use_card(&customer, DECLINED).await;
    let created = world.subscribe(&platform, "growth").await.expect(201);
    assert_eq!(created.json["status"], "incomplete");
    world.bill_until("2027-11-01T22:59:59Z").await;
    assert_eq!(
        world.subscription_of(&platform).await["status"],
        "incomplete"
    );
    world.bill_until("2027-11-01T23:00:00Z").await;
    assert_eq!(
        world.subscription_of(&platform).await["status"],
        "incomplete_expired"
    );
    assert_eq!(world.last_invoice(&platform).await["status"], "void");
    world.assert_books_balance().await;
}
