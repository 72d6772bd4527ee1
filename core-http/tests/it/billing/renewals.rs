//! Renewals: periods that follow each other, and the ends of trials.

use serde_json::{Value, json};

use super::{line_amounts, paying_platform, platform_with_card};
use crate::world::{World, on_every_store, operator};

/// Returns the start and the end of the period, the amount due and the status of each invoice.
async fn summary(world: &World, platform: &str) -> Vec<(String, String, i64, String)> {
    let text = |value: &Value| value.as_str().unwrap().to_owned();
    let invoices = world.invoices(platform).await;
    let summary = invoices.iter().map(|invoice| {
        (
            text(&invoice["periodStart"]),
            text(&invoice["periodEnd"]),
            invoice["amountDue"].as_i64().unwrap(),
            text(&invoice["status"]),
        )
    });
    summary.collect()
}

fn paid(start: &str, end: &str, amount: i64) -> (String, String, i64, String) {
    let at = |date: &str| format!("{date}.000Z");
    (at(start), at(end), amount, "paid".to_owned())
}

on_every_store! { a_period_begins_where_the_last_one_ends_however_late_it_is_invoiced }

async fn a_period_begins_where_the_last_one_ends_however_late_it_is_invoiced(world: World) {
    world.set_time("2027-01-31T12:00:00Z");
    let (platform, _) = paying_platform(&world, "starter").await;
    let due = world.bill_until("2027-02-28T11:59:59Z").await;
    assert_eq!((due.running, due.waiting), (0, 0));
    assert_eq!(world.invoices(&platform).await.len(), 1);
    // The second boundary is made in time, the others together.
    world.bill_until("2027-02-28T12:00:00Z").await;
    world.bill_until("2027-06-01T00:00:00Z").await;
    let expected = [
        paid("2027-01-31T12:00:00", "2027-02-28T12:00:00", 2900),
        paid("2027-02-28T12:00:00", "2027-03-31T12:00:00", 2900),
        paid("2027-03-31T12:00:00", "2027-04-30T12:00:00", 2900),
        paid("2027-04-30T12:00:00", "2027-05-31T12:00:00", 2900),
        paid("2027-05-31T12:00:00", "2027-06-30T12:00:00", 2900),
    ];
    assert_eq!(summary(&world, &platform).await, expected);
    for invoice in world.invoices(&platform).await {
        assert_eq!(invoice["finalizedAt"], invoice["periodStart"]);
        assert_eq!(invoice["paidAt"], invoice["periodStart"]);
    }
    assert_eq!(world.subscription_of(&platform).await["status"], "active");
    world.assert_books_balance().await;
}

#[tokio::test]
async fn example_9_renews_a_yearly_plan_on_the_last_day_of_february() {
    let world = World::new();
    world.set_time("2028-02-29T00:00:00Z");
    let (platform, _) = platform_with_card(&world).await;
    let body = json!({ "platformId": platform, "tier": "starter", "interval": "year", "trialDays": 0,
        "billingEmail": "billing@example.org" });
    let created = world.billing.post(&operator(), "/subscription", body).await;
    let _ = created.expect(201);
    world.bill_until("2032-03-01T00:00:00Z").await;
    let dates = [
        "2028-02-29",
        "2029-02-28",
        "2030-02-28",
        "2031-02-28",
        "2032-02-29",
        "2033-02-28",
    ];
    let at = |date: &str| format!("{date}T00:00:00");
    let expected: Vec<_> = dates
        .windows(2)
        .map(|dates| paid(&at(dates[0]), &at(dates[1]), 29_000))
        .collect();
    assert_eq!(summary(&world, &platform).await, expected);
}

#[tokio::test]
async fn examples_1_and_3_have_the_new_price_in_the_next_period() {
    for (from, to, amount) in [("starter", "growth", 9900), ("growth", "starter", 2900)] {
        let world = World::new();
        world.set_time("2027-11-01T00:00:00Z");
        let (platform, _) = paying_platform(&world, from).await;
        world.set_time("2027-11-16T00:00:00Z");
        let _ = world
            .change_tier(&platform, to, json!({}))
            .await
            .expect(200);
        world.bill_until("2027-12-01T00:00:00Z").await;
        let renewed = world.last_invoice(&platform).await;
        assert_eq!(renewed["billingReason"], "subscription_cycle");
        assert_eq!(line_amounts(&renewed), [amount]);
        let subscription = world.subscription_of(&platform).await;
        assert_eq!(subscription["tier"], to);
        assert_eq!(subscription["pendingChange"], Value::Null);
        assert_eq!(world.platform(&platform).await["tier"], to);
        world.assert_books_balance().await;
    }
}

