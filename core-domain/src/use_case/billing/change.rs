//! Changes of the price of a subscription: the preview, and the change itself. Both compute the same lines (contract:
//! "Proration").

use std::time::Duration;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::Billing;
use super::book::CustomerBook;
use super::invoice_state::{self, Collection, NewInvoice};
use super::operation::{self, PaidPrice};
use super::provider::{NO_PAYMENT_METHOD, payment_required};
use super::quote::{Target, plan_change, quote};
use super::subscription::{PendingCharge, charge_or_undo, live_of, load, tier_of};
use super::subscription_state::{self, open_invoices_of};
use super::{payment, plan, plan_migration};
use crate::access::{BillingScope, Covers, CustomerScope};
use crate::billing::{
    BillingReason, ChangeDirection, Currency, Interval, InvoiceLine, OperationKind, PlanTier,
    Subscription, SubscriptionStatus,
};
use crate::kernel::{
    Code, Context, Error, PlatformId, Record, Result, Stored, SubscriptionId, Timestamp, Unowned,
    permission, text_enum,
};
use crate::port::{Store, UnitOfWork};
use crate::registry::Tier;

/// How long a preview is valid, and how long a tenant can undo an upgrade.
const QUOTE_LIFETIME: Duration = Duration::from_secs(15 * 60);

text_enum! {
    /// When a change is made.
    pub enum Effective {
        /// An upgrade is made at once, a downgrade with the end of the period.
        Auto = "auto",
        /// The change is made at once. Tenants can use it for a downgrade only within 15 minutes of the upgrade.
        Now = "now",
    }
}

text_enum! {
    /// When a previewed change would be made.
    pub enum EffectiveAt {
        /// At once.
        Immediate = "immediate",
        /// With the end of the current period.
        PeriodEnd = "period_end",
    }
}

/// Request body that changes the plan of a platform.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ChangeTier {
    /// The new tier. The current one removes a planned change or cancellation.
    pub tier: Tier,
    /// The new length of a period. Default: the current one.
    pub interval: Option<Interval>,
    /// The platform. Default: the one that the caller acts for.
    pub platform_id: Option<PlatformId>,
    /// The `prorationDate` of a preview, so that the change costs what the preview has shown. Default: now.
    pub proration_date: Option<Timestamp>,
    /// When the change is made. Default: `auto`.
    #[serde(default = "default_effective")]
    pub effective: Effective,
}

const fn default_effective() -> Effective {
    Effective::Auto
}

/// Request body that changes the price, the quantity or the payment method of a subscription.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct UpdateSubscription {
    /// The id of the new price. Default: unchanged.
    #[schemars(length(min = 1, max = 255))]
    pub price_id: Option<String>,
    /// The number of units, from 1 to 1,000. Default: unchanged.
    #[schemars(range(min = 1, max = 1000))]
    pub quantity: Option<u32>,
    /// The payment method to charge, which becomes the customer's default. Default: unchanged.
    #[schemars(length(min = 1, max = 255))]
    pub payment_method_id: Option<String>,
}

/// The cost of a change of the plan.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ChangePreview {
    /// The id of the subscription that would change.
    pub subscription_id: SubscriptionId,
    /// The current tier.
    pub current_tier: PlanTier,
    /// The new tier.
    pub new_tier: PlanTier,
    /// Whether the subscription becomes more or less expensive.
    pub direction: ChangeDirection,
    /// When the change would be made.
    pub effective: EffectiveAt,
    /// The instant of the change.
    pub effective_at: Timestamp,
    /// The instant for which the amounts are computed. Send it with the change to pay exactly them.
    pub proration_date: Timestamp,
    /// Until when the amounts are valid.
    pub quote_expires_at: Timestamp,
    /// The currency of all amounts.
    pub currency: Currency,
    /// The credit for the rest of the period in minor units. Never positive.
    pub credit: i64,
    /// The charge for the new plan in minor units.
    pub charge: i64,
    /// The sum of the lines in minor units.
    pub subtotal: i64,
    /// The tax in minor units.
    pub tax_total: i64,
    /// The amount that credits would pay, in minor units.
    pub credits_applied: i64,
    /// The amount that would move to the balance of the customer, in minor units.
    pub balance_applied: i64,
    /// The amount that would be charged now, in minor units.
    pub amount_due_now: i64,
    /// The recurring amount of the next invoice with its tax, in minor units.
    pub next_invoice_amount: i64,
    /// When the next invoice is made.
    pub next_invoice_at: Timestamp,
    /// The first instant of the current period.
    pub period_start: Timestamp,
    /// The first instant after it.
    pub period_end: Timestamp,
    /// The lines of the invoice that would be made now.
    pub lines: Vec<InvoiceLine>,
}

