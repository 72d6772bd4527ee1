//! The invoice for a period of a subscription, and the payment method that it is charged to.

use super::Billing;
use super::book::CustomerBook;
use super::invoice_state::{self, Collection, NewInvoice};
use super::plan;
use crate::access::SystemScope;
use crate::billing::{
    BillingReason, Invoice, InvoiceLine, LineTax, LineType, PlanTerms, Subscription,
};
use crate::kernel::{Context, InvoiceLineId, Result, Stored};
use crate::port::UnitOfWork;

/// Returns the line for the current period of a subscription.
pub(super) fn period_line(
    cx: &Context,
    subscription: &Subscription,
    terms: &PlanTerms,
) -> InvoiceLine {
    let unit = terms.amount(subscription.interval).minor();
    InvoiceLine {
        id: InvoiceLineId::generate(subscription.current_period_start, cx.entropy.as_ref()),
        kind: LineType::Subscription,
        description: format!("{} plan, per {}", terms.name, subscription.interval),
        amount: subscription.amount,
        currency: subscription.currency,
        quantity: u64::from(subscription.quantity),
        unit_amount_decimal: unit.to_string(),
        tier: Some(subscription.tier),
        metric: None,
        stack_id: None,
        period_start: subscription.current_period_start,
        period_end: subscription.current_period_end,
        proration: None,
        tax: LineTax::default(),
    }
}

/// Returns the payment method that a subscription is charged to, if there is one.
pub(super) fn method_of(subscription: &Subscription, book: &CustomerBook) -> Option<String> {
    let own = subscription.default_payment_method_id.clone();
    own.or_else(|| book.customer.default_payment_method_id.clone())
}

/// Returns the invoice for the current period of a subscription, which is not stored yet.
pub(super) async fn period_invoice<'s>(
    cx: &Context,
    uow: &mut dyn UnitOfWork,
    billing: &Billing,
    subscription: &'s Subscription,
) -> Result<NewInvoice<'s>> {
    let (tier, version) = (subscription.tier, subscription.plan_version);
    let terms = plan::version(uow, billing, tier, version).await?;
    Ok(NewInvoice {
        subscription: Some(subscription),
        reason: BillingReason::SubscriptionCycle,
        period: subscription.period()?,
        lines: vec![period_line(cx, subscription, &terms)],
        collection: Collection::Scheduled,
    })
}

/// Invoices the current period of a changed subscription, which is not stored yet. The invoice is charged by the clock.
pub(super) async fn invoice_period(
    cx: &Context,
    uow: &mut dyn UnitOfWork,
    billing: &Billing,
    book: &mut CustomerBook,
    mut next: Subscription,
) -> Result<(Subscription, Stored<Invoice>)> {
    let new = period_invoice(cx, uow, billing, &next).await?;
    let scope = &SystemScope::new();
    let invoice = invoice_state::finalize(cx, scope, uow, billing, book, new).await?;
    next.latest_invoice_id = Some(invoice.id.clone());
    next.set_billed(next.amount, &invoice);
    Ok((next, invoice))
}
