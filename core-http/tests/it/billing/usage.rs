//! Usage: events count once, and every view adds up to the same quantities.

use core_domain::billing::usage::{UsageEvent, UsageEventQuery};
use core_domain::kernel::{Context, Timestamp};
use core_domain::port::transact;
use core_domain::use_case::billing::storage_usage::measure_storage;
use core_domain::use_case::shared::usage::{MIN_EVENT_RETENTION, remove_old_events};
use serde_json::{Value, json};

use super::paying_platform;
use crate::world::{
    World, admin, on_every_store, operator, plain_member, platform_path, usage_event, with_fields,
};

const START: &str = "2027-11-01T00:00:00Z";

/// Returns the number of accepted, duplicate and rejected events.
fn counts(answer: &Value) -> [u64; 3] {
    ["accepted", "duplicates", "rejected"].map(|name| answer[name].as_u64().unwrap())
}

/// Returns a field of a metric.
fn of_metric(metrics: &Value, metric: &str, field: &str) -> i64 {
    let mut metrics = metrics.as_array().unwrap().iter();
    let found = metrics.find(|found| found["metric"] == metric).unwrap();
    found[field].as_i64().unwrap()
}

async fn an_event_counts_once_however_often_it_is_reported(world: World) {
    world.set_time(START);
    let (platform, _) = paying_platform(&world, "starter").await;
    let event = |id: &str, quantity| usage_event(&platform, id, "requests", quantity);
    let batch = vec![event("a", 5), event("b", 7), event("a", 5), event("b", 8)];
    let first = world.report_usage(batch.clone()).await.expect(200);
    assert_eq!(counts(&first.json), [2, 1, 1]);
    assert_eq!(first.json["events"][2]["status"], "duplicate");
    assert_eq!(first.json["events"][3]["code"], "EVENT_CONFLICT");
    let again = world.report_usage(batch).await.expect(200);
    assert_eq!(counts(&again.json), [0, 3, 1]);
    let of_other_source = with_fields(event("a", 1), json!({ "source": "other" }));
    let other = world.report_usage(vec![of_other_source]).await.expect(200);
    assert_eq!(counts(&other.json), [1, 0, 0]);
    let usage = world.usage_of(&platform, "/usage/current").await;
    assert_eq!(of_metric(&usage["metrics"], "requests", "quantity"), 13);
}

async fn concurrent_senders_count_each_event_once(world: World) {
    world.set_time(START);
    let (platform, _) = paying_platform(&world, "starter").await;
    let batches = (0..16).map(|sender| {
        let ids = (0..20).map(move |id| (id + sender) % 40);
        let event = |id: i64| {
            let event = usage_event(&platform, &format!("e{id}"), "requests", 1 << (id % 8));
            let more = json!({ "tenantId": format!("t{}", id % 5), "time": START });
            with_fields(event, more)
        };
        json!({ "events": ids.map(event).collect::<Vec<_>>() })
    });
    let requests = batches.map(|body| {
        let billing = world.billing.clone();
        async move {
            billing
                .post(&operator(), "/internal/usage/events", body)
                .await
        }
    });
    let answers = crate::world::send_concurrently(requests).await;
    let accepted = answers.iter().map(|answer| {
        assert!(answer.is_success(), "{}", answer.json);
        answer.json["accepted"].as_u64().unwrap()
    });
    // The senders report the events 0 to 34.
    assert_eq!(accepted.sum::<u64>(), 35);
    let expected: i64 = (0..35).map(|id| 1_i64 << (id % 8)).sum();
    let usage = world.usage_of(&platform, "/usage/current").await;
    assert_eq!(
        of_metric(&usage["metrics"], "requests", "quantity"),
        expected
    );
    assert_eq!(
        of_metric(&usage["metrics"], "active_entities", "quantity"),
        5
    );
}

