//! Subscriptions: creates, reads and cancels them. Changes of the price are in [`super::change`].

use std::time::Duration;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::Billing;
use super::book::CustomerBook;
use super::charge::{self, Charge};
use super::invoice_state::{self, Collection, NewInvoice};
use super::operation::{self, PaidPrice};
use super::period_invoice::period_line;
use super::provider::{not_undone, nothing_happened};
use super::subscription_state;
use super::{card_notice, customer, payment, payment_method, plan};
use crate::access::{
    BillingScope, Covers, CustomerScope, OperatorScope, all_unowned, unowned_records,
};
use crate::billing::{
    BillingReason, Customer, Interval, Money, OperationKind, PlanTerms, PlanTier, Price,
    Subscription, SubscriptionEvent, SubscriptionQuery, SubscriptionStatus, TaxRate,
};
use crate::kernel::{
    Code, Context, Email, Error, InvoiceId, Machine, PlatformId, Record, Result, Stored,
    SubscriptionId, Timestamp, Unowned, UserId, permission,
};
use crate::port::{OpKey, Store, UnitOfWork, transact};
use crate::registry::Tier;

/// Request body that subscribes a platform to a plan.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Subscribe {
    /// The platform. Default: the one that the caller acts for.
    pub platform_id: Option<PlatformId>,
    /// The tier.
    pub tier: Tier,
    /// The length of a period. Default: `month`.
    #[serde(default = "default_interval")]
    pub interval: Interval,
    /// The number of units, from 1 to 1,000. Default: 1.
    #[serde(default = "default_quantity")]
    #[schemars(range(min = 1, max = 1000))]
    pub quantity: u32,
    /// The payment method to charge, which becomes the customer's default. Default: the customer's default.
    #[schemars(length(min = 1, max = 255))]
    pub payment_method_id: Option<String>,
    /// The address for invoices of a new customer. Default: that of the caller.
    pub billing_email: Option<Email>,
    /// The length of the trial in days. Only for operators. Default: that of the plan for the first subscription of a
    /// platform, none for later ones.
    #[schemars(range(max = 730))]
    pub trial_days: Option<u32>,
}

pub(super) const fn default_interval() -> Interval {
    Interval::Month
}

pub(super) const fn default_quantity() -> u32 {
    1
}

/// Request body that subscribes a user to a price.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct SubscribeUser {
    /// The id of the user who subscribes.
    pub user_id: UserId,
    /// The id of the price.
    #[schemars(length(min = 1, max = 255))]
    pub price_id: String,
    /// The payment method to charge.
    #[schemars(length(min = 1, max = 255))]
    pub payment_method_id: String,
    /// The number of units, from 1 to 1,000. Default: 1.
    #[serde(default = "default_quantity")]
    #[schemars(range(min = 1, max = 1000))]
    pub quantity: u32,
}

/// The work at the provider that remains after a first unit of work. It is stored with the idempotency key of the
/// request, so that a repetition continues it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PendingCharge {
    /// The subscription that the request created or changed.
    pub subscription_id: SubscriptionId,
    /// The open invoice. `None` if nothing is due.
    pub invoice_id: Option<InvoiceId>,
    /// The payment method to attach and charge. `None` for the customer's default.
    pub payment_method_id: Option<String>,
}

/// Subscribes a platform to a plan, in the first unit of work. Continue with [`finish_creation`].
///
/// The first subscription of a platform begins with the plan's trial. Any other one is `incomplete` until its first
/// invoice is paid.
///
/// # Errors
/// - `SUBSCRIPTION_EXISTS` if the platform has a subscription that has not ended.
/// - `FORBIDDEN` if a caller who is no operator sets `trialDays`.
/// - `VALIDATION_ERROR` if a new customer has no address.
pub async fn create(
    cx: &Context,
    scope: &BillingScope<permission::BillingManage>,
    uow: &mut dyn UnitOfWork,
    billing: &Billing,
    command: Subscribe,
) -> Result<PendingCharge> {
    if command.trial_days.is_some() && !cx.caller.is_operator() {
        return Err(Error::Forbidden);
    }
    let now = billing.now(uow).await?;
    let platform = scope.platform_id();
    if live_of(uow, platform).await?.is_some() {
        return Err(Error::refused(
            Code::SubscriptionExists,
            "The platform has a subscription already. Change or cancel it.",
        ));
    }
    let email = command.billing_email.clone();
    let payer = customer::ensure_of_platform(cx, scope, uow, billing, email).await?;
    let terms = plan::newest(billing, tier_of(command.tier))?;
    let price = Price {
        terms: &terms,
        interval: command.interval,
        quantity: command.quantity,
    };
    let of_platform = SubscriptionQuery::OfPlatform(platform.clone());
    let earlier = unowned_records::<Subscription>(uow)
        .first(&of_platform)
        .await?;
    let usual = if earlier.is_none() {
        terms.trial_days
    } else {
        0
    };
    let trial_days = command.trial_days.unwrap_or(usual);
    let mut book = CustomerBook::open(uow, &payer.id, now).await?;
    card_notice::plan_again(uow, &mut book).await?;
    let mut subscription = new_subscription(cx, &payer, &price, now)?;
    subscription.platform_id = Some(platform.clone());
    let payment_method_id = command.payment_method_id;
    if trial_days > 0 {
        begin_trial(&mut subscription, trial_days, now);
        let stored = subscription_state::insert(cx, scope, uow, &book, subscription).await?;
        book.store(uow).await?;
        return Ok(PendingCharge {
            subscription_id: stored.id.clone(),
            invoice_id: None,
            payment_method_id,
        });
    }
    let created = invoice_first(
        cx,
        scope,
        uow,
        billing,
        &mut book,
        subscription,
        &terms,
        Collection::Requested,
    )
    .await?;
    book.store(uow).await?;
    Ok(PendingCharge {
        payment_method_id,
        ..created
    })
}

