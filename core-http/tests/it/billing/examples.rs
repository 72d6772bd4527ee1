//! The worked examples of the contract that need no renewal, one year later than they are written there.

use serde_json::json;

use super::{line_amounts, paying_platform, platform_with_card};
use crate::world::{World, operator};

/// Subscribes a platform at an instant, changes its tier at others, and returns the lines and the amount due of each
/// change.
async fn change(start: &str, tier: &str, changes: &[(&str, &str)]) -> Vec<(Vec<i64>, i64)> {
    let world = World::new();
    world.set_time(start);
    let (platform, _) = paying_platform(&world, tier).await;
    let mut seen = Vec::new();
    for (at, tier) in changes {
        world.set_time(at);
        let changed = world.change_tier(&platform, tier, json!({})).await;
        assert_eq!(changed.expect(200).json["tier"], *tier);
        let invoice = world.last_invoice(&platform).await;
        assert_eq!(invoice["status"], "paid");
        seen.push((
            line_amounts(&invoice),
            invoice["amountDue"].as_i64().unwrap(),
        ));
        world.assert_books_balance().await;
    }
    seen
}

const NOVEMBER: &str = "2027-11-01T00:00:00Z";
const MIDDLE: &str = "2027-11-16T00:00:00Z";

#[tokio::test]
async fn examples_1_and_2_charge_the_rest_of_the_period_at_the_new_price() {
    let halved = change(NOVEMBER, "starter", &[(MIDDLE, "growth")]).await;
    assert_eq!(halved, [(vec![-1450, 4950], 3500)]);
    let at = "2027-11-11T09:30:17Z";
    let uneven = change(NOVEMBER, "starter", &[(at, "growth")]).await;
    assert_eq!(uneven, [(vec![-1895, 6469], 4574)]);
}

#[tokio::test]
async fn example_3_lets_a_downgrade_wait_for_the_end_of_the_period() {
    let world = World::new();
    world.set_time(NOVEMBER);
    let (platform, _) = paying_platform(&world, "growth").await;
    world.set_time(MIDDLE);
    let changed = world.change_tier(&platform, "starter", json!({})).await;
    let changed = changed.expect(200);
    assert_eq!(changed.json["tier"], "growth");
    let pending = json!({ "tier": "starter", "priceId": "price_starter_month", "quantity": 1,
        "effectiveAt": "2027-12-01T00:00:00.000Z" });
    assert_eq!(changed.json["pendingChange"], pending);
    let listed = format!("/invoices?platformId={platform}");
    let listed = world.billing.get(&operator(), &listed).await;
    assert_eq!(listed.json["data"].as_array().unwrap().len(), 1);
}

#[tokio::test]
async fn example_4_costs_the_same_in_one_step_or_in_two() {
    let steps = [(MIDDLE, "growth"), (MIDDLE, "scale")];
    let steps = change(NOVEMBER, "starter", &steps).await;
    let expected = [(vec![-1450, 4950], 3500), (vec![-4950, 24950], 20000)];
    assert_eq!(steps, expected);
    let at_once = change(NOVEMBER, "starter", &[(MIDDLE, "scale")]).await;
    assert_eq!(at_once, [(vec![-1450, 24950], 23500)]);
}

#[tokio::test]
async fn example_5_returns_an_upgrade_that_is_undone_to_the_balance() {
    for (undone_at, lines, balance) in [
        (MIDDLE, vec![-4950, 1450], -3500),
        ("2027-11-16T00:10:00Z", vec![-4948, 1449], -3499),
    ] {
        let world = World::new();
        world.set_time(NOVEMBER);
        let (platform, customer) = paying_platform(&world, "starter").await;
        world.set_time(MIDDLE);
        let _ = world
            .change_tier(&platform, "growth", json!({}))
            .await
            .expect(200);
        world.set_time(undone_at);
        let undone = json!({ "effective": "now" });
        let undone = world.change_tier(&platform, "starter", undone).await;
        assert_eq!(undone.expect(200).json["tier"], "starter");
        let invoice = world.last_invoice(&platform).await;
        assert_eq!(line_amounts(&invoice), lines);
        assert_eq!(invoice["amountDue"], 0);
        let path = format!("/customers/{customer}");
        let customer = world.billing.get(&operator(), &path).await;
        assert_eq!(customer.json["balance"], balance);
        world.assert_books_balance().await;
    }
}

#[tokio::test]
async fn example_6_adds_up_over_two_upgrades_in_one_period() {
    let changes = [
        ("2027-11-08T06:00:01Z", "growth"),
        ("2027-11-21T17:45:59Z", "scale"),
    ];
    let seen = change(NOVEMBER, "starter", &changes).await;
    let expected = [(vec![-2199, 7507], 5308), (vec![-3056, 15402], 12346)];
    assert_eq!(seen, expected);
}

