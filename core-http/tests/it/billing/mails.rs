//! The mails of billing: each is sent once, from the commit that causes it.

use serde_json::{Value, json};

use super::{paying_platform, platform_with_card};
use crate::world::{PaymentFault, World, on_every_store, operator};

const DECLINED: &str = "pm_card_chargeCustomerFail";

/// Returns the subjects of all mails to the address for invoices, without the numbers of invoices.
pub(super) async fn subjects(world: &World) -> Vec<String> {
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
    // Later than the mails so far.
    world.tick(1);
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

/// Returns the mails whose subject contains a word, as subject and text.
pub(super) async fn mails_with(world: &World, word: &str) -> Vec<(String, String)> {
    let mails = world.mails().await;
    let own = mails.iter().filter(|mail| mail.subject.contains(word));
    own.map(|mail| (mail.subject.clone(), mail.text.clone()))
        .collect()
}

async fn the_end_of_a_trial_is_told_seven_days_and_one_day_before(world: World) {
    let (platform, customer) = platform_with_card(&world).await;
    world.set_time("2027-01-20T10:00:00Z");
    let body = json!({ "platformId": platform, "tier": "starter" });
    let path = "/subscription";
    let created = world.billing.post(&operator(), path, body).await;
    assert_eq!(
        created.expect(201).json["trialEndsAt"],
        "2027-02-03T10:00:00.000Z"
    );
    let told = || mails_with(&world, "Your trial ends");
    world.bill_until("2027-01-27T09:59:59Z").await;
    assert_eq!(told().await.len(), 0);
    for _ in 0..2 {
        world.bill_until("2027-01-27T10:00:00Z").await;
        let seen = told().await;
        assert_eq!(seen.len(), 1);
        assert_eq!(seen[0].0, "Your trial ends on 2027-02-03");
        assert!(seen[0].1.contains("charged 29.00 USD"), "{}", seen[0].1);
    }
    // A longer trial is notified about again. The notices of the old end do not come any more.
    let id = world.subscription_of(&platform).await["id"].clone();
    let path = format!("/operator/subscriptions/{}/trial", id.as_str().unwrap());
    let longer = json!({ "trialDays": 14 });
    let longer = world.billing.post(&operator(), &path, longer).await;
    assert_eq!(
        longer.expect(200).json["trialEndsAt"],
        "2027-02-17T10:00:00.000Z"
    );
    world.bill_until("2027-02-03T10:00:00Z").await;
    assert_eq!(told().await.len(), 1);
    let method = world.use_card(&customer, "pm_card_visa").await;
    for other in world.attached_cards(&platform).await {
        if other != method {
            world.detach(&other).await;
        }
    }
    world.detach(&method).await;
    // A late run sends what is due, and the trial ends once.
    world.bill_until("2027-02-18T00:00:00Z").await;
    let seen = told().await;
    assert_eq!(seen.len(), 3);
    for (subject, text) in &seen[1..] {
        assert_eq!(subject, "Your trial ends on 2027-02-17");
        assert!(text.contains("There is no card yet"), "{text}");
    }
    assert_eq!(world.subscription_of(&platform).await["status"], "paused");
}
on_every_store!(the_end_of_a_trial_is_told_seven_days_and_one_day_before);

#[tokio::test]
async fn a_short_trial_is_told_about_once_and_a_paid_subscription_never() {
    let world = World::new();
    let (platform, _) = platform_with_card(&world).await;
    world.set_time("2027-01-20T10:00:00Z");
    let body = json!({ "platformId": platform, "tier": "starter", "trialDays": 7 });
    let created = world.billing.post(&operator(), "/subscription", body).await;
    let _ = created.expect(201);
    world.bill_until("2027-04-01T00:00:00Z").await;
    assert_eq!(mails_with(&world, "Your trial ends").await.len(), 1);
}

async fn usage_from_80_percent_on_is_told_once(world: World) {
    world.set_time("2027-11-01T00:00:00Z");
    let (platform, _) = paying_platform(&world, "starter").await;
    world.use_metric(&platform, "a", "requests", 124_000).await;
    world.use_metric(&platform, "b", "requests", 1_000).await;
    world.bill().await;
    assert_eq!(mails_with(&world, "what your plan includes").await.len(), 0);
    world.use_metric(&platform, "c", "requests", 75_000).await;
    for _ in 0..2 {
        world.bill().await;
        let seen = mails_with(&world, "what your plan includes").await;
        assert_eq!(seen.len(), 1);
        assert_eq!(
            seen[0].0,
            "80 % of what your plan includes is used: Requests"
        );
        assert!(seen[0].1.contains("200000 of the 250000"), "{}", seen[0].1);
    }
}
on_every_store!(usage_from_80_percent_on_is_told_once);

async fn an_expiring_card_is_told_about_once_if_it_is_needed(world: World) {
    world.set_time("2034-10-15T00:00:00Z");
    let (platform, customer) = paying_platform(&world, "starter").await;
    let told = || mails_with(&world, "expires");
    // The test cards expire at the end of 2034.
    world.bill_until("2034-12-01T23:59:59Z").await;
    assert_eq!(told().await.len(), 0);
    for _ in 0..2 {
        world.bill_until("2034-12-02T00:00:00Z").await;
        let seen = told().await;
        let subject = "Your card ending in 4242 expires at the end of 12/2034";
        assert_eq!(seen.len(), 1);
        assert_eq!(seen[0].0, subject);
    }
    // Another card that expires as soon is notified about at once. Without a subscription no card is notified about.
    world
        .use_card(&customer, "pm_card_authenticationRequired")
        .await;
    world.bill().await;
    assert_eq!(told().await.len(), 2);
    let body = json!({ "platformId": platform, "immediately": true });
    let canceled = world
        .billing
        .post(&operator(), "/subscription/cancel", body)
        .await;
    let _ = canceled.expect(200);
    world.use_card(&customer, "pm_card_visa").await;
    world.bill().await;
    assert_eq!(told().await.len(), 2);
    // A new subscription needs the card.
    let _ = world.subscribe(&platform, "starter").await.expect(201);
    for _ in 0..2 {
        world.bill().await;
        assert_eq!(told().await.len(), 3);
    }
}
on_every_store!(an_expiring_card_is_told_about_once_if_it_is_needed);

async fn spending_is_told_about_at_80_and_100_percent_of_the_customers_limit(world: World) {
    world.set_time("2027-11-01T00:00:00Z");
    let (platform, customer) = paying_platform(&world, "starter").await;
    let limit = async |minor: Value| {
        let path = format!("/customers/{customer}");
        let body = json!({ "spendAlert": minor });
        world.billing.patch(&operator(), &path, body).await
    };
    for invalid in [
        json!(0),
        json!(-1),
        json!(1.5),
        json!("100"),
        json!(1_u64 << 53),
    ] {
        let refused = limit(invalid).await;
        refused.expect_error(400, "VALIDATION_ERROR");
    }
    // Requests above the included 250,000 cost 0.00005 minor units each.
    world.use_metric(&platform, "a", "requests", 250_000).await;
    world.bill().await;
    let told = async || mails_with(&world, "The price of your usage").await;
    assert_eq!(
        limit(json!(1000)).await.expect(200).json["spendAlert"],
        1000
    );
    world
        .use_metric(&platform, "b", "requests", 10_000_000)
        .await;
    world.bill().await;
    assert_eq!(told().await.len(), 0);
    world
        .use_metric(&platform, "c", "requests", 6_000_000)
        .await;
    for _ in 0..2 {
        world.bill().await;
        let seen = told().await;
        assert_eq!(seen.len(), 1);
        assert!(
            seen[0].0.ends_with("reached 80 % of your limit"),
            "{}",
            seen[0].0
        );
        assert!(seen[0].1.contains("costs 8.00 USD"), "{}", seen[0].1);
        assert!(seen[0].1.contains("alerts is 10.00 USD"), "{}", seen[0].1);
    }
    let alerts = world.usage_of(&platform, "/usage/alerts").await;
    let alerts = alerts["data"].as_array().unwrap();
    let spend = alerts.iter().filter(|alert| alert["metric"] == "spend");
    let spend: Vec<_> = spend
        .map(|alert| {
            json!([
                alert["threshold"],
                alert["status"],
                alert["quantity"],
                alert["limit"]
            ])
        })
        .collect();
    let expected = [
        json!([50, "triggered", 500, 1000]),
        json!([80, "triggered", 800, 1000]),
        json!([100, "armed", 800, 1000]),
    ];
    assert_eq!(spend, expected);
    // A lower limit that is reached already triggers with the next usage.
    let _ = limit(json!(500)).await.expect(200);
    world.use_metric(&platform, "d", "requests", 20_000).await;
    world.bill().await;
    assert_eq!(told().await.len(), 3);
    let _ = limit(Value::Null).await.expect(200);
    world
        .use_metric(&platform, "e", "requests", 90_000_000)
        .await;
    world.bill().await;
    assert_eq!(told().await.len(), 3);
}
on_every_store!(spending_is_told_about_at_80_and_100_percent_of_the_customers_limit);
