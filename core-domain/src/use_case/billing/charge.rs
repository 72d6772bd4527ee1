//! Charging an invoice. A first unit of work stores the attempt, then the provider is called, and a second unit stores
//! the outcome. A charge that was interrupted anywhere can be run again: all its keys at the provider are derived from
//! stored records.

use super::Billing;
use super::book::CustomerBook;
use super::closing;
use super::invoice_state;
use super::operation;
use super::payment::{self, Outcome};
use super::provider::{
    AUTHENTICATION_REQUIRED, ChargeFailure, nothing_happened, outcome_unknown, payment_required,
    provider_customer, reason_of,
};
use crate::access::{unaudited, unowned_records};
use crate::billing::{
    AttemptEvent, AttemptStatus, Customer, Invoice, InvoiceStatus, Money, PaymentAttempt,
    PaymentAttemptQuery,
};
use crate::kernel::{
    Code, Context, Error, InvoiceId, Machine, PaymentAttemptId, Result, Secret, StoreError, Stored,
    Timestamp,
};
use crate::port::{
    Cause, CollectOutcome, InvoiceReference, Mode, OpKey, PaymentsError, ProviderInvoice,
    PushedInvoice, PushedLine, Store, UnitOfWork, transact_in,
};

/// The outcome of a charge, for the caller.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Charge {
    /// The invoice is paid.
    Paid,
    /// The card was declined.
    Declined {
        /// The reason of a `PAYMENT_REQUIRED`.
        reason: String,
        /// The code of the issuer or, if it gave none, of the provider.
        decline_code: Option<String>,
    },
    /// The customer must confirm the charge in a browser.
    ActionRequired {
        /// The secret for the browser. `None` if the charge was made earlier.
        client_secret: Option<Secret>,
    },
    /// The provider was not called for this attempt, or has certainly not charged the invoice.
    NotMade,
}

impl Charge {
    /// Returns the error of a charge of an invoice that has failed: `PAYMENT_REQUIRED`, or `PAYMENT_PROVIDER_UNAVAILABLE` if it was
    /// not made. Returns `None` if it is paid.
    #[must_use]
    pub fn refusal(&self, invoice: &InvoiceId) -> Option<Error> {
        let (reason, decline_code, secret) = match self {
            Self::Paid => return None,
            Self::NotMade => return Some(nothing_happened()),
            Self::Declined {
                reason,
                decline_code,
            } => (reason.as_str(), decline_code.clone(), None),
            Self::ActionRequired { client_secret } => {
                (AUTHENTICATION_REQUIRED, None, client_secret.as_ref())
            }
        };
        Some(payment_required(
            reason,
            decline_code,
            Some(invoice),
            secret.map(Secret::expose),
        ))
    }
}

/// Stores an attempt to charge an open invoice to a payment method, dated at an instant of billing. Run it with [`run`]
/// after the commit. The book of the customer must be open, so that the invoice is not cancelled at the same time.
///
/// # Errors
/// `OPERATION_IN_PROGRESS` if the outcome of another attempt is open.
pub(super) async fn plan(
    cx: &Context,
    uow: &mut dyn UnitOfWork,
    invoice: &Invoice,
    method: &str,
    at: Timestamp,
) -> Result<Stored<PaymentAttempt>> {
    let last = last_attempt(uow, &invoice.id).await?;
    if let Some(last) = &last
        && AttemptStatus::OPEN.contains(&last.status)
    {
        return Err(operation::in_progress());
    }
    let attempt = new_attempt(cx, invoice, last.as_deref(), method, at);
    store_attempt(uow, attempt).await
}

/// Returns the last attempt to charge an invoice. Returns `None` if there is none.
pub(super) async fn last_attempt(
    uow: &mut dyn UnitOfWork,
    invoice: &InvoiceId,
) -> Result<Option<Stored<PaymentAttempt>>> {
    let of_invoice = PaymentAttemptQuery::Of(invoice.clone());
    unowned_records::<PaymentAttempt>(uow)
        .first(&of_invoice)
        .await
}

