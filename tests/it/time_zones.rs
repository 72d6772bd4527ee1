//! The time zone of a server changes no invoice: billing computes in UTC.

use std::process::Command;

use futures_util::future::join_all;
use http::Method;
use serde_json::{Value, json};

use crate::world::{BillingServer, Call, PlatformMember};

/// Zones with different days at the same instant, with and without daylight-saving time. That of Lord Howe changes the
/// clock by half an hour.
const ZONES: [&str; 4] = [
    "UTC",
    "America/New_York",
    "Pacific/Apia",
    "Australia/Lord_Howe",
];

/// Later than the real date, because the clock of billing only runs forward.
const START: &str = "2032-01-05T00:00:00Z";

/// Midnight has passed in Apia and on Lord Howe, but not in UTC.
const ANCHOR_ON_31ST: &str = "2032-01-31T23:30:00.000Z";

/// Midnight has passed in UTC, but not in New York.
const ANCHOR_ON_LEAP_DAY: &str = "2032-02-29T00:30:00.000Z";

/// Before both changes of clocks.
const ANCHOR_OF_UPGRADES: &str = "2032-03-01T05:00:00.000Z";

/// Clocks of New York are put forward by an hour.
const CHANGE_IN_NEW_YORK: &str = "2032-03-14T07:00:00.000Z";

/// Clocks of Lord Howe are put back by half an hour.
const CHANGE_ON_LORD_HOWE: &str = "2032-04-03T15:00:00.000Z";

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn invoices_are_equal_in_every_time_zone() {
    let played = join_all(ZONES.map(play_script)).await;
    assert_eq!(played[0].starts, expected_starts());
    for (zone, script) in ZONES.iter().zip(&played) {
        assert_eq!(script.starts, played[0].starts, "{zone}");
        assert_eq!(script.documents.len(), played[0].documents.len());
        for (document, in_utc) in script.documents.iter().zip(&played[0].documents) {
            assert_eq!(document, in_utc, "{zone}");
        }
    }
}

/// Returns the starts of the service periods of all invoices of the script, and their totals in minor units.
fn expected_starts() -> Vec<(String, i64)> {
    let monthly = [
        "2032-01-31T23:30:00.000Z",
        "2032-02-29T23:30:00.000Z",
        "2032-03-31T23:30:00.000Z",
        "2032-04-30T23:30:00.000Z",
        "2032-05-31T23:30:00.000Z",
        "2032-06-30T23:30:00.000Z",
        "2032-07-31T23:30:00.000Z",
    ];
    let yearly = [
        "2032-02-29T00:30:00.000Z",
        "2033-02-28T00:30:00.000Z",
        "2034-02-28T00:30:00.000Z",
        "2035-02-28T00:30:00.000Z",
        "2036-02-29T00:30:00.000Z",
    ];
    let upgraded = [
        ("2032-03-01T05:00:00.000Z", 2_900),
        // 1,548,000 of 2,678,400 seconds are left: -1,676 and 5,722.
        ("2032-03-01T05:00:00.000Z", 4_046),
        ("2032-04-01T05:00:00.000Z", 9_900),
        // 2,383,200 of 2,592,000 seconds are left: -9,103 and 45,880.
        ("2032-04-01T05:00:00.000Z", 36_777),
        ("2032-05-01T05:00:00.000Z", 49_900),
        ("2032-06-01T05:00:00.000Z", 49_900),
        ("2032-07-01T05:00:00.000Z", 49_900),
        ("2032-08-01T05:00:00.000Z", 49_900),
    ];
    let all = monthly.map(|start| (start, 2_900)).into_iter();
    let all = all.chain(yearly.map(|start| (start, 29_000)));
    let all = all.chain(upgraded);
    all.map(|(start, total)| (start.to_owned(), total))
        .collect()
}

/// The invoices of a server after the script.
struct PlayedScript {
    /// The starts of the service periods and the totals, oldest first for each platform.
    starts: Vec<(String, i64)>,
    /// The invoices as JSON and as pages, without ids.
    documents: Vec<String>,
}

/// Subscribes a new platform, whose trial ends at an instant. Returns the id of the platform.
async fn subscribe(
    billing: &BillingServer,
    slug: &str,
    interval: &str,
    trial_ends_at: &str,
) -> String {
    let platform = PlatformMember::operating(&billing.server, slug)
        .await
        .platform;
    let body = json!({ "platformId": platform, "tier": "starter", "interval": interval,
        "paymentMethodId": "pm_card_visa", "billingEmail": "billing@example.org" });
    let created = billing.post("/subscription", body, 201).await;
    assert_eq!(created["status"], "trialing");
    let subscription = created["id"].as_str().unwrap();
    let path = format!("/operator/subscriptions/{subscription}/override");
    let body = json!({ "trialEndsAt": trial_ends_at, "reason": "An exact anchor" });
    let changed = billing.send(Call::post(path, &body).by(&Method::PATCH), 200);
    assert_eq!(changed.await["anchor"], trial_ends_at);
    platform
}