async fn all_views_add_up_to_the_same_quantities(world: World) {
    world.set_time("2027-11-01T10:17:33Z");
    let (platform, _) = paying_platform(&world, "growth").await;
    for day in 1..=10 {
        world.set_time(&format!("2027-11-{day:02}T11:00:00Z"));
        let event = |id: &str, metric, quantity, stack: Value, tenant: Value| {
            let event = usage_event(&platform, &format!("{id}-{day}"), metric, quantity);
            with_fields(event, json!({ "stackId": stack, "tenantId": tenant }))
        };
        let batch = vec![
            event("r1", "requests", 200_001, json!("s1"), json!("t1")),
            event(
                "r2",
                "requests",
                100_003,
                json!("s2"),
                json!(format!("t{day}")),
            ),
            event("r3", "requests", 7, Value::Null, Value::Null),
            event("b", "builds", 60, json!("s2"), json!("t2")),
            event(
                "g",
                "storage_bytes",
                70_000_000_000,
                json!("s1"),
                Value::Null,
            ),
            event(
                "h",
                "storage_bytes",
                60_000_000_000,
                json!("s1"),
                Value::Null,
            ),
        ];
        assert_eq!(
            counts(&world.report_usage(batch).await.expect(200).json),
            [6, 0, 0]
        );
    }
    let current = world.usage_of(&platform, "/usage/current").await;
    let quantity = |metric| of_metric(&current["metrics"], metric, "quantity");
    assert_eq!(quantity("requests"), 3_000_110);
    assert_eq!((quantity("builds"), quantity("active_entities")), (600, 10));
    // Nine days begin in the period with 70 GB. The first event of the first day belongs to its midnight, before it.
    assert_eq!(quantity("storage_bytes"), 9 * 70_000_000_000 / 30);
    let summary = world.usage_of(&platform, "/usage-summary").await;
    for metric in ["requests", "builds", "storage_bytes", "active_entities"] {
        for field in ["quantity", "estimatedAmount"] {
            let stacks = summary["stacks"].as_array().unwrap().iter();
            let stacks: i64 = stacks
                .map(|stack| of_metric(&stack["metrics"], metric, field))
                .sum();
            let parts = stacks + of_metric(&summary["unattributed"]["metrics"], metric, field);
            assert_eq!(
                parts,
                of_metric(&summary["totals"]["metrics"], metric, field)
            );
            assert_eq!(
                parts,
                of_metric(&current["metrics"], metric, field),
                "{metric} {field}"
            );
        }
    }
    assert_eq!(summary["totals"]["estimatedAmount"], current["usageAmount"]);
    let daily = world
        .usage_of(&platform, "/usage/daily?from=2027-10-31&to=2027-11-30")
        .await;
    let days = daily["data"].as_array().unwrap();
    assert_eq!((days.len(), &days[0]["date"]), (31, &json!("2027-10-31")));
    for metric in ["requests", "builds", "active_entities"] {
        let days = days
            .iter()
            .map(|day| of_metric(&day["metrics"], metric, "quantity"));
        assert_eq!(days.sum::<i64>(), quantity(metric), "{metric}");
    }
    assert_eq!(
        of_metric(&days[5]["metrics"], "storage_bytes", "quantity"),
        70_000_000_000
    );
    let entities = world.usage_of(&platform, "/usage/entities?limit=100").await;
    let entities = entities["data"].as_array().unwrap();
    assert_eq!(entities.len(), 10);
    assert_eq!(entities[0]["tenantId"], "t1");
    assert_eq!(
        of_metric(&entities[0]["metrics"], "requests", "quantity"),
        2_000_010 + 100_003
    );
    assert_eq!(entities[0]["lastUsedAt"], "2027-11-10T11:00:00.000Z");
    let path = format!("/platforms/{platform}/stacks/s1/usage");
    let stack = world
        .billing
        .get(&admin(&platform), &path)
        .await
        .expect(200)
        .json;
    assert_eq!(
        of_metric(&stack["metrics"], "requests", "quantity"),
        2_000_010
    );
    assert_eq!(
        of_metric(&stack["metrics"], "requests", "shareBasisPoints"),
        6_666
    );
    let path = format!("/platforms/{platform}/stacks/nobody/usage");
    let stack = world
        .billing
        .get(&admin(&platform), &path)
        .await
        .expect(200)
        .json;
    assert_eq!(of_metric(&stack["metrics"], "requests", "quantity"), 0);
}

on_every_store! {
    an_event_counts_once_however_often_it_is_reported,
    concurrent_senders_count_each_event_once,
    all_views_add_up_to_the_same_quantities,
}