/// Returns the cost of a change of the plan. Stores nothing.
///
/// # Errors
/// - `NOT_FOUND` if the platform has no subscription.
/// - `TIER_UNCHANGED` if the subscription has this plan.
/// - `INVALID_STATE` if the plan cannot be changed in this status.
pub async fn preview(
    cx: &Context,
    scope: &BillingScope<permission::BillingRead>,
    uow: &mut dyn UnitOfWork,
    billing: &Billing,
    tier: Tier,
    interval: Option<Interval>,
) -> Result<ChangePreview> {
    let seen = find_live(uow, scope.platform_id()).await?;
    let target = target_of(uow, billing, &seen, tier, interval).await?;
    if target.is_price_of(&seen) {
        return Err(unchanged_error());
    }
    ensure_changeable(&seen)?;
    let now = second(billing.now(uow).await?);
    let change = plan_change(&seen, &target, now)?;
    let direction = change.direction();
    let is_trial = seen.status == SubscriptionStatus::Trialing;
    let is_immediate = is_trial || direction == ChangeDirection::Upgrade;
    let quote = match is_immediate && !is_trial {
        true => Some(quote(cx, uow, billing, &seen, &target, &change).await?),
        false => None,
    };
    let book = CustomerBook::read(uow, &seen.customer_id, now).await?;
    let (credit, charge, restarts) = quote.as_ref().map_or((0, 0, false), |quote| {
        (quote.credit, quote.charge, quote.restarts_period)
    });
    let new = NewInvoice {
        subscription: Some(&seen),
        reason: BillingReason::SubscriptionUpdate,
        period: seen.period()?,
        lines: quote.map(|quote| quote.lines).unwrap_or_default(),
        collection: Collection::Requested,
    };
    let invoice = invoice_state::preview(cx, uow, billing, &book, new).await?;
    let mut after = seen.edit();
    after.set_price(&target.price(), now)?;
    if restarts {
        after.restart_period(now)?;
    }
    let end = after.current_period_end;
    plan_migration::apply_due(uow, billing, &mut after, end).await?;
    let net = after.recurring()?.amount;
    let next_amount = net.plus(billing.taxes.rate(&book.customer.party()).on(net)?)?;
    Ok(ChangePreview {
        subscription_id: seen.id.clone(),
        current_tier: seen.tier,
        new_tier: target.terms.tier,
        direction,
        effective: match is_immediate {
            true => EffectiveAt::Immediate,
            false => EffectiveAt::PeriodEnd,
        },
        effective_at: match is_immediate {
            true => now,
            false => seen.current_period_end,
        },
        proration_date: now,
        quote_expires_at: now.plus(QUOTE_LIFETIME),
        currency: seen.currency,
        credit,
        charge,
        subtotal: invoice.subtotal,
        tax_total: invoice.tax_total,
        credits_applied: invoice.credits_applied,
        balance_applied: invoice.balance_applied,
        amount_due_now: invoice.amount_due,
        next_invoice_amount: next_amount.minor(),
        next_invoice_at: after.current_period_end,
        period_start: seen.current_period_start,
        period_end: seen.current_period_end,
        lines: invoice.lines,
    })
}

