//! A server whose clock of billing the tests move.

use std::collections::BTreeMap;
use std::time::Duration;

use bytes::Bytes;
use core_domain::kernel::Clock;
use core_stripe_fake::{FakeStripe, Settings};
use core_suite::SystemClock;
use http::Request;
use http_body_util::Full;
use hyper_util::client::legacy::Client;
use hyper_util::rt::TokioExecutor;
use serde_json::{Value, json};
use tempfile::TempDir;

use super::{Call, Installation, SERVICE_KEY, Server, run};

/// A time-out that only a hanging test reaches.
const TIMEOUT: Duration = Duration::from_secs(120);

/// A server whose clock of billing the tests move.
pub(crate) struct BillingServer {
    pub(crate) server: Server,
    /// The folder of its data.
    pub(crate) data: TempDir,
}

impl BillingServer {
    /// Starts a server with additional variables of its environment.
    pub(crate) async fn start(more: &[(&str, String)]) -> Self {
        let data = tempfile::tempdir().unwrap();
        let mut environment = vec![
            ("AUTH_API_KEY", SERVICE_KEY.to_owned()),
            ("RUST_LOG", "error".to_owned()),
        ];
        environment.extend_from_slice(more);
        let arguments = ["--set", "settings.billing.test_clock=true"];
        let server = Server::start_with(data.path(), &arguments, &environment).await;
        Self { server, data }
    }

    /// Starts a server that charges invoices in a Stripe account, which sends it all events.
    pub(crate) async fn at_stripe() -> (FakeStripe, Self) {
        let settings = Settings {
            now: SystemClock.now().seconds(),
            runs: true,
            ..Settings::default()
        };
        let stripe = FakeStripe::start_with(settings).await.unwrap();
        let billing = Self::start(&[
            ("STRIPE_SECRET_KEY", stripe.secret_key()),
            ("STRIPE_WEBHOOK_SECRET", stripe.webhook_secret()),
            ("STRIPE_API_BASE_URL", stripe.base_url()),
        ])
        .await;
        register_webhook(&stripe, &billing.server.url("billing")).await;
        (stripe, billing)
    }

    /// Sends a call to the billing service as an operator, and returns the body of the response.
    pub(crate) async fn send(&self, call: Call, status: u16) -> Value {
        let answer = self.server.send("billing", call.bearer(SERVICE_KEY)).await;
        answer.expect(status).json
    }

    pub(crate) async fn post(&self, path: &str, body: Value, status: u16) -> Value {
        self.send(Call::post(path, &body), status).await
    }

    /// Moves the clock of billing, and waits until nothing is due any more.
    pub(crate) async fn advance(&self, now: &str) {
        let mut body = json!({ "now": now });
        let done = async {
            loop {
                let ticked = self.post("/internal/billing/tick", body, 200).await;
                if (&ticked["running"], &ticked["waiting"]) == (&json!(0), &json!(0)) {
                    return;
                }
                body = json!({});
            }
        };
        tokio::time::timeout(TIMEOUT, done).await.unwrap();
    }

    /// Returns the invoices of a platform, oldest first: as JSON, and as text in both forms.
    pub(crate) async fn invoices(&self, platform: &str) -> Vec<(Value, [String; 2])> {
        let list = format!("/invoices?platformId={platform}&limit=100");
        let list = self.send(Call::get(list), 200).await;
        let mut invoices = Vec::new();
        for invoice in list["data"].as_array().unwrap().iter().rev() {
            let path = format!("/invoices/{}", invoice["id"].as_str().unwrap());
            let json = Call::get(&*path).bearer(SERVICE_KEY);
            let json = self.server.send("billing", json).await.expect(200);
            let page = Call::get(&*path).header("accept", "text/html");
            let page = self.server.send("billing", page.bearer(SERVICE_KEY)).await;
            let texts = [json.bytes, page.expect(200).bytes];
            let texts = texts.map(|bytes| String::from_utf8(bytes.to_vec()).unwrap());
            invoices.push((json.json, texts));
        }
        invoices
    }

    /// Returns the sum of each account of the journal: debits are positive. Accounts of customers are named without ids.
    pub(crate) async fn accounts(&self) -> BTreeMap<String, i64> {
        let exported = run(self.data.path(), &["export-journal"], "").await;
        assert!(exported.status.success(), "{exported:?}");
        sums_of(&String::from_utf8(exported.stdout).unwrap())
    }
}

/// Registers the webhook of a server at Stripe, for all events.
async fn register_webhook(stripe: &FakeStripe, billing: &str) {
    let form = format!("url={billing}/webhooks/stripe&enabled_events[]=*");
    let request = Request::post(format!("{}/v1/webhook_endpoints", stripe.base_url()))
        .header("authorization", format!("Bearer {}", stripe.secret_key()))
        .header("content-type", "application/x-www-form-urlencoded")
        .body(Full::new(Bytes::from(form)));
    let client = Client::builder(TokioExecutor::new()).build_http();
    let registered = client.request(request.unwrap()).await.unwrap();
    assert_eq!(registered.status(), 200);
}

/// Returns the sums of the accounts of an exported journal.
fn sums_of(journal: &str) -> BTreeMap<String, i64> {
    let mut sums = BTreeMap::new();
    for line in journal.lines().skip(1) {
        let fields: Vec<&str> = line.split(',').collect();
        let [_, _, account, _, debit, credit, _] = fields[..] else {
            panic!("{line}");
        };
        let account = account.split(':').next().unwrap();
        let amount = |text: &str| text.parse::<i64>().unwrap();
        if !account.is_empty() {
            *sums.entry(account.to_owned()).or_default() += amount(debit) - amount(credit);
        }
    }
    sums
}
