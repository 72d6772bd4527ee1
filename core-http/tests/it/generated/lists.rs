//! Paging through lists: complete walks, limits, and cursors.

use std::time::Duration;

use core_domain::kernel::Clock;
use serde_json::{Value, json};

use super::fixture::{Case, Fixture, for_each_endpoint};
use super::samples::samples;
use crate::world::{World, operator, platform_path, usage_event, with_fields};

/// Returns whether the endpoint takes this parameter.
pub(super) fn takes(case: &Case, parameter: &str) -> bool {
    let operation = case.operation();
    let parameters = operation["parameters"].as_array();
    parameters.into_iter().flatten().any(|known| {
        let shared = known["$ref"].as_str().unwrap_or_default();
        known["name"] == parameter || shared.ends_with(&format!("/{parameter}"))
    })
}

/// Returns the cursor of the next page, for each of the list formats.
pub(super) fn next_cursor(answer: &Value) -> Option<String> {
    let pagination = &answer["pagination"];
    // Lists that also return their own cursor name the next one `nextCursor`.
    let next = pagination.get("nextCursor").or(pagination.get("cursor"));
    next.unwrap_or(&answer["cursor"])
        .as_str()
        .map(str::to_owned)
}

fn records(answer: &Value) -> Vec<Value> {
    answer["data"].as_array().cloned().unwrap_or_default()
}

/// Adds enough new records of every kind for a walk over several pages.
pub(super) async fn add_records(case: &Case) {
    let round = case.fixture.world.clock.now().millis();
    if case.fixture.ids.contains_key("entityId") {
        fill_catalogue(case, round).await;
    }
    if case.fixture.ids.contains_key("orgId") {
        fill_organization(case, round).await;
    }
    let world = &case.fixture.world;
    match case.name() {
        "listDlqEntries" => {
            world.dead_letter(&case.fixture.ids["platformId"]).await;
        }
        "listHolds" => {
            world
                .create_hold(json!({ "scope": "kind", "kind": "domain.add" }))
                .await;
        }
        "listJobEvents" => {
            let path = case.valid_request().path.replace("/events", "/retry");
            let retried = case.service.post(&operator(), &path, Value::Null).await;
            let _ = retried.expect(200);
        }
        "listStackTemplates" => {
            for name in ["one", "two"].map(|name| format!("{name}-{round}")) {
                let template = json!({ "name": name, "displayName": name, "description": name });
                let made = world
                    .stacks
                    .post(&operator(), &case.valid_request().path, template)
                    .await;
                let _ = made.expect(201);
                world.tick(1);
            }
        }
        "listInvoices" => {
            for tier in ["growth", "scale"] {
                world.tick(1);
                let platform = &case.fixture.ids["platformId"];
                let body = json!({ "platformId": platform, "tier": tier });
                let path = "/subscription/change-tier";
                let changed = world.billing.post(&operator(), path, body).await;
                // A second round changes nothing more.
                assert!(changed.is_success() || changed.code() == "TIER_UNCHANGED");
            }
        }
        "listUsageEntities" => {
            let platform = &case.fixture.ids["platformId"];
            for tenant in ["one", "two", "three"].map(|name| format!("{name}-{round}")) {
                let event = usage_event(platform, &tenant, "requests", 1);
                let event = with_fields(event, json!({ "tenantId": tenant }));
                let _ = world.report_usage(vec![event]).await.expect(200);
            }
        }
        "listUsageHistory" => {
            let platform = &case.fixture.ids["platformId"];
            let now = world.clock.now();
            for days in [0, 10, 20, 30] {
                let time = now.minus(Duration::from_secs(days * 24 * 60 * 60));
                let event = usage_event(platform, &format!("{days}-{round}"), "requests", 1);
                let event = with_fields(event, json!({ "time": time }));
                let _ = world.report_usage(vec![event]).await.expect(200);
            }
        }
        "listStackVersions" => {
            for patch in [1, 2] {
                let version = format!("2.{round}.{patch}");
                let version =
                    json!({ "version": version, "coreSdkVersion": "1.0.0", "stackDefinition": {} });
                let made = world
                    .stacks
                    .post(&operator(), &case.valid_request().path, version)
                    .await;
                let _ = made.expect(201);
            }
            world.tick(1);
        }
        _ => {}
    }
    if case.name() == "listAuditCheckpoints" {
        assert!(case.fixture.world.sign_checkpoints().await > 1);
    }
}

async fn fill_catalogue(case: &Case, round: i64) {
    let world = &case.fixture.world;
    let platform = &case.fixture.ids["platformId"];
    let child = &case.fixture.ids["entityId"];
    for slug in ["one", "two", "three"].map(|slug| format!("{slug}-{round}")) {
        let entity = world.tenant(platform, &slug).await;
        world
            .resource(platform, &entity, &format!("{slug}-db"))
            .await;
        world.resource(platform, child, &format!("{slug}-kv")).await;
        world.activate_feature(platform, child, &slug).await;
        let secret = slug.replace('-', "_").to_ascii_uppercase();
        let resource = &case.fixture.ids["resourceId"];
        world
            .set_secret_status(platform, resource, &secret, "set")
            .await;
        world.provision(platform).await;
        world.workspace_stack(platform, &entity, &slug).await;
        let config = json!({ "configValue": slug });
        let set = world.set_config(platform, "features", config).await;
        assert!(set.is_success(), "{}", set.json);
        let (stack, record) = (
            &case.fixture.ids["stackId"],
            &case.fixture.ids["dnsRecordId"],
        );
        let (resource, hostname) = (
            &case.fixture.ids["resourceId"],
            format!("{slug}.example.org"),
        );
        world.dns_record(platform, stack, resource, &hostname).await;
        world.domain(platform, record, &hostname).await;
        world.create_platform(&format!("further-{slug}")).await;
    }
    for path in ["/suspend", "/restore"].map(|step| platform_path(platform, step)) {
        let moved = world.registry.post(&operator(), &path, Value::Null).await;
        let _ = moved.expect(200);
        world.tick(1);
    }
}

