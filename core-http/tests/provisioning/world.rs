//! What these tests work in: provisioning and the registry over one store, with a clock that stands still.

use std::sync::Arc;
use std::time::Duration;

use core_domain::iam::User;
use core_domain::kernel::{
    Caller, Context, Email, JobId, ManualClock, PlatformId, Role, Timestamp, UserId,
};
use core_domain::port::{Mode, transact};
use core_domain::provisioning::{Job, JobQuery, Kinds};
use core_domain::shared::AuditQuery;
use core_domain::use_case::provisioning::{Claimed, NewJob, cancel, claim, enqueue};
use core_domain::use_case::registry::kinds as registry_kinds;
use core_http::kernel::testing::{Answer, app, call, call_with, member, operator};
use core_http::kernel::{App, Service};
use core_storage::memory::{MemoryConfig, open};
use http::StatusCode;
use serde_json::{Value, json};

pub(super) const PLATFORM: &str = "/api/v1/provision/platform";
pub(super) const DEPROVISION: &str = "/api/v1/provision/platform/deprovision";
pub(super) const ONBOARD: &str = "/api/v1/provision/onboard";

pub(super) struct World {
    pub(super) service: Service,
    pub(super) registry: Service,
    pub(super) app: Arc<App>,
    pub(super) clock: Arc<ManualClock>,
}

impl World {
    pub(super) fn new() -> Self {
        let clock = Arc::new(ManualClock::at(Timestamp::from_seconds(1_800_000_000)));
        let store = open(MemoryConfig {
            clock: clock.clone(),
            cursor_key: [7; 32].into(),
        });
        let app = app(store, clock.clone());
        Self {
            service: core_http::provisioning::service(app.clone()).unwrap(),
            registry: core_http::registry::service(app.clone()).unwrap(),
            app,
            clock,
        }
    }

    pub(super) fn cx(&self) -> Context {
        Context::system(self.app.entropy.clone())
    }

    /// Makes a platform; answers its id.
    pub(super) async fn platform(&self, slug: &str) -> String {
        let body = json!({ "name": "Engines", "slug": slug });
        let made = self.in_registry("POST", "", &operator(), body).await;
        assert_eq!(made.status, StatusCode::CREATED, "{}", made.json);
        self.clock.advance(Duration::from_secs(1));
        made.json["id"].as_str().unwrap().to_owned()
    }

    /// Moves a platform in the registry: `suspend`, `restore`, `delete`.
    pub(super) async fn move_platform(&self, platform: &str, how: &str) {
        let path = format!("/{platform}/{how}");
        let moved = self
            .in_registry("POST", &path, &operator(), json!({}))
            .await;
        assert_eq!(moved.status, StatusCode::OK, "{}", moved.json);
    }

    /// Somebody who has signed up.
    pub(super) async fn user(&self, id: &str) {
        let now = self.app.clock.now();
        let user = User {
            id: UserId::parse(id).unwrap(),
            name: id.to_owned(),
            email: Email::parse(&format!("{id}@example.org")).unwrap(),
            email_verified: false,
            image: None,
            created_at: now,
            updated_at: now,
        };
        transact(self.app.store.as_ref(), |uow, _| {
            let user = user.clone();
            Box::pin(async move { Ok(uow.users().insert(user).await.map(|_| ())?) })
        })
        .await
        .unwrap();
    }

    /// Queues a job of two steps in a platform's lane; answers its id.
    pub(super) async fn job(&self, platform: &str) -> String {
        let platform = PlatformId::parse(platform).unwrap();
        let cx = self.cx();
        let job = transact(self.app.store.as_ref(), |uow, _| {
            let new = NewJob::for_platform("platform", platform.clone(), &["db", "site"]);
            Box::pin(enqueue(&cx, uow, new))
        });
        job.await.unwrap().id.to_string()
    }

