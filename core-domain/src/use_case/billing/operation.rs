//! Operations: changes of a subscription that wait for a charge. An open operation locks its subscription.

use crate::access::{unaudited, unowned_records};
use crate::billing::{
    BillingOperation, BillingOperationQuery, OperationEvent, OperationKind, OperationStatus,
    PlanTerms, Subscription, TIME_TO_PAY,
};
use crate::billing::{Interval, Money};
use crate::kernel::{
    BillingOperationId, Code, Context, Error, InvoiceId, Machine, Result, Stored, SubscriptionId,
    Timestamp,
};
use crate::port::UnitOfWork;

/// The price that a subscription gets when the invoice of its operation is paid.
pub(super) struct PaidPrice<'a> {
    pub(super) terms: &'a PlanTerms,
    pub(super) interval: Interval,
    pub(super) quantity: u32,
    /// What the current period is then invoiced with.
    pub(super) billed: Money,
    /// The instant of the change.
    pub(super) at: Timestamp,
    pub(super) restarts_period: bool,
}

/// Refuses a change of a subscription while another one waits for its charge.
///
/// # Errors
/// `OPERATION_IN_PROGRESS` if there is an open operation.
pub(super) async fn ensure_none(
    uow: &mut dyn UnitOfWork,
    subscription: &SubscriptionId,
) -> Result<()> {
    match open_of(uow, subscription).await? {
        None => Ok(()),
        Some(_) => Err(in_progress()),
    }
}

/// Returns the operation of a subscription that has not ended. Returns `None` if there is none.
pub(super) async fn open_of(
    uow: &mut dyn UnitOfWork,
    subscription: &SubscriptionId,
) -> Result<Option<Stored<BillingOperation>>> {
    let open = BillingOperationQuery::OpenOf(subscription.clone());
    unowned_records(uow).first(&open).await
}

/// Returns the error of a change that another one excludes.
pub(super) fn in_progress() -> Error {
    Error::refused(
        Code::OperationInProgress,
        "Another change waits for its charge. Try again when it has ended.",
    )
}

/// Stores an operation, which locks the subscription until it ends.
pub(super) async fn begin(
    cx: &Context,
    uow: &mut dyn UnitOfWork,
    subscription: &Subscription,
    kind: OperationKind,
    invoice: &InvoiceId,
    price: &PaidPrice<'_>,
    now: Timestamp,
) -> Result<Stored<BillingOperation>> {
    let operation = BillingOperation {
        id: BillingOperationId::generate(now, cx.entropy.as_ref()),
        subscription_id: subscription.id.clone(),
        customer_id: subscription.customer_id.clone(),
        kind,
        status: OperationStatus::Running,
        invoice_id: invoice.clone(),
        tier: price.terms.tier,
        plan_version: price.terms.version,
        interval: price.interval,
        quantity: price.quantity,
        billed_amount: price.billed.minor(),
        at: price.at,
        restarts_period: price.restarts_period,
        expires_at: now.plus(TIME_TO_PAY),
        created_at: now,
        updated_at: now,
    };
    unaudited::insert(uow, operation).await
}

/// Returns the operation that waits for an invoice. Returns `None` if there is none.
pub(super) async fn of_invoice(
    uow: &mut dyn UnitOfWork,
    invoice: &InvoiceId,
) -> Result<Option<Stored<BillingOperation>>> {
    let with_invoice = BillingOperationQuery::WithInvoice(invoice.clone());
    unowned_records(uow).first(&with_invoice).await
}

/// Stores an event of an operation.
pub(super) async fn apply(
    uow: &mut dyn UnitOfWork,
    seen: &Stored<BillingOperation>,
    event: OperationEvent,
) -> Result<()> {
    let mut next = seen.edit();
    next.status = event.next(seen.status)?;
    next.updated_at = uow.now().await?;
    unaudited::replace(uow, seen, next).await?;
    Ok(())
}
