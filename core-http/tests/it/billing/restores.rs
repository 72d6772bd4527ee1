//! A database that is restored from a backup: the payment provider has charged more than the database knows.

use std::sync::Arc;

use core_domain::kernel::Context;
use core_domain::use_case::billing::inbox::catch_up;
use serde_json::{Value, json};

use super::paying_platform;
use crate::world::{World, operator};

/// Returns the number and the paid amount of each invoice at Stripe, oldest first.
fn paid_at_stripe(world: &World) -> Vec<(String, i64)> {
    let invoices = world.stripe.as_ref().unwrap().invoices();
    let row = |invoice: &Value| {
        (
            invoice["number"].as_str().unwrap().to_owned(),
            invoice["amount_paid"].as_i64().unwrap(),
        )
    };
    invoices.iter().map(row).collect()
}

/// Sets the clocks of the world and of Stripe, and makes what is due in billing by then.
async fn bill_until(world: &World, at: &str) {
    world.set_time(at);
    world.tick(0);
    world.bill().await;
}

#[tokio::test]
async fn a_renewal_that_is_made_again_after_a_restore_is_not_charged_again() {
    let world = World::new().at_stripe().await;
    world.set_time("2027-01-31T12:00:00Z");
    let (platform, _) = paying_platform(&world, "starter").await;
    let backup = world.image();
    bill_until(&world, "2027-03-01T00:00:00Z").await;
    let charged = paid_at_stripe(&world);
    assert_eq!(charged.len(), 2, "{charged:?}");
    let before = world.invoices(&platform).await;

    let world = world.with_image(&backup);
    assert_eq!(world.invoices(&platform).await.len(), 1);
    bill_until(&world, "2027-03-01T00:30:00Z").await;
    assert_eq!(paid_at_stripe(&world), charged);
    let after = world.invoices(&platform).await;
    for field in [
        "id",
        "number",
        "providerId",
        "status",
        "amountPaid",
        "paidAt",
    ] {
        assert_eq!(after[1][field], before[1][field], "{field}");
    }
    assert_eq!(world.subscription_of(&platform).await["status"], "active");
    world.assert_books_balance().await;

    // The next renewal is a new one.
    bill_until(&world, "2027-04-01T00:00:00Z").await;
    assert_eq!(paid_at_stripe(&world).len(), 3);
    world.assert_books_balance().await;
}

#[tokio::test]
async fn a_renewal_that_was_charged_with_another_amount_before_a_restore_is_refused() {
    let world = World::new().at_stripe().await;
    world.set_time("2027-01-31T12:00:00Z");
    let (platform, customer) = paying_platform(&world, "starter").await;
    let backup = world.image();
    // The credit that makes the renewal cheaper is lost with the database.
    world.set_time("2027-02-01T00:00:00Z");
    let credit = json!({ "customerId": customer, "amount": 1_000, "description": "Sorry" });
    let path = "/operator/credits";
    let granted = world.billing.post(&operator(), path, credit).await;
    let _ = granted.expect(201);
    bill_until(&world, "2027-03-01T00:00:00Z").await;
    let charged = paid_at_stripe(&world);
    assert_eq!(charged.last().unwrap().1, 1_900);

    let world = world.with_image(&backup);
    bill_until(&world, "2027-03-01T00:30:00Z").await;
    assert_eq!(paid_at_stripe(&world), charged);
    // The event of the earlier payment is missed, and does not pay it either.
    let cx = Context::system(Arc::clone(&world.app.entropy));
    let fetched = catch_up(&cx, world.app.store.as_ref(), &world.billing_parts);
    assert!(fetched.await.unwrap() > 0);
    world.run_jobs().await;
    assert_eq!(paid_at_stripe(&world), charged);
    let renewal = world.invoices(&platform).await.pop().unwrap();
    assert_eq!(renewal["status"], "open");
    world.assert_books_balance().await;
}

#[tokio::test]
async fn an_open_invoice_that_was_paid_before_a_restore_is_not_charged_again() {
    let world = World::new().at_stripe().await;
    world.set_time("2027-01-31T12:00:00Z");
    let (platform, customer) = paying_platform(&world, "starter").await;
    world
        .use_card(&customer, "pm_card_chargeCustomerFail")
        .await;
    bill_until(&world, "2027-02-28T12:00:00Z").await;
    let open = world.last_invoice(&platform).await;
    assert_eq!(open["status"], "open");
    let backup = world.image();
    world.use_card(&customer, "pm_card_visa").await;
    bill_until(&world, "2027-03-08T00:00:00Z").await;
    let charged = paid_at_stripe(&world);
    assert_eq!(charged.last().unwrap().1, 2_900);

    let world = world.with_image(&backup);
    world.use_card(&customer, "pm_card_visa").await;
    bill_until(&world, "2027-03-08T00:30:00Z").await;
    assert_eq!(paid_at_stripe(&world), charged);
    assert_eq!(world.last_invoice(&platform).await["status"], "paid");
    world.assert_books_balance().await;
}

#[tokio::test]
async fn a_renewal_is_found_at_stripe_although_another_invoice_before_it_is_lost() {
    let world = World::new().at_stripe().await;
    world.set_time("2027-01-31T12:00:00Z");
    let (platform, customer) = paying_platform(&world, "starter").await;
    let backup = world.image();
    // A declined upgrade uses a number.
    world.set_time("2027-02-01T00:00:00Z");
    world.tick(0);
    world
        .use_card(&customer, "pm_card_chargeCustomerFail")
        .await;
    let declined = world.change_tier(&platform, "growth", json!({})).await;
    declined.expect_error(402, "PAYMENT_REQUIRED");
    world.use_card(&customer, "pm_card_visa").await;
    bill_until(&world, "2027-03-01T00:00:00Z").await;
    let charged = paid_at_stripe(&world);
    let before = world.last_invoice(&platform).await;
    let world = world.with_image(&backup);
    bill_until(&world, "2027-03-01T00:30:00Z").await;
    assert_eq!(paid_at_stripe(&world), charged);
    let after = world.last_invoice(&platform).await;
    assert_eq!(after["status"], "paid");
    assert_eq!(after["id"], before["id"]);
    assert_ne!(after["number"], before["number"]);
    world.assert_books_balance().await;
}