/// A charge that begins with the commit of a unit of work.
pub(super) struct NewCharge {
    pub(super) invoice: Stored<Invoice>,
    /// The payment method.
    pub(super) method: String,
    /// The instant of billing at which the charge is dated.
    pub(super) at: Timestamp,
}

/// Stores an attempt as one whose call at the provider begins after the commit. `last` is the last attempt of the invoice, and
/// has an outcome. Pass the returned attempt to [`finish_sent`].
pub(super) async fn send_new(
    cx: &Context,
    uow: &mut dyn UnitOfWork,
    book: &CustomerBook,
    charge: NewCharge,
    last: Option<&PaymentAttempt>,
) -> Result<SentAttempt> {
    let mut attempt = new_attempt(cx, &charge.invoice, last, &charge.method, charge.at);
    attempt.status = AttemptEvent::Send.next(attempt.status)?;
    Ok(SentAttempt {
        attempt: store_attempt(uow, attempt).await?,
        invoice: charge.invoice,
        customer: book.customer.clone(),
        is_repeated: false,
    })
}

/// Returns the attempt after the last one, which is not stored yet.
fn new_attempt(
    cx: &Context,
    invoice: &Invoice,
    last: Option<&PaymentAttempt>,
    method: &str,
    at: Timestamp,
) -> PaymentAttempt {
    PaymentAttempt {
        id: PaymentAttemptId::generate(at, cx.entropy.as_ref()),
        invoice_id: invoice.id.clone(),
        customer_id: invoice.customer_id.clone(),
        number: last.map_or(1, |last| last.number + 1),
        payment_method_id: method.to_owned(),
        status: AttemptStatus::Ready,
        decline_code: None,
        is_hard: false,
        created_at: at,
        updated_at: at,
    }
}

async fn store_attempt(
    uow: &mut dyn UnitOfWork,
    mut attempt: PaymentAttempt,
) -> Result<Stored<PaymentAttempt>> {
    attempt.updated_at = uow.now().await?;
    let stored = unaudited::insert(uow, attempt).await;
    stored.map_err(|error| match error {
        Error::Store(StoreError::Conflict { .. }) => operation::in_progress(),
        error => error,
    })
}

/// The payment method of an attempt that was made at the provider, and not by the suite.
const AT_PROVIDER: &str = "at_provider";

/// Records that an open or written-off invoice was paid at the provider: the customer has confirmed a charge, or has paid on a page
/// of the provider.
///
/// # Errors
/// `OPERATION_IN_PROGRESS` if the outcome of an attempt is open.
pub(super) async fn record_payment_at_provider(
    cx: &Context,
    uow: &mut dyn UnitOfWork,
    billing: &Billing,
    invoice: &Invoice,
) -> Result<()> {
    let attempt = match last_attempt(uow, &invoice.id).await? {
        Some(last) if AttemptStatus::OPEN.contains(&last.status) => {
            return Err(operation::in_progress());
        }
        Some(last) if last.status == AttemptStatus::ActionRequired => last,
        last => {
            let now = billing.now(uow).await?;
            let mut attempt = new_attempt(cx, invoice, last.as_deref(), AT_PROVIDER, now);
            attempt.status = AttemptEvent::Send.next(attempt.status)?;
            store_attempt(uow, attempt).await?
        }
    };
    let paid = payment::record(cx, uow, billing, &attempt, &Outcome::Paid).await;
    paid.map(drop)
}

/// Runs an attempt until its outcome is stored, and returns the outcome. An attempt that has one is not run again.
///
/// # Errors
/// - `PAYMENT_PROVIDER_UNAVAILABLE` if nothing has happened at the provider. The change is undone.
/// - `PAYMENT_OUTCOME_UNKNOWN` if the response was lost. Run the attempt again to find the outcome.
/// - `SERVICE_UNAVAILABLE` if the installation accepts no charges.
pub async fn run(
    cx: &Context,
    store: &dyn Store,
    billing: &Billing,
    attempt: &PaymentAttemptId,
) -> Result<Charge> {
    try_run(cx, store, billing, attempt)
        .await
        .map_err(Into::into)
}

