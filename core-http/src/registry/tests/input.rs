//! What is wrong with a request is said, all at once, and nothing of it is stored.

use serde_json::{Map, Value, json};

use super::contract::documented;
use super::world::{PLATFORMS, Says, World, at, resource_body};
use crate::kernel::testing::{Answer, operator};

struct Row {
    id: &'static str,
    method: &'static str,
    path: String,
    /// A body that is taken.
    good: Value,
}

async fn rows(world: &World) -> Vec<Row> {
    let platform = world.platform("engines").await;
    let entity = world.tenant(&platform, "tenant").await;
    let resource = world.resource(&platform, &entity, "engines-db").await;
    let row = |id, method, path, good| Row {
        id,
        method,
        path,
        good,
    };
    let of = |rest: &str| at(&platform, rest);
    let entity_body = json!({ "name": "E", "slug": "e", "type": "tenant", "parentId": null });
    let why = json!({ "reason": "because" });
    vec![
        row(
            "registry-040",
            "POST",
            PLATFORMS.to_owned(),
            json!({ "name": "P", "slug": "p" }),
        ),
        row("registry-042", "PATCH", of(""), json!({ "name": "P" })),
        row(
            "registry-052",
            "POST",
            of(&format!("/entities/{entity}/resources")),
            resource_body("x"),
        ),
        row(
            "registry-054",
            "PATCH",
            of(&format!("/resources/{resource}")),
            json!({ "cfId": "x" }),
        ),
        row("registry-057", "POST", of("/entities"), entity_body),
        row(
            "registry-059",
            "PATCH",
            of(&format!("/entities/{entity}")),
            json!({ "name": "E" }),
        ),
        row("registry-044", "POST", of("/suspend"), why.clone()),
        row("registry-045", "POST", of("/restore"), why.clone()),
        row("registry-046", "POST", of("/cancel"), why.clone()),
        row("registry-047", "POST", of("/delete"), why),
    ]
}

/// The values that break the documented rules of a field, with the code of the issue.
fn breaking(rules: &Value) -> Vec<(Value, &'static str)> {
    if rules["type"] == "any" {
        return Vec::new();
    }
    assert_eq!(rules["type"], "string");
    let constraints = &rules["constraints"];
    let mut bad = vec![
        (json!(7), "invalid_type"),
        (json!({ "a": 1 }), "invalid_type"),
    ];
    if !constraints["min_length"].is_null() {
        bad.push((json!(""), "too_short"));
    }
    if !constraints["pattern"].is_null() {
        bad.push((json!("Not A Slug"), "pattern"));
    }
    if !constraints["enum"].is_null() {
        bad.push((json!("moon"), "invalid_enum"));
    }
    if !constraints["format"].is_null() {
        bad.push((json!("no address"), "invalid_format"));
    }
    bad
}

async fn with(world: &World, row: &Row, field: &str, value: Option<Value>) -> Answer {
    let mut body = row.good.as_object().cloned().unwrap_or_default();
    match value {
        Some(value) => body.insert(field.to_owned(), value),
        None => body.remove(field),
    };
    world
        .send(&operator(), row.method, &row.path, &[], body.into())
        .await
}

#[tokio::test]
async fn every_documented_rule_of_every_field_is_kept() {
    let world = World::new();
    let mut broken = 0;
    for row in rows(&world).await {
        let documented = documented(row.id);
        for (field, rules) in documented["request"].as_object().unwrap() {
            for (value, code) in breaking(rules) {
                let context = format!("{} {field} = {value}", row.id);
                let answer = with(&world, &row, field, Some(value)).await;
                let answer = answer.refused(400, "VALIDATION_ERROR");
                assert!(
                    answer.issues().contains(&format!("{field}: {code}")),
                    "{context}: {}",
                    answer.json
                );
                broken += 1;
            }
            if rules["required"] == true {
                let answer = with(&world, &row, field, None)
                    .await
                    .refused(400, "VALIDATION_ERROR");
                assert_eq!(
                    answer.issues(),
                    [format!("{field}: required")],
                    "{}",
                    row.id
                );
            }
        }
    }
    assert!(broken > 60, "{broken}");
}

