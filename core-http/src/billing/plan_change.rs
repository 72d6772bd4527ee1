//! Endpoints that change the plan of a subscription, and the preview of such a change.

use std::sync::Arc;

use core_domain::access::{BillingScope, CustomerScope};
use core_domain::billing::usage::LimitUse;
use core_domain::billing::{Interval, Invoice};
use core_domain::kernel::{Code, PlatformId, Result, Secret, SubscriptionId, permission};
use core_domain::port::UnitOfWork;
use core_domain::registry::Tier;
use core_domain::use_case::billing::change::{self, ChangePreview, ChangeTier, UpdateSubscription};
use core_domain::use_case::billing::subscription::PendingCharge;
use core_domain::use_case::billing::upgrade::{self, PendingUpgrade, Upgrade, UpgradeStatus};
use core_domain::use_case::billing::{Billing, usage};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::payment_method::PROVIDER_CODES;
use super::platform::NamesPlatform;
use super::spelling::prefixed;
use super::view::SubscriptionView;
use crate::kernel::{
    Cx, DetachedCx, Endpoint, ErrorStyle, Input, Output, Versioned, get, patch, post, with,
};

/// The codes of every change of a plan.
const CHANGE_CODES: &[Code] = &[
    Code::NotFound,
    Code::InvalidState,
    Code::PaymentRequired,
    Code::OperationInProgress,
    Code::QuoteExpired,
    Code::Conflict,
];

pub(super) fn rows(billing: &Arc<Billing>) -> Vec<Endpoint> {
    vec![
        post("/subscription/change-tier", "changeTier")
            .alias(prefixed!("/subscription/change-tier"))
            .summary("Changes the plan of a platform.")
            .description(
                "An upgrade is charged and made at once, with a credit for the rest of the \
                 current plan. A downgrade waits for the end of the period. The current tier \
                 removes a planned change or cancellation. In a trial, every change is made at \
                 once and costs nothing.",
            )
            .secret_answer()
            .refuses(PROVIDER_CODES)
            .refuses(CHANGE_CODES)
            .refuses(&[Code::TierUnchanged, Code::PreviewExpired])
            .if_match()
            .writes_then(billing, begin, finish),
        get("/subscription/proration-preview", "previewTierChange")
            .alias(prefixed!("/subscription/proration-preview"))
            .summary("Shows what a change of the plan would cost.")
            .description(
                "Nothing is stored. The amounts are valid for 15 minutes: send `prorationDate` \
                 with the change to pay exactly them.",
            )
            .refuses(&[
                Code::ValidationError,
                Code::NotFound,
                Code::TierUnchanged,
                Code::InvalidState,
            ])
            .reads(with(billing, preview)),
        post("/api/billing/upgrade", "upgradePlan")
            .summary("Upgrades a platform to a plan with a new payment method.")
            .description(
                "The payment method is attached and becomes the default, then the plan is \
                 changed. `idempotencyKey` identifies a repeated request. If the customer must \
                 confirm the charge, the status is `requires_action`.",
            )
            .secret_answer()
            .errors(ErrorStyle::WithoutDetails)
            .key_in_body("idempotencyKey")
            .replaces_code(Code::IdempotencyKeyReused, Code::Conflict)
            .refuses(PROVIDER_CODES)
            .refuses(CHANGE_CODES)
            .refuses(&[Code::AlreadyOnPlan])
            .writes_then(billing, begin_upgrade, finish_upgrade),
        patch("/subscriptions/{id}", "updateSubscription")
            .summary("Changes the price, the quantity or the payment method of a subscription.")
            .description(
                "The rules are those of a change of the plan. A payment method is attached and \
                 becomes the default of the customer.",
            )
            .secret_answer()
            .refuses(PROVIDER_CODES)
            .refuses(CHANGE_CODES)
            .refuses(&[Code::TierUnchanged])
            .if_match()
            .writes_then(billing, begin_update, finish),
    ]
}

async fn begin(
    cx: &Cx,
    billing: Arc<Billing>,
    scope: BillingScope<permission::BillingManage>,
    uow: &mut dyn UnitOfWork,
    input: Input<(), (), ChangeTier>,
) -> Result<PendingCharge> {
    change::change_tier(cx, &scope, uow, &billing, input.body).await
}