/// Like [`run`], with the error of the provider.
pub(super) async fn try_run(
    cx: &Context,
    store: &dyn Store,
    billing: &Billing,
    attempt: &PaymentAttemptId,
) -> Result<Charge, ChargeFailure> {
    match send(cx, store, billing, attempt).await? {
        SendOutcome::Before(charge) => Ok(charge),
        SendOutcome::Now(sent) => finish_sent(cx, store, billing, *sent).await,
    }
}

/// Calls the provider for an attempt, and stores the outcome.
pub(super) async fn finish_sent(
    cx: &Context,
    store: &dyn Store,
    billing: &Billing,
    sent: SentAttempt,
) -> Result<Charge, ChargeFailure> {
    let attempt = sent.id();
    match collect(cx, store, billing, &sent).await {
        Ok(CollectOutcome::Paid) => Ok(finish(cx, store, billing, &sent, &Outcome::Paid).await?),
        Ok(CollectOutcome::Declined(decline)) | Err(PaymentsError::Declined(decline)) => {
            let declined = Outcome::Declined(decline);
            Ok(finish(cx, store, billing, &sent, &declined).await?)
        }
        Ok(CollectOutcome::ActionRequired { client_secret }) => {
            let waits = Outcome::ActionRequired;
            Ok(match finish(cx, store, billing, &sent, &waits).await? {
                Charge::ActionRequired { .. } => Charge::ActionRequired {
                    client_secret: Some(client_secret),
                },
                charge => charge,
            })
        }
        Ok(CollectOutcome::Processing)
        | Err(PaymentsError::Unknown(_) | PaymentsError::Conflict) => {
            lose(store, attempt).await?;
            Err(ChargeFailure::Unknown)
        }
        // Only this call has done nothing. An earlier one may have charged the invoice.
        Err(_) if sent.is_repeated => {
            lose(store, attempt).await?;
            Err(ChargeFailure::Unknown)
        }
        Err(error) => match finish(cx, store, billing, &sent, &Outcome::NotExecuted).await {
            Ok(Charge::NotMade) => Err(ChargeFailure::Provider(error)),
            // Another process has sent the attempt as well.
            Ok(charge) => Ok(charge),
            Err(unknown) if unknown.code() == Code::PaymentOutcomeUnknown => {
                Err(ChargeFailure::Unknown)
            }
            Err(failed) => Err(failed.into()),
        },
    }
}

/// An attempt whose call at the provider may have begun.
pub(super) struct SentAttempt {
    attempt: Stored<PaymentAttempt>,
    invoice: Stored<Invoice>,
    customer: Customer,
    /// Whether an earlier call of the attempt may have reached the provider.
    is_repeated: bool,
}

impl SentAttempt {
    /// Returns the id of the attempt.
    pub(super) fn id(&self) -> &PaymentAttemptId {
        &self.attempt.id
    }
}

enum SendOutcome {
    /// The attempt has an outcome.
    Before(Charge),
    Now(Box<SentAttempt>),
}

/// Records that the provider is being called. An invoice with an open attempt does not change, so only the version of the
/// attempt decides.
async fn send(
    cx: &Context,
    store: &dyn Store,
    billing: &Billing,
    attempt: &PaymentAttemptId,
) -> Result<SendOutcome> {
    transact_in(Mode::ReadCommitted, store, |uow, _| {
        Box::pin(async move {
            let sent = record_call(cx, uow, billing, attempt).await;
            sent.map_err(run_again)
        })
    })
    .await
}

/// Makes a unit run again if another process has changed the attempt or its invoice since they were read.
fn run_again(error: Error) -> Error {
    match error {
        Error::Store(stale @ StoreError::Stale { .. }) => StoreError::retry(stale).into(),
        error => error,
    }
}

