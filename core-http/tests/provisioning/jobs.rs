//! Looking at jobs: one, and lists of them.

use core_domain::kernel::{Caller, PermissionSet, Role, UserId};
use core_http::kernel::testing::{call_with, member, operator};
use http::StatusCode;
use serde_json::{Value, json};

use super::world::{World, refused, tenant};

#[tokio::test]
async fn a_job_shows_every_field_and_its_fence_to_operators_alone() {
    let world = World::new();
    let id = world.job("p1").await;
    let answer = world.get(&format!("/jobs/{id}"), &tenant("p1")).await;
    assert_eq!(answer.status, StatusCode::OK, "{}", answer.json);
    let job = answer.json.as_object().unwrap();
    let fields = [
        "jobId",
        "kind",
        "platformId",
        "entityId",
        "environment",
        "status",
        "reason",
        "failureKind",
        "error",
        "input",
        "output",
        "steps",
        "currentStep",
        "progress",
        "attempts",
        "maxAttempts",
        "lostLeases",
        "runAt",
        "deadlineAt",
        "waitingFor",
        "holdReason",
        "priority",
        "forced",
        "replayCount",
        "dlqEntryId",
        "parentJobId",
        "idempotencyKey",
        "requestId",
        "traceId",
        "createdBy",
        "definitionVersion",
        "createdAt",
        "startedAt",
        "finishedAt",
        "updatedAt",
    ];
    let mut shown: Vec<&str> = job.keys().map(String::as_str).collect();
    shown.sort_unstable();
    let mut wanted = fields.to_vec();
    wanted.sort_unstable();
    assert_eq!(shown, wanted);
    assert_eq!(job["status"], "QUEUED");
    assert_eq!(job["currentStep"], "db");
    assert_eq!(job["progress"]["totalSteps"], 2);
    let seen = world
        .get(&format!("/api/v1/provision/jobs/{id}"), &operator())
        .await;
    assert_eq!(seen.json["fence"], 0);
    assert_eq!(seen.json["leaseOwner"], Value::Null);
}

#[tokio::test]
async fn a_foreign_job_is_not_found_exactly_as_a_missing_one() {
    let world = World::new();
    let id = world.job("p1").await;
    let foreign = world.get(&format!("/jobs/{id}"), &tenant("p2")).await;
    let missing = world.get("/jobs/nothing", &tenant("p2")).await;
    assert_eq!(
        (foreign.status, foreign.code()),
        (StatusCode::NOT_FOUND, "NOT_FOUND")
    );
    assert_eq!(
        foreign.json["error"]["message"],
        missing.json["error"]["message"]
    );
    let list = world.get("/jobs?platformId=p1", &tenant("p2")).await;
    assert_eq!(list.status, StatusCode::NOT_FOUND);
    assert_eq!(
        world.get("/jobs", &Caller::Anonymous).await.status,
        StatusCode::UNAUTHORIZED
    );
}

#[tokio::test]
async fn whoever_has_no_platform_yet_has_no_jobs() {
    let world = World::new();
    world.job("p1").await;
    let newcomer = Caller::User {
        user_id: UserId::parse("nina").unwrap(),
        session_id: None,
        membership: None,
    };
    let list = world.get("/jobs", &newcomer).await;
    assert_eq!(list.status, StatusCode::OK, "{}", list.json);
    assert_eq!(list.json["data"], json!([]));
}

#[tokio::test]
async fn the_list_is_filtered_and_walked_by_cursor_newest_first() {
    let world = World::new();
    let mut ids = Vec::new();
    for _ in 0..3 {
        ids.push(world.job("p1").await);
    }
    world.job("p2").await;
    world.cancel(&ids[0]).await;
    let all = world.get("/jobs?limit=2", &tenant("p1")).await;
    assert_eq!(all.json["pagination"]["count"], 2);
    let next = all.json["pagination"]["nextCursor"].as_str().unwrap();
    let rest = world
        .get(&format!("/jobs?limit=2&cursor={next}"), &tenant("p1"))
        .await;
    assert_eq!(rest.json["pagination"]["count"], 1);
    assert_eq!(rest.json["pagination"]["cursor"], next);
    assert_eq!(rest.json["pagination"]["nextCursor"], Value::Null);
    let failed = world
        .get("/jobs?status=FAILED&platformId=p1", &operator())
        .await;
    assert_eq!(failed.json["data"][0]["jobId"], ids[0].as_str());
    assert_eq!(failed.json["data"][0]["reason"], "cancelled by operator");
    assert_eq!(
        world.get("/jobs", &operator()).await.json["pagination"]["count"],
        4
    );
    let bad = world.get("/jobs?status=SLEEPING", &operator()).await;
    assert_eq!(
        (bad.status, bad.code()),
        (StatusCode::BAD_REQUEST, "VALIDATION_ERROR")
    );
}

