//! Usage periods: they follow the subscription, collect events for a day, and are priced once.

use serde_json::{Value, json};

use super::{paying_platform, platform_with_card};
use crate::world::{World, on_every_store, operator, usage_event, with_fields};

const NOVEMBER: &str = "2027-11-01T00:00:00Z";

/// Returns the status, the start and the end of all usage periods of a platform, newest first.
async fn periods(world: &World, platform: &str) -> Vec<[String; 3]> {
    let history = world.usage_of(platform, "/usage/history?limit=100").await;
    let field = |period: &Value, name: &str| period[name].as_str().unwrap().to_owned();
    let period =
        |period: &Value| ["status", "periodStart", "periodEnd"].map(|name| field(period, name));
    history["data"]
        .as_array()
        .unwrap()
        .iter()
        .map(period)
        .collect()
}

fn period(status: &str, start: &str, end: &str) -> [String; 3] {
    [
        status.to_owned(),
        format!("{start}.000Z"),
        format!("{end}.000Z"),
    ]
}

async fn example_13_invoices_usage_a_day_after_the_end(world: World) {
    world.set_time(NOVEMBER);
    let (platform, _) = paying_platform(&world, "growth").await;
    world.set_time("2027-11-16T00:00:00Z");
    world
        .use_metric(&platform, "a", "requests", 5_000_000)
        .await;
    let current = world.usage_of(&platform, "/usage/current").await;
    assert_eq!(
        (&current["baseAmount"], &current["usageAmount"]),
        (&json!(9900), &json!(200))
    );
    assert_eq!(current["estimatedTotal"], 10_100);
    let body = json!({ "platformId": platform, "immediately": true });
    let canceled = world
        .billing
        .post(&operator(), "/subscription/cancel", body)
        .await;
    assert_eq!(canceled.expect(200).json["status"], "canceled");
    let usage = world
        .usage_lines_at(&platform, "2027-11-16T23:59:59Z")
        .await;
    assert_eq!(usage, []);
    let ended = period("collecting", "2027-11-01T00:00:00", "2027-11-16T00:00:00");
    assert_eq!(periods(&world, &platform).await, [ended]);
    let usage = world
        .usage_lines_at(&platform, "2027-11-17T00:00:00Z")
        .await;
    assert_eq!(usage, [("usage".to_owned(), 200)]);
    let again = world
        .usage_lines_at(&platform, "2028-03-01T00:00:00Z")
        .await;
    assert_eq!(again, usage);
    let history = world
        .usage_of(&platform, "/usage/history?metric=requests")
        .await;
    let invoices = world.invoices(&platform).await;
    let invoice = invoices.last().unwrap();
    assert_eq!(
        (&invoice["status"], &invoice["amountPaid"]),
        (&json!("paid"), &json!(200))
    );
    let closed = history["data"].as_array().unwrap().last().unwrap();
    assert_eq!(closed["totalAmount"], 200);
    assert_eq!(closed["invoiceId"], invoice["id"]);
    world.assert_books_balance().await;
}

async fn example_14_weights_the_included_quantity_and_charges_late_usage(world: World) {
    world.set_time(NOVEMBER);
    let (platform, _) = paying_platform(&world, "starter").await;
    world.set_time("2027-11-16T00:00:00Z");
    let _ = world
        .change_tier(&platform, "growth", json!({}))
        .await
        .expect(200);
    world.use_metric(&platform, "a", "requests", 900_000).await;
    let current = world.usage_of(&platform, "/usage/current").await;
    let requests = &current["metrics"][0];
    assert_eq!(
        (&requests["included"], &requests["overage"]),
        (&json!(625_000), &json!(275_000))
    );
    assert_eq!(requests["estimatedAmount"], 14);
    let usage = world
        .usage_lines_at(&platform, "2027-12-02T00:00:00Z")
        .await;
    assert_eq!(usage, [("usage".to_owned(), 14)]);
    let late = json!({ "time": "2027-11-30T00:00:00Z" });
    let late = with_fields(usage_event(&platform, "late", "requests", 30_000), late);
    let _ = world.report_usage(vec![late]).await.expect(200);
    let usage = world
        .usage_lines_at(&platform, "2028-01-02T00:00:00Z")
        .await;
    let adjustment = ("usage_adjustment".to_owned(), 1);
    assert_eq!(usage, [("usage".to_owned(), 14), adjustment]);
    world.assert_books_balance().await;
    let history = world.usage_of(&platform, "/usage/history").await;
    let closed = history["data"].as_array().unwrap().last().unwrap();
    assert_eq!(
        (&closed["status"], &closed["totalAmount"]),
        (&json!("closed"), &json!(15))
    );
}

async fn usage_after_a_subscription_in_the_same_month_has_a_period_of_its_own(world: World) {
    world.set_time("2027-11-03T08:00:00Z");
    let (platform, _) = platform_with_card(&world).await;
    world.use_metric(&platform, "a", "requests", 1).await;
    let _ = world.subscribe(&platform, "starter").await.expect(201);
    world.set_time("2027-11-10T00:00:00Z");
    let body = json!({ "platformId": platform, "immediately": true });
    let path = "/subscription/cancel";
    let canceled = world.billing.post(&operator(), path, body).await;
    let _ = canceled.expect(200);
    world.set_time("2027-11-20T00:00:00Z");
    world.use_metric(&platform, "b", "requests", 2).await;
    world.bill().await;
    let current = world.usage_of(&platform, "/usage/current").await;
    assert_eq!(current["periodStart"], "2027-11-10T00:00:00.000Z");
    let seen = [
        period("open", "2027-11-10T00:00:00", "2027-12-01T00:00:00"),
        period("closed", "2027-11-03T08:00:00", "2027-11-10T00:00:00"),
        period("closed", "2027-11-01T00:00:00", "2027-11-03T08:00:00"),
    ];
    assert_eq!(periods(&world, &platform).await, seen);
}

