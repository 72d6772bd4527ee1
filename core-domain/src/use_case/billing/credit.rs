//! Credits: grants them, and applies them to invoices.

use super::Billing;
use super::book::CustomerBook;
use crate::access::{
    Covers, OperatorScope, SystemScope, all_unowned, audited, unaudited, unowned_records,
};
use crate::billing::{
    AppliedCredit, CreditEvent, CreditGrant, CreditGrantQuery, CreditStatus, Currency, Customer,
    Entry, GrantCredit, Invoice, Money,
};
use crate::kernel::{
    Code, Context, CreditGrantId, Error, Machine, Result, Stored, Timestamp, Unowned,
};
use crate::port::UnitOfWork;

/// Grants a credit to a customer.
///
/// # Errors
/// - `VALIDATION_ERROR` if the currency is unknown or the expiry is not in the future.
/// - `NOT_FOUND` if there is no such customer.
/// - `CURRENCY_MISMATCH` if the customer has another currency.
pub async fn grant(
    cx: &Context,
    scope: &OperatorScope,
    uow: &mut dyn UnitOfWork,
    billing: &Billing,
    command: GrantCredit,
) -> Result<Stored<CreditGrant>> {
    let now = billing.now(uow).await?;
    let currency = Currency::parse(&command.currency);
    let currency =
        currency.map_err(|error| Error::invalid("currency", "invalid", error.to_string()))?;
    if command
        .expires_at
        .is_some_and(|expires_at| expires_at <= now)
    {
        let message = "The credit must expire in the future.";
        return Err(Error::invalid("expiresAt", "invalid", message));
    }
    let mut book = CustomerBook::open(uow, &command.customer_id, now).await?;
    if book.customer.currency != currency {
        return Err(Error::refused(
            Code::CurrencyMismatch,
            format!("The customer pays in {}.", book.customer.currency),
        ));
    }
    let amount = Money::new(command.amount.into(), currency)?;
    let credit = CreditGrant {
        id: CreditGrantId::generate(now, cx.entropy.as_ref()),
        customer_id: command.customer_id,
        platform_id: book.customer.platform_id.clone(),
        amount: command.amount,
        remaining: command.amount,
        currency,
        description: command.description,
        category: command.category,
        priority: command.priority,
        effective_at: now,
        expires_at: command.expires_at,
        status: CreditStatus::Active,
        created_by: cx.caller.actor_id().to_owned(),
        created_at: now,
    };
    let entry = Entry::credit_granted(credit.category.source(), amount);
    book.post(cx, &entry, credit.id.as_str());
    book.store(uow).await?;
    audited::insert(cx, scope, uow, credit, "credit.granted").await
}

/// Returns the credits that can be applied to an invoice of a customer at an instant, in the order in which they are used.
pub(super) async fn usable(
    uow: &mut dyn UnitOfWork,
    customer: &Customer,
    now: Timestamp,
) -> Result<Vec<Stored<CreditGrant>>> {
    let active = CreditGrantQuery::ActiveOf(customer.id.clone());
    let mut credits = all_unowned::<CreditGrant>(uow, active).await?;
    credits.retain(|credit| credit.is_usable(customer.currency, now));
    credits.sort_by(|a, b| a.use_order(b));
    Ok(credits)
}

/// Reduces credits by the amounts that an invoice uses of them.
pub(super) async fn apply(
    uow: &mut dyn UnitOfWork,
    credits: &[Stored<CreditGrant>],
    used: &[Money],
) -> Result<Vec<AppliedCredit>> {
    let (mut changes, mut applied) = (Vec::new(), Vec::new());
    let used = credits.iter().zip(used);
    for (credit, used) in used.filter(|(_, used)| used.minor() > 0) {
        let mut next = credit.edit();
        next.remaining = credit.remaining()?.minus(*used)?.minor();
        if next.remaining == 0 {
            next.status = CreditEvent::Exhaust.next(credit.status)?;
        }
        changes.push((credit.clone(), next));
        applied.push(AppliedCredit {
            credit_id: credit.id.clone(),
            amount: used.minor(),
        });
    }
    if !changes.is_empty() {
        unaudited::replace_many(uow, changes).await?;
    }
    Ok(applied)
}

/// Ends a credit that expires at the instant of the book. Does nothing if it has ended.
pub(super) async fn expire(
    cx: &Context,
    uow: &mut dyn UnitOfWork,
    id: &CreditGrantId,
    mut book: CustomerBook,
) -> Result<()> {
    let seen = unowned_records::<CreditGrant>(uow).get(id).await?;
    if seen.status != CreditStatus::Active || seen.expires_at != Some(book.now) {
        return Ok(());
    }
    let entry = Entry::credit_ended(seen.category.source(), seen.remaining()?);
    book.post(cx, &entry, seen.id.as_str());
    book.store(uow).await?;
    let mut next = seen.edit();
    next.remaining = 0;
    next.status = CreditEvent::Expire.next(seen.status)?;
    let (cx, scope) = (&cx.without_conditions(), &SystemScope::new());
    let action = CreditEvent::Expire.transition().action;
    audited::replace(cx, scope, uow, &seen, next, action).await?;
    Ok(())
}

/// Returns the credits of a cancelled invoice to their grants, which keep their expiry. What belongs to a grant that has
/// expired or was withdrawn in the meantime ends at once.
pub(super) async fn give_back(
    cx: &Context,
    scope: &impl Covers<Unowned>,
    uow: &mut dyn UnitOfWork,
    book: &mut CustomerBook,
    invoice: &Invoice,
) -> Result<()> {
    for applied in &invoice.applied_credits {
        let seen = unowned_records::<CreditGrant>(uow)
            .get(&applied.credit_id)
            .await?;
        let returned = Money::new(applied.amount.into(), seen.currency)?;
        if matches!(seen.status, CreditStatus::Expired | CreditStatus::Voided) {
            let ended = Entry::credit_ended(seen.category.source(), returned);
            book.post(
                cx,
                &ended,
                &CreditGrant::return_reference(&seen.id, &invoice.id),
            );
            continue;
        }
        let mut next = seen.edit();
        next.remaining = seen.remaining()?.plus(returned)?.minor();
        if next.status == CreditStatus::Exhausted {
            next.status = CreditEvent::Return.next(next.status)?;
        }
        let cx = &cx.without_conditions();
        audited::replace(cx, scope, uow, &seen, next, "credit.returned").await?;
    }
    Ok(())
}