#[tokio::test]
async fn a_job_that_stopped_shows_why_and_where() {
    let world = World::new();
    let id = world.job("p1").await;
    world.cancel(&id).await;
    let shown = world.get(&format!("/jobs/{id}"), &operator()).await.json;
    let expected = json!({
        "jobId": id, "kind": "platform", "platformId": "p1", "entityId": null, "environment": null,
        "status": "FAILED", "reason": "cancelled by operator", "failureKind": "CANCELLED",
        "error": { "code": "CANCELLED", "message": "cancelled by operator", "details": {} },
        "input": {}, "output": null, "steps": [step("db"), step("site")], "currentStep": "db",
        "progress": { "completedSteps": 0, "totalSteps": 2, "percent": 0, "message": "stopped at db" },
        "attempts": 0, "maxAttempts": 8, "lostLeases": 0, "runAt": shown["runAt"],
        "deadlineAt": "2027-01-16T08:00:00.000Z", "waitingFor": null, "holdReason": null, "priority": 0,
        "forced": false, "replayCount": 0, "dlqEntryId": null, "parentJobId": null, "idempotencyKey": null,
        "requestId": shown["requestId"], "traceId": null, "createdBy": { "type": "system", "id": "system" },
        "definitionVersion": 1, "createdAt": "2027-01-15T08:00:00.000Z", "startedAt": null,
        "finishedAt": "2027-01-15T08:00:00.000Z", "updatedAt": "2027-01-15T08:00:00.000Z",
        "leaseOwner": null, "leaseUntil": null, "fence": 1,
    });
    assert_eq!(shown, expected);
}

fn step(name: &str) -> Value {
    json!({
        "name": name, "status": "PENDING", "attempts": 0, "startedAt": null, "finishedAt": null,
        "error": null, "output": null, "effectKey": null,
    })
}

#[tokio::test]
async fn a_job_that_runs_shows_its_holder_to_operators() {
    let world = World::new();
    let id = world.job("p1").await;
    let claimed = world.claim().await;
    assert_eq!(claimed.job_id.as_str(), id);
    let path = format!("/jobs/{id}");
    let shown = world.get(&path, &operator()).await.json;
    assert_eq!(shown["status"], "RUNNING");
    assert_eq!(shown["leaseOwner"], "tester");
    assert_eq!(shown["leaseUntil"], "2027-01-15T08:00:30.000Z");
    assert_eq!(shown["fence"], 1);
    assert_eq!(shown["startedAt"], "2027-01-15T08:00:00.000Z");
    let shown = world.get(&path, &tenant("p1")).await.json;
    assert!(shown.get("fence").is_none() && shown.get("leaseOwner").is_none());
}

#[tokio::test]
async fn what_the_client_has_is_not_sent_again() {
    let world = World::new();
    let id = world.job("p1").await;
    let path = format!("/jobs/{id}");
    let tag = world
        .get(&path, &operator())
        .await
        .header("etag")
        .to_owned();
    let known = [("if-none-match", tag.as_str())];
    let caller = operator();
    let again = call_with(&world.service, "GET", &path, &caller, &known, Value::Null).await;
    assert_eq!(
        (again.status, again.bytes.len()),
        (StatusCode::NOT_MODIFIED, 0)
    );
    world.cancel(&id).await;
    assert_ne!(world.get(&path, &operator()).await.header("etag"), tag);
}

#[tokio::test]
async fn who_may_not_read_jobs_is_refused() {
    let world = World::new();
    let id = world.job("p1").await;
    let Some(Caller::User {
        user_id,
        session_id,
        membership: Some(mut membership),
    }) = member("ada", "p1", Role::Member)
    else {
        unreachable!("a member is a user")
    };
    membership.permissions = PermissionSet::new(["platform:read"]);
    let caller = Caller::User {
        user_id,
        session_id,
        membership: Some(membership),
    };
    for path in [
        format!("/jobs/{id}"),
        "/jobs".to_owned(),
        "/jobs?platformId=p1".to_owned(),
    ] {
        refused(&world.get(&path, &caller).await, 403, "FORBIDDEN");
        refused(
            &world.get(&path, &Caller::Anonymous).await,
            401,
            "UNAUTHORIZED",
        );
    }
}