async fn fill_organization(case: &Case, round: i64) {
    let world = &case.fixture.world;
    let organization = &case.fixture.ids["orgId"];
    for name in ["one", "two"].map(|name| format!("{name}-{round}")) {
        let email = format!("{name}@example.org");
        world.invite_as_operator(organization, &email).await;
    }
    // The list is ordered by member; the latest member comes first.
    for user in ["adam", "mary"] {
        for name in ["one", "two"].map(|name| format!("{name}-{round}")) {
            let permission = format!("{name}:read");
            world.create_grant(organization, user, &permission).await;
            world.tick(1);
        }
    }
}

#[tokio::test]
async fn every_list_can_be_paged_through_without_gaps_or_repetitions() {
    let checked = for_each_endpoint(async |case: &Case| {
        if !takes(case, "cursor") {
            return false;
        }
        add_records(case).await;
        let caller = operator();
        let whole = case
            .send(&caller, &case.valid_request().with_query("limit=100"))
            .await;
        let whole = records(&whole.json);
        let mut walked = Vec::new();
        let mut query = "limit=1".to_owned();
        loop {
            let page = case
                .send(&caller, &case.valid_request().with_query(&query))
                .await;
            assert_eq!(page.status, 200, "{}: {}", case.name(), page.json);
            walked.extend(records(&page.json));
            match next_cursor(&page.json) {
                Some(cursor) => query = format!("limit=1&cursor={cursor}"),
                None => break,
            }
        }
        assert!(whole.len() > 1, "{} has too few records", case.name());
        let ids = |records: &[Value]| -> Vec<Value> {
            let id = |r: &Value| [r["id"].clone(), r["jobId"].clone()];
            records.iter().flat_map(id).collect()
        };
        assert_eq!(ids(&walked), ids(&whole), "{}", case.name());
        let dates = whole.iter().rev().map(|r| r["createdAt"].to_string());
        assert!(dates.is_sorted(), "{} is not newest first", case.name());
        true
    })
    .await;
    assert_eq!(checked, 32);
}

/// Returns the maximum of the `limit` parameter; `None` if its schema has no maximum.
fn max_limit(case: &Case) -> Option<u64> {
    let parameters = case.operation()["parameters"].clone();
    let mut parameters = parameters.as_array().unwrap().iter();
    let limit = parameters.find(|parameter| parameter["name"] == "limit")?;
    limit["schema"]["maximum"].as_u64()
}

#[tokio::test]
async fn invalid_cursors_and_limits_are_refused_and_a_limit_without_a_maximum_is_capped() {
    for_each_endpoint(async |case: &Case| {
        if !takes(case, "cursor") {
            return false;
        }
        let least = case.lowest_caller();
        for (query, code) in [
            ("limit=0", "VALIDATION_ERROR"),
            ("limit=-1", "VALIDATION_ERROR"),
            ("limit=many", "VALIDATION_ERROR"),
            ("limit=", "VALIDATION_ERROR"),
            ("limit=1.5", "VALIDATION_ERROR"),
            ("cursor=garbage", "INVALID_CURSOR"),
            ("cursor=a%20b", "VALIDATION_ERROR"),
            ("cursor=%00", "VALIDATION_ERROR"),
        ] {
            let answer = case
                .send(&least, &case.valid_request().with_query(query))
                .await;
            let refusal = (answer.status.as_u16(), answer.code());
            assert_eq!(refusal, (400, code), "{} {query}", case.name());
        }
        let (most, above) = match max_limit(case) {
            Some(max) => (max, Some(max + 1)),
            None => (100_000, None),
        };
        let ask = case
            .valid_request()
            .with_query(&format!("limit={most}&unknown=x"));
        let answer = case.send(&least, &ask).await;
        assert_eq!(answer.status, 200, "{}: {}", case.name(), answer.json);
        if let Some(above) = above {
            let ask = case.valid_request().with_query(&format!("limit={above}"));
            let answer = case.send(&least, &ask).await;
            answer.expect_error(400, "VALIDATION_ERROR");
        }
        true
    })
    .await;
}

#[tokio::test]
async fn a_cursor_is_only_valid_for_its_own_list() {
    let mut cursors: Vec<(&str, String)> = Vec::new();
    // All lists share one world, so that their cursors are of one installation.
    let mut fixture = Fixture::of(World::new()).await;
    for sample in samples() {
        let case = Case::within(fixture, sample);
        if takes(&case, "cursor") {
            add_records(&case).await;
            // For operators these two paths return the same list.
            let same = |list: &str| (list, case.name()) == ("listAudit", "listAuditEvents");
            for (list, cursor) in cursors.iter().filter(|(list, _)| !same(list)) {
                let ask = case.valid_request().with_query(&format!("cursor={cursor}"));
                let answer = case.send(&operator(), &ask).await;
                assert_eq!(answer.code(), "INVALID_CURSOR", "{list} in {}", case.name());
            }
            let first = case
                .send(&operator(), &case.valid_request().with_query("limit=1"))
                .await;
            cursors.push((case.name(), next_cursor(&first.json).unwrap()));
        }
        fixture = case.fixture;
    }
    assert_eq!(cursors.len(), 32);
}
