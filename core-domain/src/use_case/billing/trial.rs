//! Trials and overrides: an operator changes a subscription without a charge.

use schemars::JsonSchema;
use serde::Deserialize;

use super::Billing;
use super::book::CustomerBook;
use super::invoice_state::{self, Collection, NewInvoice};
use super::subscription::{begin_trial, days_long, tier_of};
use super::{operation, plan, subscription_state};
use crate::access::{Covers, OperatorScope, unowned_records};
use crate::billing::{
    Anchor, BillingReason, MAX_TRIAL_DAYS, Price, Subscription, SubscriptionEvent,
    SubscriptionStatus,
};
use crate::kernel::{
    Context, Error, InvoiceId, Machine, Reason, Result, Stored, SubscriptionId, Timestamp, Unowned,
};
use crate::port::UnitOfWork;
use crate::registry::Tier;

/// Request body that starts or extends a trial.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct StartTrial {
    /// The number of days, from 1 to 365.
    #[schemars(range(min = 1, max = 365))]
    pub trial_days: u32,
}

/// Starts a trial, or extends the current one. Time that is paid and not used becomes a balance of the customer.
///
/// # Errors
/// - `NOT_FOUND` if there is no such subscription.
/// - `INVALID_STATE` if the subscription has ended, or is unpaid or incomplete.
/// - `VALIDATION_ERROR` if the trial would be longer than 730 days.
/// - `OPERATION_IN_PROGRESS` if a change waits for its charge.
pub async fn start_trial(
    cx: &Context,
    scope: &OperatorScope,
    uow: &mut dyn UnitOfWork,
    billing: &Billing,
    id: &SubscriptionId,
    command: StartTrial,
) -> Result<Stored<Subscription>> {
    let seen = unowned_records::<Subscription>(uow).get(id).await?;
    SubscriptionEvent::StartTrial.next(seen.status)?;
    operation::ensure_none(uow, id).await?;
    let now = Timestamp::from_seconds(billing.now(uow).await?.seconds());
    let is_trial = seen.status == SubscriptionStatus::Trialing;
    let start = seen.trial_start.filter(|_| is_trial).unwrap_or(now);
    let from = seen
        .trial_ends_at
        .filter(|_| is_trial)
        .map_or(now, |end| end.max(now));
    let end = from.plus(days_long(command.trial_days));
    if end.since(start) > days_long(MAX_TRIAL_DAYS) {
        let message = "A trial has at most 730 days in total.";
        return Err(Error::invalid("trialDays", "too_large", message));
    }
    let mut book = CustomerBook::open(uow, &seen.customer_id, now).await?;
    let mut next = seen.edit();
    if !is_trial {
        let invoice = return_rest(cx, scope, uow, billing, &mut book, &seen, now).await?;
        next.latest_invoice_id = invoice.or(next.latest_invoice_id);
    }
    begin_trial(&mut next, command.trial_days, from);
    next.trial_start = Some(start);
    next.current_period_start = start;
    next.billed_amount = 0;
    next.keep();
    let event = SubscriptionEvent::StartTrial;
    let stored = subscription_state::apply(cx, scope, uow, &book, &seen, next, event).await?;
    book.store(uow).await?;
    Ok(stored)
}

/// Returns the rest of a paid period to the balance by a negative invoice, and cancels what is open. Returns the id of
/// the invoice.
async fn return_rest(
    cx: &Context,
    scope: &impl Covers<Unowned>,
    uow: &mut dyn UnitOfWork,
    billing: &Billing,
    book: &mut CustomerBook,
    seen: &Subscription,
    now: Timestamp,
) -> Result<Option<InvoiceId>> {
    for open in subscription_state::open_invoices_of(uow, &seen.id).await? {
        invoice_state::void(cx, scope, uow, book, &open).await?;
    }
    let has_paid = seen.status == SubscriptionStatus::Active && seen.billed_amount > 0;
    let terms = plan::version(uow, billing, seen.tier, seen.plan_version).await?;
    let credit = super::quote::credit_line(cx, seen, &terms, now)?;
    let Some(credit) = credit.filter(|_| has_paid) else {
        return Ok(None);
    };
    let new = NewInvoice {
        subscription: Some(seen),
        reason: BillingReason::SubscriptionUpdate,
        period: seen.period()?,
        lines: vec![credit],
        collection: Collection::Requested,
    };
    let invoice = invoice_state::finalize(cx, scope, uow, billing, book, new).await?;
    Ok(Some(invoice.id.clone()))
}

/// Request body with which an operator sets the tier or the end of the trial, without a charge or a credit.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct OverrideSubscription {
    /// The new tier, in its newest version. Default: unchanged.
    pub tier: Option<Tier>,
    /// The new end of the trial, in the future. Default: unchanged.
    pub trial_ends_at: Option<Timestamp>,
    /// The reason, for the audit log.
    pub reason: Reason,
}

/// Sets the tier or the end of the trial of a subscription, without a charge or a credit.
///
/// # Errors
/// - `VALIDATION_ERROR` if neither is given, or the end of the trial is not in the future.
/// - `NOT_FOUND` if there is no such subscription.
/// - `INVALID_STATE` if the subscription has ended, or has no trial whose end could be set.
/// - `OPERATION_IN_PROGRESS` if a change waits for its charge.
pub async fn override_terms(
    cx: &Context,
    scope: &OperatorScope,
    uow: &mut dyn UnitOfWork,
    billing: &Billing,
    id: &SubscriptionId,
    command: OverrideSubscription,
) -> Result<Stored<Subscription>> {
    let seen = unowned_records::<Subscription>(uow).get(id).await?;
    let now = billing.now(uow).await?;
    if command.tier.is_none() && command.trial_ends_at.is_none() {
        let message = "Give a tier or the end of the trial.";
        return Err(Error::invalid("tier", "required", message));
    }
    if !seen.status.is_live() {
        SubscriptionEvent::Cancel.next(seen.status)?;
    }
    operation::ensure_none(uow, id).await?;
    let mut next = seen.edit();
    if let Some(tier) = command.tier {
        let terms = plan::newest(billing, tier_of(tier))?;
        let price = Price {
            terms: &terms,
            interval: seen.interval,
            quantity: seen.quantity,
        };
        next.set_price(&price, Timestamp::from_seconds(now.seconds()))?;
    }
    if let Some(end) = command.trial_ends_at {
        if end <= now {
            let message = "The end of the trial must be in the future.";
            return Err(Error::invalid("trialEndsAt", "invalid", message));
        }
        if seen.status != SubscriptionStatus::Trialing {
            SubscriptionEvent::Pause.next(seen.status)?;
        }
        let end = Anchor::new(end).at();
        next.trial_ends_at = Some(end);
        next.current_period_end = end;
        next.anchor = end;
    }
    let book = CustomerBook::open(uow, &seen.customer_id, now).await?;
    let action = "subscription.overridden";
    subscription_state::replace(cx, scope, uow, &book, &seen, next, action).await
}
