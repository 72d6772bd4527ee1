//! The outcome of a charge: what it means for the attempt, the invoice, the subscription and the customer. All of it is
//! stored in one unit of work.

use super::Billing;
use super::book::CustomerBook;
use super::invoice_state::NextCollection;
use super::news::{self, News};
use super::operation::{self, PaidPrice};
use super::provider::{AUTHENTICATION_REQUIRED, NO_PAYMENT_METHOD, decline_code};
use super::{
    invoice_state, period_invoice, plan, plan_migration, subscription_state, usage_invoice,
};
use crate::access::{SystemScope, unaudited};
use crate::billing::{
    AttemptEvent, AttemptStatus, BillingOperation, BillingReason, Invoice, InvoiceStatus, Money,
    OperationEvent, OperationKind, OperationStatus, PaymentAttempt, Price, Subscription,
    SubscriptionEvent, SubscriptionStatus, collection_ends_at, next_attempt_after,
};
use crate::kernel::{Context, InvoiceId, Machine, Result, Stored, SubscriptionId, Timestamp};
use crate::port::{Decline, UnitOfWork};
use crate::use_case::registry::platform::{restore_after_payment, suspend_for_debt};

/// The outcome of a charge, without secrets.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Outcome {
    Paid,
    Declined(Decline),
    ActionRequired,
    /// The provider was not called, or has certainly not charged the invoice.
    NotExecuted,
}

/// Stores the outcome of an attempt that has none, and returns the stored attempt.
pub(super) async fn record(
    cx: &Context,
    uow: &mut dyn UnitOfWork,
    billing: &Billing,
    attempt: &Stored<PaymentAttempt>,
    outcome: &Outcome,
) -> Result<Stored<PaymentAttempt>> {
    let event = match outcome {
        Outcome::Paid => AttemptEvent::Succeed,
        Outcome::Declined(_) => AttemptEvent::Fail,
        Outcome::ActionRequired => AttemptEvent::RequireAction,
        Outcome::NotExecuted => AttemptEvent::Skip,
    };
    // A charge that the customer has confirmed is dated when that is known.
    let at = match attempt.status {
        AttemptStatus::ActionRequired => billing.now(uow).await?,
        _ => attempt.created_at,
    };
    let book = CustomerBook::open(uow, &attempt.customer_id, at).await?;
    let mut next = attempt.edit();
    next.status = event.next(attempt.status)?;
    next.updated_at = uow.now().await?;
    if let Outcome::Declined(decline) = outcome {
        next.decline_code = Some(decline_code(decline));
        next.is_hard = decline.is_hard;
    }
    let stored = unaudited::replace(uow, attempt, next).await?;
    let invoice = invoice_state::load(uow, &attempt.invoice_id).await?;
    let mut payment = Payment::open(cx, uow, billing, invoice, book).await?;
    match outcome {
        Outcome::Paid => payment.succeed(uow).await?,
        Outcome::Declined(decline) => payment.fail(uow, decline).await?,
        Outcome::ActionRequired => payment.require_action(uow).await?,
        Outcome::NotExecuted => payment.skip(uow).await?,
    }
    payment.book.store(uow).await?;
    Ok(stored)
}

/// Records that a due invoice cannot be charged, because the customer has no payment method. It counts as an attempt.
pub(super) async fn fail_without_method(
    cx: &Context,
    uow: &mut dyn UnitOfWork,
    billing: &Billing,
    invoice: Stored<Invoice>,
    book: CustomerBook,
) -> Result<()> {
    let decline = Decline {
        error_code: NO_PAYMENT_METHOD.to_owned(),
        decline_code: None,
        is_hard: false,
    };
    let mut payment = Payment::open(cx, uow, billing, invoice, book).await?;
    payment.fail(uow, &decline).await?;
    payment.book.store(uow).await?;
    Ok(())
}

/// Ends the collection of an invoice whose card was refused for good and not replaced in time.
pub(super) async fn stop_collection(
    cx: &Context,
    uow: &mut dyn UnitOfWork,
    billing: &Billing,
    invoice: &Stored<Invoice>,
    book: CustomerBook,
) -> Result<()> {
    let invoice = invoice_state::stop_collection(uow, invoice).await?;
    let mut payment = Payment::open(cx, uow, billing, invoice, book).await?;
    payment.give_up(uow).await?;
    payment.book.store(uow).await?;
    Ok(())
}