/// Records that the provider is being called, in a unit of work.
async fn record_call(
    cx: &Context,
    uow: &mut dyn UnitOfWork,
    billing: &Billing,
    attempt: &PaymentAttemptId,
) -> Result<SendOutcome> {
    let seen = unowned_records::<PaymentAttempt>(uow).get(attempt).await?;
    let invoice = invoice_state::load(uow, &seen.invoice_id).await?;
    if let Some(charge) = charge_of(&seen, &invoice) {
        return Ok(SendOutcome::Before(charge));
    }
    if !matches!(
        invoice.status,
        InvoiceStatus::Open | InvoiceStatus::Uncollectible
    ) {
        let skipped = payment::record(cx, uow, billing, &seen, &Outcome::NotExecuted).await?;
        let charge = charge_of(&skipped, &invoice).ok_or_else(outcome_unknown)?;
        return Ok(SendOutcome::Before(charge));
    }
    let mut next = seen.edit();
    next.status = AttemptEvent::Send.next(seen.status)?;
    next.updated_at = uow.now().await?;
    let is_repeated = seen.status != AttemptStatus::Ready;
    let customer = unowned_records::<Customer>(uow)
        .get(&seen.customer_id)
        .await?;
    Ok(SendOutcome::Now(Box::new(SentAttempt {
        attempt: unaudited::replace(uow, &seen, next).await?,
        invoice,
        customer: customer.edit(),
        is_repeated,
    })))
}

/// Returns the outcome of an attempt to charge an invoice. Returns `None` if it is open.
fn charge_of(attempt: &PaymentAttempt, invoice: &Invoice) -> Option<Charge> {
    match attempt.status {
        AttemptStatus::Ready | AttemptStatus::Sent | AttemptStatus::Unknown => None,
        AttemptStatus::Succeeded => Some(Charge::Paid),
        // The attempt may have had no effect, but the invoice was paid otherwise.
        _ if invoice.status == InvoiceStatus::Paid => Some(Charge::Paid),
        AttemptStatus::ActionRequired if invoice.status == InvoiceStatus::Open => {
            Some(Charge::ActionRequired {
                client_secret: None,
            })
        }
        // The customer can no longer confirm the charge.
        AttemptStatus::ActionRequired => Some(Charge::Declined {
            reason: AUTHENTICATION_REQUIRED.to_owned(),
            decline_code: None,
        }),
        AttemptStatus::Failed => Some(decline_charge(attempt.decline_code.clone())),
        AttemptStatus::NotExecuted => Some(Charge::NotMade),
    }
}

fn decline_charge(decline_code: Option<String>) -> Charge {
    Charge::Declined {
        reason: reason_of(decline_code.as_deref()).to_owned(),
        decline_code,
    }
}

/// Pushes the invoice to the provider, if it does not have it, and charges it. A repeated attempt looks first whether
/// the invoice is already paid.
async fn collect(
    cx: &Context,
    store: &dyn Store,
    billing: &Billing,
    sent: &SentAttempt,
) -> Result<CollectOutcome, PaymentsError> {
    let payments = billing.payments.as_ref();
    let invoice = &sent.invoice;
    let customer = provider_customer(cx, store, billing, &sent.customer).await?;
    if sent.is_repeated {
        let reference = InvoiceReference {
            id: invoice.id.clone(),
            customer: customer.clone(),
            provider_id: invoice.provider_id.clone(),
            created_at: invoice.created_at,
        };
        let known = payments.look_up(&reference).await?;
        if known.is_some_and(|known| is_paid(invoice, &known)) {
            return Ok(CollectOutcome::Paid);
        }
    }
    let provider_id = match &invoice.provider_id {
        Some(id) => id.clone(),
        None => {
            let pushed = pushed_invoice(invoice, customer);
            let pushed = pushed.map_err(|error| PaymentsError::Invalid(error.to_string()))?;
            let created = payments.push_invoice(&pushed).await?;
            let stored = store_provider_id(store, &invoice.id, &created.id).await;
            stored.map_err(|error| PaymentsError::Unknown(Cause::new(error)))?;
            // It was charged before this database was restored from a backup.
            if is_paid(invoice, &created) {
                return Ok(CollectOutcome::Paid);
            }
            created.id
        }
    };
    let key = OpKey::new(
        invoice.id.as_str(),
        &format!("pay:{}", sent.attempt.id.as_str()),
    );
    let method = &sent.attempt.payment_method_id;
    match payments.collect(&key, &provider_id, method).await {
        // It is not open there: it was charged before this database was restored from a backup.
        Err(error @ PaymentsError::Invalid(_)) => {
            let known = payments.invoice(&provider_id).await?;
            match known.is_some_and(|known| is_paid(invoice, &known)) {
                true => Ok(CollectOutcome::Paid),
                false => Err(error),
            }
        }
        outcome => outcome,
    }
}