#[tokio::test]
async fn what_is_too_long_is_refused_by_name() {
    let world = World::new();
    let long = |n: usize| json!("x".repeat(n));
    let rows = rows(&world).await;
    let config = json!({ "text": "x".repeat(65 * 1024) });
    let cases = [
        ("registry-040", "name", long(101)),
        ("registry-040", "slug", long(64)),
        ("registry-040", "cfAccountId", long(256)),
        ("registry-040", "repoName", long(256)),
        ("registry-042", "name", long(101)),
        ("registry-042", "repoName", long(256)),
        ("registry-052", "serviceName", long(256)),
        ("registry-052", "cfName", long(256)),
        ("registry-052", "stackId", long(129)),
        ("registry-052", "config", config.clone()),
        ("registry-054", "config", config),
        (
            "registry-054",
            "cfUrl",
            json!(format!("http://x.test/{}", "x".repeat(2048))),
        ),
        ("registry-057", "name", long(101)),
        ("registry-057", "slug", long(64)),
        ("registry-044", "reason", long(501)),
        ("registry-047", "reason", long(501)),
    ];
    for (id, field, value) in cases {
        let row = rows.iter().find(|row| row.id == id).unwrap();
        let answer = with(&world, row, field, Some(value))
            .await
            .refused(400, "VALIDATION_ERROR");
        assert_eq!(answer.issues(), [format!("{field}: too_long")], "{id}");
    }
}

#[tokio::test]
async fn all_that_is_wrong_is_said_at_once() {
    let world = World::new();
    let body = json!({ "slug": "Not A Slug", "tier": "moon", "cfAccountId": 7 });
    let answer = world
        .post(&operator(), PLATFORMS, body)
        .await
        .refused(400, "VALIDATION_ERROR");
    let wanted = [
        "cfAccountId: invalid_type",
        "name: required",
        "slug: pattern",
        "tier: invalid_enum",
    ];
    assert_eq!(answer.issues(), wanted);
}

#[tokio::test]
async fn an_id_in_a_body_that_can_be_none_is_refused_by_name() {
    let world = World::new();
    let rows = rows(&world).await;
    for (id, field) in [
        ("registry-052", "stackId"),
        ("registry-052", "provisionJobId"),
        ("registry-057", "parentId"),
    ] {
        let row = rows.iter().find(|row| row.id == id).unwrap();
        let answer = with(&world, row, field, Some(json!("a/b c")))
            .await
            .refused(400, "VALIDATION_ERROR");
        assert_eq!(answer.issues(), [format!("{field}: pattern")], "{id}");
    }
}

#[tokio::test]
async fn what_is_no_json_object_is_refused() {
    let world = World::new();
    for row in rows(&world).await {
        let answer = world
            .send(&operator(), row.method, &row.path, &[], json!([1]))
            .await;
        answer.refused(400, "VALIDATION_ERROR");
        let headers = [("content-type", "text/plain")];
        let request = http::Request::builder()
            .method(row.method)
            .uri(&row.path)
            .extension(operator());
        let request = request
            .header(headers[0].0, headers[0].1)
            .body(crate::kernel::bytes_body("{}"))
            .unwrap();
        crate::kernel::testing::send(&world.service, request)
            .await
            .refused(415, "UNSUPPORTED_MEDIA_TYPE");
        let request = http::Request::builder()
            .method(row.method)
            .uri(&row.path)
            .extension(operator());
        let request = request
            .body(crate::kernel::bytes_body("{\"name\":\"a\",\"name\":\"b\"}"))
            .unwrap();
        crate::kernel::testing::send(&world.service, request)
            .await
            .refused(400, "MALFORMED_JSON");
    }
}

