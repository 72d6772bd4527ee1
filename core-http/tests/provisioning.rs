//! Provisioning through its tower service, over the memory store.

#![expect(clippy::unwrap_used, reason = "a helper of a test fails with the test")]

use std::sync::Arc;

use core_domain::kernel::{Caller, Context, ManualClock, PlatformId, Role, Timestamp};
use core_domain::port::transact;
use core_domain::provisioning::Kinds;
use core_domain::use_case::provisioning::{NewJob, cancel, enqueue};
use core_http::kernel::testing::{app, call, member, operator};
use core_http::kernel::{App, Service};
use core_storage::memory::{MemoryConfig, open};
use http::StatusCode;
use serde_json::{Value, json};

struct Suite {
    service: Service,
    app: Arc<App>,
}

impl Suite {
    fn new() -> Self {
        let clock = Arc::new(ManualClock::at(Timestamp::from_seconds(1_800_000_000)));
        let store = open(MemoryConfig {
            clock: clock.clone(),
            cursor_key: [7; 32].into(),
        });
        let app = app(store, clock);
        let service = core_http::provisioning::service(app.clone()).unwrap();
        Self { service, app }
    }

    fn cx(&self) -> Context {
        Context::system(self.app.entropy.clone())
    }

    async fn job(&self, platform: &str) -> String {
        let platform = PlatformId::parse(platform).unwrap();
        let cx = self.cx();
        let job = transact(self.app.store.as_ref(), |uow, _| {
            let new = NewJob::for_platform("platform", platform.clone(), &["db", "site"]);
            Box::pin(enqueue(&cx, uow, new))
        });
        job.await.unwrap().id.to_string()
    }

    async fn get(&self, path: &str, caller: &Caller) -> core_http::kernel::testing::Answer {
        call(&self.service, "GET", path, caller, Value::Null).await
    }
}

fn tenant(platform: &str) -> Caller {
    member("ada", platform, Role::Member).unwrap()
}

#[tokio::test]
async fn a_job_shows_every_field_and_its_fence_to_operators_alone() {
    let suite = Suite::new();
    let id = suite.job("p1").await;
    let answer = suite.get(&format!("/jobs/{id}"), &tenant("p1")).await;
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
    let seen = suite
        .get(&format!("/api/v1/provision/jobs/{id}"), &operator())
        .await;
    assert_eq!(seen.json["fence"], 0);
    assert_eq!(seen.json["leaseOwner"], Value::Null);
}

#[tokio::test]
async fn a_foreign_job_is_not_found_exactly_as_a_missing_one() {
    let suite = Suite::new();
    let id = suite.job("p1").await;
    let foreign = suite.get(&format!("/jobs/{id}"), &tenant("p2")).await;
    let missing = suite.get("/jobs/nothing", &tenant("p2")).await;
    assert_eq!(
        (foreign.status, foreign.code()),
        (StatusCode::NOT_FOUND, "NOT_FOUND")
    );
    assert_eq!(
        foreign.json["error"]["message"],
        missing.json["error"]["message"]
    );
    let list = suite.get("/jobs?platformId=p1", &tenant("p2")).await;
    assert_eq!(list.status, StatusCode::NOT_FOUND);
    assert_eq!(
        suite.get("/jobs", &Caller::Anonymous).await.status,
        StatusCode::UNAUTHORIZED
    );
}

#[tokio::test]
async fn the_list_is_filtered_and_walked_by_cursor_newest_first() {
    let suite = Suite::new();
    let mut ids = Vec::new();
    for _ in 0..3 {
        ids.push(suite.job("p1").await);
    }
    suite.job("p2").await;
    let cx = suite.cx();
    let cancelled = core_domain::kernel::JobId::parse(&ids[0]).unwrap();
    transact(suite.app.store.as_ref(), |uow, _| {
        let (cx, id) = (&cx, &cancelled);
        Box::pin(async move { cancel(cx, uow, &Kinds::default(), id, None).await })
    })
    .await
    .unwrap();
    let all = suite.get("/jobs?limit=2", &tenant("p1")).await;
    assert_eq!(all.json["pagination"]["count"], 2);
    let next = all.json["pagination"]["nextCursor"].as_str().unwrap();
    let rest = suite
        .get(&format!("/jobs?limit=2&cursor={next}"), &tenant("p1"))
        .await;
    assert_eq!(rest.json["pagination"]["count"], 1);
    assert_eq!(rest.json["pagination"]["cursor"], next);
    assert_eq!(rest.json["pagination"]["nextCursor"], Value::Null);
    let failed = suite
        .get("/jobs?status=FAILED&platformId=p1", &operator())
        .await;
    assert_eq!(failed.json["data"][0]["jobId"], ids[0].as_str());
    assert_eq!(failed.json["data"][0]["reason"], "cancelled by operator");
    assert_eq!(
        suite.get("/jobs", &operator()).await.json["pagination"]["count"],
        4
    );
    let bad = suite.get("/jobs?status=SLEEPING", &operator()).await;
    assert_eq!(
        (bad.status, bad.code()),
        (StatusCode::BAD_REQUEST, "VALIDATION_ERROR")
    );
}

#[tokio::test]
async fn a_suspended_platforms_jobs_say_why_they_are_held() {
    let suite = Suite::new();
    let id = suite.job("p1").await;
    let path = format!("/jobs/{id}");
    let set = async |status: &str, caller: &Caller| {
        let body = json!({ "platformId": "p1", "status": status });
        call(
            &suite.service,
            "POST",
            "/internal/platform-status",
            caller,
            body,
        )
        .await
    };
    assert_eq!(
        set("suspended", &tenant("p1")).await.status,
        StatusCode::FORBIDDEN
    );
    assert_eq!(
        set("asleep", &operator()).await.status,
        StatusCode::BAD_REQUEST
    );
    for _ in 0..2 {
        let answer = set("suspended", &operator()).await;
        assert_eq!(answer.status, StatusCode::OK, "{}", answer.json);
        assert_eq!(
            suite.get(&path, &operator()).await.json["holdReason"],
            "suspension"
        );
    }
    assert_eq!(set("active", &operator()).await.status, StatusCode::OK);
    assert_eq!(
        suite.get(&path, &operator()).await.json["holdReason"],
        Value::Null
    );
}
