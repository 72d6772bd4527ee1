//! The life of an invoice: it becomes final, is paid, cancelled or written off. Every step posts to the journal in the
//! same unit of work.

use super::Billing;
use super::book::{CustomerBook, entries_about};
use super::news::{self, News};
use super::{credit, operation};
use crate::access::{AuditEvent, Covers, audited, unaudited, unowned_records};
use crate::billing::{
    Bill, BillingReason, Entry, Invoice, InvoiceEvent, InvoiceLine, InvoiceStatus, Money,
    PaymentAttempt, PaymentAttemptQuery, Period, Subscription,
};
use crate::kernel::{
    Context, InvoiceId, InvoiceLineId, Machine, Result, Stored, Timestamp, Unowned,
};
use crate::port::UnitOfWork;

/// An invoice that does not exist yet.
pub(super) struct NewInvoice<'a> {
    /// The subscription that the invoice is for, if any.
    pub(super) subscription: Option<&'a Subscription>,
    pub(super) reason: BillingReason,
    pub(super) period: Period,
    pub(super) lines: Vec<InvoiceLine>,
    /// How the invoice is collected.
    pub(super) collection: Collection,
}

/// How an invoice is collected.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Collection {
    /// By the clock, the first time at once.
    Scheduled,
    /// By the request that creates it.
    Requested,
    /// By the request that creates it. It gets a number only when it is paid, because otherwise nothing is kept.
    RequestedOrNothing,
}

/// Computes the amounts of an invoice for the customer of `book` without storing anything.
///
/// Returns the invoice with its amounts, and the credits that it uses.
async fn settle(
    cx: &Context,
    uow: &mut dyn UnitOfWork,
    billing: &Billing,
    book: &CustomerBook,
    new: NewInvoice<'_>,
) -> Result<SettledInvoice> {
    let customer = &book.customer;
    let now = book.now;
    let credits = credit::usable(uow, customer, now).await?;
    let left: Vec<Money> = credits
        .iter()
        .map(|credit| credit.remaining())
        .collect::<Result<_, _>>()?;
    let nothing = Money::zero(customer.currency);
    let (id, lines) = match new.collection {
        Collection::Scheduled => {
            let id = scheduled_id(uow, book, &new).await?;
            let lines = with_ids_of(new.lines, &id, now);
            (id, lines)
        }
        Collection::Requested | Collection::RequestedOrNothing => {
            (InvoiceId::generate(now, cx.entropy.as_ref()), new.lines)
        }
    };
    let mut invoice = Invoice {
        id,
        number: None,
        platform_id: customer.platform_id.clone(),
        customer_id: customer.id.clone(),
        subscription_id: new.subscription.map(|subscription| subscription.id.clone()),
        status: InvoiceStatus::Draft,
        billing_reason: new.reason,
        currency: customer.currency,
        period_start: new.period.start(),
        period_end: new.period.end(),
        subtotal: 0,
        discount_total: 0,
        tax_total: 0,
        total: 0,
        credits_applied: 0,
        balance_applied: 0,
        amount_due: 0,
        amount_paid: 0,
        amount_remaining: 0,
        attempt_count: 0,
        next_payment_attempt_at: None,
        finalized_at: None,
        paid_at: None,
        voided_at: None,
        marked_uncollectible_at: None,
        issuer: billing.issuer.clone(),
        customer: customer.party(),
        provider: customer.provider,
        provider_id: None,
        created_at: now,
        updated_at: now,
        lines,
        applied_credits: Vec::new(),
        due_at: None,
        closing_since: None,
        contradiction: None,
    };
    let rate = billing.taxes.rate(&invoice.customer);
    let tax = invoice.tax_lines(rate)?;
    let amounts = invoice.line_amounts()?;
    let bill = Bill {
        lines: &amounts,
        discount: nothing,
        tax,
        credits: &left,
        balance: customer.balance()?,
        minimum: billing.minimum_charge(customer.currency),
    };
    let settlement = bill.settle()?;
    invoice.set_amounts(&settlement, tax);
    Ok(SettledInvoice {
        invoice,
        credits,
        used: settlement.credits,
    })
}

/// Returns the id of a new invoice that the clock creates.
///
/// The invoice has the same id if it is created again, from a database that was restored from a backup: the provider may have
/// charged it already, and is asked for this id. So the id follows from what the invoice is for.
async fn scheduled_id(
    uow: &mut dyn UnitOfWork,
    book: &CustomerBook,
    new: &NewInvoice<'_>,
) -> Result<InvoiceId> {
    let customer = book.customer.id.as_str();
    let subscription = new.subscription.map_or("", |own| own.id.as_str());
    let mut number = 0_u32;
    loop {
        let texts = [
            customer,
            subscription,
            new.reason.as_str(),
            &number.to_string(),
        ];
        let id = InvoiceId::of(book.now, &texts);
        // Several can be created for the same reason at one instant.
        if unowned_records::<Invoice>(uow).find(&id).await?.is_none() {
            return Ok(id);
        }
        number += 1;
    }
}