async fn begin_update(
    cx: &Cx,
    billing: Arc<Billing>,
    scope: CustomerScope<permission::BillingManage>,
    uow: &mut dyn UnitOfWork,
    input: Input<(SubscriptionId,), (), UpdateSubscription>,
) -> Result<PendingCharge> {
    change::update(cx, &scope, uow, &billing, &input.path.0, input.body).await
}

async fn finish(
    cx: DetachedCx,
    billing: Arc<Billing>,
    pending: PendingCharge,
) -> Result<Versioned<ChangedSubscription>> {
    let store = cx.app.store.as_ref();
    let changed = change::finish(&cx, store, &billing, &pending).await?;
    let exceeds = usage::exceeded_by_subscription(store, &billing, &changed).await?;
    let subscription = SubscriptionView::of(&changed);
    let response = ChangedSubscription {
        subscription,
        exceeds,
    };
    Ok(Versioned::of(&changed, response))
}

/// A subscription after a change of its plan.
#[derive(Clone, Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
struct ChangedSubscription {
    #[serde(flatten)]
    subscription: SubscriptionView,
    /// The numbers of objects that are above the limits of the new plan. They are kept, but no more can be created.
    exceeds: Vec<LimitUse>,
}

/// A preview of a change of the plan.
#[derive(Clone, Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
struct PreviewResponse {
    #[serde(flatten)]
    preview: ChangePreview,
    /// The numbers of objects that are above the limits of the new plan. They are kept, but no more can be created.
    exceeds: Vec<LimitUse>,
}

/// The plan to preview.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
struct PreviewQuery {
    /// The new tier.
    tier: Tier,
    /// The new length of a period. Default: the current one.
    interval: Option<Interval>,
    /// The platform. Default: the one that the caller acts for.
    platform_id: Option<PlatformId>,
}

impl NamesPlatform for PreviewQuery {
    fn platform_id(&self) -> Option<&PlatformId> {
        self.platform_id.as_ref()
    }
}

async fn preview(
    cx: &Cx,
    billing: Arc<Billing>,
    scope: BillingScope<permission::BillingRead>,
    uow: &mut dyn UnitOfWork,
    input: Input<(), PreviewQuery>,
) -> Result<Output<PreviewResponse>> {
    let (tier, interval) = (input.query.tier, input.query.interval);
    let preview = change::preview(cx, &scope, uow, &billing, tier, interval).await?;
    let exceeds = usage::exceeded_by_tier(&scope, uow, &billing, tier).await?;
    Ok(Output::new(PreviewResponse { preview, exceeds }))
}

impl NamesPlatform for Upgrade {
    fn platform_id(&self) -> Option<&PlatformId> {
        self.platform_id.as_ref()
    }
}

/// The response to an upgrade.
#[derive(Clone, Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
struct UpgradeResponse {
    /// The subscription.
    subscription: SubscriptionView,
    /// The invoice of the change. `null` if there is none.
    invoice: Option<Invoice>,
    /// Whether the plan is active, or the customer must confirm the charge first.
    status: UpgradeStatus,
    /// The secret with which a browser confirms the charge. `null` if that is not needed.
    client_secret: Option<String>,
    /// The key of the request.
    idempotency_key: String,
}

async fn begin_upgrade(
    cx: &Cx,
    billing: Arc<Billing>,
    scope: BillingScope<permission::BillingManage>,
    uow: &mut dyn UnitOfWork,
    input: Input<(), (), Upgrade>,
) -> Result<PendingUpgrade> {
    upgrade::upgrade(cx, &scope, uow, &billing, input.body).await
}

async fn finish_upgrade(
    cx: DetachedCx,
    billing: Arc<Billing>,
    pending: PendingUpgrade,
) -> Result<Output<UpgradeResponse>> {
    let store = cx.app.store.as_ref();
    let done = upgrade::finish_upgrade(&cx, store, &billing, &pending).await?;
    Ok(Output::new(UpgradeResponse {
        subscription: SubscriptionView::of(&done.subscription),
        invoice: done.invoice.map(core_domain::kernel::Stored::into_inner),
        status: done.status,
        client_secret: done
            .client_secret
            .as_ref()
            .map(|s: &Secret| s.expose().to_owned()),
        idempotency_key: pending.idempotency_key,
    }))
}
