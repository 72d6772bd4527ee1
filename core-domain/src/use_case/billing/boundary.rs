//! Changes of subscriptions by time: a period or a trial ends, a first invoice was not paid in time, or an unpaid
//! subscription ends. Each change is dated at the instant at which it was due, however late it is made.

use super::book::CustomerBook;
use super::news::{self, News};
use super::period_invoice::{invoice_period, method_of, period_invoice};
use super::{
    Billing, cancellation, invoice_state, operation, payment, plan, plan_migration,
    subscription_state,
};
use crate::access::SystemScope;
use crate::billing::{
    Interval, InvoiceStatus, Price, Subscription, SubscriptionEvent, SubscriptionStatus,
};
use crate::kernel::{Context, Result, Stored, SubscriptionId, Timestamp};
use crate::port::UnitOfWork;

/// Makes the change of a subscription that is due at the instant of the book. Does nothing if it has been made.
///
/// # Errors
/// `OPERATION_IN_PROGRESS` if the outcome of a charge is open.
pub(super) async fn pass(
    cx: &Context,
    uow: &mut dyn UnitOfWork,
    billing: &Billing,
    id: &SubscriptionId,
    mut book: CustomerBook,
) -> Result<()> {
    let at = book.now;
    let is_due = |seen: &Stored<Subscription>| seen.due_at == Some(at);
    let Some(mut seen) = subscription_state::find(uow, id).await?.filter(is_due) else {
        return Ok(());
    };
    // A change that was not paid by the end of the period is not made.
    if let Some(open) = operation::open_of(uow, id).await? {
        let customer = book.customer.id.clone();
        payment::discard(cx, uow, billing, &open.invoice_id, book).await?;
        book = CustomerBook::open(uow, &customer, at).await?;
        match subscription_state::find(uow, id).await?.filter(is_due) {
            Some(changed) => seen = changed,
            None => return Ok(()),
        }
    }
    let boundary = Boundary {
        cx,
        billing,
        scope: SystemScope::new(),
        seen,
    };
    boundary.pass(uow, book).await
}

/// A subscription at the instant at which time changes it.
struct Boundary<'a> {
    cx: &'a Context,
    billing: &'a Billing,
    scope: SystemScope,
    seen: Stored<Subscription>,
}

