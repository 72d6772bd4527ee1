//! A small IAM to talk to.

use std::sync::Arc;
use std::time::Duration;

use core_domain::gateway::TrustedProxies;
use core_domain::iam::OrganizationType;
use core_domain::kernel::{
    Context, ManualClock, Name, PlatformId, RequestInfo, SeededEntropy, Slug, Timestamp, UserId,
};
use core_domain::port::{MemoryBlobs, Mode, NoWake, transact};
use core_domain::shared::{AuditEntry, AuditQuery};
use core_domain::use_case::iam::{NewOrganization, create_organization_with_owner};
use core_storage::memory::{MemoryConfig, open};
use http::{HeaderMap, Request, Response, StatusCode};
use http_body_util::BodyExt;
use serde_json::{Value, json};

use super::super::{IamConfig, service};
use crate::kernel::testing::WorthlessHasher;
use crate::kernel::{App, Body, InFlight, Service, ServiceKey, bytes_body};

pub(super) const KEY: &str = "key-of-the-services";
pub(super) const ORIGIN: &str = "http://iam.test";
pub(super) const PASSWORD: &str = "correct horse battery";

pub(super) struct World {
    pub(super) clock: Arc<ManualClock>,
    pub(super) app: Arc<App>,
    pub(super) iam: Service,
}

pub(super) struct Answer {
    pub(super) status: StatusCode,
    pub(super) headers: HeaderMap,
    pub(super) body: Value,
}

impl Answer {
    pub(super) async fn of(response: Response<Body>) -> Self {
        let (parts, body) = response.into_parts();
        let bytes = body.collect().await.unwrap().to_bytes();
        Self {
            status: parts.status,
            headers: parts.headers,
            body: serde_json::from_slice(&bytes).unwrap_or(Value::Null),
        }
    }

    #[track_caller]
    pub(super) fn expect(self, status: u16) -> Self {
        assert_eq!(self.status.as_u16(), status, "{}", self.body);
        self
    }

    pub(super) fn cookies(&self) -> Vec<&str> {
        let all = self.headers.get_all("set-cookie").iter();
        all.map(|value| value.to_str().unwrap()).collect()
    }

    /// What a browser would send back of the session cookie.
    pub(super) fn cookie(&self) -> String {
        let all = self.cookies();
        let cookie = all
            .iter()
            .find(|c| c.starts_with("better-auth.session_token="));
        cookie.unwrap().split(';').next().unwrap().to_owned()
    }

    pub(super) fn token(&self) -> String {
        self.body["token"].as_str().unwrap().to_owned()
    }
}

impl World {
    pub(super) fn new() -> Self {
        let clock = Arc::new(ManualClock::at(Timestamp::from_seconds(1_800_000_000)));
        let store = open(MemoryConfig {
            clock: clock.clone(),
            cursor_key: [7; 32].into(),
        });
        let app = Arc::new(App {
            store,
            clock: clock.clone(),
            entropy: Arc::new(SeededEntropy::new(42)),
            wake: Arc::new(NoWake),
            hasher: Arc::new(WorthlessHasher),
            blobs: Arc::new(MemoryBlobs::default()),
            service_key: Some(ServiceKey::new(KEY)),
            in_flight: InFlight::default(),
        });
        let config = IamConfig {
            secret: b"a secret of thirty-two bytes ...".to_vec(),
            base_url: ORIGIN.to_owned(),
            trusted_origins: Vec::new(),
            trusted_proxies: TrustedProxies::parse(["192.0.2.1"]).unwrap(),
        };
        let iam = service(Arc::clone(&app), &config).unwrap();
        Self { clock, app, iam }
    }

    pub(super) async fn send(
        &self,
        method: &str,
        path: &str,
        headers: &[(&str, &str)],
        body: impl Into<String>,
    ) -> Answer {
        let mut request = Request::builder().method(method).uri(path);
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        let request = request.body(bytes_body(body.into())).unwrap();
        Answer::of(self.iam.answer(request).await).await
    }

    pub(super) async fn get(&self, path: &str, headers: &[(&str, &str)]) -> Answer {
        self.send("GET", path, headers, "").await
    }

    pub(super) async fn post(&self, path: &str, headers: &[(&str, &str)], body: &Value) -> Answer {
        let mut all = vec![("content-type", "application/json")];
        all.extend_from_slice(headers);
        self.send("POST", path, &all, body.to_string()).await
    }

    pub(super) async fn sign_up(&self, email: &str) -> Answer {
        let body = json!({ "name": "Ada", "email": email, "password": PASSWORD });
        self.post("/api/auth/sign-up/email", &[], &body).await
    }

    pub(super) async fn sign_in(&self, email: &str, password: &str) -> Answer {
        let body = json!({ "email": email, "password": password });
        self.post("/api/auth/sign-in/email", &[], &body).await
    }

    pub(super) async fn as_service(&self, path: &str, body: &Value) -> Answer {
        let key = format!("Bearer {KEY}");
        self.post(path, &[("authorization", &key)], body).await
    }

    pub(super) fn later(&self, hours: u64) {
        self.clock.advance(Duration::from_secs(hours * 3_600));
    }

    /// An organization of a platform with its owner.
    pub(super) async fn organization(&self, slug: &str, owner: &str, platform: &str) {
        let cx = Context {
            caller: core_domain::kernel::Caller::System,
            request: RequestInfo::default(),
            entropy: Arc::clone(&self.app.entropy),
        };
        let new = NewOrganization {
            name: Name::parse("Engines").unwrap(),
            slug: Slug::parse(slug).unwrap(),
            kind: OrganizationType::Tenant,
            platform_id: PlatformId::parse(platform),
            owner: UserId::parse(owner),
        };
        let (cx, new) = (&cx, &new);
        transact(self.app.store.as_ref(), |uow, _| {
            Box::pin(async move { create_organization_with_owner(cx, uow, new).await })
        })
        .await
        .unwrap();
    }

    pub(super) async fn audit(&self, action: &str) -> Vec<AuditEntry> {
        let mut uow = self.app.store.begin(Mode::Read).await.unwrap();
        let query = AuditQuery {
            action: Some(action.to_owned()),
            ..AuditQuery::default()
        };
        let found = uow.audit_entries().list(&query, 100).await.unwrap();
        found.into_iter().map(|entry| entry.into_inner()).collect()
    }
}
