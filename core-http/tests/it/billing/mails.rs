//! The mails of billing: each is sent once, from the commit that causes it.

use serde_json::json;

use super::{paying_platform, platform_with_card};
use crate::world::{PaymentFault, World, on_every_store, operator};

const DECLINED: &str = "pm_card_chargeCustomerFail";

/// Returns the subjects of all mails to the address for invoices, without the numbers of invoices.
async fn subjects(world: &World) -> Vec<String> {
    let mails = world.mails().await;
    let own = mails
        .iter()
        .filter(|mail| mail.to.as_str() == "billing@example.org");
    own.map(|mail| {
        let words = mail.subject.split(' ');
        let words = words.filter(|word| !word.contains("-0000"));
        words.collect::<Vec<_>>().join(" ")
    })
    .collect()
}

async fn a_customer_is_told_about_every_step_of_a_collection(world: World) {
    world.set_time("2027-11-01T00:00:00Z");
    let (platform, customer) = paying_platform(&world, "starter").await;
    let receipt = "Receipt for invoice";
    assert_eq!(subjects(&world).await, [receipt]);
    world.use_card(&customer, DECLINED).await;
    world.bill_until("2027-12-01T00:00:00Z").await;
    world.bill_until("2027-12-01T00:00:00Z").await;
    let failed = "The payment of invoice failed";
    assert_eq!(subjects(&world).await[1..], ["Invoice", failed]);
    world.bill_until("2027-12-08T00:00:00Z").await;
    let seen = subjects(&world).await;
    let given_up = "Invoice is not paid, and the platform is suspended";
    // Mails of one instant have no order.
    let mut tail = seen[3..].to_vec();
    tail.sort_unstable();
    assert_eq!(tail, [given_up, failed, failed, failed]);
    let invoice = world.last_invoice(&platform).await;
    let mails = world.mails().await;
    let mut last = mails.iter();
    let last = last.find(|mail| mail.subject.ends_with("is suspended"));
    let last = last.unwrap();
    let page = invoice["hostedInvoiceUrl"].as_str().unwrap();
    assert!(last.text.contains(page), "{}", last.text);
    assert!(last.text.contains("29.00 USD"), "{}", last.text);
    world.use_card(&customer, "pm_card_visa").await;
    let body = json!({ "platformId": platform, "immediately": true });
    let path = "/subscription/cancel";
    let canceled = world.billing.post(&operator(), path, body).await;
    let _ = canceled.expect(200);
    let mut tail = subjects(&world).await.split_off(7);
    tail.sort_unstable();
    assert_eq!(tail, [receipt, "Your subscription has ended"]);
}
on_every_store!(a_customer_is_told_about_every_step_of_a_collection);

#[tokio::test]
async fn a_charge_that_must_be_confirmed_is_mailed_and_an_outage_is_not() {
    let world = World::new();
    world.set_time("2027-11-01T00:00:00Z");
    let (_, customer) = paying_platform(&world, "starter").await;
    world
        .use_card(&customer, "pm_card_authenticationRequired")
        .await;
    world.payments.fail_next(PaymentFault::Unreachable);
    world.bill_until("2027-12-01T00:00:00Z").await;
    assert_eq!(subjects(&world).await[1..], ["Invoice"]);
    world.bill_until("2027-12-01T00:10:00Z").await;
    let confirm = "Confirm the payment of invoice";
    assert_eq!(subjects(&world).await[1..], ["Invoice", confirm]);
}

#[tokio::test]
async fn a_declined_upgrade_sends_no_mail() {
    let world = World::new();
    let (platform, customer) = platform_with_card(&world).await;
    let _ = world.subscribe(&platform, "starter").await.expect(201);
    world.use_card(&customer, DECLINED).await;
    let before = subjects(&world).await.len();
    let declined = world.change_tier(&platform, "growth", json!({})).await;
    declined.expect_error(402, "PAYMENT_REQUIRED");
    assert_eq!(subjects(&world).await.len(), before);
}