#[tokio::test]
async fn a_rejected_event_refuses_no_other_and_says_why() {
    let world = World::new();
    world.set_time(START);
    let (platform, _) = paying_platform(&world, "starter").await;
    let event =
        |id: &str, more: Value| with_fields(usage_event(&platform, id, "requests", 1), more);
    let batch = vec![
        event("a", json!({ "metric": "moon_phases" })),
        event("b", json!({ "metric": "active_entities" })),
        event("c", json!({ "time": "2027-09-26T23:59:59Z" })),
        event("d", json!({ "platformId": "nobody" })),
        event("e", json!({ "metric": "storage_bytes", "correctsId": "x" })),
        event("f", json!({ "time": "2027-09-27T00:00:00Z" })),
    ];
    let answer = world.report_usage(batch).await.expect(200);
    assert_eq!(counts(&answer.json), [1, 0, 5]);
    let codes: Vec<_> = answer.json["events"]
        .as_array()
        .unwrap()
        .iter()
        .map(|e| &e["code"])
        .collect();
    let expected = [
        json!("METRIC_UNKNOWN"),
        json!("METRIC_UNKNOWN"),
        json!("EVENT_TOO_OLD"),
        json!("PLATFORM_UNKNOWN"),
        json!("METRIC_NOT_CORRECTABLE"),
        Value::Null,
    ];
    assert_eq!(codes, expected.iter().collect::<Vec<_>>());
}

#[tokio::test]
async fn a_batch_that_breaks_a_rule_is_refused_and_stores_nothing() {
    let world = World::new();
    world.set_time(START);
    let (platform, _) = paying_platform(&world, "starter").await;
    let event = |more: Value| with_fields(usage_event(&platform, "a", "requests", 1), more);
    for batch in [
        Vec::new(),
        vec![event(json!({})); 1_001],
        vec![
            event(json!({})),
            event(json!({ "id": "b", "quantity": -1 })),
        ],
        vec![event(json!({ "quantity": 1.5 }))],
        vec![event(json!({ "quantity": "1" }))],
        vec![event(json!({ "time": "2027-11-01T00:06:00Z" }))],
        vec![event(json!({ "id": "a b" }))],
    ] {
        let refused = world.report_usage(batch).await;
        refused.expect_error(400, "VALIDATION_ERROR");
    }
    let usage = world.usage_of(&platform, "/usage/current").await;
    assert_eq!(of_metric(&usage["metrics"], "requests", "quantity"), 0);
    let ahead = event(json!({ "time": "2027-11-01T00:05:00Z" }));
    assert_eq!(
        counts(&world.report_usage(vec![ahead]).await.expect(200).json),
        [1, 0, 0]
    );
}

#[tokio::test]
async fn only_services_and_operators_report_usage() {
    let world = World::new();
    let (platform, _) = paying_platform(&world, "starter").await;
    let body = json!({ "events": [usage_event(&platform, "a", "requests", 1)] });
    for caller in [admin(&platform), plain_member(&platform)] {
        let path = "/internal/usage/events";
        let refused = world.billing.post(&caller, path, body.clone()).await;
        assert_eq!(refused.status, 403, "{}", refused.json);
    }
}

#[tokio::test]
async fn a_correction_changes_a_sum() {
    let world = World::new();
    world.set_time(START);
    let (platform, _) = paying_platform(&world, "starter").await;
    world.use_metric(&platform, "a", "requests", 10).await;
    let correction = json!({ "correctsId": "a" });
    let correction = with_fields(usage_event(&platform, "b", "requests", -4), correction);
    assert_eq!(
        counts(&world.report_usage(vec![correction]).await.expect(200).json),
        [1, 0, 0]
    );
    let usage = world.usage_of(&platform, "/usage/current").await;
    assert_eq!(of_metric(&usage["metrics"], "requests", "quantity"), 6);
}

#[tokio::test]
async fn a_platform_without_a_subscription_has_the_tier_free_and_calendar_months() {
    let world = World::new();
    let platform = world.create_platform("engines").await;
    world.set_time("2027-11-16T12:00:00Z");
    world.use_metric(&platform, "a", "requests", 75_000).await;
    let usage = world.usage_of(&platform, "/usage/current").await;
    for (field, expected) in [
        ("tier", json!("free")),
        ("subscriptionId", Value::Null),
        ("periodStart", json!("2027-11-01T00:00:00.000Z")),
        ("periodEnd", json!("2027-12-01T00:00:00.000Z")),
        ("baseAmount", json!(0)),
        ("usageAmount", json!(0)),
    ] {
        assert_eq!(usage[field], expected, "{field}");
    }
    assert_eq!(of_metric(&usage["metrics"], "requests", "percentUsed"), 150);
    assert_eq!(
        of_metric(&usage["metrics"], "requests", "estimatedAmount"),
        0
    );
    let expected = json!([
        { "limit": "stacks", "used": 0, "max": 1 },
        { "limit": "customDomains", "used": 0, "max": 0 },
        { "limit": "entities", "used": 0, "max": 3 },
    ]);
    assert_eq!(usage["limits"], expected);
}