#[tokio::test]
async fn example_7_charges_a_trial_at_its_end_or_pauses_it_without_a_card() {
    let world = World::new();
    world.set_time("2027-01-20T10:00:00Z");
    let (platform, _) = platform_with_card(&world).await;
    let body =
        json!({ "platformId": platform, "tier": "starter", "billingEmail": "billing@example.org" });
    let created = world
        .billing
        .post(&operator(), "/subscription", body.clone())
        .await;
    assert_eq!(created.expect(201).json["status"], "trialing");
    world.bill_until("2027-02-03T10:00:00Z").await;
    let expected = [paid("2027-02-03T10:00:00", "2027-03-03T10:00:00", 2900)];
    assert_eq!(summary(&world, &platform).await, expected);
    let subscription = world.subscription_of(&platform).await;
    assert_eq!(subscription["status"], "active");
    assert_eq!(subscription["anchor"], "2027-02-03T10:00:00.000Z");
    assert_eq!(world.platform(&platform).await["trialEndsAt"], Value::Null);

    let world = World::new();
    world.set_time("2027-01-20T10:00:00Z");
    let platform = world.create_platform("engines").await;
    world.set_time("2027-01-20T10:00:00Z");
    let body =
        json!({ "platformId": platform, "tier": "growth", "billingEmail": "billing@example.org" });
    let created = world.billing.post(&operator(), "/subscription", body).await;
    let _ = created.expect(201);
    world.bill_until("2027-02-10T00:00:00Z").await;
    let paused = world.subscription_of(&platform).await;
    assert_eq!(paused["status"], "paused");
    assert_eq!(world.platform(&platform).await["tier"], "starter");
    assert!(world.invoices(&platform).await.is_empty());
    world.assert_books_balance().await;
}

#[tokio::test]
async fn a_paused_subscription_begins_a_new_period_with_the_first_card_that_can_be_charged() {
    let world = World::new();
    world.set_time("2027-01-20T10:00:00Z");
    let platform = world.create_platform("engines").await;
    let customer = world.customer(&platform).await;
    let body =
        json!({ "platformId": platform, "tier": "growth", "billingEmail": "billing@example.org" });
    let created = world.billing.post(&operator(), "/subscription", body).await;
    let _ = created.expect(201);
    world.bill_until("2027-02-10T12:00:00Z").await;
    world
        .use_card(&customer, "pm_card_chargeCustomerFail")
        .await;
    assert_eq!(world.subscription_of(&platform).await["status"], "paused");
    assert_eq!(world.last_invoice(&platform).await["status"], "void");
    world.set_time("2027-02-11T12:00:00Z");
    world.use_card(&customer, "pm_card_visa").await;
    let resumed = world.subscription_of(&platform).await;
    assert_eq!(resumed["status"], "active");
    assert_eq!(resumed["currentPeriodStart"], "2027-02-11T12:00:00.000Z");
    assert_eq!(resumed["currentPeriodEnd"], "2027-03-11T12:00:00.000Z");
    assert_eq!(world.last_invoice(&platform).await["amountPaid"], 9900);
    assert_eq!(world.platform(&platform).await["tier"], "growth");
    world.assert_books_balance().await;
}

#[tokio::test]
async fn example_11_pays_renewals_with_a_credit_until_it_is_used_up() {
    let world = World::new();
    world.set_time("2027-11-01T00:00:00Z");
    let (platform, customer) = paying_platform(&world, "starter").await;
    let body = json!({ "customerId": customer, "amount": 5000, "description": "a gift" });
    let granted = world
        .billing
        .post(&operator(), "/operator/credits", body)
        .await;
    let _ = granted.expect(201);
    world.bill_until("2028-01-01T00:00:00Z").await;
    let invoices = world.invoices(&platform).await;
    let amounts: Vec<_> = invoices[1..]
        .iter()
        .map(|invoice| (&invoice["creditsApplied"], &invoice["amountDue"]))
        .collect();
    assert_eq!(
        amounts,
        [(&json!(2900), &json!(0)), (&json!(2100), &json!(800))]
    );
    assert!(invoices.iter().all(|invoice| invoice["status"] == "paid"));
    world.assert_books_balance().await;
}