/// Returns whether the provider has received the amount of the invoice. After a restore of the database, the provider can have
/// the same invoice with another amount.
pub(super) fn is_paid(invoice: &Invoice, at_provider: &ProviderInvoice) -> bool {
    at_provider.status == InvoiceStatus::Paid
        && at_provider.amount_due == invoice.amount_due
        && at_provider.currency == invoice.currency
}

/// Returns the invoice in the form that the provider gets. Applied credits and balance are lines, so that the lines add
/// up to the amount due.
fn pushed_invoice(invoice: &Invoice, customer: String) -> Result<PushedInvoice> {
    let line = |id: &str, description: &str, amount| PushedLine {
        id: id.to_owned(),
        description: description.to_owned(),
        amount,
    };
    let lines = invoice.lines.iter();
    let mut lines: Vec<_> = lines
        .map(|own| line(own.id.as_str(), &own.description, own.amount))
        .collect();
    let others = [
        ("tax", "Tax", invoice.tax_total),
        ("discount", "Discount", -invoice.discount_total),
        ("credits", "Credits", -invoice.credits_applied),
        ("balance", "Account balance", -invoice.balance_applied),
    ];
    let others = others.into_iter().filter(|(_, _, amount)| *amount != 0);
    lines.extend(others.map(|(id, description, amount)| line(id, description, amount)));
    Ok(PushedInvoice {
        id: invoice.id.clone(),
        number: invoice.number.clone(),
        customer,
        lines,
        amount_due: Money::new(invoice.amount_due.into(), invoice.currency)?,
        created_at: invoice.created_at,
    })
}

/// Stores the id of an invoice at the provider.
async fn store_provider_id(store: &dyn Store, invoice: &InvoiceId, id: &str) -> Result<()> {
    transact_in(Mode::ReadCommitted, store, |uow, _| {
        Box::pin(async move {
            let seen = invoice_state::load(uow, invoice).await?;
            let mut next = seen.edit();
            next.provider_id = Some(id.to_owned());
            let stored = unaudited::replace(uow, &seen, next).await;
            stored.map(drop).map_err(run_again)
        })
    })
    .await
}

/// Stores the outcome of an attempt, unless it has one, and returns the stored one. Cancels the invoice at the provider if the
/// outcome has cancelled ours.
async fn finish(
    cx: &Context,
    store: &dyn Store,
    billing: &Billing,
    sent: &SentAttempt,
    outcome: &Outcome,
) -> Result<Charge> {
    let (invoice, charge) = transact_in(Mode::ReadCommitted, store, |uow, _| {
        Box::pin(async move {
            let recorded = record_outcome(cx, uow, billing, sent, outcome).await;
            recorded.map_err(run_again)
        })
    })
    .await?;
    // If this fails, it is tried again later. The outcome is stored either way.
    drop(closing::close_at_provider(cx, store, billing, &invoice).await);
    Ok(charge)
}

/// Stores the outcome of an attempt that has none. Returns its invoice and the stored outcome.
async fn record_outcome(
    cx: &Context,
    uow: &mut dyn UnitOfWork,
    billing: &Billing,
    sent: &SentAttempt,
    outcome: &Outcome,
) -> Result<(Stored<Invoice>, Charge)> {
    let mut attempt = unowned_records::<PaymentAttempt>(uow)
        .get(&sent.attempt.id)
        .await?;
    let is_sent_again = attempt.version() != sent.attempt.version();
    if AttemptStatus::OPEN.contains(&attempt.status) {
        if *outcome == Outcome::NotExecuted && is_sent_again {
            // Only this call has done nothing. Another process has sent the attempt as well.
            return Err(outcome_unknown());
        }
        attempt = payment::record(cx, uow, billing, &attempt, outcome).await?;
    }
    let invoice = invoice_state::load(uow, &attempt.invoice_id).await?;
    let charge = charge_of(&attempt, &invoice).ok_or_else(outcome_unknown)?;
    Ok((invoice, charge))
}

