//! Test helpers: a fake Cloudflare account and an adapter that uses it.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use core_cloudflare::{CloudflareAccount, CloudflareInfrastructure, CloudflareOptions};
use core_cloudflare_fake::{FakeCloudflare, Matcher, Settings};
use core_domain::kernel::{Environment, PlatformId, Secret, Slug, Timestamp};
use core_domain::port::{Infrastructure, ObjectRequest, ProviderObject, ResourceRef, SiteUpload};
use core_domain::registry::{ResourceType, resource_name};
use core_domain::testing::{ManualClock, MemoryBlobs, MemorySite};
use http::{Method, Request};
use http_body_util::{BodyExt, Full};
use hyper_util::client::legacy::Client;
use hyper_util::rt::TokioExecutor;
use serde_json::{Value, json};

/// The platform of most tests, and an unrelated platform.
pub(crate) const OWNER: &str = "p1";
pub(crate) const STRANGER: &str = "p2";

/// The time of the adapter's clock, in Unix seconds: a moment in 2026.
pub(crate) const NOW: i64 = 1_790_000_000;

pub(crate) struct World {
    pub(crate) fake: FakeCloudflare,
    pub(crate) cloudflare: CloudflareInfrastructure,
    /// The store of the receipts.
    pub(crate) blobs: MemoryBlobs,
}

impl World {
    pub(crate) async fn new() -> Self {
        Self::with(Settings::default(), |_| ()).await
    }

    pub(crate) async fn with(
        settings: Settings,
        change: impl FnOnce(&mut CloudflareOptions),
    ) -> Self {
        let fake = FakeCloudflare::start_with(settings).await.unwrap();
        let blobs = MemoryBlobs::default();
        let cloudflare = adapter(&fake, change).with_receipts(Arc::new(blobs.clone()));
        Self {
            fake,
            cloudflare,
            blobs,
        }
    }

    /// Replaces the adapter with a new one, as after a restart of the process.
    pub(crate) fn restart(&mut self) {
        let blobs = Arc::new(self.blobs.clone());
        self.cloudflare = adapter(&self.fake, |_| ()).with_receipts(blobs);
    }

    /// Sends a request directly to the fake API.
    pub(crate) async fn api(&self, method: Method, path: &str, body: impl Into<Bytes>) -> Value {
        self.ask(method, path, "application/json", body.into())
            .await
    }

    /// Uploads a multipart form with the boundary `b`.
    pub(crate) async fn put_form(&self, path: &str, form: &'static str) {
        let content_type = "multipart/form-data; boundary=b";
        self.ask(Method::PUT, path, content_type, form.into()).await;
    }

    async fn ask(&self, method: Method, path: &str, content_type: &str, body: Bytes) -> Value {
        let client = Client::builder(TokioExecutor::new()).build_http();
        let request = Request::builder()
            .method(method)
            .uri(format!("{}{path}", self.fake.base_url()))
            .header("authorization", format!("Bearer {}", self.fake.token()))
            .header("content-type", content_type)
            .body(Full::new(body))
            .unwrap();
        let answered = client.request(request).await.unwrap();
        assert!(
            answered.status().is_success(),
            "{path}: {}",
            answered.status()
        );
        let body = answered.into_body().collect().await.unwrap().to_bytes();
        serde_json::from_slice(&body).unwrap_or_default()
    }

    /// Returns an API path below the account.
    pub(crate) fn account(&self, path: &str) -> String {
        format!("/accounts/{}/{path}", self.fake.account_id())
    }

    /// Returns an API path below the zone.
    pub(crate) fn zone(&self, path: &str) -> String {
        format!("/zones/{}/{path}", self.fake.zone_id())
    }

    pub(crate) async fn make(&self, resource_type: ResourceType) -> ProviderObject {
        self.cloudflare
            .create(&request(resource_type))
            .await
            .unwrap()
    }

    /// Returns the paths of the requests with a method, in order.
    pub(crate) fn paths(&self, method: &str) -> Vec<String> {
        let requests = self.fake.requests().into_iter();
        let of_method = requests.filter(|request| request.method == method);
        of_method.map(|request| request.path).collect()
    }

    pub(crate) fn matcher(&self, method: &str, path: &str) -> Matcher {
        Matcher::new(method, &self.account(path))
    }
}

/// Creates an adapter with short retry delays.
pub(crate) fn adapter(
    fake: &FakeCloudflare,
    change: impl FnOnce(&mut CloudflareOptions),
) -> CloudflareInfrastructure {
    let mut options = CloudflareOptions {
        saas_zone: Some("example.com".to_owned()),
        retry_delay: Duration::from_millis(1),
        ..CloudflareOptions::default()
    };
    change(&mut options);
    let account = CloudflareAccount {
        token: Secret::new(fake.token()),
        account_id: fake.account_id(),
        base_url: fake.base_url(),
    };
    let clock = ManualClock::at(Timestamp::from_seconds(NOW));
    CloudflareInfrastructure::new(account, options, Arc::new(clock)).unwrap()
}

pub(crate) fn name_for(platform: &str, resource_type: ResourceType) -> String {
    let platform = PlatformId::parse(platform).unwrap();
    let slug = Slug::parse("engines").unwrap();
    resource_name(&platform, &slug, Environment::Prod, resource_type)
}

pub(crate) fn resource(resource_type: ResourceType) -> ResourceRef {
    ResourceRef {
        resource_type,
        name: name_for(OWNER, resource_type),
    }
}

pub(crate) fn script(text: &str) -> Value {
    json!({ "mainModule": "worker.js", "modules": { "worker.js": text }, "bindings": [] })
}

pub(crate) fn request(resource_type: ResourceType) -> ObjectRequest {
    let config = match resource_type {
        ResourceType::Worker => script("export default {}"),
        ResourceType::Pages => json!({ "vars": { "MODE": "live" } }),
        _ => json!({}),
    };
    ObjectRequest {
        resource: resource(resource_type),
        owner: OWNER.to_owned(),
        effect_key: "effect".to_owned(),
        config,
    }
}

pub(crate) fn site<const N: usize>(files: [(&str, &str); N]) -> MemorySite {
    files.into_iter().collect()
}

pub(crate) fn upload(site: MemorySite, branch: &str, key: &str) -> SiteUpload {
    SiteUpload {
        project: name_for(OWNER, ResourceType::Pages),
        branch: branch.to_owned(),
        deployment_key: key.to_owned(),
        site: Arc::new(site),
    }
}
