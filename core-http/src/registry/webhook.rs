//! Endpoints for webhooks. A platform and the installation have the same rows.

use core_domain::access::{OperatorScope, PlatformScope};
use core_domain::kernel::{
    Code, ListQuery, Page, PlatformId, Result, Stored, WebhookId, permission,
};
use core_domain::port::UnitOfWork;
use core_domain::shared::{CreateWebhook, UpdateWebhook, Webhook};
use core_domain::use_case::shared::webhook::{self, IssuedWebhook, ReadsWebhooks, WritesWebhooks};
use http::header::CACHE_CONTROL;
use http::{HeaderValue, StatusCode};
use schemars::JsonSchema;
use serde::Serialize;

use crate::kernel::{Cx, Endpoint, Input, Output, Success, Versioned, delete, get, patch, post};

pub(super) type Reads = PlatformScope<permission::WebhookRead>;
pub(super) type Writes = PlatformScope<permission::WebhookWrite>;

macro_rules! rows_at {
    ($all:literal, $of:literal, $whose:literal, $reads:ty, $writes:ty, ($($platform:ty)?)) => {
        vec![
            get($all, concat!("list", $of, "Webhooks"))
                .summary(concat!("Lists the webhooks of ", $whose, ", newest first."))
                .description("The secrets are not in the response.")
                .reads(list::<$reads, ($($platform,)?)>),
            post($all, concat!("create", $of, "Webhook"))
                .summary(concat!("Creates a webhook for changes of ", $whose, "."))
                .description(
                    "Each change of the selected types is sent to `url` as a signed `POST` \
                     request. A message that the receiver does not accept is sent again, up to \
                     ten attempts in total over about three days. The response has the secret \
                     with which receivers verify the signatures; it is not shown again.",
                )
                .success(&[StatusCode::CREATED])
                .refuses(&[Code::LimitReached])
                .secret_answer()
                .writes(create::<$writes, ($($platform,)?)>),
            get(concat!($all, "/{webhookId}"), concat!("get", $of, "Webhook"))
                .summary("Returns a webhook.")
                .description("The secret is not in the response.")
                .reads(show::<$reads, ($($platform,)? WebhookId,)>),
            patch(concat!($all, "/{webhookId}"), concat!("update", $of, "Webhook"))
                .summary("Updates, disables or enables a webhook.")
                .description(
                    "Fields that are not in the body stay unchanged. Pending messages of a \
                     disabled webhook fail. Enabling it again resets its failures; the failed \
                     messages can be sent again with `recover`.",
                )
                .if_match()
                .writes(update::<$writes, ($($platform,)? WebhookId,)>),
            delete(concat!($all, "/{webhookId}"), concat!("delete", $of, "Webhook"))
                .summary("Deletes a webhook and its messages.")
                .description(
                    "Messages that have not been delivered are deleted without another attempt. A \
                     repeated call gets 404.",
                )
                .if_match()
                .writes(remove::<$writes, ($($platform,)? WebhookId,)>),
            post(concat!($all, "/{webhookId}/rotate-secret"), concat!("rotate", $of, "WebhookSecret"))
                .summary("Replaces the secret of a webhook.")
                .description(
                    "The response has the new secret, which is not shown again. For 24 hours, \
                     requests are also signed with the previous secret, so that receivers can \
                     switch without failures.",
                )
                .if_match()
                .refuses(&[Code::Conflict])
                .secret_answer()
                .writes(rotate::<$writes, ($($platform,)? WebhookId,)>),
        ]
    };
}

pub(super) fn rows() -> Vec<Endpoint> {
    let mut rows = rows_at!(
        "/api/v1/platforms/{platformId}/webhooks",
        "",
        "a platform",
        Reads,
        Writes,
        (PlatformId)
    );
    rows.extend(rows_at!(
        "/api/v1/webhooks",
        "Installation",
        "the installation",
        OperatorScope,
        OperatorScope,
        ()
    ));
    rows
}

/// The path parameters of an endpoint for one webhook.
pub(super) trait NamesWebhook {
    /// Returns the id of the webhook.
    fn webhook(&self) -> &WebhookId;
}

impl NamesWebhook for (PlatformId, WebhookId) {
    fn webhook(&self) -> &WebhookId {
        &self.1
    }
}

impl NamesWebhook for (WebhookId,) {
    fn webhook(&self) -> &WebhookId {
        &self.0
    }
}

/// A webhook with its newest secret. The secret is shown only in this response.
#[derive(Clone, Serialize, JsonSchema)]
struct IssuedWebhookView {
    #[serde(flatten)]
    webhook: Webhook,
    /// The secret that signs the requests: `whsec_` and the key in base64.
    secret: String,
}

impl IssuedWebhookView {
    fn of(issued: IssuedWebhook) -> Versioned<Self> {
        let etag = issued.webhook.etag();
        let view = Self {
            secret: issued.secret.expose().to_owned(),
            webhook: issued.webhook.into_inner(),
        };
        let shown = Output::new(view).header(CACHE_CONTROL, HeaderValue::from_static("no-store"));
        shown.etag(etag)
    }
}

async fn list<S: ReadsWebhooks, P>(
    _: &Cx,
    scope: S,
    uow: &mut dyn UnitOfWork,
    input: Input<P, ListQuery>,
) -> Result<Page<Stored<Webhook>>> {
    webhook::list(&scope, uow, &input.query).await
}

async fn create<S: WritesWebhooks, P>(
    cx: &Cx,
    scope: S,
    uow: &mut dyn UnitOfWork,
    input: Input<P, (), CreateWebhook>,
) -> Result<Versioned<IssuedWebhookView>> {
    let (cipher, targets) = (&cx.app.cipher, cx.app.options.webhooks);
    let issued = webhook::create(cx, &scope, uow, cipher, targets, input.body).await?;
    Ok(IssuedWebhookView::of(issued))
}

async fn show<S: ReadsWebhooks, P: NamesWebhook>(
    _: &Cx,
    scope: S,
    uow: &mut dyn UnitOfWork,
    input: Input<P>,
) -> Result<Stored<Webhook>> {
    webhook::get(&scope, uow, input.path.webhook()).await
}

async fn update<S: WritesWebhooks, P: NamesWebhook>(
    cx: &Cx,
    scope: S,
    uow: &mut dyn UnitOfWork,
    input: Input<P, (), UpdateWebhook>,
) -> Result<Stored<Webhook>> {
    let (targets, id) = (cx.app.options.webhooks, input.path.webhook());
    webhook::update(cx, &scope, uow, targets, id, input.body).await
}

async fn remove<S: WritesWebhooks, P: NamesWebhook>(
    cx: &Cx,
    scope: S,
    uow: &mut dyn UnitOfWork,
    input: Input<P>,
) -> Result<Output<Success>> {
    webhook::delete(cx, &scope, uow, input.path.webhook()).await?;
    Ok(Output::new(Success::YES))
}

async fn rotate<S: WritesWebhooks, P: NamesWebhook>(
    cx: &Cx,
    scope: S,
    uow: &mut dyn UnitOfWork,
    input: Input<P>,
) -> Result<Versioned<IssuedWebhookView>> {
    let (cipher, id) = (&cx.app.cipher, input.path.webhook());
    let issued = webhook::rotate_secret(cx, &scope, uow, cipher, id).await?;
    Ok(IssuedWebhookView::of(issued))
}