/// Gives lines ids that follow from that of their invoice, so that a restored database can repeat a call of the provider.
fn with_ids_of(
    mut lines: Vec<InvoiceLine>,
    invoice: &InvoiceId,
    now: Timestamp,
) -> Vec<InvoiceLine> {
    for (line, number) in lines.iter_mut().zip(0_u32..) {
        line.id = InvoiceLineId::of(now, &[invoice.as_str(), &number.to_string()]);
    }
    lines
}

/// An invoice with its amounts, before it is stored.
struct SettledInvoice {
    invoice: Invoice,
    credits: Vec<Stored<crate::billing::CreditGrant>>,
    used: Vec<Money>,
}

/// Returns the amounts that an invoice would have now, without storing anything.
pub(super) async fn preview(
    cx: &Context,
    uow: &mut dyn UnitOfWork,
    billing: &Billing,
    book: &CustomerBook,
    new: NewInvoice<'_>,
) -> Result<Invoice> {
    Ok(settle(cx, uow, billing, book, new).await?.invoice)
}

/// Creates an invoice and makes it final: credits and balance are used, and its lines and amounts never change again. It
/// is paid at once if nothing is due, otherwise open.
pub(super) async fn finalize(
    cx: &Context,
    scope: &impl Covers<Unowned>,
    uow: &mut dyn UnitOfWork,
    billing: &Billing,
    book: &mut CustomerBook,
    new: NewInvoice<'_>,
) -> Result<Stored<Invoice>> {
    let collection = new.collection;
    let settled = settle(cx, uow, billing, book, new).await?;
    let mut invoice = settled.invoice;
    let now = invoice.created_at;
    invoice.applied_credits = credit::apply(uow, &settled.credits, &settled.used).await?;
    post_finalized(cx, book, &invoice)?;
    invoice.finalized_at = Some(now);
    let event = match invoice.amount_due {
        0 => InvoiceEvent::Pay,
        _ => InvoiceEvent::Finalize,
    };
    invoice.status = event.next(invoice.status)?;
    if event == InvoiceEvent::Pay {
        invoice.paid_at = Some(now);
    } else {
        invoice.next_payment_attempt_at = Some(now);
        invoice.due_at = (collection == Collection::Scheduled).then_some(now);
    }
    if collection != Collection::RequestedOrNothing || event == InvoiceEvent::Pay {
        give_number(book, &mut invoice);
    }
    let is_paid = invoice.status == InvoiceStatus::Paid;
    let action = InvoiceEvent::Finalize.transition().action;
    let stored = audited::insert(cx, scope, uow, invoice, action).await?;
    if is_paid {
        record_paid(cx, uow, &stored).await?;
    }
    if collection == Collection::Scheduled && stored.total > 0 {
        let customer = &book.customer;
        news::tell(cx, uow, billing, customer, News::Invoiced(&stored)).await?;
    }
    Ok(stored)
}

/// Writes the audit event of an invoice that was paid in the moment in which it became final.
async fn record_paid(cx: &Context, uow: &mut dyn UnitOfWork, invoice: &Invoice) -> Result<()> {
    let event = AuditEvent {
        platform_id: invoice.platform_id.clone(),
        action: InvoiceEvent::Pay.transition().action,
        entity_id: invoice.id.as_str().to_owned(),
        details: None,
    };
    audited::record_event(cx, uow, event).await
}

fn give_number(book: &mut CustomerBook, invoice: &mut Invoice) {
    invoice.number = Some(book.customer.next_invoice_number());
    book.customer.invoice_count += 1;
}

fn post_finalized(cx: &Context, book: &mut CustomerBook, invoice: &Invoice) -> Result<()> {
    let amount = |minor: i64| Money::new(minor.into(), invoice.currency);
    let finalized = Entry::invoice_finalized(amount(invoice.total)?, amount(invoice.tax_total)?)?;
    let credits = Entry::credits_applied(amount(invoice.credits_applied)?);
    let balance = Entry::balance_applied(amount(invoice.balance_applied)?);
    for entry in [finalized, credits, balance] {
        book.post(cx, &entry, invoice.id.as_str());
    }
    Ok(())
}

/// Records that collection of an open invoice has been given up. It can still be paid.
pub(super) async fn stop_collection(
    uow: &mut dyn UnitOfWork,
    seen: &Stored<Invoice>,
) -> Result<Stored<Invoice>> {
    let mut next = seen.edit();
    next.next_payment_attempt_at = None;
    next.due_at = None;
    unaudited::replace(uow, seen, next).await
}

/// Records the payment of an open or written-off invoice by an attempt.
pub(super) async fn pay(
    cx: &Context,
    scope: &impl Covers<Unowned>,
    uow: &mut dyn UnitOfWork,
    book: &mut CustomerBook,
    seen: &Stored<Invoice>,
) -> Result<Stored<Invoice>> {
    let mut next = seen.edit();
    next.attempt_count += 1;
    next.status = InvoiceEvent::Pay.next(seen.status)?;
    let entry = match seen.status {
        InvoiceStatus::Uncollectible => {
            Entry::write_off_recovered(Money::new(seen.amount_due.into(), seen.currency)?)
        }
        _ => Entry::invoice_paid(seen.remaining()?),
    };
    book.post(cx, &entry, seen.id.as_str());
    next.amount_paid = seen.amount_due;
    next.amount_remaining = 0;
    next.paid_at = Some(book.now);
    next.next_payment_attempt_at = None;
    next.due_at = None;
    if next.number.is_none() {
        give_number(book, &mut next);
    }
    store(cx, scope, uow, seen, next, InvoiceEvent::Pay).await
}