/// Undoes the open operation of an invoice that was never charged.
pub(super) async fn discard(
    cx: &Context,
    uow: &mut dyn UnitOfWork,
    billing: &Billing,
    invoice: &InvoiceId,
    book: CustomerBook,
) -> Result<()> {
    let invoice = invoice_state::load(uow, invoice).await?;
    if invoice_state::has_open_attempt(uow, &invoice.id).await? {
        return Ok(());
    }
    let mut payment = Payment::open(cx, uow, billing, invoice, book).await?;
    payment.skip(uow).await?;
    payment.book.store(uow).await?;
    Ok(())
}

/// Removes a subscription whose first charge could not be sent, as if it had not been requested. Does nothing if a
/// charge has been sent.
pub(super) async fn undo_creation(
    cx: &Context,
    uow: &mut dyn UnitOfWork,
    billing: &Billing,
    subscription: &SubscriptionId,
) -> Result<()> {
    let seen = subscription_state::find(uow, subscription).await?;
    let is_new = |seen: &Stored<Subscription>| {
        matches!(
            seen.status,
            SubscriptionStatus::Incomplete | SubscriptionStatus::Trialing
        )
    };
    let Some(seen) = seen.filter(is_new) else {
        return Ok(());
    };
    let scope = &SystemScope::new();
    let now = billing.now(uow).await?;
    let mut book = CustomerBook::open(uow, &seen.customer_id, now).await?;
    for invoice in subscription_state::open_invoices_of(uow, &seen.id).await? {
        if invoice_state::has_open_attempt(uow, &invoice.id).await? {
            return Ok(());
        }
        invoice_state::void(cx, scope, uow, &mut book, &invoice).await?;
    }
    subscription_state::discard(cx, scope, uow, &book, &seen).await?;
    book.store(uow).await?;
    Ok(())
}

/// Gives a subscription a price that was paid for, or for which nothing was due.
pub(super) fn set_paid_price(
    subscription: &mut Subscription,
    price: &PaidPrice<'_>,
    invoice: &Invoice,
    now: Timestamp,
) -> Result<()> {
    let terms = Price {
        terms: price.terms,
        interval: price.interval,
        quantity: price.quantity,
    };
    subscription.set_price(&terms, price.at)?;
    subscription.keep();
    subscription.set_billed(price.billed.minor(), invoice);
    subscription.upgraded_at = Some(now);
    if price.restarts_period {
        subscription.restart_period(price.at)?;
    }
    Ok(())
}

/// The records that the outcome of an attempt changes.
struct Payment<'a> {
    cx: &'a Context,
    scope: SystemScope,
    billing: &'a Billing,
    book: CustomerBook,
    invoice: Stored<Invoice>,
    subscription: Option<Stored<Subscription>>,
    operation: Option<Stored<BillingOperation>>,
}

impl<'a> Payment<'a> {
    async fn open(
        cx: &'a Context,
        uow: &mut dyn UnitOfWork,
        billing: &'a Billing,
        invoice: Stored<Invoice>,
        book: CustomerBook,
    ) -> Result<Self> {
        let subscription = match &invoice.subscription_id {
            Some(id) => subscription_state::find(uow, id).await?,
            None => None,
        };
        let operation = operation::of_invoice(uow, &invoice.id).await?;
        let is_open = |operation: &Stored<BillingOperation>| {
            matches!(
                operation.status,
                OperationStatus::Running | OperationStatus::Waiting
            )
        };
        Ok(Self {
            cx,
            scope: SystemScope::new(),
            billing,
            book,
            invoice,
            subscription,
            operation: operation.filter(is_open),
        })
    }