/// Changes the plan of a platform, in the first unit of work. Continue with [`finish`].
///
/// # Errors
/// - `NOT_FOUND` if the platform has no subscription.
/// - `TIER_UNCHANGED` if the subscription has this plan and nothing else is planned.
/// - `INVALID_STATE` if the plan cannot be changed in this status, or a downgrade cannot be made at once.
/// - `PREVIEW_EXPIRED` if the preview is older than 15 minutes; `QUOTE_EXPIRED` if the price has changed since.
/// - `PAYMENT_REQUIRED` if a charge is needed and there is no payment method.
/// - `OPERATION_IN_PROGRESS` if another change waits for its charge.
pub async fn change_tier(
    cx: &Context,
    scope: &BillingScope<permission::BillingManage>,
    uow: &mut dyn UnitOfWork,
    billing: &Billing,
    command: ChangeTier,
) -> Result<PendingCharge> {
    let seen = find_live(uow, scope.platform_id()).await?;
    let target = target_of(uow, billing, &seen, command.tier, command.interval).await?;
    let how = How {
        proration_date: command.proration_date,
        effective: command.effective,
        has_new_method: false,
    };
    change(cx, scope, uow, billing, &seen, &target, &how).await
}

/// Changes the price, the quantity or the payment method of a subscription, in the first unit of work. Continue with
/// [`finish`].
///
/// # Errors
/// Those of [`change_tier`]; `VALIDATION_ERROR` if the request changes nothing.
pub async fn update(
    cx: &Context,
    scope: &CustomerScope<permission::BillingManage>,
    uow: &mut dyn UnitOfWork,
    billing: &Billing,
    id: &SubscriptionId,
    command: UpdateSubscription,
) -> Result<PendingCharge> {
    let seen = scope.subscription(uow, id).await?;
    if command == UpdateSubscription::default() {
        let message = "Give a price, a quantity or a payment method.";
        return Err(Error::invalid("priceId", "required", message));
    }
    let (terms, interval) = match &command.price_id {
        Some(price) if *price != seen.price_id => plan::find_price(billing, price)?,
        _ => {
            let own = plan::version(uow, billing, seen.tier, seen.plan_version).await?;
            (own, seen.interval)
        }
    };
    let target = Target {
        terms,
        interval,
        quantity: command.quantity.unwrap_or(seen.quantity),
    };
    let only_method = command.price_id.is_none() && command.quantity.is_none();
    let pending = if only_method {
        PendingCharge {
            subscription_id: seen.id.clone(),
            invoice_id: None,
            payment_method_id: None,
        }
    } else {
        let how = How {
            proration_date: None,
            effective: Effective::Auto,
            has_new_method: command.payment_method_id.is_some(),
        };
        change(cx, scope, uow, billing, &seen, &target, &how).await?
    };
    Ok(PendingCharge {
        payment_method_id: command.payment_method_id,
        ..pending
    })
}

/// Returns the price of a tier for a subscription. A subscription that has the tier keeps the version of its terms.
async fn target_of(
    uow: &mut dyn UnitOfWork,
    billing: &Billing,
    seen: &Subscription,
    tier: Tier,
    interval: Option<Interval>,
) -> Result<Target> {
    let tier = tier_of(tier);
    let terms = match tier == seen.tier {
        true => plan::version(uow, billing, tier, seen.plan_version).await?,
        false => plan::newest(billing, tier)?,
    };
    Ok(Target {
        terms,
        interval: interval.unwrap_or(seen.interval),
        quantity: seen.quantity,
    })
}

/// How a change is requested.
pub(super) struct How {
    pub(super) proration_date: Option<Timestamp>,
    pub(super) effective: Effective,
    /// Whether the request names a payment method, which is attached before the charge.
    pub(super) has_new_method: bool,
}