/// Returns whether the outcome of an attempt to charge an invoice is open.
pub(super) async fn has_open_attempt(
    uow: &mut dyn UnitOfWork,
    invoice: &InvoiceId,
) -> Result<bool> {
    let open = PaymentAttemptQuery::OpenOf(invoice.clone());
    let open = unowned_records::<PaymentAttempt>(uow).first(&open).await?;
    Ok(open.is_some())
}

/// Cancels an open or written-off invoice. Its entries are mirrored, and its credits are returned.
///
/// # Errors
/// `OPERATION_IN_PROGRESS` if the outcome of a charge is open, because the invoice may already be paid.
pub(super) async fn void(
    cx: &Context,
    scope: &impl Covers<Unowned>,
    uow: &mut dyn UnitOfWork,
    book: &mut CustomerBook,
    seen: &Stored<Invoice>,
) -> Result<Stored<Invoice>> {
    if has_open_attempt(uow, &seen.id).await? {
        return Err(operation::in_progress());
    }
    let mut next = seen.edit();
    next.status = InvoiceEvent::Void.next(seen.status)?;
    let entries = entries_about(uow, seen.id.as_str()).await?;
    book.post(cx, &Entry::invoice_voided(&entries), seen.id.as_str());
    credit::give_back(cx, scope, uow, book, seen).await?;
    next.amount_remaining = 0;
    next.voided_at = Some(book.now);
    next.closing_since = next.provider_id.as_ref().map(|_| book.now);
    next.next_payment_attempt_at = None;
    next.due_at = None;
    store(cx, scope, uow, seen, next, InvoiceEvent::Void).await
}

/// Writes off an open invoice. It can still be paid.
pub(super) async fn write_off(
    cx: &Context,
    scope: &impl Covers<Unowned>,
    uow: &mut dyn UnitOfWork,
    book: &mut CustomerBook,
    seen: &Stored<Invoice>,
) -> Result<Stored<Invoice>> {
    let mut next = seen.edit();
    next.status = InvoiceEvent::WriteOff.next(seen.status)?;
    let entry = Entry::invoice_written_off(seen.remaining()?);
    book.post(cx, &entry, seen.id.as_str());
    next.amount_remaining = 0;
    next.marked_uncollectible_at = Some(book.now);
    next.next_payment_attempt_at = None;
    next.due_at = None;
    store(cx, scope, uow, seen, next, InvoiceEvent::WriteOff).await
}

/// The next actions on an open invoice that could not be charged.
pub(super) struct NextCollection {
    /// The time of the next attempt, if there is one.
    pub(super) attempt_at: Option<Timestamp>,
    /// When the clock charges the invoice next, or gives collection up.
    pub(super) due_at: Option<Timestamp>,
}

/// Records that a charge of an open invoice was declined or must be confirmed.
pub(super) async fn record_failure(
    cx: &Context,
    scope: &impl Covers<Unowned>,
    uow: &mut dyn UnitOfWork,
    seen: &Stored<Invoice>,
    then: &NextCollection,
) -> Result<Stored<Invoice>> {
    let mut next = seen.edit();
    next.attempt_count += 1;
    next.next_payment_attempt_at = then.attempt_at;
    next.due_at = then.due_at;
    let cx = &cx.without_conditions();
    audited::replace(cx, scope, uow, seen, next, "invoice.payment_failed").await
}

async fn store(
    cx: &Context,
    scope: &impl Covers<Unowned>,
    uow: &mut dyn UnitOfWork,
    seen: &Stored<Invoice>,
    next: Invoice,
    event: InvoiceEvent,
) -> Result<Stored<Invoice>> {
    let cx = &cx.without_conditions();
    audited::replace(cx, scope, uow, seen, next, event.transition().action).await
}

/// Records how the status of an invoice at the provider contradicts the status here, `None` if it does not. A
/// contradiction is never resolved silently.
pub(super) async fn record_contradiction(
    cx: &Context,
    scope: &impl Covers<Unowned>,
    uow: &mut dyn UnitOfWork,
    seen: &Stored<Invoice>,
    contradiction: Option<InvoiceStatus>,
) -> Result<()> {
    if seen.contradiction == contradiction {
        return Ok(());
    }
    let action = match contradiction {
        Some(_) => "invoice.contradicted",
        None => "invoice.agreed",
    };
    let mut next = seen.edit();
    next.contradiction = contradiction;
    let cx = &cx.without_conditions();
    audited::replace(cx, scope, uow, seen, next, action).await?;
    Ok(())
}

/// Returns the invoice with this id, without a check of permissions.
pub(super) async fn load(uow: &mut dyn UnitOfWork, id: &InvoiceId) -> Result<Stored<Invoice>> {
    unowned_records::<Invoice>(uow).get(id).await
}
