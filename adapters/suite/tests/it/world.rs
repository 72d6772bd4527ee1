//! A suite with a fixed clock, and helpers that call it.

use std::convert::Infallible;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use core_domain::kernel::Timestamp;
use core_domain::port::Infrastructure;
use core_domain::testing::{ManualClock, SeededEntropy};
use core_http::kernel::testing::{Answer, PEER, worthless_hasher};
use core_suite::{Body, PeerAddr, Suite, SuiteBuilder, bytes_body, empty_body};
use http::{Request, Response};
use serde_json::{Value, json};
use tempfile::TempDir;
use tower::{Service, ServiceExt};

pub(crate) const SERVICE_KEY: &str = "a-service-key-for-tests";
const ORIGIN: &str = "http://iam.test";

pub(crate) struct World {
    pub(crate) suite: Suite,
    pub(crate) folder: TempDir,
}

/// Returns a builder for a suite over this data folder.
pub(crate) fn builder(folder: &Path) -> SuiteBuilder {
    Suite::builder()
        .data_folder(folder.join("data"))
        .clock(Arc::new(ManualClock::at(Timestamp::from_seconds(
            1_800_000_000,
        ))))
        .entropy(Arc::new(SeededEntropy::new(7)))
        .password_hasher(worthless_hasher())
        .service_key(SERVICE_KEY)
        .iam_url(ORIGIN)
}

/// Returns a request with a bearer token.
pub(crate) fn request(method: &str, path: &str, token: &str) -> http::request::Builder {
    Request::builder()
        .method(method)
        .uri(path)
        .extension(PeerAddr(PEER))
        .header("host", "api.test")
        .header("authorization", format!("Bearer {token}"))
}

/// Adds a JSON body to the request; `null` means no body.
pub(crate) fn json_body(request: http::request::Builder, body: &Value) -> Request<Body> {
    let request = match body {
        Value::Null => request.body(empty_body()),
        body => request
            .header("content-type", "application/json")
            .body(bytes_body(body.to_string())),
    };
    request.unwrap()
}

pub(crate) async fn send<S>(service: S, request: Request<Body>) -> Answer
where
    S: Service<Request<Body>, Response = Response<Body>, Error = Infallible>,
{
    Answer::of(service.oneshot(request).await.unwrap()).await
}

impl World {
    pub(crate) async fn new() -> Self {
        Self::with(|builder| builder).await
    }

    pub(crate) async fn with(change: impl FnOnce(SuiteBuilder) -> SuiteBuilder) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let suite = change(builder(folder.path())).build().await.unwrap();
        Self { suite, folder }
    }

    /// Creates a suite with the given infrastructure provider.
    pub(crate) async fn at(provider: impl Infrastructure + 'static) -> Self {
        Self::with(|builder| builder.infrastructure(Arc::new(provider))).await
    }

    /// Sends a request through the gateway.
    pub(crate) async fn call(&self, method: &str, path: &str, token: &str, body: Value) -> Answer {
        let request = json_body(request(method, path, token), &body);
        send(self.suite.gateway(), request).await
    }

    /// Creates a platform. Returns its id.
    pub(crate) async fn platform(&self, slug: &str) -> String {
        let body = json!({ "name": slug, "slug": slug });
        let made = self.call("POST", "/api/v1/platforms", SERVICE_KEY, body);
        made.await.expect(201).id()
    }

    /// Signs a user up. Returns the session token.
    pub(crate) async fn signed_up(&self) -> String {
        self.sign_up().await.text("token").to_owned()
    }

    async fn sign_up(&self) -> Answer {
        let body =
            json!({ "name": "Ada", "email": "ada@example.org", "password": "correct horse" });
        let request = request("POST", "/api/auth/sign-up/email", "none");
        let answer = send(self.suite.iam(), json_body(request, &body)).await;
        answer.expect(200)
    }

    /// Signs a user up and creates an organization and its platform for the session. Returns the session token.
    pub(crate) async fn signed_up_with_platform(&self, slug: &str) -> String {
        let signed_up = self.sign_up().await;
        let cookies = signed_up.headers.get_all("set-cookie").iter();
        let mut cookies = cookies.map(|cookie| cookie.to_str().unwrap());
        let session = cookies.find(|cookie| cookie.starts_with("better-auth.session_token="));
        let set_up = Request::post("/api/core/org-setup")
            .extension(PeerAddr(PEER))
            .header("origin", ORIGIN)
            .header("cookie", session.unwrap().split(';').next().unwrap());
        let body = json!({ "name": slug, "slug": slug });
        let made = send(self.suite.iam(), json_body(set_up, &body)).await;
        let _ = made.expect(201);
        signed_up.text("token").to_owned()
    }

    /// Uploads a site.
    pub(crate) async fn deploy(
        &self,
        platform: &str,
        branch: &str,
        content_type: &str,
        upload: &[u8],
    ) -> Answer {
        let path = format!("/api/v1/cli/platforms/{platform}/deploy");
        let request = request("POST", &path, SERVICE_KEY)
            .header("x-core-deploy-branch", branch)
            .header("content-type", content_type)
            .body(bytes_body(upload.to_vec()));
        send(self.suite.gateway(), request.unwrap()).await
    }

    /// Waits, with long polling, until the deployment is live.
    pub(crate) async fn live(&self, platform: &str, deployment: &Answer) -> Answer {
        let id = deployment.text("deploymentId");
        let path = format!("/api/v1/cli/platforms/{platform}/deployments/{id}?wait=5");
        let live = async {
            loop {
                let shown = self.call("GET", &path, SERVICE_KEY, Value::Null).await;
                match shown.text("status") {
                    "active" => return shown,
                    "failure" | "canceled" => panic!("{}", shown.json),
                    _ => {}
                }
            }
        };
        in_time(live).await
    }
}

/// Waits for a future. Panics after three minutes, so that a test cannot hang.
pub(crate) async fn in_time<T>(awaited: impl Future<Output = T>) -> T {
    let ended = tokio::time::timeout(Duration::from_secs(180), awaited).await;
    ended.unwrap()
}
