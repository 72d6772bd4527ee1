//! A small registry to talk to, over any store.

use std::any::Any;
use std::sync::Arc;
use std::time::Duration;

use core_domain::iam::User;
use core_domain::kernel::{Caller, Context, Email, JobId, ManualClock, Role, Timestamp, UserId};
use core_domain::port::{Store, transact};
use core_domain::provisioning::Kinds;
use core_domain::use_case::provisioning::{self, Outcome, Unsupervised, Worker};
use core_domain::use_case::registry::kinds;
use core_storage::memory::{self, MemoryConfig};
use serde_json::{Value, json};

use super::provider::Provider;
use crate::kernel::testing::{Answer, app, call_with, member, operator};
use crate::kernel::{App, Service};

pub(super) struct World {
    pub(super) clock: Arc<ManualClock>,
    pub(super) app: Arc<App>,
    pub(super) service: Service,
    pub(super) provider: Arc<Provider>,
    _keeps: Box<dyn Any + Send + Sync>,
}

pub(super) fn start() -> Arc<ManualClock> {
    Arc::new(ManualClock::at(Timestamp::from_seconds(1_800_000_000)))
}

impl World {
    pub(super) fn over(
        store: Arc<dyn Store>,
        clock: Arc<ManualClock>,
        keeps: Box<dyn Any + Send + Sync>,
    ) -> Self {
        let app = app(store, clock.clone());
        let service = super::super::service(app.clone()).unwrap();
        Self {
            clock,
            app,
            service,
            provider: Arc::default(),
            _keeps: keeps,
        }
    }

    pub(super) fn new() -> Self {
        let clock = start();
        let store = memory::open(MemoryConfig {
            clock: clock.clone(),
            cursor_key: [7; 32].into(),
        });
        Self::over(store, clock, Box::new(()))
    }

    pub(super) async fn send(
        &self,
        caller: &Caller,
        method: &str,
        path: &str,
        headers: &[(&str, &str)],
        body: Value,
    ) -> Answer {
        call_with(&self.service, method, path, caller, headers, body).await
    }

    pub(super) async fn get(&self, caller: &Caller, path: &str) -> Answer {
        self.send(caller, "GET", path, &[], Value::Null).await
    }

    pub(super) async fn post(&self, caller: &Caller, path: &str, body: Value) -> Answer {
        self.send(caller, "POST", path, &[], body).await
    }

    pub(super) async fn patch(&self, caller: &Caller, path: &str, body: Value) -> Answer {
        self.send(caller, "PATCH", path, &[], body).await
    }

    pub(super) async fn delete(&self, caller: &Caller, path: &str) -> Answer {
        self.send(caller, "DELETE", path, &[], Value::Null).await
    }

    /// Makes a platform as the operator; answers its id. Time passes, so that the newest is known.
    pub(super) async fn platform(&self, slug: &str) -> String {
        let body = json!({ "name": "Engines", "slug": slug });
        let made = self.post(&operator(), PLATFORMS, body).await.expect(201);
        self.tick(1);
        made.id()
    }

    pub(super) async fn tenant(&self, platform: &str, slug: &str) -> String {
        let body = json!({ "name": slug, "slug": slug, "type": "tenant" });
        let path = at(platform, "/entities");
        let made = self.post(&operator(), &path, body).await.expect(201);
        self.tick(1);
        made.id()
    }

    pub(super) async fn subtenant(&self, platform: &str, parent: &str, slug: &str) -> String {
        let body = json!({ "name": slug, "slug": slug, "type": "subtenant", "parentId": parent });
        let path = at(platform, "/entities");
        let made = self.post(&operator(), &path, body).await.expect(201);
        self.tick(1);
        made.id()
    }

    pub(super) async fn resource(&self, platform: &str, entity: &str, cf_name: &str) -> String {
        let path = at(platform, &format!("/entities/{entity}/resources"));
        let made = self.post(&operator(), &path, resource_body(cf_name)).await;
        self.tick(1);
        made.expect(201).id()
    }