on_every_store! {
    usage_after_a_subscription_in_the_same_month_has_a_period_of_its_own,
    example_13_invoices_usage_a_day_after_the_end,
    example_14_weights_the_included_quantity_and_charges_late_usage,
}

#[tokio::test]
async fn a_trial_is_a_period_of_its_own_and_is_not_charged() {
    let world = World::new();
    let (platform, _) = platform_with_card(&world).await;
    world.set_time("2027-01-20T10:00:00Z");
    let body = json!({ "platformId": platform, "tier": "starter" });
    let created = world
        .billing
        .post(&operator(), "/subscription", body)
        .await
        .expect(201);
    assert_eq!(created.json["status"], "trialing");
    world.use_metric(&platform, "a", "requests", 900_000).await;
    let current = world.usage_of(&platform, "/usage/current").await;
    assert_eq!(current["periodEnd"], "2027-02-03T10:00:00.000Z");
    assert_eq!(
        (&current["baseAmount"], &current["usageAmount"]),
        (&json!(0), &json!(0))
    );
    assert_eq!(current["metrics"][0]["included"], 250_000);
    let usage = world
        .usage_lines_at(&platform, "2027-02-05T10:00:00Z")
        .await;
    assert_eq!(usage, []);
}

#[tokio::test]
async fn the_months_of_a_yearly_plan_are_usage_periods() {
    let world = World::new();
    world.set_time(NOVEMBER);
    let (platform, _) = platform_with_card(&world).await;
    let body =
        json!({ "platformId": platform, "tier": "starter", "interval": "year", "trialDays": 0 });
    let _ = world
        .billing
        .post(&operator(), "/subscription", body)
        .await
        .expect(201);
    for month in ["2027-12-01T00:00:00Z", "2028-01-01T00:00:00Z"] {
        world.bill_until(month).await;
    }
    let expected = [
        period("open", "2028-01-01T00:00:00", "2028-02-01T00:00:00"),
        period("collecting", "2027-12-01T00:00:00", "2028-01-01T00:00:00"),
        period("closed", "2027-11-01T00:00:00", "2027-12-01T00:00:00"),
    ];
    assert_eq!(periods(&world, &platform).await, expected);
    let current = world.usage_of(&platform, "/usage/current").await;
    assert_eq!(
        (&current["tier"], &current["baseAmount"]),
        (&json!("starter"), &json!(0))
    );
}

#[tokio::test]
async fn usage_before_a_subscription_belongs_to_the_tier_free() {
    let world = World::new();
    let (platform, _) = platform_with_card(&world).await;
    world.set_time("2027-11-10T10:00:00Z");
    world.use_metric(&platform, "a", "requests", 40_000).await;
    world.set_time("2027-11-10T10:17:33Z");
    let _ = world.subscribe(&platform, "starter").await.expect(201);
    world.use_metric(&platform, "b", "requests", 5).await;
    let early = json!({ "time": "2027-11-10T10:17:32Z" });
    let early = with_fields(usage_event(&platform, "c", "requests", 3), early);
    let _ = world.report_usage(vec![early]).await.expect(200);
    let current = world.usage_of(&platform, "/usage/current").await;
    assert_eq!(current["metrics"][0]["quantity"], 5);
    let history = world
        .usage_of(&platform, "/usage/history?metric=requests")
        .await;
    let quantities: Vec<_> = history["data"]
        .as_array()
        .unwrap()
        .iter()
        .map(|period| &period["metrics"][0]["quantity"])
        .collect();
    assert_eq!(quantities, [&json!(5), &json!(40_003)]);
    let expected = [
        period("open", "2027-11-10T10:17:33", "2027-12-10T10:17:33"),
        period("open", "2027-11-01T00:00:00", "2027-11-10T10:17:33"),
    ];
    assert_eq!(periods(&world, &platform).await, expected);
    let daily = world
        .usage_of(&platform, "/usage/daily?from=2027-11-10&to=2027-11-10")
        .await;
    assert_eq!(daily["data"][0]["metrics"][0]["quantity"], 40_008);
}

#[tokio::test]
async fn a_change_of_interval_ends_the_usage_period() {
    let world = World::new();
    world.set_time(NOVEMBER);
    let (platform, _) = paying_platform(&world, "growth").await;
    world.use_metric(&platform, "a", "requests", 7).await;
    world.set_time("2027-11-16T00:00:00Z");
    let yearly = json!({ "interval": "year" });
    let _ = world
        .change_tier(&platform, "growth", yearly)
        .await
        .expect(200);
    world.use_metric(&platform, "b", "requests", 9).await;
    let expected = [
        period("open", "2027-11-16T00:00:00", "2027-12-16T00:00:00"),
        period("open", "2027-11-01T00:00:00", "2027-11-16T00:00:00"),
    ];
    assert_eq!(periods(&world, &platform).await, expected);
    let history = world.usage_of(&platform, "/usage/history").await;
    let first = &history["data"][1]["metrics"][0];
    assert_eq!(
        (&first["quantity"], &first["included"]),
        (&json!(7), &json!(1_000_000))
    );
}