    /// The invoice was charged.
    async fn succeed(&mut self, uow: &mut dyn UnitOfWork) -> Result<()> {
        let (cx, scope) = (self.cx, &self.scope);
        if matches!(
            self.invoice.status,
            InvoiceStatus::Open | InvoiceStatus::Uncollectible
        ) {
            self.invoice =
                invoice_state::pay(cx, scope, uow, &mut self.book, &self.invoice).await?;
            self.tell(uow, News::Paid(&self.invoice)).await?;
        }
        if let Some(operation) = self.operation.clone() {
            operation::apply(uow, &operation, OperationEvent::Finish).await?;
            self.finish(uow, &operation).await?;
        } else {
            self.settle_subscription(uow).await?;
        }
        self.lift_suspension(uow).await?;
        self.update_delinquency(uow).await
    }

    /// Makes the change that the operation has waited for.
    async fn finish(
        &mut self,
        uow: &mut dyn UnitOfWork,
        operation: &BillingOperation,
    ) -> Result<()> {
        let Some(seen) = self.subscription.clone() else {
            return Ok(());
        };
        match operation.kind {
            OperationKind::CreateOrNothing => return self.activate(uow, &seen).await,
            OperationKind::Resume => return self.resume(uow, &seen, operation).await,
            OperationKind::Change => {}
        }
        let (tier, version) = (operation.tier, operation.plan_version);
        let terms = plan::version(uow, self.billing, tier, version).await?;
        let price = PaidPrice {
            terms: &terms,
            interval: operation.interval,
            quantity: operation.quantity,
            billed: Money::new(operation.billed_amount.into(), seen.currency)?,
            at: operation.at,
            restarts_period: operation.restarts_period,
        };
        let mut next = seen.edit();
        set_paid_price(&mut next, &price, &self.invoice, self.book.now)?;
        let (cx, scope) = (self.cx, &self.scope);
        subscription_state::replace(
            &cx.without_conditions(),
            scope,
            uow,
            &self.book,
            &seen,
            next,
            "subscription.upgraded",
        )
        .await?;
        Ok(())
    }

    /// Invoices the usage that was closed while the subscription was not paid.
    async fn invoice_usage(&mut self, uow: &mut dyn UnitOfWork) -> Result<()> {
        match self.subscription.clone() {
            Some(paid) => {
                let book = &mut self.book;
                usage_invoice::invoice(self.cx, uow, self.billing, book, &paid).await
            }
            None => Ok(()),
        }
    }

    /// Begins the period of a paused subscription that was paid for.
    async fn resume(
        &mut self,
        uow: &mut dyn UnitOfWork,
        seen: &Stored<Subscription>,
        operation: &BillingOperation,
    ) -> Result<()> {
        let mut next = seen.edit();
        next.restart_period(operation.at)?;
        next.set_billed(operation.billed_amount, &self.invoice);
        self.apply(uow, seen, next, SubscriptionEvent::Pay).await?;
        self.invoice_usage(uow).await
    }

    /// Makes a subscription active whose first invoice was paid.
    async fn activate(
        &mut self,
        uow: &mut dyn UnitOfWork,
        seen: &Stored<Subscription>,
    ) -> Result<()> {
        let mut next = seen.edit();
        if seen.status == SubscriptionStatus::Incomplete {
            next.set_billed(next.amount, &self.invoice);
        }
        next.unpaid_since = None;
        self.apply(uow, seen, next, SubscriptionEvent::Pay).await
    }

    /// Begins a new period of a subscription that was unpaid when its period ended. Its invoice is charged by the clock.
    async fn begin_period_if_over(&mut self, uow: &mut dyn UnitOfWork) -> Result<()> {
        let Some(seen) = self.subscription.clone() else {
            return Ok(());
        };
        if seen.current_period_end > self.book.now {
            return Ok(());
        }
        let mut next = seen.edit();
        plan_migration::apply_due(uow, self.billing, &mut next, self.book.now).await?;
        next.restart_period(self.book.now)?;
        let cx = &self.cx.without_conditions();
        let invoiced = period_invoice::invoice_period(cx, uow, self.billing, &mut self.book, next);
        let (next, _) = invoiced.await?;
        let action = "subscription.renewed";
        let (scope, book) = (&self.scope, &self.book);
        let stored = subscription_state::replace(cx, scope, uow, book, &seen, next, action);
        self.subscription = Some(stored.await?);
        Ok(())
    }

