//! The end of subscriptions: cancels them at once or with their period.

use schemars::JsonSchema;
use serde::Deserialize;

use super::Billing;
use super::book::CustomerBook;
use super::news::{self, News};
use super::subscription::live_or_last;
use super::{invoice_state, operation, subscription_state, usage_invoice};
use crate::access::{BillingScope, Covers, CustomerScope};
use crate::billing::{Subscription, SubscriptionEvent, SubscriptionStatus};
use crate::kernel::{
    Context, Machine, PlatformId, Reason, Result, Stored, SubscriptionId, Unowned, permission,
};
use crate::port::UnitOfWork;

/// Request body that cancels the subscription of a platform.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct CancelSubscription {
    /// The platform. Default: the one that the caller acts for.
    pub platform_id: Option<PlatformId>,
    /// Whether the subscription ends now, without a refund, and not with the current period. Default: `false`.
    #[serde(default)]
    pub immediately: bool,
    /// The reason, at most 500 characters. Default: none.
    #[schemars(length(max = 500))]
    pub reason: Option<Reason>,
}

/// Cancels the subscription of a platform: with the current period, or now.
///
/// # Errors
/// - `NOT_FOUND` if the platform never had a subscription.
/// - `INVALID_STATE` if its last one has ended.
/// - `OPERATION_IN_PROGRESS` if a change waits for its charge.
pub async fn cancel_of_platform(
    cx: &Context,
    scope: &BillingScope<permission::BillingManage>,
    uow: &mut dyn UnitOfWork,
    billing: &Billing,
    command: CancelSubscription,
) -> Result<Stored<Subscription>> {
    let seen = live_or_last(uow, scope.platform_id()).await?;
    if !seen.status.is_live() {
        SubscriptionEvent::Cancel.next(seen.status)?;
    }
    let cancellation = Cancellation {
        immediately: command.immediately,
        reason: command.reason,
    };
    cancel(cx, scope, uow, billing, &seen, cancellation).await
}

/// Cancels a subscription. One that has ended stays as it is.
///
/// # Errors
/// `OPERATION_IN_PROGRESS` if a change waits for its charge.
pub async fn cancel_one(
    cx: &Context,
    scope: &CustomerScope<permission::BillingManage>,
    uow: &mut dyn UnitOfWork,
    billing: &Billing,
    id: &SubscriptionId,
    at_period_end: bool,
) -> Result<Stored<Subscription>> {
    let seen = scope.subscription(uow, id).await?;
    if !seen.status.is_live() {
        return Ok(seen);
    }
    let cancellation = Cancellation {
        immediately: !at_period_end,
        reason: None,
    };
    cancel(cx, scope, uow, billing, &seen, cancellation).await
}

/// When and why a subscription ends.
pub(super) struct Cancellation {
    /// `true` if it ends now and not with its period.
    pub(super) immediately: bool,
    pub(super) reason: Option<Reason>,
}

/// Cancels a subscription that has not ended. One that has no paid period ends at once.
pub(super) async fn cancel(
    cx: &Context,
    scope: &impl Covers<Unowned>,
    uow: &mut dyn UnitOfWork,
    billing: &Billing,
    seen: &Stored<Subscription>,
    cancellation: Cancellation,
) -> Result<Stored<Subscription>> {
    operation::ensure_none(uow, &seen.id).await?;
    let now = billing.now(uow).await?;
    let has_period = matches!(
        seen.status,
        SubscriptionStatus::Trialing | SubscriptionStatus::Active
    );
    let book = CustomerBook::open(uow, &seen.customer_id, now).await?;
    if cancellation.immediately || !has_period {
        return end(cx, scope, uow, billing, book, seen, cancellation.reason).await;
    }
    if seen.cancel_at_period_end {
        return Ok(seen.clone());
    }
    let mut next = seen.edit();
    next.cancel_later(cancellation.reason, now);
    let action = "subscription.cancellation_planned";
    subscription_state::replace(cx, scope, uow, &book, seen, next, action).await
}

/// Ends a subscription at the instant of the book, and invoices the usage that has waited for that.
pub(super) async fn end(
    cx: &Context,
    scope: &impl Covers<Unowned>,
    uow: &mut dyn UnitOfWork,
    billing: &Billing,
    mut book: CustomerBook,
    seen: &Stored<Subscription>,
    reason: Option<Reason>,
) -> Result<Stored<Subscription>> {
    end_invoices(cx, scope, uow, &mut book, seen).await?;
    let mut next = seen.edit();
    next.end(reason, book.now);
    let event = SubscriptionEvent::Cancel;
    let stored = subscription_state::apply(cx, scope, uow, &book, seen, next, event).await?;
    news::tell(cx, uow, billing, &book.customer, News::Ended(&stored)).await?;
    usage_invoice::invoice(cx, uow, billing, &mut book, &stored).await?;
    book.store(uow).await?;
    Ok(stored)
}

/// Ends the open invoices of a subscription that ends: the first invoice of an incomplete one is cancelled, others are
/// written off and can still be paid.
async fn end_invoices(
    cx: &Context,
    scope: &impl Covers<Unowned>,
    uow: &mut dyn UnitOfWork,
    book: &mut CustomerBook,
    subscription: &Subscription,
) -> Result<()> {
    let open = subscription_state::open_invoices_of(uow, &subscription.id).await?;
    for invoice in &open {
        if subscription.status == SubscriptionStatus::Incomplete {
            invoice_state::void(cx, scope, uow, book, invoice).await?;
        } else {
            invoice_state::write_off(cx, scope, uow, book, invoice).await?;
        }
    }
    Ok(())
}
