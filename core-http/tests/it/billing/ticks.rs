//! Requests that make due changes at once, and move the test clock.

use std::time::Duration;

use serde_json::json;

use super::paying_platform;
use crate::world::{Answer, World, operator, owner, usage_event, with_fields};

const TICK: &str = "/internal/billing/tick";

/// Sends a tick while jobs run.
async fn tick(world: &World, now: Option<&str>) -> Answer {
    let body = json!({ "now": now });
    let caller = operator();
    let sent = world.billing.post(&caller, TICK, body);
    let jobs = async {
        loop {
            world.run_jobs().await;
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    tokio::select! {
        answer = sent => answer,
        () = jobs => unreachable!("jobs run for ever"),
    }
}

#[tokio::test(start_paused = true)]
async fn a_year_passes_with_one_tick_and_later_requests_are_made_at_its_end() {
    let world = World::new();
    world.set_time("2027-11-01T00:00:00Z");
    let (platform, _) = paying_platform(&world, "starter").await;
    let ticked = tick(&world, Some("2028-11-01T00:00:00Z")).await.expect(200);
    assert_eq!(
        ticked.json,
        json!({ "now": "2028-11-01T00:00:00.000Z", "running": 0, "waiting": 0 })
    );
    assert_eq!(world.invoices(&platform).await.len(), 13);
    let changed = world.change_tier(&platform, "growth", json!({})).await;
    let _ = changed.expect(200);
    let invoice = world.last_invoice(&platform).await;
    assert_eq!(invoice["finalizedAt"], "2028-11-01T00:00:00.000Z");
    // The clock runs on.
    world.tick(90);
    let ticked = tick(&world, None).await.expect(200);
    assert_eq!(ticked.json["now"], "2028-11-01T00:01:30.000Z");
    world.assert_books_balance().await;
}

#[tokio::test(start_paused = true)]
async fn usage_follows_the_moved_clock() {
    let world = World::new();
    world.set_time("2027-11-01T00:00:00Z");
    let (platform, _) = paying_platform(&world, "starter").await;
    let _ = tick(&world, Some("2028-01-10T00:00:00Z")).await.expect(200);
    let event = |id: &str, time: &str| {
        with_fields(
            usage_event(&platform, id, "requests", 500_000_000),
            json!({ "time": time }),
        )
    };
    // By the clock of the store, the first event is in the future, and the second one is new.
    let events = vec![
        event("a", "2028-01-09T23:00:00Z"),
        event("b", "2027-11-02T00:00:00Z"),
    ];
    let reported = world.report_usage(events).await.expect(200);
    assert_eq!(reported.json["events"][0]["status"], "accepted");
    assert_eq!(reported.json["events"][1]["code"], "EVENT_TOO_OLD");
    let usage = world.usage_of(&platform, "/usage/current").await;
    assert_eq!(usage["periodStart"], "2028-01-01T00:00:00.000Z");
    assert_eq!(usage["metrics"][0]["quantity"], 500_000_000);
    let alerts = world.usage_of(&platform, "/usage/alerts").await;
    assert_eq!(alerts["data"][0]["triggeredAt"], "2028-01-10T00:00:00.000Z");
    let _ = tick(&world, Some("2028-02-02T00:00:00Z")).await.expect(200);
    let invoices = world.invoices(&platform).await;
    let of_usage = invoices
        .iter()
        .find(|invoice| invoice["billingReason"] == "usage");
    assert_eq!(of_usage.unwrap()["periodStart"], "2028-01-01T00:00:00.000Z");
}

#[tokio::test(start_paused = true)]
async fn the_clock_is_not_moved_back_and_only_operators_move_it() {
    let world = World::new();
    world.set_time("2027-11-01T00:00:00Z");
    let _ = tick(&world, Some("2027-12-01T00:00:00Z")).await.expect(200);
    let back = tick(&world, Some("2027-11-30T00:00:00Z")).await;
    back.expect_error(400, "VALIDATION_ERROR");
    let platform = world.create_platform("engines").await;
    let refused = world.billing.post(&owner(&platform), TICK, json!({})).await;
    refused.expect_error(403, "FORBIDDEN");
}