/// Records that the outcome of an attempt is unknown.
async fn lose(store: &dyn Store, attempt: &PaymentAttemptId) -> Result<()> {
    transact_in(Mode::ReadCommitted, store, |uow, _| {
        Box::pin(async move {
            let seen = unowned_records::<PaymentAttempt>(uow).get(attempt).await?;
            if seen.status != AttemptStatus::Sent {
                return Ok(());
            }
            let mut next = seen.edit();
            next.status = AttemptEvent::Lose.next(seen.status)?;
            next.updated_at = uow.now().await?;
            let stored = unaudited::replace(uow, &seen, next).await;
            stored.map(drop).map_err(run_again)
        })
    })
    .await
}

/// Charges an open invoice to a payment method, in units of its own. If an attempt is already open, its outcome is
/// awaited instead. If the invoice is paid or void, the outcome of its last attempt is returned.
///
/// # Errors
/// Those of [`run`].
pub(super) async fn charge(
    cx: &Context,
    store: &dyn Store,
    billing: &Billing,
    invoice: &InvoiceId,
    method: &str,
) -> Result<Charge> {
    let attempt = transact_in(Mode::ReadCommitted, store, |uow, _| {
        Box::pin(async move {
            let now = billing.now(uow).await?;
            // The book keeps the customer locked.
            open_book_of(uow, invoice, now).await?;
            let open = PaymentAttemptQuery::OpenOf(invoice.clone());
            if let Some(open) = unowned_records::<PaymentAttempt>(uow).first(&open).await? {
                return Ok(open);
            }
            let invoice = invoice_state::load(uow, invoice).await?;
            if matches!(invoice.status, InvoiceStatus::Paid | InvoiceStatus::Void)
                && let Some(last) = last_attempt(uow, &invoice.id).await?
            {
                // An earlier run of the request was interrupted after its outcome was stored.
                return Ok(last);
            }
            plan(cx, uow, &invoice, method, now).await
        })
    })
    .await?;
    run(cx, store, billing, &attempt.id).await
}

async fn open_book_of(
    uow: &mut dyn UnitOfWork,
    invoice: &InvoiceId,
    now: Timestamp,
) -> Result<CustomerBook> {
    let invoice = invoice_state::load(uow, invoice).await?;
    CustomerBook::open(uow, &invoice.customer_id, now).await
}

/// Undoes the operation of an invoice that was never charged.
pub(super) async fn discard(
    cx: &Context,
    store: &dyn Store,
    billing: &Billing,
    invoice: &InvoiceId,
) -> Result<()> {
    transact_in(Mode::ReadCommitted, store, |uow, _| {
        Box::pin(async move {
            let now = billing.now(uow).await?;
            let book = open_book_of(uow, invoice, now).await?;
            payment::discard(cx, uow, billing, invoice, book).await
        })
    })
    .await
}

/// Returns the error of a request whose invoice was to be cancelled because its charge has failed with `error`. If the
/// invoice is not void, another process charges it or has charged it, so the outcome of the request is not known.
pub(super) async fn error_after_undo(
    store: &dyn Store,
    invoice: &InvoiceId,
    error: Error,
) -> Error {
    let Ok(mut uow) = store.begin(Mode::Read).await else {
        return outcome_unknown();
    };
    let invoice = invoice_state::load(uow.as_mut(), invoice).await;
    uow.rollback().await;
    match invoice {
        Ok(invoice) if invoice.status == InvoiceStatus::Void => error,
        _ => outcome_unknown(),
    }
}

/// Returns the outcome of the last attempt of an invoice whose outcome is known. Returns `None` if there is none.
pub(super) async fn last(store: &dyn Store, invoice: &InvoiceId) -> Result<Option<Charge>> {
    let mut uow = store.begin(Mode::Read).await?;
    let last = charge_of_last(uow.as_mut(), invoice).await;
    uow.rollback().await;
    last
}

async fn charge_of_last(uow: &mut dyn UnitOfWork, invoice: &InvoiceId) -> Result<Option<Charge>> {
    let Some(last) = last_attempt(uow, invoice).await? else {
        return Ok(None);
    };
    let invoice = invoice_state::load(uow, invoice).await?;
    Ok(charge_of(&last, &invoice))
}