/// Returns the tier of a plan that customers can choose.
pub(super) const fn tier_of(tier: Tier) -> PlanTier {
    match tier {
        Tier::Starter => PlanTier::Starter,
        Tier::Growth => PlanTier::Growth,
        Tier::Scale => PlanTier::Scale,
    }
}

/// Creates an incomplete subscription whose first period begins now.
fn new_subscription(
    cx: &Context,
    payer: &Customer,
    price: &Price<'_>,
    now: Timestamp,
) -> Result<Subscription> {
    let start = Timestamp::from_seconds(now.seconds());
    let mut subscription = Subscription {
        id: SubscriptionId::generate(now, cx.entropy.as_ref()),
        platform_id: None,
        customer_id: payer.id.clone(),
        user_id: payer.user_id.clone(),
        tier: price.terms.tier,
        plan_id: String::new(),
        price_id: String::new(),
        quantity: price.quantity,
        status: SubscriptionStatus::Incomplete,
        amount: 0,
        currency: price.terms.currency,
        interval: price.interval,
        anchor: start,
        current_period_start: start,
        current_period_end: start,
        trial_start: None,
        trial_ends_at: None,
        cancel_at_period_end: false,
        cancel_at: None,
        canceled_at: None,
        ended_at: None,
        cancellation_reason: None,
        pending_change: None,
        migration: None,
        default_payment_method_id: None,
        latest_invoice_id: None,
        provider: payer.provider,
        created_at: now,
        updated_at: now,
        plan_version: price.terms.version,
        billed_amount: 0,
        billed_tax: TaxRate::UNTAXED,
        price_changed_at: start,
        upgraded_at: None,
        pending_plan_version: None,
        unpaid_since: None,
        trial_notice_at: None,
        due_at: None,
    };
    subscription.set_price(price, start)?;
    subscription.restart_period(start)?;
    Ok(subscription)
}

/// Returns the duration of a number of days.
pub(super) fn days_long(days: u32) -> Duration {
    Duration::from_secs(u64::from(days) * 24 * 60 * 60)
}

/// Makes a subscription a trial from an instant on. Its period is the trial.
pub(super) fn begin_trial(subscription: &mut Subscription, days: u32, now: Timestamp) {
    let start = Timestamp::from_seconds(now.seconds());
    let end = start.plus(days_long(days));
    subscription.status = SubscriptionStatus::Trialing;
    subscription.trial_start = Some(start);
    subscription.trial_ends_at = Some(end);
    subscription.current_period_start = start;
    subscription.current_period_end = end;
    subscription.anchor = end;
}

/// Stores a subscription with the invoice of its first period. It is active if nothing is due.
#[expect(clippy::too_many_arguments, reason = "the parts of one step")]
async fn invoice_first(
    cx: &Context,
    scope: &impl Covers<Unowned>,
    uow: &mut dyn UnitOfWork,
    billing: &Billing,
    book: &mut CustomerBook,
    mut subscription: Subscription,
    terms: &PlanTerms,
    collection: Collection,
) -> Result<PendingCharge> {
    let period = subscription.period()?;
    let new = NewInvoice {
        subscription: Some(&subscription),
        reason: BillingReason::SubscriptionCreate,
        period,
        lines: vec![period_line(cx, &subscription, terms)],
        collection,
    };
    let invoice = invoice_state::finalize(cx, scope, uow, billing, book, new).await?;
    subscription.latest_invoice_id = Some(invoice.id.clone());
    if invoice.amount_due == 0 {
        subscription.status = SubscriptionEvent::Pay.next(subscription.status)?;
        subscription.set_billed(subscription.amount, &invoice);
    }
    let stored = subscription_state::insert(cx, scope, uow, book, subscription).await?;
    Ok(PendingCharge {
        subscription_id: stored.id.clone(),
        invoice_id: (invoice.amount_due > 0).then(|| invoice.id.clone()),
        payment_method_id: None,
    })
}