#[tokio::test]
async fn every_query_is_checked() {
    let world = World::new();
    let platform = world.platform("engines").await;
    let entity = world.tenant(&platform, "tenant").await;
    let lists = [
        PLATFORMS.to_owned(),
        at(&platform, "/lifecycle"),
        at(&platform, "/resources"),
        at(&platform, &format!("/entities/{entity}/resources")),
        at(&platform, "/entities"),
        at(&platform, "/audit"),
        "/api/v1/audit".to_owned(),
    ];
    for list in &lists {
        for (query, code) in [
            ("limit=0", "VALIDATION_ERROR"),
            ("limit=-1", "VALIDATION_ERROR"),
            ("limit=many", "VALIDATION_ERROR"),
            ("limit=", "VALIDATION_ERROR"),
            ("cursor=garbage", "INVALID_CURSOR"),
        ] {
            let answer = world.get(&operator(), &format!("{list}?{query}")).await;
            assert_eq!(
                (answer.status.as_u16(), answer.code()),
                (400, code),
                "{list}?{query}"
            );
        }
        world
            .get(&operator(), &format!("{list}?limit=1000&unknown=x"))
            .await
            .expect(200);
    }
    for bad in [
        at(&platform, "/entities?type=moon"),
        at(&platform, "/entities?includeDeleted=maybe"),
        "/api/v1/platforms?includeDeleted=7".to_owned(),
        "/api/v1/audit?from=yesterday".to_owned(),
        "/api/v1/audit?to=2027-13-01T00:00:00Z".to_owned(),
        "/api/v1/lookup".to_owned(),
        "/api/v1/lookup?cfName=".to_owned(),
        at(&platform, &format!("/entities/{entity}?cascade=7")),
    ] {
        let method = if bad.contains("cascade") {
            "DELETE"
        } else {
            "GET"
        };
        let answer = world
            .send(&operator(), method, &bad, &[], Value::Null)
            .await;
        assert_eq!(
            (answer.status.as_u16(), answer.code()),
            (400, "VALIDATION_ERROR"),
            "{bad}"
        );
    }
}

/// Walks a list to its end, one record at a time.
async fn walked(world: &World, list: &str) -> Vec<String> {
    let mut ids = Vec::new();
    let mut cursor = String::new();
    loop {
        let sign = if list.contains('?') { '&' } else { '?' };
        let path = format!("{list}{sign}limit=1{cursor}");
        let page = world.get(&operator(), &path).await.expect(200);
        ids.extend(page.each("id").into_iter().map(str::to_owned));
        match page.json["pagination"]["nextCursor"].as_str() {
            Some(next) => cursor = format!("&cursor={next}"),
            None => {
                assert_eq!(page.json["pagination"]["hasMore"], false);
                return ids;
            }
        }
    }
}

#[tokio::test]
async fn every_list_is_walked_newest_first_without_gaps_and_its_cursors_fit_no_other_list() {
    let world = World::new();
    let platform = world.platform("engines").await;
    world.platform("looms").await;
    let entity = world.tenant(&platform, "one").await;
    world.tenant(&platform, "two").await;
    for name in ["a", "b", "c"] {
        world
            .resource(&platform, &entity, &format!("{name}-db"))
            .await;
    }
    for step in ["/suspend", "/restore", "/cancel"] {
        world
            .post(&operator(), &at(&platform, step), json!({}))
            .await
            .expect(200);
        world.tick(1);
    }
    let lists = [
        (PLATFORMS.to_owned(), 2),
        (at(&platform, "/lifecycle"), 4),
        (at(&platform, "/resources"), 3),
        (at(&platform, &format!("/entities/{entity}/resources")), 3),
        (at(&platform, "/entities"), 2),
        (at(&platform, "/entities?type=tenant"), 2),
        (at(&platform, "/audit"), 9),
        ("/api/v1/audit".to_owned(), 10),
    ];
    let mut cursors: Vec<String> = Vec::new();
    for (list, count) in &lists {
        let all = world.get(&operator(), list).await.expect(200);
        assert_eq!(all.json["pagination"]["total"], *count, "{list}");
        assert_eq!(walked(&world, list).await, all.each("id"), "{list}");
        let mut dates = all.each("createdAt");
        dates.reverse();
        assert!(dates.is_sorted(), "{list}");
        let sign = if list.contains('?') { '&' } else { '?' };
        let first = world
            .get(&operator(), &format!("{list}{sign}limit=1"))
            .await;
        for cursor in &cursors {
            let path = format!("{list}{sign}cursor={cursor}");
            world
                .get(&operator(), &path)
                .await
                .refused(400, "INVALID_CURSOR");
        }
        cursors.push(
            first.json["pagination"]["nextCursor"]
                .as_str()
                .unwrap()
                .to_owned(),
        );
    }
}