pub(super) async fn change(
    cx: &Context,
    scope: &impl Covers<Unowned>,
    uow: &mut dyn UnitOfWork,
    billing: &Billing,
    seen: &Stored<Subscription>,
    target: &Target,
    how: &How,
) -> Result<PendingCharge> {
    operation::ensure_none(uow, &seen.id).await?;
    ensure_changeable(seen)?;
    ensure_settled(uow, seen).await?;
    if target.is_price_of(seen) {
        return keep(cx, scope, uow, billing, seen).await;
    }
    let now = billing.now(uow).await?;
    let at = quoted_instant(cx, seen, how.proration_date, now)?;
    let planned = plan_change(seen, target, at)?;
    let is_upgrade = planned.direction() == ChangeDirection::Upgrade;
    let mut book = CustomerBook::open(uow, &seen.customer_id, now).await?;
    if seen.status == SubscriptionStatus::Trialing {
        let mut next = seen.edit();
        next.set_price(&target.price(), at)?;
        next.keep();
        return store(cx, scope, uow, &book, seen, next, "subscription.changed").await;
    }
    if !is_upgrade && how.effective == Effective::Auto {
        let mut next = seen.edit();
        next.keep();
        next.change_later(&target.price(), seen.current_period_end);
        let action = "subscription.change_planned";
        return store(cx, scope, uow, &book, seen, next, action).await;
    }
    if !is_upgrade {
        ensure_can_undo(cx, seen, now)?;
    }
    let quote = quote(cx, uow, billing, seen, target, &planned).await?;
    let new = NewInvoice {
        subscription: Some(seen),
        reason: BillingReason::SubscriptionUpdate,
        period: seen.period()?,
        lines: quote.lines,
        collection: Collection::Requested,
    };
    let invoice = invoice_state::finalize(cx, scope, uow, billing, &mut book, new).await?;
    let price = PaidPrice {
        terms: &target.terms,
        interval: target.interval,
        quantity: target.quantity,
        billed: target.price().recurring()?.amount,
        at,
        restarts_period: quote.restarts_period,
    };
    let mut next = seen.edit();
    next.latest_invoice_id = Some(invoice.id.clone());
    if invoice.amount_due > 0 {
        let has_method = how.has_new_method
            || seen.default_payment_method_id.is_some()
            || book.customer.default_payment_method_id.is_some();
        if !has_method {
            return Err(payment_required(NO_PAYMENT_METHOD, None, None, None));
        }
        let kind = OperationKind::Change;
        operation::begin(cx, uow, seen, kind, &invoice.id, &price, now).await?;
        let action = "subscription.change_requested";
        let stored = store(cx, scope, uow, &book, seen, next, action).await?;
        book.store(uow).await?;
        return Ok(PendingCharge {
            invoice_id: Some(invoice.id.clone()),
            ..stored
        });
    }
    payment::set_paid_price(&mut next, &price, &invoice, now)?;
    if !is_upgrade {
        next.upgraded_at = None;
    }
    let action = "subscription.changed";
    let stored = store(cx, scope, uow, &book, seen, next, action).await?;
    book.store(uow).await?;
    Ok(stored)
}

async fn store(
    cx: &Context,
    scope: &impl Covers<Unowned>,
    uow: &mut dyn UnitOfWork,
    book: &CustomerBook,
    seen: &Stored<Subscription>,
    next: Subscription,
    action: &'static str,
) -> Result<PendingCharge> {
    let stored = subscription_state::replace(cx, scope, uow, book, seen, next, action).await?;
    Ok(PendingCharge {
        subscription_id: stored.id.clone(),
        invoice_id: None,
        payment_method_id: None,
    })
}

/// Removes a planned change or cancellation.
async fn keep(
    cx: &Context,
    scope: &impl Covers<Unowned>,
    uow: &mut dyn UnitOfWork,
    billing: &Billing,
    seen: &Stored<Subscription>,
) -> Result<PendingCharge> {
    if seen.pending_change.is_none() && !seen.cancel_at_period_end {
        return Err(unchanged_error());
    }
    let mut next = seen.edit();
    next.keep();
    next.forget_change();
    let now = billing.now(uow).await?;
    let book = CustomerBook::open(uow, &seen.customer_id, now).await?;
    store(cx, scope, uow, &book, seen, next, "subscription.kept").await
}