/// Attaches the payment method of the request and charges the first invoice. A declined card leaves the subscription
/// `incomplete`. If the card cannot be charged at all, the subscription is not kept. Returns the subscription.
///
/// # Errors
/// `NOT_FOUND` if there is no such payment method, `CONFLICT` if it belongs to another customer;
/// `PAYMENT_PROVIDER_UNAVAILABLE` and `PAYMENT_OUTCOME_UNKNOWN` if the provider fails.
pub async fn finish_creation(
    cx: &Context,
    store: &dyn Store,
    billing: &Billing,
    pending: &PendingCharge,
) -> Result<Stored<Subscription>> {
    let charged = match charge_pending(cx, store, billing, pending).await {
        Ok(Some(Charge::NotMade)) => Err(nothing_happened()),
        charged => charged,
    };
    match charged {
        Ok(_) => {}
        // The card was refused when it was attached.
        Err(error) if error.code() == Code::PaymentRequired => {}
        Err(error) if error.is_outcome_unknown() => return Err(error),
        Err(error) => {
            let id = &pending.subscription_id;
            let undone = transact(store, |uow, _| {
                Box::pin(async move { payment::undo_creation(cx, uow, billing, id).await })
            });
            undone.await.map_err(not_undone)?;
            return Err(match &pending.invoice_id {
                Some(invoice) => charge::error_after_undo(store, invoice, error).await,
                None => error,
            });
        }
    }
    load_created(store, &pending.subscription_id).await
}

/// Returns a subscription that was created.
///
/// # Errors
/// `PAYMENT_PROVIDER_UNAVAILABLE` if an earlier run has undone the creation, and its process ended before it could report that.
async fn load_created(store: &dyn Store, id: &SubscriptionId) -> Result<Stored<Subscription>> {
    match load(store, id).await {
        Err(Error::NotFound(_)) => Err(nothing_happened()),
        created => created,
    }
}

/// Subscribes a user to a price, in the first unit of work. Continue with [`finish_user_creation`].
///
/// # Errors
/// `NOT_FOUND` if the user or the price is missing.
pub async fn create_for_user(
    cx: &Context,
    scope: &OperatorScope,
    uow: &mut dyn UnitOfWork,
    billing: &Billing,
    command: SubscribeUser,
) -> Result<PendingCharge> {
    let (terms, interval) = plan::find_price(billing, &command.price_id)?;
    let now = billing.now(uow).await?;
    let payer = customer::ensure_of_user(cx, scope, uow, billing, &command.user_id).await?;
    let mut book = CustomerBook::open(uow, &payer, now).await?;
    card_notice::plan_again(uow, &mut book).await?;
    let price = Price {
        terms: &terms,
        interval,
        quantity: command.quantity,
    };
    let subscription = new_subscription(cx, &book.customer, &price, book.now)?;
    let at = subscription.current_period_start;
    let created = invoice_first(
        cx,
        scope,
        uow,
        billing,
        &mut book,
        subscription,
        &terms,
        Collection::RequestedOrNothing,
    )
    .await?;
    if let Some(invoice) = &created.invoice_id {
        let subscription = subscription_state::find(uow, &created.subscription_id).await?;
        let subscription = subscription.ok_or(Error::NotFound(Subscription::KIND))?;
        let price = PaidPrice {
            terms: &terms,
            interval,
            quantity: command.quantity,
            billed: Money::new(subscription.amount.into(), subscription.currency)?,
            at,
            restarts_period: false,
        };
        let kind = OperationKind::CreateOrNothing;
        operation::begin(cx, uow, &subscription, kind, invoice, &price, now).await?;
    }
    book.store(uow).await?;
    Ok(PendingCharge {
        payment_method_id: Some(command.payment_method_id),
        ..created
    })
}

/// Charges the first invoice of a user's subscription. If that fails, nothing is kept.
///
/// # Errors
/// - `PAYMENT_REQUIRED` if the charge failed.
/// - `NOT_FOUND` if there is no such payment method.
/// - `PAYMENT_PROVIDER_UNAVAILABLE` and `PAYMENT_OUTCOME_UNKNOWN` if the provider fails.
pub async fn finish_user_creation(
    cx: &Context,
    store: &dyn Store,
    billing: &Billing,
    pending: &PendingCharge,
) -> Result<Stored<Subscription>> {
    let charged = charge_or_undo(cx, store, billing, pending).await?;
    if let (Some(charge), Some(invoice)) = (charged, &pending.invoice_id)
        && let Some(refusal) = charge.refusal(invoice)
    {
        return Err(refusal);
    }
    load_created(store, &pending.subscription_id).await
}

