//! Webhooks of a platform, and of the installation: the same rows twice.

use core_domain::access::{OperatorScope, PlatformScope};
use core_domain::kernel::{Code, ListQuery, Page, PlatformId, Result, Stored, WebhookId, grant};
use core_domain::port::UnitOfWork;
use core_domain::shared::{CreateWebhook, UpdateWebhook, Webhook};
use core_domain::use_case::shared::webhook::{self, IssuedWebhook, ReadsWebhooks, WritesWebhooks};
use http::header::CACHE_CONTROL;
use http::{HeaderValue, StatusCode};
use schemars::JsonSchema;
use serde::Serialize;

use crate::kernel::{Cx, Endpoint, Input, Output, Success, Versioned, delete, get, patch, post};

pub(super) type Reads = PlatformScope<grant::WebhookRead>;
pub(super) type Writes = PlatformScope<grant::WebhookWrite>;

macro_rules! rows_at {
    ($all:literal, $of:literal, $whose:literal, $reads:ty, $writes:ty, ($($platform:ty)?)) => {
        vec![
            get($all, concat!("list", $of, "Webhooks"))
                .summary(concat!("Lists the webhooks of ", $whose, ", newest first."))
                .reads(list::<$reads, ($($platform,)?)>),
            post($all, concat!("create", $of, "Webhook"))
                .summary(concat!(
                    "Has changes of ", $whose, " told by signed requests; the secret is shown this once."
                ))
                .success(&[StatusCode::CREATED])
                .refuses(&[Code::LimitReached])
                .secret_answer()
                .writes(create::<$writes, ($($platform,)?)>),
            get(concat!($all, "/{webhookId}"), concat!("get", $of, "Webhook"))
                .summary("Shows a webhook.")
                .reads(show::<$reads, ($($platform,)? WebhookId,)>),
            patch(concat!($all, "/{webhookId}"), concat!("update", $of, "Webhook"))
                .summary("Changes, disables or enables a webhook.")
                .if_match()
                .writes(update::<$writes, ($($platform,)? WebhookId,)>),
            delete(concat!($all, "/{webhookId}"), concat!("delete", $of, "Webhook"))
                .summary("Deletes a webhook and its messages.")
                .if_match()
                .writes(remove::<$writes, ($($platform,)? WebhookId,)>),
            post(concat!($all, "/{webhookId}/rotate-secret"), concat!("rotate", $of, "WebhookSecret"))
                .summary("Gives a webhook a new secret, shown this once; the former one signs too for 24 hours.")
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

/// The parameters of a path that names a webhook.
pub(super) trait NamesWebhook {
    /// The webhook.
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

/// A webhook with its newest secret, which is shown this once.
#[derive(Clone, Serialize, JsonSchema)]
struct IssuedWebhookView {
    #[serde(flatten)]
    webhook: Webhook,
    /// What requests are signed with: `whsec_` and the base64 of the key.
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