#[tokio::test]
async fn each_filter_shows_what_it_names_and_nothing_else() {
    let world = World::new();
    let (first, second) = (world.job("p1").await, world.job("p1").await);
    let other = world.job("p2").await;
    world.cancel(&first).await;
    let found = async |query: &str, caller: &Caller| {
        let list = world.get(&format!("/jobs{query}"), caller).await;
        assert_eq!(list.status, StatusCode::OK, "{query}: {}", list.json);
        let data = list.json["data"].as_array().unwrap().clone();
        assert_eq!(list.json["pagination"]["count"], data.len());
        data.iter()
            .map(|job| job["jobId"].as_str().unwrap().to_owned())
            .collect::<Vec<_>>()
    };
    let mut all = found("", &operator()).await;
    all.sort();
    let mut known = vec![first.clone(), second.clone(), other.clone()];
    known.sort();
    assert_eq!(all, known);
    assert_eq!(
        found("?status=FAILED", &operator()).await,
        std::slice::from_ref(&first)
    );
    assert_eq!(found("?platformId=p2", &operator()).await, [other]);
    assert_eq!(
        found("?platformId=p1&status=QUEUED", &operator()).await,
        std::slice::from_ref(&second)
    );
    assert_eq!(found("?status=QUEUED", &tenant("p1")).await, [second]);
    for status in ["RUNNING", "WAITING", "COMPLETED"] {
        assert!(
            found(&format!("?status={status}"), &operator())
                .await
                .is_empty()
        );
    }
    assert!(found("?platformId=none", &operator()).await.is_empty());
    assert_eq!(
        found("?colour=blue&status=FAILED", &operator()).await,
        [first]
    );
}

#[tokio::test]
async fn a_page_has_as_many_as_asked_for_and_at_most_a_hundred() {
    let world = World::new();
    for _ in 0..101 {
        world.job("p1").await;
    }
    for (query, limit, count) in [
        ("", 50, 50),
        ("?limit=1", 1, 1),
        ("?limit=100", 100, 100),
        ("?limit=5000", 100, 100),
    ] {
        let page = world.get(&format!("/jobs{query}"), &operator()).await.json;
        assert_eq!(page["pagination"]["limit"], limit, "{query}");
        assert_eq!(page["pagination"]["count"], count, "{query}");
        assert_eq!(page["pagination"]["cursor"], Value::Null);
    }
    for limit in ["0", "-1", "1.5", "many", ""] {
        let answer = world
            .get(&format!("/jobs?limit={limit}"), &operator())
            .await;
        refused(&answer, 400, "VALIDATION_ERROR");
    }
}

#[tokio::test]
async fn pages_hold_each_job_once_while_jobs_are_added_and_a_foreign_cursor_is_refused() {
    let world = World::new();
    let mut present = Vec::new();
    for _ in 0..7 {
        present.push(world.job("p1").await);
        world.clock.advance(std::time::Duration::from_millis(1));
    }
    let mut seen = Vec::new();
    let mut path = "/jobs?platformId=p1&limit=2".to_owned();
    let mut cursor = Value::Null;
    loop {
        let page = world.get(&path, &operator()).await.json;
        assert_eq!(page["pagination"]["cursor"], cursor);
        let data = page["data"].as_array().unwrap();
        seen.extend(
            data.iter()
                .map(|job| job["jobId"].as_str().unwrap().to_owned()),
        );
        world.job("p1").await;
        cursor = page["pagination"]["nextCursor"].clone();
        let Some(next) = cursor.as_str() else { break };
        path = format!("/jobs?platformId=p1&limit=2&cursor={next}");
    }
    present.reverse();
    assert_eq!(seen, present);
    let page = world
        .get("/jobs?platformId=p1&limit=2", &operator())
        .await
        .json;
    let cursor = page["pagination"]["nextCursor"].as_str().unwrap();
    for path in [
        format!("/jobs?limit=2&cursor={cursor}"),
        format!("/jobs?platformId=p1&status=QUEUED&limit=2&cursor={cursor}"),
        format!(
            "/jobs?platformId=p1&limit=2&cursor={}x",
            &cursor[..cursor.len() - 1]
        ),
        "/jobs?platformId=p1&cursor=!".to_owned(),
        "/jobs?platformId=p1&cursor=".to_owned(),
    ] {
        refused(&world.get(&path, &operator()).await, 400, "INVALID_CURSOR");
    }
}

#[tokio::test]
async fn what_cannot_be_a_job_is_not_found_and_other_methods_are_named() {
    let world = World::new();
    for id in ["none", "a%20b", "%00", "latest", &"x".repeat(129)] {
        refused(
            &world.get(&format!("/jobs/{id}"), &operator()).await,
            404,
            "NOT_FOUND",
        );
    }
    let answer = world
        .post("/api/v1/provision/jobs", &operator(), json!({}))
        .await;
    refused(&answer, 405, "METHOD_NOT_ALLOWED");
    assert_eq!(answer.header("allow"), "GET, HEAD");
    let answer = world.get("/api/v1/provision/onboard", &operator()).await;
    refused(&answer, 405, "METHOD_NOT_ALLOWED");
}