/// Charges the invoice of a change. If it cannot be charged at all, the change is undone by cancelling the invoice.
pub(super) async fn charge_or_undo(
    cx: &Context,
    store: &dyn Store,
    billing: &Billing,
    pending: &PendingCharge,
) -> Result<Option<Charge>> {
    let charged = charge_pending(cx, store, billing, pending).await;
    match (charged, &pending.invoice_id) {
        (Err(error), Some(invoice)) if !error.is_outcome_unknown() => {
            let undone = charge::discard(cx, store, billing, invoice).await;
            undone.map_err(not_undone)?;
            Err(charge::error_after_undo(store, invoice, error).await)
        }
        (charged, _) => charged,
    }
}

/// Attaches the payment method of a request, if it names one, and charges the open invoice, if there is one. Returns
/// the outcome of the charge.
pub(super) async fn charge_pending(
    cx: &Context,
    store: &dyn Store,
    billing: &Billing,
    pending: &PendingCharge,
) -> Result<Option<Charge>> {
    let subscription = load(store, &pending.subscription_id).await;
    // After a crash, the first run may have ended without keeping the subscription.
    let subscription = match (subscription, &pending.invoice_id) {
        (Ok(subscription), _) => subscription,
        (Err(Error::NotFound(_)), Some(invoice)) => return charge::last(store, invoice).await,
        (Err(error), _) => return Err(error),
    };
    let mut method = subscription.default_payment_method_id.clone();
    if let Some(id) = &pending.payment_method_id {
        let record = pending.invoice_id.as_ref().map(InvoiceId::as_str);
        let key = OpKey::new(record.unwrap_or(pending.subscription_id.as_str()), "attach");
        let customer = &subscription.customer_id;
        let attached = payment_method::attach_only(cx, store, billing, customer, id, &key).await?;
        method = Some(attached);
    }
    let Some(invoice) = &pending.invoice_id else {
        return Ok(None);
    };
    if method.is_none() {
        method = payment_method::default_id(store, &subscription.customer_id).await?;
    }
    let Some(method) = method else {
        return Ok(None);
    };
    charge::charge(cx, store, billing, invoice, &method)
        .await
        .map(Some)
}

/// Returns the subscription of a platform: the one that has not ended, else the one that was created last.
///
/// # Errors
/// `NOT_FOUND` if the platform never had one.
pub async fn of_platform(
    scope: &BillingScope<permission::BillingRead>,
    uow: &mut dyn UnitOfWork,
) -> Result<Stored<Subscription>> {
    live_or_last(uow, scope.platform_id()).await
}

/// Returns the subscription of a platform that has not ended, or else the one that was created last.
pub(super) async fn live_or_last(
    uow: &mut dyn UnitOfWork,
    platform: &PlatformId,
) -> Result<Stored<Subscription>> {
    if let Some(live) = live_of(uow, platform).await? {
        return Ok(live);
    }
    let of_platform = SubscriptionQuery::OfPlatform(platform.clone());
    let last = unowned_records::<Subscription>(uow)
        .first(&of_platform)
        .await?;
    last.ok_or(Error::NotFound(Subscription::KIND))
}

/// Returns the subscription of a platform that has not ended. Returns `None` if there is none.
pub(super) async fn live_of(
    uow: &mut dyn UnitOfWork,
    platform: &PlatformId,
) -> Result<Option<Stored<Subscription>>> {
    let live = SubscriptionQuery::LiveOfPlatform(platform.clone());
    unowned_records::<Subscription>(uow).first(&live).await
}

/// Returns the subscriptions of a customer, newest first, also those that have ended.
///
/// # Errors
/// Only those of the store.
pub async fn list(
    scope: &CustomerScope<permission::BillingRead>,
    uow: &mut dyn UnitOfWork,
) -> Result<Vec<Stored<Subscription>>> {
    all_unowned(uow, SubscriptionQuery::Of(scope.id.clone())).await
}

/// Returns a subscription in a unit of its own.
pub(super) async fn load(store: &dyn Store, id: &SubscriptionId) -> Result<Stored<Subscription>> {
    let mut uow = store.begin(crate::port::Mode::Read).await?;
    let found = subscription_state::find(uow.as_mut(), id).await;
    uow.rollback().await;
    found?.ok_or(Error::NotFound(Subscription::KIND))
}
