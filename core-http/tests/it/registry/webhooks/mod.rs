//! Webhooks: their management, and the delivery of messages to their receivers.

mod managing;
mod sending;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use core_domain::kernel::{Clock, Timestamp};
use core_domain::port::{WebhookRequest, WebhookResponse, WebhookSendError, transact};
use core_domain::shared::{ChangeEvent, WebhookSecret, WebhookTargets};
use core_domain::use_case::shared::webhook::{
    ClaimedDelivery, DeliveryResult, DispatchLimits, claim_deliveries, remove_ended_deliveries,
    store_delivery_result,
};
use core_http::kernel::testing::Answer;
use serde_json::{Value, json};

use crate::world::{
    WEBHOOKS, World, on_every_store, operator, owner, reply_with_status, webhooks_of,
};

const DAY: u64 = 24 * 3_600;
/// How long ended messages are kept.
const RETENTION: Duration = Duration::from_secs(30 * DAY);

fn id(record: &Value) -> String {
    record["id"].as_str().unwrap().to_owned()
}

fn secret(issued: &Value) -> WebhookSecret {
    WebhookSecret::parse(issued["secret"].as_str().unwrap()).unwrap()
}

/// Returns the signature of a request, made with a secret.
fn signature(request: &WebhookRequest, secret: &WebhookSecret) -> String {
    let at = Timestamp::from_seconds(request.timestamp.parse().unwrap());
    secret.sign(&request.id, at, &request.body)
}

fn body(request: &WebhookRequest) -> Value {
    serde_json::from_str(&request.body).unwrap()
}

impl World {
    async fn test_webhook(&self, one: &str) -> Answer {
        self.registry
            .post(&operator(), &format!("{one}/test"), Value::Null)
            .await
    }

    async fn replay(&self, one: &str, message: &str) -> Answer {
        let path = format!("{one}/deliveries/{message}/replay");
        self.registry.post(&operator(), &path, Value::Null).await
    }

    async fn message(&self, one: &str, message: &str) -> Value {
        self.get_record(&format!("{one}/deliveries/{message}"))
            .await
            .json
    }

    async fn claim(&self, concurrency: u32, concurrency_per_webhook: u32) -> Vec<ClaimedDelivery> {
        let limits = DispatchLimits {
            concurrency,
            concurrency_per_webhook,
        };
        let store = self.app.store.as_ref();
        claim_deliveries(store, limits, &BTreeMap::new())
            .await
            .unwrap()
    }

    async fn remove_ended(&self) -> u64 {
        let removed = transact(self.app.store.as_ref(), |uow, _| {
            Box::pin(remove_ended_deliveries(uow, RETENTION, 1_000))
        });
        removed.await.unwrap()
    }
}