fn unchanged_error() -> Error {
    Error::refused(
        Code::TierUnchanged,
        "The subscription has this plan already.",
    )
}

/// Charges the invoice of a change. Returns the subscription.
///
/// # Errors
/// - `PAYMENT_REQUIRED` if the charge was declined or must be confirmed. The tier is as before.
/// - `PAYMENT_PROVIDER_UNAVAILABLE` and `PAYMENT_OUTCOME_UNKNOWN` if the provider fails.
pub async fn finish(
    cx: &Context,
    store: &dyn Store,
    billing: &Billing,
    pending: &PendingCharge,
) -> Result<Stored<Subscription>> {
    let charge = charge_or_undo(cx, store, billing, pending).await?;
    if let (Some(charge), Some(invoice)) = (charge, &pending.invoice_id)
        && let Some(refusal) = charge.refusal(invoice)
    {
        return Err(refusal);
    }
    load(store, &pending.subscription_id).await
}

/// Returns the live subscription of a platform.
pub(super) async fn find_live(
    uow: &mut dyn UnitOfWork,
    platform: &PlatformId,
) -> Result<Stored<Subscription>> {
    let live = live_of(uow, platform).await?;
    live.ok_or(Error::NotFound(Subscription::KIND))
}

/// Refuses a change in a status in which the plan cannot be changed.
fn ensure_changeable(subscription: &Subscription) -> Result<()> {
    const CHANGEABLE: [SubscriptionStatus; 2] =
        [SubscriptionStatus::Trialing, SubscriptionStatus::Active];
    if CHANGEABLE.contains(&subscription.status) {
        return Ok(());
    }
    Err(crate::kernel::IllegalTransition::new(subscription.status, CHANGEABLE).into())
}

/// Refuses a change while the invoice of the current period is being charged.
async fn ensure_settled(uow: &mut dyn UnitOfWork, subscription: &Subscription) -> Result<()> {
    match open_invoices_of(uow, &subscription.id).await?.is_empty() {
        true => Ok(()),
        false => Err(operation::in_progress()),
    }
}

/// Returns the instant of a change: that of the preview, if the request names one.
fn quoted_instant(
    cx: &Context,
    seen: &Subscription,
    proration_date: Option<Timestamp>,
    now: Timestamp,
) -> Result<Timestamp> {
    let Some(at) = proration_date.map(second) else {
        return Ok(second(now));
    };
    if at > now {
        let message = "The date must not be in the future.";
        return Err(Error::invalid("prorationDate", "invalid", message));
    }
    if now.since(at) > QUOTE_LIFETIME && !cx.caller.is_operator() {
        return Err(Error::refused(
            Code::PreviewExpired,
            "The preview is older than 15 minutes. Request a new one.",
        ));
    }
    if at < seen.price_changed_at || at < seen.current_period_start {
        return Err(Error::refused(
            Code::QuoteExpired,
            "The price of the subscription has changed since the preview. Request a new one.",
        ));
    }
    Ok(at)
}

/// Refuses a downgrade that is made at once, unless it undoes an upgrade of the last 15 minutes.
fn ensure_can_undo(cx: &Context, seen: &Subscription, now: Timestamp) -> Result<()> {
    let is_recent = |at: Timestamp| now.since(at) <= QUOTE_LIFETIME;
    if cx.caller.is_operator() || seen.upgraded_at.is_some_and(is_recent) {
        return Ok(());
    }
    Err(Error::refused(
        Code::InvalidState,
        "A downgrade is made with the end of the period. Only an upgrade of the last 15 minutes can be undone at once.",
    ))
}

/// Returns an instant reduced to its second.
const fn second(at: Timestamp) -> Timestamp {
    Timestamp::from_seconds(at.seconds())
}