    /// Makes a subscription active again when nothing is open any more.
    async fn settle_subscription(&mut self, uow: &mut dyn UnitOfWork) -> Result<()> {
        let Some(seen) = self.subscription.clone() else {
            return Ok(());
        };
        match seen.status {
            SubscriptionStatus::Incomplete => self.activate(uow, &seen).await,
            SubscriptionStatus::Trialing
                if self.invoice.billing_reason == BillingReason::SubscriptionCycle =>
            {
                self.activate(uow, &seen).await
            }
            SubscriptionStatus::PastDue | SubscriptionStatus::Unpaid => {
                let open = subscription_state::open_invoices_of(uow, &seen.id).await?;
                if open.iter().any(|invoice| invoice.id != self.invoice.id) {
                    return Ok(());
                }
                self.activate(uow, &seen).await?;
                self.begin_period_if_over(uow).await?;
                self.invoice_usage(uow).await
            }
            _ => Ok(()),
        }
    }

    /// Lifts the suspension of a platform whose customer owes nothing any more.
    async fn lift_suspension(&mut self, uow: &mut dyn UnitOfWork) -> Result<()> {
        // An invoice that was paid at the first attempt was no debt.
        let was_late = self.invoice.attempt_count > 1;
        let Some(platform) = self.invoice.platform_id.clone().filter(|_| was_late) else {
            return Ok(());
        };
        let customer = &self.book.customer.id;
        let owed = subscription_state::owed_invoices(uow, customer).await?;
        let is_other = |invoice: &&Stored<Invoice>| invoice.id != self.invoice.id;
        // The first attempt at an invoice that was made just now is no debt yet.
        let is_late = |invoice: &Stored<Invoice>| invoice.attempt_count > 0;
        if owed.iter().filter(is_other).any(is_late) {
            return Ok(());
        }
        restore_after_payment(self.cx, uow, &platform).await
    }

    async fn apply(
        &mut self,
        uow: &mut dyn UnitOfWork,
        seen: &Stored<Subscription>,
        next: Subscription,
        event: SubscriptionEvent,
    ) -> Result<()> {
        let (cx, book) = (&self.cx.without_conditions(), &self.book);
        let stored = subscription_state::apply(cx, &self.scope, uow, book, seen, next, event);
        self.subscription = Some(stored.await?);
        Ok(())
    }

    /// The charge was declined.
    async fn fail(&mut self, uow: &mut dyn UnitOfWork, decline: &Decline) -> Result<()> {
        if self.invoice.status != InvoiceStatus::Open {
            return Ok(());
        }
        let then = self.next_collection(decline.is_hard);
        let (cx, scope) = (self.cx, &self.scope);
        self.invoice = invoice_state::record_failure(cx, scope, uow, &self.invoice, &then).await?;
        if let Some(operation) = self.operation.clone() {
            operation::apply(uow, &operation, OperationEvent::Fail).await?;
            return self.undo(uow, &operation).await;
        }
        if self.invoice.billing_reason == BillingReason::SubscriptionCreate {
            return Ok(());
        }
        self.book.customer.delinquent = true;
        self.fall_behind(uow).await?;
        if then.due_at.is_none() {
            return self.give_up(uow).await;
        }
        let news = match decline.error_code == AUTHENTICATION_REQUIRED {
            true => News::MustConfirm(&self.invoice),
            false => News::Declined(&self.invoice),
        };
        self.tell(uow, news).await
    }

    async fn tell(&self, uow: &mut dyn UnitOfWork, news: News<'_>) -> Result<()> {
        news::tell(self.cx, uow, self.billing, &self.book.customer, news).await
    }

    /// Returns the next action of the clock on an invoice whose charge has failed. Collection that has ended does not
    /// begin again. After a hard decline only another card is charged, but the customer has the same time for it.
    fn next_collection(&self, is_hard: bool) -> NextCollection {
        let nothing = NextCollection {
            attempt_at: None,
            due_at: None,
        };
        let is_scheduled = self.operation.is_none()
            && self.invoice.billing_reason != BillingReason::SubscriptionCreate;
        if !is_scheduled {
            return nothing;
        }
        let finalized_at = self.invoice.finalized_at.unwrap_or(self.invoice.created_at);
        let next = next_attempt_after(finalized_at, self.book.now);
        let end = collection_ends_at(finalized_at);
        match (next, is_hard) {
            (None, _) => nothing,
            (Some(_), true) => NextCollection {
                attempt_at: None,
                due_at: Some(end),
            },
            (Some(next), false) => NextCollection {
                attempt_at: Some(next),
                due_at: Some(next),
            },
        }
    }

