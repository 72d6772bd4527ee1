//! Endpoints that create, show and cancel subscriptions.

use std::sync::Arc;

use core_domain::access::{BillingScope, CustomerScope, OperatorScope};
use core_domain::kernel::{Code, Result, SubscriptionId, permission};
use core_domain::port::UnitOfWork;
use core_domain::use_case::billing::Billing;
use core_domain::use_case::billing::cancellation::{self, CancelSubscription};
use core_domain::use_case::billing::subscription::{self, PendingCharge, Subscribe, SubscribeUser};
use http::StatusCode;
use schemars::JsonSchema;
use serde::Deserialize;

use super::payment_method::PROVIDER_CODES;
use super::platform::OfNamedPlatform;
use super::spelling::prefixed;
use super::view::SubscriptionView;
use crate::kernel::{Cx, DetachedCx, Endpoint, Input, Versioned, delete, get, post, with};

const OWN: &str = "/subscription";
const ONE: &str = "/subscriptions/{id}";

pub(super) fn rows(billing: &Arc<Billing>) -> Vec<Endpoint> {
    vec![
        get(OWN, "getSubscription")
            .alias(prefixed!("/subscription"))
            .summary("Returns the subscription of a platform.")
            .description(
                "It is the one that has not ended. If there is none, it is the one that was \
                 created last.",
            )
            .refuses(&[Code::ValidationError, Code::NotFound])
            .reads(show_own),
        post(OWN, "createSubscription")
            .alias(prefixed!("/subscription"))
            .summary("Subscribes a platform to a plan.")
            .description(
                "The first subscription of a platform begins with a trial and needs no payment \
                 method. A later one is charged at once. If there is no payment method or it is \
                 declined, the subscription is `incomplete` and its invoice can be paid for 23 \
                 hours.",
            )
            .success(&[StatusCode::CREATED])
            .refuses(PROVIDER_CODES)
            .refuses(&[Code::SubscriptionExists, Code::NotFound, Code::Conflict])
            .writes_then(billing, begin, finish),
        post("/subscription/cancel", "cancelSubscription")
            .alias(prefixed!("/subscription/cancel"))
            .summary("Cancels the subscription of a platform.")
            .description(
                "It ends with the current period, or at once with `immediately`. Nothing is \
                 refunded. One that is past due, unpaid, paused or incomplete ends at once. The \
                 body can be omitted.",
            )
            .refuses(&[
                Code::NotFound,
                Code::InvalidState,
                Code::OperationInProgress,
            ])
            .if_match()
            .writes(with(billing, cancel_own)),
        post("/subscriptions", "createUserSubscription")
            .summary("Subscribes a user to a price.")
            .description(
                "The user gets a customer if there is none. The subscription governs no \
                 platform, and has no trial. If the charge fails, nothing is kept.",
            )
            .success(&[StatusCode::CREATED])
            .secret_answer()
            .refuses(PROVIDER_CODES)
            .refuses(&[Code::PaymentRequired, Code::NotFound, Code::Conflict])
            .writes_then(billing, begin_for_user, finish_for_user),
        get(ONE, "getSubscriptionById")
            .summary("Returns a subscription.")
            .description("It can have ended.")
            .refuses(&[Code::NotFound])
            .reads(show),
        delete(ONE, "cancelSubscriptionById")
            .summary("Cancels a subscription at once, or with its current period.")
            .description("One that has ended stays as it is.")
            .refuses(&[Code::NotFound, Code::OperationInProgress])
            .if_match()
            .writes(with(billing, cancel)),
    ]
}

async fn show_own(
    _: &Cx,
    scope: BillingScope<permission::BillingRead>,
    uow: &mut dyn UnitOfWork,
    _: Input<(), OfNamedPlatform>,
) -> Result<Versioned<SubscriptionView>> {
    let found = subscription::of_platform(&scope, uow).await?;
    Ok(SubscriptionView::response(&found))
}

async fn begin(
    cx: &Cx,
    billing: Arc<Billing>,
    scope: BillingScope<permission::BillingManage>,
    uow: &mut dyn UnitOfWork,
    input: Input<(), (), Subscribe>,
) -> Result<PendingCharge> {
    subscription::create(cx, &scope, uow, &billing, input.body).await
}

async fn finish(
    cx: DetachedCx,
    billing: Arc<Billing>,
    pending: PendingCharge,
) -> Result<Versioned<SubscriptionView>> {
    let store = cx.app.store.as_ref();
    let created = subscription::finish_creation(&cx, store, &billing, &pending).await?;
    Ok(SubscriptionView::response(&created))
}

async fn cancel_own(
    cx: &Cx,
    billing: Arc<Billing>,
    scope: BillingScope<permission::BillingManage>,
    uow: &mut dyn UnitOfWork,
    input: Input<(), (), CancelSubscription>,
) -> Result<Versioned<SubscriptionView>> {
    let canceled = cancellation::cancel_of_platform(cx, &scope, uow, &billing, input.body).await?;
    Ok(SubscriptionView::response(&canceled))
}

async fn begin_for_user(
    cx: &Cx,
    billing: Arc<Billing>,
    scope: OperatorScope,
    uow: &mut dyn UnitOfWork,
    input: Input<(), (), SubscribeUser>,
) -> Result<PendingCharge> {
    subscription::create_for_user(cx, &scope, uow, &billing, input.body).await
}

async fn finish_for_user(
    cx: DetachedCx,
    billing: Arc<Billing>,
    pending: PendingCharge,
) -> Result<Versioned<SubscriptionView>> {
    let store = cx.app.store.as_ref();
    let created = subscription::finish_user_creation(&cx, store, &billing, &pending).await?;
    Ok(SubscriptionView::response(&created))
}

async fn show(
    _: &Cx,
    scope: CustomerScope<permission::BillingRead>,
    uow: &mut dyn UnitOfWork,
    input: Input<(SubscriptionId,)>,
) -> Result<Versioned<SubscriptionView>> {
    let found = scope.subscription(uow, &input.path.0).await?;
    Ok(SubscriptionView::response(&found))
}

/// When a cancelled subscription ends.
#[derive(Clone, Copy, Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
struct CancelQuery {
    /// Whether the subscription ends with its current period, and not at once. Default: `false`.
    #[serde(default)]
    at_period_end: bool,
}

async fn cancel(
    cx: &Cx,
    billing: Arc<Billing>,
    scope: CustomerScope<permission::BillingManage>,
    uow: &mut dyn UnitOfWork,
    input: Input<(SubscriptionId,), CancelQuery>,
) -> Result<Versioned<SubscriptionView>> {
    let at_period_end = input.query.at_period_end;
    let id = &input.path.0;
    let canceled = cancellation::cancel_one(cx, &scope, uow, &billing, id, at_period_end).await?;
    Ok(SubscriptionView::response(&canceled))
}
