//! Test helpers: a plain HTTP client of the fake.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use core_cloudflare_fake::{FakeCloudflare, Settings};
use http::{HeaderMap, Request};
use http_body_util::{BodyExt, Full};
use hyper_util::client::legacy::{Client, connect::HttpConnector};
use hyper_util::rt::TokioExecutor;
use serde_json::{Value, json};

/// A fake and its client. In paths, `{a}` and `{z}` are replaced by the ids of its account and its zone.
pub(crate) struct World {
    pub(crate) fake: FakeCloudflare,
    client: Client<HttpConnector, Full<Bytes>>,
}

/// A response of the fake.
#[derive(Debug)]
pub(crate) struct Reply {
    pub(crate) status: u16,
    pub(crate) headers: HeaderMap,
    pub(crate) body: Bytes,
}

impl Reply {
    pub(crate) fn json(&self) -> Value {
        serde_json::from_slice(&self.body).unwrap_or_default()
    }

    /// Returns the result of a successful response.
    #[track_caller]
    pub(crate) fn result(&self) -> Value {
        let json = self.json();
        assert_eq!(json["success"], true, "{} {json}", self.status);
        json["result"].clone()
    }

    /// Returns the status and code of an error response.
    #[track_caller]
    pub(crate) fn failure(&self) -> (u16, u64) {
        let json = self.json();
        assert_eq!(json["success"], false, "{} {json}", self.status);
        (self.status, json["errors"][0]["code"].as_u64().unwrap())
    }
}

/// A part of a form: its name, its content type if it is a file, and its content.
pub(crate) type Part<'a> = (&'a str, Option<&'a str>, Vec<u8>);

impl World {
    pub(crate) async fn start() -> Self {
        Self::start_with(Settings::default()).await
    }

    pub(crate) async fn start_with(settings: Settings) -> Self {
        let settings = Settings {
            record_exchanges: true,
            ..settings
        };
        let fake = FakeCloudflare::start_with(settings).await.unwrap();
        let client = Client::builder(TokioExecutor::new()).build_http();
        Self { fake, client }
    }

    /// Sends a request with any credentials and body. Returns `None` if no complete response is received.
    pub(crate) async fn try_send(
        &self,
        method: &str,
        path: &str,
        token: &str,
        kind: &str,
        body: Bytes,
    ) -> Option<Reply> {
        let path = path
            .replace("{a}", &self.fake.account_id())
            .replace("{z}", &self.fake.zone_id());
        let request = Request::builder()
            .method(method)
            .uri(format!("{}{path}", self.fake.base_url()))
            .header("authorization", format!("Bearer {token}"))
            .header("content-type", kind);
        let response = self
            .client
            .request(request.body(Full::new(body)).unwrap())
            .await
            .ok()?;
        let (head, body) = response.into_parts();
        Some(Reply {
            status: head.status.as_u16(),
            headers: head.headers,
            body: body.collect().await.ok()?.to_bytes(),
        })
    }

    pub(crate) async fn send(&self, method: &str, path: &str, body: &Value) -> Reply {
        let body = if body.is_null() {
            Bytes::new()
        } else {
            Bytes::from(body.to_string())
        };
        let token = self.fake.token();
        self.try_send(method, path, &token, "application/json", body)
            .await
            .unwrap()
    }

    pub(crate) async fn get(&self, path: &str) -> Reply {
        self.send("GET", path, &Value::Null).await
    }

    pub(crate) async fn post(&self, path: &str, body: Value) -> Reply {
        self.send("POST", path, &body).await
    }

    pub(crate) async fn put(&self, path: &str, body: Value) -> Reply {
        self.send("PUT", path, &body).await
    }

    pub(crate) async fn patch(&self, path: &str, body: Value) -> Reply {
        self.send("PATCH", path, &body).await
    }

    pub(crate) async fn delete(&self, path: &str) -> Reply {
        self.send("DELETE", path, &Value::Null).await
    }

    pub(crate) async fn send_form(
        &self,
        method: &str,
        path: &str,
        token: &str,
        parts: &[Part<'_>],
    ) -> Reply {
        let mut body = Vec::new();
        for (name, kind, content) in parts {
            body.extend_from_slice(
                format!("--xyz\r\nContent-Disposition: form-data; name=\"{name}\"").as_bytes(),
            );
            if let Some(kind) = kind {
                body.extend_from_slice(
                    format!("; filename=\"{name}\"\r\nContent-Type: {kind}").as_bytes(),
                );
            }
            body.extend_from_slice(b"\r\n\r\n");
            body.extend_from_slice(content);
            body.extend_from_slice(b"\r\n");
        }
        body.extend_from_slice(b"--xyz--\r\n");
        let kind = "multipart/form-data; boundary=xyz";
        self.try_send(method, path, token, kind, Bytes::from(body))
            .await
            .unwrap()
    }

    pub(crate) async fn form(&self, method: &str, path: &str, parts: &[Part<'_>]) -> Reply {
        self.send_form(method, path, &self.fake.token(), parts)
            .await
    }

    /// Uploads a worker of one module with this metadata.
    pub(crate) async fn upload(&self, name: &str, metadata: Value) -> Reply {
        let path = format!("/accounts/{{a}}/workers/scripts/{name}");
        self.form("PUT", &path, &worker(metadata)).await
    }

    pub(crate) async fn create_project(&self, name: &str) -> Value {
        let body = json!({"name": name, "production_branch": "main"});
        self.post("/accounts/{a}/pages/projects", body)
            .await
            .result()
    }

    pub(crate) async fn upload_token(&self, project: &str) -> String {
        let token = self
            .get(&format!(
                "/accounts/{{a}}/pages/projects/{project}/upload-token"
            ))
            .await;
        token.result()["jwt"].as_str().unwrap().to_owned()
    }

    /// Calls one of the three endpoints that require an upload token.
    pub(crate) async fn assets(&self, token: &str, endpoint: &str, body: &Value) -> Reply {
        let path = format!("/pages/assets/{endpoint}");
        let body = Bytes::from(body.to_string());
        self.try_send("POST", &path, token, "application/json", body)
            .await
            .unwrap()
    }

    /// Deploys uploaded files.
    pub(crate) async fn deploy(&self, project: &str, manifest: &Value, branch: &str) -> Reply {
        let path = format!("/accounts/{{a}}/pages/projects/{project}/deployments");
        let text = |text: &str| text.as_bytes().to_vec();
        let parts = [
            ("manifest", None, text(&manifest.to_string())),
            ("branch", None, text(branch)),
            ("commit_hash", None, text("our-deployment-id")),
        ];
        self.form("POST", &path, &parts).await
    }
}

/// Returns the parts of a worker of one module.
pub(crate) fn worker(mut metadata: Value) -> Vec<Part<'static>> {
    metadata["main_module"] = json!("index.js");
    let code = b"export default { fetch() { return new Response('hi') } }".to_vec();
    vec![
        (
            "metadata",
            Some("application/json"),
            metadata.to_string().into_bytes(),
        ),
        ("index.js", Some("application/javascript+module"), code),
    ]
}

/// Returns a file in the form of an upload, with the given hash.
pub(crate) fn file(hash: &str, content: &[u8]) -> Value {
    json!({"key": hash, "value": STANDARD.encode(content), "metadata": {"contentType": "text/html"}, "base64": true})
}

/// The content `<h1>hi</h1>` and a line feed as HTML, and its hash.
pub(crate) const PAGE: (&str, &[u8]) = ("17453d0cfb9bacc76d9f30d3cb9ca048", b"<h1>hi</h1>\n");