    /// Makes an active subscription past due.
    async fn fall_behind(&mut self, uow: &mut dyn UnitOfWork) -> Result<()> {
        let Some(seen) = self.subscription.clone() else {
            return Ok(());
        };
        if !matches!(
            seen.status,
            SubscriptionStatus::Trialing | SubscriptionStatus::Active
        ) {
            return Ok(());
        }
        self.apply(uow, &seen, seen.edit(), SubscriptionEvent::Fail)
            .await
    }

    /// Makes a subscription unpaid whose collection has ended, and suspends its platform.
    async fn give_up(&mut self, uow: &mut dyn UnitOfWork) -> Result<()> {
        let past_due = |seen: &&Stored<Subscription>| seen.status == SubscriptionStatus::PastDue;
        let Some(seen) = self.subscription.as_ref().filter(past_due).cloned() else {
            return Ok(());
        };
        let mut next = seen.edit();
        next.unpaid_since = Some(self.book.now);
        self.apply(uow, &seen, next, SubscriptionEvent::GiveUp)
            .await?;
        self.tell(uow, News::GivenUp(&self.invoice)).await?;
        match &seen.platform_id {
            Some(platform) => suspend_for_debt(self.cx, uow, platform).await,
            None => Ok(()),
        }
    }

    /// Cancels the invoice of a failed operation. A subscription that exists only for it is removed.
    async fn undo(&mut self, uow: &mut dyn UnitOfWork, operation: &BillingOperation) -> Result<()> {
        let (cx, scope) = (self.cx, &self.scope);
        self.invoice = invoice_state::void(cx, scope, uow, &mut self.book, &self.invoice).await?;
        if operation.kind == OperationKind::CreateOrNothing
            && let Some(seen) = &self.subscription
        {
            subscription_state::discard(cx, scope, uow, &self.book, seen).await?;
        }
        Ok(())
    }

    /// The customer must confirm the charge. The next attempt by the clock is planned as after a decline.
    async fn require_action(&mut self, uow: &mut dyn UnitOfWork) -> Result<()> {
        let decline = Decline {
            error_code: AUTHENTICATION_REQUIRED.to_owned(),
            decline_code: None,
            is_hard: false,
        };
        let Some(operation) = self.operation.clone() else {
            return self.fail(uow, &decline).await;
        };
        if operation.kind == OperationKind::CreateOrNothing {
            return self.fail(uow, &decline).await;
        }
        if operation.status == OperationStatus::Running {
            operation::apply(uow, &operation, OperationEvent::Wait).await?;
        }
        let (cx, scope) = (self.cx, &self.scope);
        let then = self.next_collection(false);
        self.invoice = invoice_state::record_failure(cx, scope, uow, &self.invoice, &then).await?;
        Ok(())
    }

    /// Nothing has happened at the provider: an operation is undone, and everything else stays as it is.
    async fn skip(&mut self, uow: &mut dyn UnitOfWork) -> Result<()> {
        let Some(operation) = self.operation.clone() else {
            return Ok(());
        };
        operation::apply(uow, &operation, OperationEvent::Fail).await?;
        self.undo(uow, &operation).await
    }

    /// Finds out whether an invoice of the customer could not be collected and is still open.
    async fn update_delinquency(&mut self, uow: &mut dyn UnitOfWork) -> Result<()> {
        if !self.book.customer.delinquent {
            return Ok(());
        }
        let open = subscription_state::open_invoices(uow, &self.book.customer.id).await?;
        let mut others = open.iter().filter(|invoice| invoice.id != self.invoice.id);
        self.book.customer.delinquent = others.any(|invoice| invoice.attempt_count > 0);
        Ok(())
    }
}
