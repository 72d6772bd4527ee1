//! Endpoints for the messages of webhooks: their delivery status, and repeated delivery.

use core_domain::access::OperatorScope;
use core_domain::kernel::{
    Code, JsonText, ListQuery, Page, PlatformId, Result, Stored, Timestamp, WebhookDeliveryId,
    WebhookId,
};
use core_domain::port::UnitOfWork;
use core_domain::shared::{WebhookAttempt, WebhookDelivery, WebhookDeliveryFilter};
use core_domain::use_case::shared::webhook::{self, ReadsWebhooks, WritesWebhooks};
use http::StatusCode;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::webhook::{NamesWebhook, Reads, Writes};
use crate::kernel::{Cx, Endpoint, Input, Output, Versioned, get, post};

macro_rules! rows_at {
    ($one:literal, $of:literal, $reads:ty, $writes:ty, ($($platform:ty)?)) => {
        vec![
            post(concat!($one, "/test"), concat!("test", $of, "Webhook"))
                .summary("Sends a test message to a webhook.")
                .description(
                    "Queues a message that reports no change, and returns it. The webhook must be \
                     enabled. Each call queues another message.",
                )
                .success(&[StatusCode::ACCEPTED])
                .if_match()
                .refuses(&[Code::InvalidState])
                .writes(test::<$writes, ($($platform,)? WebhookId,)>),
            post(concat!($one, "/recover"), concat!("recover", $of, "Webhook"))
                .summary("Sends the failed messages of a webhook again.")
                .description(
                    "Queues the failed messages that were created at `since` or later, oldest \
                     first, with their original ids. One call queues at most 100 messages. If \
                     `hasMore` is true, repeat the request. The webhook must be enabled.",
                )
                .if_match()
                .refuses(&[Code::InvalidState])
                .writes(recover::<$writes, ($($platform,)? WebhookId,)>),
            get(concat!($one, "/deliveries"), concat!("list", $of, "WebhookDeliveries"))
                .summary("Lists the messages of a webhook, newest first.")
                .description(
                    "The query parameter `status` selects messages by delivery status. Payloads \
                     and attempts are not in the list.",
                )
                .refuses(&[Code::NotFound])
                .reads(list::<$reads, ($($platform,)? WebhookId,)>),
            get(concat!($one, "/deliveries/{deliveryId}"), concat!("get", $of, "WebhookDelivery"))
                .summary("Returns a message of a webhook, with its last attempts.")
                .description("The response has the payload and the log of the last 20 attempts.")
                .reads(show::<$reads, ($($platform,)? WebhookId, WebhookDeliveryId)>),
            post(concat!($one, "/deliveries/{deliveryId}/replay"), concat!("replay", $of, "WebhookDelivery"))
                .summary("Sends a message of a webhook again.")
                .description(
                    "Queues the message with the same id, for the same number of attempts as a \
                     new message. The message must not be pending, and the webhook must be \
                     enabled.",
                )
                .success(&[StatusCode::ACCEPTED])
                .if_match()
                .refuses(&[Code::InvalidState])
                .writes(replay::<$writes, ($($platform,)? WebhookId, WebhookDeliveryId)>),
        ]
    };
}

pub(super) fn rows() -> Vec<Endpoint> {
    let mut rows = rows_at!(
        "/api/v1/platforms/{platformId}/webhooks/{webhookId}",
        "",
        Reads,
        Writes,
        (PlatformId)
    );
    rows.extend(rows_at!(
        "/api/v1/webhooks/{webhookId}",
        "Installation",
        OperatorScope,
        OperatorScope,
        ()
    ));
    rows
}

/// The path parameters of an endpoint for one message.
trait NamesDelivery {
    /// Returns the ids of the webhook and of the message.
    fn delivery(&self) -> (&WebhookId, &WebhookDeliveryId);
}

impl NamesDelivery for (PlatformId, WebhookId, WebhookDeliveryId) {
    fn delivery(&self) -> (&WebhookId, &WebhookDeliveryId) {
        (&self.1, &self.2)
    }
}

impl NamesDelivery for (WebhookId, WebhookDeliveryId) {
    fn delivery(&self) -> (&WebhookId, &WebhookDeliveryId) {
        (&self.0, &self.1)
    }
}

/// A message, with the fields that the list omits.
#[derive(Clone, Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
struct WebhookDeliveryView {
    #[serde(flatten)]
    delivery: WebhookDelivery,
    /// The payload of the message: the body of its requests.
    payload: JsonText,
    /// The last 20 attempts, oldest first.
    attempt_log: Vec<WebhookAttempt>,
}

/// The selection of failed messages to send again.
#[derive(Clone, Copy, Debug, Deserialize, JsonSchema)]
struct RecoverWebhook {
    /// Selects failed messages that were queued at this time or later.
    since: Timestamp,
}

/// The result of sending failed messages again.
#[derive(Clone, Copy, Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
struct RecoveredView {
    /// The number of messages that were queued.
    replayed: usize,
    /// `true` if there may be more failed messages; repeat the request to queue them.
    has_more: bool,
}

async fn test<S: WritesWebhooks, P: NamesWebhook>(
    cx: &Cx,
    scope: S,
    uow: &mut dyn UnitOfWork,
    input: Input<P>,
) -> Result<Stored<WebhookDelivery>> {
    webhook::send_test(cx, &scope, uow, input.path.webhook()).await
}

async fn recover<S: WritesWebhooks, P: NamesWebhook>(
    cx: &Cx,
    scope: S,
    uow: &mut dyn UnitOfWork,
    input: Input<P, (), RecoverWebhook>,
) -> Result<Output<RecoveredView>> {
    let (id, since) = (input.path.webhook(), input.body.since);
    let recovered = webhook::recover(cx, &scope, uow, id, since).await?;
    Ok(Output::new(RecoveredView {
        replayed: recovered.replayed,
        has_more: recovered.has_more,
    }))
}

async fn list<S: ReadsWebhooks, P: NamesWebhook>(
    _: &Cx,
    scope: S,
    uow: &mut dyn UnitOfWork,
    input: Input<P, ListQuery<WebhookDeliveryFilter>>,
) -> Result<Page<Stored<WebhookDelivery>>> {
    webhook::list_deliveries(&scope, uow, input.path.webhook(), &input.query).await
}

async fn show<S: ReadsWebhooks, P: NamesDelivery>(
    _: &Cx,
    scope: S,
    uow: &mut dyn UnitOfWork,
    input: Input<P>,
) -> Result<Versioned<WebhookDeliveryView>> {
    let (webhook, delivery) = input.path.delivery();
    let stored = webhook::get_delivery(&scope, uow, webhook, delivery).await?;
    let delivery = stored.edit();
    let view = WebhookDeliveryView {
        payload: delivery.payload.clone(),
        attempt_log: delivery.attempt_log.clone(),
        delivery,
    };
    Ok(Versioned::of(&stored, view))
}

async fn replay<S: WritesWebhooks, P: NamesDelivery>(
    cx: &Cx,
    scope: S,
    uow: &mut dyn UnitOfWork,
    input: Input<P>,
) -> Result<Stored<WebhookDelivery>> {
    let (webhook, delivery) = input.path.delivery();
    webhook::replay(cx, &scope, uow, webhook, delivery).await
}