#[tokio::test]
async fn an_alert_is_triggered_once_a_period_and_written_to_the_audit_log() {
    let world = World::new();
    world.set_time(START);
    let (platform, _) = paying_platform(&world, "starter").await;
    let alerts = async || world.usage_of(&platform, "/usage/alerts").await["data"].clone();
    let triggered = |alerts: &Value| -> Vec<i64> {
        let alerts = alerts.as_array().unwrap().iter();
        let triggered = alerts.filter(|alert| alert["status"] == "triggered");
        triggered
            .map(|alert| alert["threshold"].as_i64().unwrap())
            .collect()
    };
    assert_eq!(alerts().await.as_array().unwrap().len(), 6 * 3);
    world.use_metric(&platform, "a", "requests", 124_999).await;
    assert_eq!(triggered(&alerts().await), [] as [i64; 0]);
    world.tick(60);
    world.use_metric(&platform, "b", "requests", 75_001).await;
    let seen = alerts().await;
    assert_eq!(triggered(&seen), [50, 80]);
    let warning = &seen[1];
    assert_eq!(
        (&warning["severity"], &warning["quantity"]),
        (&json!("warning"), &json!(200_000))
    );
    assert_eq!(warning["percentUsed"], 80);
    assert_eq!(warning["triggeredAt"], "2027-11-01T00:01:00.000Z");
    // A higher tier includes more, but a triggered alert stays triggered.
    let _ = world
        .change_tier(&platform, "growth", json!({}))
        .await
        .expect(200);
    world.use_metric(&platform, "c", "requests", 800_000).await;
    assert_eq!(triggered(&alerts().await), [50, 80, 100]);
    let path = platform_path(&platform, "/audit?limit=100");
    let audit = world
        .registry
        .get(&operator(), &path)
        .await
        .expect(200)
        .json;
    let entries = audit["data"].as_array().unwrap().iter();
    let crossed = entries.filter(|entry| entry["action"] == "usage.threshold_crossed");
    assert_eq!(crossed.count(), 3);
}

#[tokio::test]
async fn a_request_for_days_is_checked() {
    let world = World::new();
    let (platform, _) = paying_platform(&world, "starter").await;
    for (from, to) in [
        ("2027-02-29", "2027-03-01"),
        ("2027-03-02", "2027-03-01"),
        ("2027-01-01", "2028-01-02"),
        ("2027-3-1", "2027-03-01"),
    ] {
        let path = format!("/usage/daily?platformId={platform}&from={from}&to={to}");
        let refused = world.billing.get(&operator(), &path).await;
        refused.expect_error(400, "VALIDATION_ERROR");
    }
    let path = "/usage/daily?from=2027-01-01&to=2028-01-01";
    let year = world.usage_of(&platform, path).await;
    assert_eq!(year["data"].as_array().unwrap().len(), 366);
}

#[tokio::test]
async fn removed_events_still_count() {
    let world = World::new();
    world.set_time(START);
    let (platform, _) = paying_platform(&world, "starter").await;
    world.use_metric(&platform, "a", "requests", 10).await;
    let remove = async || {
        let removed = transact(world.app.store.as_ref(), |uow, _| {
            Box::pin(async move { remove_old_events(uow, MIN_EVENT_RETENTION, 10).await })
        });
        removed.await.unwrap()
    };
    assert_eq!(remove().await, 0);
    world.set_time("2028-02-10T00:00:00Z");
    assert_eq!(remove().await, 1);
    let all = UsageEventQuery::ReceivedBefore(Timestamp::from_seconds(9_999_999_999));
    assert_eq!(world.all::<UsageEvent>(&all).await.len(), 0);
    let daily = world
        .usage_of(&platform, "/usage/daily?from=2027-11-01&to=2027-11-01")
        .await;
    assert_eq!(
        of_metric(&daily["data"][0]["metrics"], "requests", "quantity"),
        10
    );
}

/// Returns the number of builds of a platform in the current period.
async fn count_builds(world: &World, platform: &str) -> i64 {
    let _ = world.bill().await;
    let current = world.usage_of(platform, "/usage/current").await;
    of_metric(&current["metrics"], "builds", "quantity")
}

