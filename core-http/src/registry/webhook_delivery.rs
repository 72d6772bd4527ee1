//! The messages of webhooks: how they went, and sending them once more.

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
                .summary("Sends a webhook a message that tells of nothing.")
                .success(&[StatusCode::ACCEPTED])
                .if_match()
                .refuses(&[Code::InvalidState])
                .writes(test::<$writes, ($($platform,)? WebhookId,)>),
            post(concat!($one, "/recover"), concat!("recover", $of, "Webhook"))
                .summary("Sends once more what was queued since an instant and given up, a hundred messages at a time.")
                .if_match()
                .refuses(&[Code::InvalidState])
                .writes(recover::<$writes, ($($platform,)? WebhookId,)>),
            get(concat!($one, "/deliveries"), concat!("list", $of, "WebhookDeliveries"))
                .summary("Lists the messages of a webhook, newest first.")
                .refuses(&[Code::NotFound])
                .reads(list::<$reads, ($($platform,)? WebhookId,)>),
            get(concat!($one, "/deliveries/{deliveryId}"), concat!("get", $of, "WebhookDelivery"))
                .summary("Shows a message with what it says and its last attempts.")
                .reads(show::<$reads, ($($platform,)? WebhookId, WebhookDeliveryId)>),
            post(concat!($one, "/deliveries/{deliveryId}/replay"), concat!("replay", $of, "WebhookDelivery"))
                .summary("Sends a message once more, with the same id.")
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

/// The parameters of a path that names a message.
trait NamesDelivery {
    /// The webhook and the message.
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

/// A message, with what the list leaves out.
#[derive(Clone, Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
struct WebhookDeliveryView {
    #[serde(flatten)]
    delivery: WebhookDelivery,
    /// What it says; the body of its requests.
    payload: JsonText,
    /// The last 20 attempts, oldest first.
    attempt_log: Vec<WebhookAttempt>,
}

/// Which messages are sent once more.
#[derive(Clone, Copy, Debug, Deserialize, JsonSchema)]
struct RecoverWebhook {
    /// Those that were queued at this instant or later, and given up.
    since: Timestamp,
}

/// What is sent once more.
#[derive(Clone, Copy, Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
struct RecoveredView {
    /// How many messages.
    replayed: usize,
    /// Whether more may be left: the same request goes on with them.
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