impl Boundary<'_> {
    async fn pass(&self, uow: &mut dyn UnitOfWork, book: CustomerBook) -> Result<()> {
        let seen = &self.seen;
        match seen.status {
            SubscriptionStatus::Incomplete => self.expire(uow, book).await,
            SubscriptionStatus::Unpaid => self.end(uow, book).await,
            _ if seen.trial_notice_at == Some(book.now) => self.tell_trial_ends(uow, book).await,
            _ if seen.cancel_at_period_end => self.end(uow, book).await,
            SubscriptionStatus::Trialing if seen.is_in_trial() => self.end_trial(uow, book).await,
            _ => self.renew(uow, book).await,
        }
    }

    async fn end(&self, uow: &mut dyn UnitOfWork, book: CustomerBook) -> Result<()> {
        let (cx, scope, billing) = (self.cx, &self.scope, self.billing);
        cancellation::end(cx, scope, uow, billing, book, &self.seen, None).await?;
        Ok(())
    }

    /// Ends a subscription whose first invoice was not paid in time.
    async fn expire(&self, uow: &mut dyn UnitOfWork, mut book: CustomerBook) -> Result<()> {
        for invoice in subscription_state::open_invoices_of(uow, &self.seen.id).await? {
            invoice_state::void(self.cx, &self.scope, uow, &mut book, &invoice).await?;
        }
        let mut next = self.seen.edit();
        next.end(None, book.now);
        self.apply(uow, &book, next, SubscriptionEvent::Expire)
            .await?;
        book.store(uow).await?;
        Ok(())
    }

    /// Tells the customer that the trial ends soon.
    async fn tell_trial_ends(&self, uow: &mut dyn UnitOfWork, book: CustomerBook) -> Result<()> {
        let mut next = self.seen.edit();
        next.plan_trial_notice(book.now);
        let news = News::TrialEnds {
            subscription: &self.seen,
            has_method: method_of(&self.seen, &book).is_some(),
        };
        news::tell(self.cx, uow, self.billing, &book.customer, news).await?;
        self.replace(uow, &book, next, "subscription.trial_will_end")
            .await
    }

    /// Begins the first paid period. Without a payment method, and if something is due, the subscription is paused.
    async fn end_trial(&self, uow: &mut dyn UnitOfWork, mut book: CustomerBook) -> Result<()> {
        let (cx, billing) = (self.cx, self.billing);
        let mut next = self.seen.edit();
        plan_migration::apply_due(uow, billing, &mut next, book.now).await?;
        next.restart_period(book.now)?;
        if method_of(&next, &book).is_none() {
            let new = period_invoice(cx, uow, billing, &next).await?;
            let preview = invoice_state::preview(cx, uow, billing, &book, new).await?;
            if preview.amount_due > 0 {
                let paused = self.seen.edit();
                return self
                    .apply(uow, &book, paused, SubscriptionEvent::Pause)
                    .await;
            }
        }
        let (next, invoice) = invoice_period(cx, uow, billing, &mut book, next).await?;
        if invoice.status == InvoiceStatus::Paid {
            self.apply(uow, &book, next, SubscriptionEvent::Pay).await?;
        } else {
            // The outcome of the charge decides about the status.
            self.replace(uow, &book, next, "subscription.trial_ended")
                .await?;
        }
        book.store(uow).await?;
        Ok(())
    }

    /// Makes a planned change of the price, and begins the next period.
    async fn renew(&self, uow: &mut dyn UnitOfWork, mut book: CustomerBook) -> Result<()> {
        let mut next = self.seen.edit();
        let (cx, billing) = (self.cx, self.billing);
        self.make_planned_change(uow, &mut next).await?;
        let start = next.current_period_end;
        plan_migration::apply_due(uow, billing, &mut next, start).await?;
        next.begin_next_period()?;
        let (next, _) = invoice_period(cx, uow, billing, &mut book, next).await?;
        self.replace(uow, &book, next, "subscription.renewed")
            .await?;
        book.store(uow).await?;
        Ok(())
    }

    async fn make_planned_change(
        &self,
        uow: &mut dyn UnitOfWork,
        next: &mut Subscription,
    ) -> Result<()> {
        let at = next.current_period_end;
        let is_due = |effective_at: Timestamp| effective_at <= at;
        let planned = next.pending_change.clone();
        let Some(planned) = planned.filter(|planned| is_due(planned.effective_at)) else {
            return Ok(());
        };
        let version = next.pending_plan_version.unwrap_or(next.plan_version);
        let terms = plan::version(uow, self.billing, planned.tier, version).await?;
        let mut intervals = Interval::ALL.iter().copied();
        let has_price = |interval: &Interval| terms.price_id(*interval) == planned.price_id;
        let price = Price {
            interval: intervals.find(has_price).unwrap_or(next.interval),
            terms: &terms,
            quantity: planned.quantity,
        };
        next.set_price(&price, at)?;
        next.upgraded_at = None;
        Ok(())
    }

    async fn apply(
        &self,
        uow: &mut dyn UnitOfWork,
        book: &CustomerBook,
        next: Subscription,
        event: SubscriptionEvent,
    ) -> Result<()> {
        let (cx, scope) = (self.cx, &self.scope);
        subscription_state::apply(cx, scope, uow, book, &self.seen, next, event).await?;
        Ok(())
    }

    async fn replace(
        &self,
        uow: &mut dyn UnitOfWork,
        book: &CustomerBook,
        next: Subscription,
        action: &'static str,
    ) -> Result<()> {
        let (cx, scope) = (self.cx, &self.scope);
        subscription_state::replace(cx, scope, uow, book, &self.seen, next, action).await?;
        Ok(())
    }
}
