//! Webhooks, and a dispatcher that sends to receivers of the test.

use std::collections::{BTreeMap, BTreeSet};

use core_domain::port::{WebhookRequest, WebhookResponse, WebhookSendError, transact};
use core_domain::shared::{AuditEntry, ChangeEvent};
use core_domain::use_case::shared::webhook::{
    DeliveryResult, DispatchLimits, claim_deliveries, fan_out, store_delivery_result,
};
use serde_json::{Value, json};

use super::World;
use super::callers::operator;
use super::records::platform_path;

/// The path of the installation's webhooks.
pub(crate) const WEBHOOKS: &str = "/api/v1/webhooks";

/// The reply of a receiver to a request.
pub(crate) type Reply = Result<WebhookResponse, WebhookSendError>;

pub(crate) fn webhooks_of(platform: &str) -> String {
    platform_path(platform, "/webhooks")
}

/// Returns a reply with this status and an empty body.
pub(crate) fn reply_with_status(status: u16) -> Reply {
    Ok(WebhookResponse {
        status,
        retry_after: None,
        body: String::new(),
    })
}

impl World {
    /// Creates a webhook for all events at the path `all`, and returns it with its secret. Advances the clock by a
    /// second.
    pub(crate) async fn create_webhook(&self, all: &str, name: &str) -> Value {
        let url = format!("https://hooks.example.org/{name}");
        let body = json!({ "url": url, "eventTypes": ["*"] });
        let created = self.registry.post(&operator(), all, body).await;
        self.tick(1);
        created.expect(201).json
    }

    /// Creates two webhooks, the second with two messages whose delivery has failed for good. Returns the ids of the
    /// second webhook and of its first message.
    pub(crate) async fn webhook_with_messages(&self, all: &str) -> [String; 2] {
        self.create_webhook(all, "first").await;
        let webhook = self.create_webhook(all, "second").await;
        let one = format!("{all}/{}", webhook["id"].as_str().unwrap());
        let mut messages = Vec::new();
        for _ in 0..2 {
            let path = format!("{one}/test");
            let queued = self.registry.post(&operator(), &path, Value::Null).await;
            messages.push(queued.expect(202).id());
            self.tick(1);
        }
        self.dispatch(|_| reply_with_status(410)).await;
        let enable = json!({ "status": "enabled" });
        let _ = self.patch_record(&one, enable).await.expect(200);
        [
            webhook["id"].as_str().unwrap().to_owned(),
            messages.remove(0),
        ]
    }

    /// Queues changes for delivery to webhooks, as the sealer does.
    pub(crate) async fn fan_out_changes(&self, events: &[ChangeEvent]) {
        let cx = &self.cx();
        let told = transact(self.app.store.as_ref(), |uow, _| {
            Box::pin(async move { fan_out(cx, uow, events, &BTreeSet::new()).await })
        });
        told.await.unwrap();
    }

    /// Returns the audited changes with this action, with positions that count up from `first`.
    pub(crate) async fn changes(&self, action: &str, first: i64) -> Vec<ChangeEvent> {
        let entries: Vec<AuditEntry> = self.audit(action).await;
        let numbered = (first..).zip(&entries);
        numbered
            .map(|(at, entry)| ChangeEvent::of(at, entry))
            .collect()
    }

    /// Sends the due deliveries to receivers that answer with `reply`. Returns the requests, sorted by id.
    pub(crate) async fn dispatch(
        &self,
        reply: impl Fn(&WebhookRequest) -> Reply,
    ) -> Vec<WebhookRequest> {
        let (cx, store) = (self.cx(), self.app.store.as_ref());
        let limits = DispatchLimits {
            concurrency: 100,
            concurrency_per_webhook: 100,
        };
        let mut requests = Vec::new();
        for claimed in claim_deliveries(store, limits, &BTreeMap::new())
            .await
            .unwrap()
        {
            let request = claimed.request(&self.app.cipher).unwrap();
            let result = DeliveryResult::Tried(reply(&request), 7);
            store_delivery_result(&cx, store, &claimed, &result)
                .await
                .unwrap();
            requests.push(request);
        }
        requests.sort_by(|a, b| a.id.cmp(&b.id));
        requests
    }
}