    /// Takes the one job that can be taken.
    pub(super) async fn claim(&self) -> Claimed {
        let (cx, kinds) = (self.cx(), Kinds::new(registry_kinds()));
        let mut claimed = transact(self.app.store.as_ref(), |uow, _| {
            let (cx, kinds) = (&cx, &kinds);
            Box::pin(claim(cx, uow, kinds, "tester", 1))
        })
        .await
        .unwrap();
        claimed.pop().unwrap()
    }

    pub(super) async fn cancel(&self, job: &str) {
        let (cx, id) = (self.cx(), JobId::parse(job).unwrap());
        transact(self.app.store.as_ref(), |uow, _| {
            let (cx, id) = (&cx, &id);
            Box::pin(async move { cancel(cx, uow, &Kinds::default(), id, None).await })
        })
        .await
        .unwrap();
    }

    /// Asks the registry; the path is the part below `/api/v1/platforms`.
    pub(super) async fn in_registry(
        &self,
        method: &str,
        below: &str,
        caller: &Caller,
        body: Value,
    ) -> Answer {
        let path = format!("/api/v1/platforms{below}");
        call(&self.registry, method, &path, caller, body).await
    }

    pub(super) async fn get(&self, path: &str, caller: &Caller) -> Answer {
        call(&self.service, "GET", path, caller, Value::Null).await
    }

    pub(super) async fn post(&self, path: &str, caller: &Caller, body: Value) -> Answer {
        call(&self.service, "POST", path, caller, body).await
    }

    pub(super) async fn post_with_key(
        &self,
        path: &str,
        caller: &Caller,
        key: &str,
        body: Value,
    ) -> Answer {
        let headers = [("idempotency-key", key)];
        call_with(&self.service, "POST", path, caller, &headers, body).await
    }

    /// Every job there is, newest first.
    pub(super) async fn jobs(&self) -> Vec<Job> {
        let mut uow = self.app.store.begin(Mode::Read).await.unwrap();
        let all = JobQuery::Of {
            platform_id: None,
            status: None,
        };
        let jobs = uow.jobs().list(&all, 1_000).await.unwrap();
        jobs.into_iter().map(|job| job.into_inner()).collect()
    }

    /// How many entries the audit has for an action.
    pub(super) async fn audited(&self, action: &str) -> usize {
        let mut uow = self.app.store.begin(Mode::Read).await.unwrap();
        let all = AuditQuery::default();
        let entries = uow.audit_entries().list(&all, 1_000).await.unwrap();
        entries.iter().filter(|e| e.action == action).count()
    }
}

pub(super) fn with_role(platform: &str, role: Role) -> Caller {
    member("ada", platform, role).unwrap()
}

pub(super) fn tenant(platform: &str) -> Caller {
    with_role(platform, Role::Member)
}

/// A body that `PLATFORM` takes.
pub(super) fn wanted(platform: &str) -> Value {
    json!({ "platformId": platform, "planTier": "starter", "billingEmail": "bills@example.org" })
}

/// Asserts that the answer is exactly `{jobId, status: QUEUED}` with 202; answers the id.
#[track_caller]
pub(super) fn queued(answer: &Answer) -> String {
    assert_eq!(answer.status, StatusCode::ACCEPTED, "{}", answer.json);
    let id = answer.json["jobId"].as_str().unwrap().to_owned();
    assert_eq!(answer.json, json!({ "jobId": id, "status": "QUEUED" }));
    id
}

/// Asserts an error envelope with every part of it.
#[track_caller]
pub(super) fn refused(answer: &Answer, status: u16, code: &str) {
    assert_eq!(
        (answer.status.as_u16(), answer.code()),
        (status, code),
        "{}",
        answer.json
    );
    let error = answer.json["error"].as_object().unwrap();
    assert!(error["message"].as_str().is_some_and(|m| !m.is_empty()));
    assert!(error["requestId"].as_str().is_some_and(|id| !id.is_empty()));
    assert!(error["details"].is_object());
}
