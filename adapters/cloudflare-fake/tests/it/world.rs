//! A client of the fake that knows nothing of the API.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use core_cloudflare_fake::{FakeCloudflare, Settings};
use http::{HeaderMap, Request};
use http_body_util::{BodyExt, Full};
use hyper_util::client::legacy::{Client, connect::HttpConnector};
use hyper_util::rt::TokioExecutor;
use serde_json::{Value, json};

/// A fake and a client of it. In paths `{a}` and `{z}` stand for the ids of its account and its zone.
pub(crate) struct World {
    pub(crate) fake: FakeCloudflare,
    client: Client<HttpConnector, Full<Bytes>>,
}

/// An answer.
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

    /// The result of a success.
    #[track_caller]
    pub(crate) fn result(&self) -> Value {
        let json = self.json();
        assert_eq!(json["success"], true, "{} {json}", self.status);
        json["result"].clone()
    }

    /// The status and code of a failure.
    #[track_caller]
    pub(crate) fn failure(&self) -> (u16, u64) {
        let json = self.json();
        assert_eq!(json["success"], false, "{} {json}", self.status);
        (self.status, json["errors"][0]["code"].as_u64().unwrap())
    }
}

/// A part of a form: its name, its content type when it is a file, its content.
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

    /// With any credentials and any body; none when no whole answer comes.
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

    /// Uploads a worker of one module with such metadata.
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

    /// Calls one of the three endpoints that take an upload token.
    pub(crate) async fn assets(&self, token: &str, endpoint: &str, body: &Value) -> Reply {
        let path = format!("/pages/assets/{endpoint}");
        let body = Bytes::from(body.to_string());
        self.try_send("POST", &path, token, "application/json", body)
            .await
            .unwrap()
    }

    /// Deploys files that were uploaded.
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

/// The parts of a worker of one module.
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

/// A file as an upload holds it, under the hash that is given.
pub(crate) fn file(hash: &str, content: &[u8]) -> Value {
    json!({"key": hash, "value": STANDARD.encode(content), "metadata": {"contentType": "text/html"}, "base64": true})
}

/// `<h1>hi</h1>` and a line feed as HTML, and its hash.
pub(crate) const PAGE: (&str, &[u8]) = ("17453d0cfb9bacc76d9f30d3cb9ca048", b"<h1>hi</h1>\n");