async fn a_deployment_or_another_build_that_has_ended_counts_once(world: World) {
    world.set_time(START);
    let (platform, _) = paying_platform(&world, "starter").await;
    let path = platform_path(&platform, "/deployments");
    for (number, end) in ["active", "failure", "canceled"].into_iter().enumerate() {
        let body = json!({ "idempotencyKey": end, "userId": "ada", "projectName": "engines-site" });
        let entered = world.registry.post(&operator(), &path, body).await;
        let one = format!("{path}/{}", entered.expect(201).id());
        let counted = i64::try_from(number).unwrap();
        assert_eq!(count_builds(&world, &platform).await, counted);
        let ended = json!({ "status": end });
        let ended = world.registry.patch(&operator(), &one, ended).await;
        let _ = ended.expect(200);
        assert_eq!(count_builds(&world, &platform).await, counted + 1);
        assert_eq!(count_builds(&world, &platform).await, counted + 1);
    }
    // The build of a deployment is counted as the deployment, and any other build by itself.
    world.deployment(&platform, &operator()).await;
    world.run_jobs().await;
    let latest = platform_path(&platform, "/builds/latest");
    let build = world.registry.get(&operator(), &latest).await;
    let build = platform_path(&platform, &format!("/builds/{}", build.expect(200).id()));
    for (change, counted) in [
        (json!({ "buildStatus": "success" }), 4),
        (json!({ "triggeredBy": "push" }), 5),
        (json!({ "buildStatus": "building" }), 5),
        (json!({ "buildStatus": "failed" }), 5),
    ] {
        let changed = world
            .registry
            .patch(&operator(), &build, change.clone())
            .await;
        let _ = changed.expect(200);
        assert_eq!(count_builds(&world, &platform).await, counted, "{change}");
    }
}
on_every_store!(a_deployment_or_another_build_that_has_ended_counts_once);

/// Creates an active resource of a stack of the platform.
async fn active_resource(world: &World, platform: &str, entity: &str, body: Value) {
    let path = platform_path(platform, &format!("/entities/{entity}/resources"));
    let created = world.registry.post(&operator(), &path, body).await;
    let path = platform_path(
        platform,
        &format!("/resources/{}", created.expect(201).id()),
    );
    for status in ["provisioning", "active"] {
        let change = json!({ "status": status });
        let changed = world.registry.patch(&operator(), &path, change).await;
        let _ = changed.expect(200);
    }
}

async fn what_a_platform_stores_is_measured_once_a_day(world: World) {
    world.set_time(START);
    let (platform, _) = paying_platform(&world, "starter").await;
    let entity = world.tenant(&platform, "acme").await;
    let resource = |kind: &str, name: &str| {
        json!({ "stackId": "st1", "resourceType": kind, "serviceName": "db", "environment": "prod",
            "cfName": name })
    };
    for (kind, name) in [
        ("d1", "engines-db"),
        ("r2", "engines-files"),
        ("kv", "unknown"),
        ("worker", "api"),
    ] {
        active_resource(&world, &platform, &entity, resource(kind, name)).await;
    }
    world.provider.set_stored_bytes("engines-db", 1_000);
    world.provider.set_stored_bytes("engines-files", 2_000);
    world.provider.set_stored_bytes("api", 9_999);
    let measure = async || {
        let cx = Context::system(world.app.entropy.clone());
        let (store, provider) = (world.app.store.as_ref(), &world.provider);
        let measured = measure_storage(&cx, store, &world.billing_parts, provider).await;
        measured.unwrap()
    };
    world.set_time("2027-11-02T05:00:00Z");
    assert_eq!(measure().await, 1);
    world.provider.set_stored_bytes("engines-db", 50_000);
    world.set_time("2027-11-02T23:59:59Z");
    assert_eq!(measure().await, 0);
    world.set_time("2027-11-03T00:00:00Z");
    assert_eq!(measure().await, 1);
    let days = "/usage/daily?from=2027-11-01&to=2027-11-04";
    let days = world.usage_of(&platform, days).await;
    let stored: Vec<i64> = (0..4)
        .map(|day| of_metric(&days["data"][day]["metrics"], "storage_bytes", "quantity"))
        .collect();
    assert_eq!(stored, [0, 3_000, 52_000, 0]);
}
on_every_store!(what_a_platform_stores_is_measured_once_a_day);