/// Moves the clock to an instant, and upgrades a platform as of that instant.
async fn upgrade(billing: &BillingServer, platform: &str, tier: &str, at: &str) {
    billing.advance(at).await;
    let body = json!({ "platformId": platform, "tier": tier, "prorationDate": at });
    let changed = billing.post("/subscription/change-tier", body, 200).await;
    assert_eq!(changed["tier"], tier);
}

async fn play_script(zone: &str) -> PlayedScript {
    assert_zone_exists(zone);
    let billing = BillingServer::start(&[("TZ", zone.to_owned())]).await;
    billing.advance(START).await;
    let monthly = subscribe(&billing, "monthly", "month", ANCHOR_ON_31ST).await;
    let yearly = subscribe(&billing, "yearly", "year", ANCHOR_ON_LEAP_DAY).await;
    let upgraded = subscribe(&billing, "upgraded", "month", ANCHOR_OF_UPGRADES).await;
    upgrade(&billing, &upgraded, "growth", CHANGE_IN_NEW_YORK).await;
    upgrade(&billing, &upgraded, "scale", CHANGE_ON_LORD_HOWE).await;
    billing.advance("2032-08-15T00:00:00Z").await;
    for platform in [&monthly, &upgraded] {
        let body = json!({ "platformId": platform, "immediately": true });
        billing.post("/subscription/cancel", body, 200).await;
    }
    billing.advance("2036-03-15T00:00:00Z").await;

    let (mut starts, mut text) = (Vec::new(), String::new());
    for platform in [monthly, yearly, upgraded] {
        for (invoice, texts) in billing.invoices(&platform).await {
            assert_eq!(invoice["status"], "paid", "{invoice}");
            let start = invoice["periodStart"].as_str().unwrap().to_owned();
            starts.push((start, invoice["total"].as_i64().unwrap()));
            for document in texts {
                text.push_str(&without_real_time(document, &invoice));
                text.push(SEPARATOR);
            }
        }
    }
    assert!(billing.server.terminate().await.success());
    let documents = without_ids(&text)
        .split(SEPARATOR)
        .map(str::to_owned)
        .collect();
    PlayedScript { starts, documents }
}

/// Separates documents. No document contains it.
const SEPARATOR: char = '\0';

/// Checks that the machine knows a time zone. The C library takes an unknown one for UTC, and nothing would be tested.
fn assert_zone_exists(zone: &str) {
    let date = Command::new("date").env("TZ", zone).arg("+%z").output();
    let offset = String::from_utf8(date.unwrap().stdout).unwrap();
    let is_utc = offset.trim() == "+0000";
    assert_eq!(
        is_utc,
        zone == "UTC",
        "install the time zones: {zone} is {offset}"
    );
}

/// Removes the parts of times that depend on the speed of the test. The time of the last change is that of the real
/// clock. An invoice for a change is created when the request arrives, within a minute after the clock was moved.
fn without_real_time(mut document: String, invoice: &Value) -> String {
    let updated = invoice["updatedAt"].as_str().unwrap();
    document = document.replace(updated, "(updated)");
    if invoice["billingReason"] == "subscription_update" {
        for field in ["createdAt", "finalizedAt", "paidAt"] {
            let time = invoice[field].as_str().unwrap();
            let minute = &time[.."2032-03-14T07:00".len()];
            document = document.replace(time, minute);
        }
    }
    // The number of an invoice begins with digits of the customer's id.
    let number = invoice["number"].as_str().unwrap();
    let (_, position) = number.split_once('-').unwrap();
    document.replace(number, position)
}

/// Replaces each id by its position among all ids, in the order of their first occurrence.
fn without_ids(text: &str) -> String {
    let mut known: Vec<&str> = Vec::new();
    let (mut replaced, mut left) = (String::with_capacity(text.len()), text);
    while let Some(first) = left.chars().next() {
        let id = left.get(..ID_LENGTH).filter(|id| is_id(id));
        let Some(id) = id else {
            replaced.push(first);
            left = &left[first.len_utf8()..];
            continue;
        };
        let position = known.iter().position(|other| *other == id);
        let position = position.unwrap_or_else(|| {
            known.push(id);
            known.len() - 1
        });
        replaced.push_str(&format!("(id {position})"));
        left = &left[ID_LENGTH..];
    }
    replaced
}

/// The number of characters of a UUID.
const ID_LENGTH: usize = 36;

fn is_id(text: &str) -> bool {
    let is_hyphen = |at: usize| matches!(at, 8 | 13 | 18 | 23);
    text.bytes()
        .enumerate()
        .all(|(at, byte)| match is_hyphen(at) {
            true => byte == b'-',
            false => byte.is_ascii_hexdigit(),
        })
}