    /// A person who has signed up and acts for no organization.
    pub(super) async fn person(&self) -> Caller {
        let leo = User {
            id: UserId::parse("leo").unwrap(),
            name: "Leo".to_owned(),
            email: Email::parse("leo@example.org").unwrap(),
            email_verified: true,
            image: None,
            created_at: Timestamp::EPOCH,
            updated_at: Timestamp::EPOCH,
        };
        let store = self.app.store.as_ref();
        let made = transact(store, |uow, _| {
            let leo = leo.clone();
            Box::pin(async move { Ok(uow.users().insert(leo).await?) })
        });
        made.await.unwrap();
        loner()
    }

    /// What operators do to jobs.
    pub(super) async fn operate(&self, job: &str, how: How) {
        let cx = Context {
            caller: operator(),
            ..Context::system(self.app.entropy.clone())
        };
        let (job, kinds) = (JobId::parse(job).unwrap(), Kinds::new(kinds()));
        let done = transact(self.app.store.as_ref(), |uow, _| {
            let (cx, job, kinds) = (&cx, &job, &kinds);
            Box::pin(async move {
                match how {
                    How::Retry => provisioning::retry(cx, uow, kinds, job).await,
                    How::Cancel => provisioning::cancel(cx, uow, kinds, job, None).await,
                }
            })
        });
        done.await.unwrap();
    }

    pub(super) fn tick(&self, seconds: u64) {
        self.clock.advance(Duration::from_secs(seconds));
    }

    /// Works until nothing can be worked on.
    pub(super) async fn run_jobs(&self) {
        let worker = Worker::new(
            self.app.store.clone(),
            self.provider.clone(),
            self.app.blobs.clone(),
            Arc::new(Kinds::new(kinds())),
            self.app.entropy.clone(),
        );
        for _ in 0..100 {
            if worker.run_one(&Unsupervised).await.unwrap() == Outcome::Idle {
                return;
            }
        }
        panic!("jobs do not end");
    }
}

#[derive(Clone, Copy, Debug)]
pub(super) enum How {
    Retry,
    Cancel,
}

pub(super) const PLATFORMS: &str = "/api/v1/platforms";

/// A path below a platform.
pub(super) fn at(platform: &str, rest: &str) -> String {
    format!("{PLATFORMS}/{platform}{rest}")
}

pub(super) fn resource_body(cf_name: &str) -> Value {
    json!({
        "stackId": "st1",
        "resourceType": "d1",
        "serviceName": "db",
        "environment": "prod",
        "cfName": cf_name,
    })
}

pub(super) fn owner(platform: &str) -> Caller {
    member("olga", platform, Role::Owner).unwrap()
}

pub(super) fn admin(platform: &str) -> Caller {
    member("adam", platform, Role::Admin).unwrap()
}

pub(super) fn plain_member(platform: &str) -> Caller {
    member("mary", platform, Role::Member).unwrap()
}

/// A signed-in person who acts for no organization.
pub(super) fn loner() -> Caller {
    Caller::User {
        user_id: UserId::parse("leo").unwrap(),
        session_id: None,
        membership: None,
    }
}

/// What tests say about answers.
pub(super) trait Says {
    /// The answer, provided it has this status.
    fn expect(self, status: u16) -> Self;
    /// The answer, provided it refuses like this.
    fn refused(self, status: u16, code: &str) -> Self;
    /// The id of the record.
    fn id(&self) -> String;
    /// A field of every record of the list.
    fn each(&self, field: &str) -> Vec<&str>;
}

impl Says for Answer {
    #[track_caller]
    fn expect(self, status: u16) -> Self {
        assert_eq!(self.status.as_u16(), status, "{}", self.json);
        self
    }

    #[track_caller]
    fn refused(self, status: u16, code: &str) -> Self {
        assert_eq!(
            (self.status.as_u16(), self.code()),
            (status, code),
            "{}",
            self.json
        );
        self
    }

    #[track_caller]
    fn id(&self) -> String {
        self.json["id"].as_str().unwrap().to_owned()
    }

    #[track_caller]
    fn each(&self, field: &str) -> Vec<&str> {
        let data = self.json["data"].as_array().unwrap();
        data.iter().map(|r| r[field].as_str().unwrap()).collect()
    }
}