#[tokio::test]
async fn example_12_collects_a_small_amount_with_the_renewal() {
    let world = World::new();
    world.set_time("2027-11-01T00:00:00Z");
    let (platform, _) = paying_platform(&world, "starter").await;
    world.set_time("2027-11-30T23:00:00Z");
    let _ = world
        .change_tier(&platform, "growth", json!({}))
        .await
        .expect(200);
    let small = world.last_invoice(&platform).await;
    assert_eq!(line_amounts(&small), [-4, 14]);
    assert_eq!(
        (&small["amountDue"], &small["status"]),
        (&json!(0), &json!("paid"))
    );
    world.bill_until("2027-12-01T00:00:00Z").await;
    let renewed = world.last_invoice(&platform).await;
    assert_eq!(renewed["balanceApplied"], -10);
    assert_eq!(renewed["amountDue"], 9910);
    world.assert_books_balance().await;
}

#[tokio::test]
async fn a_credit_expires_on_its_date_and_pays_nothing_from_then_on() {
    let world = World::new();
    world.set_time("2027-11-01T00:00:00Z");
    let (platform, customer) = paying_platform(&world, "starter").await;
    let body = json!({ "customerId": customer, "amount": 5000, "description": "a gift",
        "expiresAt": "2027-12-01T00:00:00Z" });
    let granted = world
        .billing
        .post(&operator(), "/operator/credits", body)
        .await;
    let _ = granted.expect(201);
    world.bill_until("2027-12-01T00:00:00Z").await;
    assert_eq!(world.last_invoice(&platform).await["creditsApplied"], 0);
    let path = format!("/customers/{customer}");
    let shown = world.billing.get(&operator(), &path).await.expect(200);
    assert_eq!(shown.json["creditBalance"], 0);
    world.assert_books_balance().await;
}

#[tokio::test]
async fn a_subscription_that_is_cancelled_ends_with_its_period() {
    let world = World::new();
    world.set_time("2027-11-01T00:00:00Z");
    let (platform, _) = paying_platform(&world, "growth").await;
    let body = json!({ "platformId": platform, "reason": "too large" });
    let cancelled = world
        .billing
        .post(&operator(), "/subscription/cancel", body)
        .await;
    let _ = cancelled.expect(200);
    world.bill_until("2027-12-15T00:00:00Z").await;
    let ended = world.subscription_of(&platform).await;
    assert_eq!(ended["status"], "canceled");
    assert_eq!(ended["endedAt"], "2027-12-01T00:00:00.000Z");
    assert_eq!(ended["cancellationReason"], "too large");
    assert_eq!(world.invoices(&platform).await.len(), 1);
    assert_eq!(world.platform(&platform).await["tier"], "starter");
}

#[tokio::test]
async fn a_change_that_waits_for_confirmation_is_not_made_after_the_period() {
    let world = World::new();
    world.set_time("2027-11-01T00:00:00Z");
    let (platform, customer) = paying_platform(&world, "starter").await;
    world.set_time("2027-11-30T12:00:00Z");
    world
        .use_card(&customer, "pm_card_authenticationRequired")
        .await;
    let waiting = world.change_tier(&platform, "scale", json!({})).await;
    waiting.expect_error(402, "PAYMENT_REQUIRED");
    world.bill_until("2027-12-01T00:00:00Z").await;
    let statuses: Vec<_> = world
        .invoices(&platform)
        .await
        .iter()
        .map(|invoice| {
            let fields = ["billingReason", "status", "amountDue"];
            json!(fields.map(|field| invoice[field].clone()))
        })
        .collect();
    assert_eq!(statuses[1][1], "void");
    let renewal = json!(["subscription_cycle", "open", 2900]);
    assert_eq!(statuses[2], renewal);
    let subscription = world.subscription_of(&platform).await;
    assert_eq!(subscription["tier"], "starter");
    assert_eq!(
        subscription["currentPeriodStart"],
        "2027-12-01T00:00:00.000Z"
    );
    world.assert_books_balance().await;
}

#[tokio::test]
async fn nothing_happens_when_the_clock_goes_back() {
    let world = World::new();
    world.set_time("2027-11-01T00:00:00Z");
    let (platform, _) = paying_platform(&world, "starter").await;
    world.bill_until("2027-12-01T00:00:00Z").await;
    for at in [
        "2027-11-30T23:00:00Z",
        "2027-11-30T00:00:00Z",
        "2027-12-01T01:00:00Z",
    ] {
        world.bill_until(at).await;
        assert_eq!(world.invoices(&platform).await.len(), 2);
    }
    // 400 days later, each boundary is there once.
    world.bill_until("2029-01-05T00:00:00Z").await;
    let starts: Vec<_> = summary(&world, &platform).await;
    assert_eq!(starts.len(), 15);
    assert!(starts.windows(2).all(|pair| pair[0].1 == pair[1].0));
    world.assert_books_balance().await;
}