#[tokio::test]
async fn examples_8_and_9_count_periods_from_the_anchor() {
    let world = World::new();
    world.set_time("2028-01-31T12:00:00Z");
    let (platform, _) = paying_platform(&world, "starter").await;
    let seen = world.subscription_of(&platform).await;
    assert_eq!(seen["currentPeriodEnd"], "2028-02-29T12:00:00.000Z");
    let yearly = World::new();
    yearly.set_time("2028-02-29T00:00:00Z");
    let (platform, _) = platform_with_card(&yearly).await;
    let body =
        json!({ "platformId": platform, "tier": "starter", "interval": "year", "trialDays": 0 });
    let created = yearly
        .billing
        .post(&operator(), "/subscription", body)
        .await;
    let created = created.expect(201);
    assert_eq!(created.json["amount"], 29000);
    assert_eq!(created.json["currentPeriodEnd"], "2029-02-28T00:00:00.000Z");
    yearly.set_time("2028-08-29T00:00:00Z");
    let _ = yearly
        .change_tier(&platform, "growth", json!({}))
        .await
        .expect(200);
    let invoice = yearly.last_invoice(&platform).await;
    assert_eq!(line_amounts(&invoice), [-14540, 49636]);
    assert_eq!(invoice["amountDue"], 35096);
}

#[tokio::test]
async fn example_10_restarts_the_period_with_a_longer_interval() {
    let world = World::new();
    world.set_time(NOVEMBER);
    let (platform, _) = paying_platform(&world, "growth").await;
    world.set_time(MIDDLE);
    let yearly = json!({ "interval": "year" });
    let changed = world
        .change_tier(&platform, "growth", yearly)
        .await
        .expect(200);
    assert_eq!(changed.json["planId"], "growth_year");
    assert_eq!(changed.json["anchor"], "2027-11-16T00:00:00.000Z");
    assert_eq!(changed.json["currentPeriodEnd"], "2028-11-16T00:00:00.000Z");
    let invoice = world.last_invoice(&platform).await;
    assert_eq!(line_amounts(&invoice), [-4950, 99000]);
    assert_eq!(invoice["amountDue"], 94050);
}

#[tokio::test]
async fn example_11_pays_the_first_invoice_with_a_credit() {
    let world = World::new();
    let platform = world.create_platform("engines").await;
    let customer = world.customer(&platform).await;
    let credit = json!({ "customerId": customer, "amount": 5000, "currency": "USD", "description": "Welcome" });
    let credit = world
        .billing
        .post(&operator(), "/operator/credits", credit)
        .await;
    assert_eq!(credit.expect(201).json["remaining"], 5000);
    let subscribed = world.subscribe(&platform, "starter").await.expect(201);
    assert_eq!(subscribed.json["status"], "active");
    let invoice = world.last_invoice(&platform).await;
    assert_eq!(invoice["creditsApplied"], 2900);
    assert_eq!(invoice["amountDue"], 0);
    assert_eq!(invoice["status"], "paid");
    let path = format!("/customers/{customer}");
    let customer = world.billing.get(&operator(), &path).await;
    assert_eq!(customer.json["creditBalance"], 2100);
    world.assert_books_balance().await;
}

#[tokio::test]
async fn example_12_moves_an_amount_below_the_minimum_to_the_balance() {
    let world = World::new();
    world.set_time(NOVEMBER);
    let (platform, customer) = paying_platform(&world, "starter").await;
    world.set_time("2027-11-30T23:00:00Z");
    let _ = world
        .change_tier(&platform, "growth", json!({}))
        .await
        .expect(200);
    let invoice = world.last_invoice(&platform).await;
    assert_eq!(line_amounts(&invoice), [-4, 14]);
    assert_eq!(invoice["amountDue"], 0);
    assert_eq!(invoice["balanceApplied"], 10);
    let path = format!("/customers/{customer}");
    let customer = world.billing.get(&operator(), &path).await;
    assert_eq!(customer.json["balance"], 10);
}

#[tokio::test]
async fn example_15_credits_what_was_paid_and_not_what_an_operator_has_set() {
    let world = World::new();
    world.set_time(NOVEMBER);
    let (platform, _) = paying_platform(&world, "starter").await;
    world.set_time("2027-11-10T00:00:00Z");
    let id = world.subscription_of(&platform).await["id"].clone();
    let path = format!("/operator/subscriptions/{}/override", id.as_str().unwrap());
    let body = json!({ "tier": "growth", "reason": "a gift" });
    let overridden = world.billing.patch(&operator(), &path, body).await;
    assert_eq!(overridden.expect(200).json["tier"], "growth");
    world.set_time(MIDDLE);
    let _ = world
        .change_tier(&platform, "scale", json!({}))
        .await
        .expect(200);
    let invoice = world.last_invoice(&platform).await;
    assert_eq!(line_amounts(&invoice), [-1450, 24950]);
    assert_eq!(invoice["amountDue"], 23500);
}