#[tokio::test]
async fn fields_that_are_not_the_callers_to_set_change_nothing() {
    let world = World::new();
    let platform = world.platform("engines").await;
    let entity = world.tenant(&platform, "tenant").await;
    let resource = world.resource(&platform, &entity, "engines-db").await;
    let foreign = json!({
        "id": "chosen", "platformId": "chosen", "entityId": "chosen", "ownerUserId": "chosen",
        "paymentCustomerId": "chosen", "createdAt": "2001-01-01T00:00:00.000Z", "deletedAt": "2001-01-01T00:00:00.000Z",
        "suspendedAt": "2001-01-01T00:00:00.000Z", "trialEndsAt": "2099-01-01T00:00:00.000Z", "purging": true,
        "organizationId": "chosen", "depth": 9, "version": 9,
    });
    let beside = |body: Value| -> Value {
        let mut all: Map<String, Value> = foreign.as_object().cloned().unwrap();
        all.extend(body.as_object().cloned().unwrap());
        all.into()
    };
    let created = json!({ "name": "P", "slug": "p", "status": "deleted" });
    let made = [
        world.post(&operator(), PLATFORMS, beside(created)).await.expect(201),
        world.patch(&operator(), &at(&platform, ""), beside(json!({ "slug": "chosen" }))).await.expect(200),
        world.post(&operator(), &at(&platform, "/entities"), beside(json!({
            "name": "E", "slug": "e", "type": "tenant", "status": "deleted",
        }))).await.expect(201),
        world.patch(&operator(), &at(&platform, &format!("/entities/{entity}")), beside(json!({
            "slug": "chosen", "type": "subtenant", "parentId": "chosen",
        }))).await.expect(200),
        world.post(&operator(), &at(&platform, &format!("/entities/{entity}/resources")), beside(json!({
            "stackId": "st1", "resourceType": "kv", "serviceName": "cache", "environment": "dev", "cfName": "c",
            "status": "active",
        }))).await.expect(201),
        world.patch(&operator(), &at(&platform, &format!("/resources/{resource}")), beside(json!({
            "cfName": "chosen", "serviceName": "chosen", "resourceType": "r2", "environment": "dev",
        }))).await.expect(200),
    ];
    for answer in made {
        let text = answer.json.to_string();
        for word in ["chosen", "2001-", "2099-", "purging"] {
            assert!(!text.contains(word), "{text}");
        }
        assert!(answer.json["deletedAt"].is_null(), "{text}");
        let status = answer.json["status"].as_str().unwrap();
        assert!(["active", "pending"].contains(&status), "{text}");
    }
    let kept = world
        .get(
            &operator(),
            &at(&platform, &format!("/resources/{resource}")),
        )
        .await
        .json;
    assert_eq!(
        (&kept["resourceType"], &kept["environment"]),
        (&json!("d1"), &json!("prod"))
    );
}
