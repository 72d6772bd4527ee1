//! Test helpers: a plain HTTP client of the fake.

use bytes::Bytes;
use core_stripe_fake::{FakeStripe, Settings};
use http::{HeaderMap, Request};
use http_body_util::{BodyExt, Full};
use hyper_util::client::legacy::{Client, connect::HttpConnector};
use hyper_util::rt::TokioExecutor;
use serde_json::Value;

const FORM: &str = "application/x-www-form-urlencoded";

/// A fake and its client.
pub(crate) struct World {
    pub(crate) fake: FakeStripe,
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

    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.headers.get(name)?.to_str().ok()
    }

    /// Returns the object of a successful response.
    #[track_caller]
    pub(crate) fn object(&self) -> Value {
        assert_eq!(self.status, 200, "{}", self.json());
        self.json()
    }

    #[track_caller]
    pub(crate) fn id(&self) -> String {
        self.object()["id"].as_str().unwrap().to_owned()
    }

    /// Returns the status, type and code of an error response.
    #[track_caller]
    pub(crate) fn failure(&self) -> (u16, String, String) {
        let error = self.json()["error"].clone();
        let text = |name: &str| error[name].as_str().unwrap_or_default().to_owned();
        assert!(error.is_object(), "{} {}", self.status, self.json());
        (self.status, text("type"), text("code"))
    }
}

impl World {
    pub(crate) async fn start() -> Self {
        Self::start_with(Settings::default()).await
    }

    pub(crate) async fn start_with(settings: Settings) -> Self {
        let settings = Settings {
            record_exchanges: true,
            ..settings
        };
        let fake = FakeStripe::start_with(settings).await.unwrap();
        let client = Client::builder(TokioExecutor::new()).build_http();
        Self { fake, client }
    }

    /// Sends a request with any headers. Returns `None` if no complete response is received.
    pub(crate) async fn try_send(
        &self,
        method: &str,
        path: &str,
        headers: &[(&str, &str)],
        body: &str,
    ) -> Option<Reply> {
        let mut request = Request::builder()
            .method(method)
            .uri(format!("{}{path}", self.fake.base_url()));
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        let request = request.body(Full::new(Bytes::copy_from_slice(body.as_bytes())));
        let response = self.client.request(request.unwrap()).await.ok()?;
        let (head, body) = response.into_parts();
        Some(Reply {
            status: head.status.as_u16(),
            headers: head.headers,
            body: body.collect().await.ok()?.to_bytes(),
        })
    }

    pub(crate) async fn send(&self, method: &str, path: &str, key: &str, form: &str) -> Reply {
        let bearer = format!("Bearer {}", self.fake.secret_key());
        let mut headers = vec![("authorization", bearer.as_str())];
        if method == "POST" {
            headers.push(("content-type", FORM));
        }
        if !key.is_empty() {
            headers.push(("idempotency-key", key));
        }
        let reply = self.try_send(method, path, &headers, form).await;
        reply.unwrap()
    }

    pub(crate) async fn get(&self, path: &str) -> Reply {
        self.send("GET", path, "", "").await
    }

    pub(crate) async fn post(&self, path: &str, form: &str) -> Reply {
        self.send("POST", path, "", form).await
    }

    pub(crate) async fn post_with_key(&self, key: &str, path: &str, form: &str) -> Reply {
        self.send("POST", path, key, form).await
    }

    /// Creates a customer and returns its id.
    pub(crate) async fn customer(&self) -> String {
        let form = "email=ada@example.com&name=Ada&metadata[customerId]=c1";
        self.post("/v1/customers", form).await.id()
    }

    /// Attaches the test card of a payment method to a customer. Returns the id of the attached method.
    pub(crate) async fn attach(&self, method: &str, customer: &str) -> String {
        let path = format!("/v1/payment_methods/{method}/attach");
        self.post(&path, &format!("customer={customer}")).await.id()
    }

    /// Creates a draft with one line and returns its id.
    pub(crate) async fn draft(&self, customer: &str, amount: i64) -> String {
        let form = format!("customer={customer}&currency=usd&auto_advance=false");
        let id = self.post("/v1/invoices", &form).await.id();
        let lines = format!("lines[0][amount]={amount}&lines[0][description]=Plan");
        let path = format!("/v1/invoices/{id}/add_lines");
        self.post(&path, &lines).await.object();
        id
    }

    /// Creates an open invoice and returns its id.
    pub(crate) async fn open_invoice(&self, customer: &str, amount: i64) -> String {
        let id = self.draft(customer, amount).await;
        self.of_invoice(&id, "finalize", "").await.object();
        id
    }

    pub(crate) async fn of_invoice(&self, id: &str, action: &str, form: &str) -> Reply {
        self.post(&format!("/v1/invoices/{id}/{action}"), form)
            .await
    }
}
