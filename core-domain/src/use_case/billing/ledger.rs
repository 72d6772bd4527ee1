//! The ledger: the embedded payment provider. Its money is simulated, and only test cards exist. It keeps its own
//! records, as a real provider does, and is called only through the port [`Payments`].

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use sha2::{Digest, Sha256};

use crate::access::{all_unowned, unaudited, unowned_records};
use crate::billing::{
    InvoiceStatus, LedgerCharge, LedgerChargeQuery, LedgerInvoice, LedgerInvoiceStatus,
    LedgerMethod, LedgerMethodQuery, LedgerOutcome, LedgerSetupIntent, LedgerSetupIntentQuery,
    PaymentProvider, TestCard,
};
use crate::kernel::{
    Entropy, Error, InvoiceId, Result, Secret, StoreError, Stored, TOKEN_LENGTH, Timestamp, hex,
    secret_token,
};
use crate::port::{
    Cause, Close, CollectOutcome, Decline, Env, InvoiceReference, LostDispute, Mode, OpKey,
    PayingCustomer, Payments, PaymentsError, Persisted, ProviderEvent, ProviderInvoice,
    ProviderMethod, ProviderRefund, ProviderSetupIntent, PushedInvoice, Store, UnitOfWork,
    WebhookError, Work, transact_in,
};
use crate::use_case::shared::remove_first;

/// The number of hexadecimal digits of an id after its prefix.
const ID_DIGITS: usize = 32;

/// The embedded payment provider.
#[derive(Clone, Debug)]
pub struct Ledger {
    store: Arc<dyn Store>,
    entropy: Arc<dyn Entropy>,
    accepts_charges: bool,
}

impl Ledger {
    /// Creates the provider over a store. If `accepts_charges` is `false`, every request for a card or a charge is
    /// refused: simulated money must not be mistaken for real money.
    #[must_use]
    pub const fn new(
        store: Arc<dyn Store>,
        entropy: Arc<dyn Entropy>,
        accepts_charges: bool,
    ) -> Self {
        Self {
            store,
            entropy,
            accepts_charges,
        }
    }

    const fn ensure_enabled(&self) -> Result<(), PaymentsError> {
        if self.accepts_charges {
            return Ok(());
        }
        Err(PaymentsError::Disabled(
            "This installation has no payment provider. Configure one, or allow simulated payments.",
        ))
    }

    /// Opens a unit of work for reading, which is rolled back when it is dropped.
    async fn begin(&self) -> Result<Box<dyn UnitOfWork>, PaymentsError> {
        let uow = self.store.begin(Mode::Read).await;
        uow.map_err(|error| store_failure(error.into()))
    }

    /// Runs a unit of work. The version of a row or a unique key decides each of them.
    async fn transact<'env, T, F>(&self, body: F) -> Result<T>
    where
        F: for<'unit> Fn(&'unit mut dyn UnitOfWork, Env<'unit, 'env>) -> Work<'unit, T>
            + Send
            + Sync,
    {
        transact_in(Mode::ReadCommitted, self.store.as_ref(), body).await
    }

    /// Returns the payment method with an id: a stored one, or the one that stands for a test card.
    async fn find_method(&self, id: &str) -> Result<Option<ProviderMethod>, PaymentsError> {
        if let Some(card) = TestCard::of_method(id) {
            return Ok(Some(ProviderMethod {
                id: id.to_owned(),
                customer: None,
                card: card.card(),
                created_at: Timestamp::EPOCH,
            }));
        }
        let mut uow = self.begin().await?;
        let methods = unowned_records::<LedgerMethod>(uow.as_mut());
        let found = methods.find(id).await.map_err(store_failure)?;
        Ok(found.map(|method| to_method(&method)))
    }
}

/// The store of the ledger is the suite's own. If it fails, nothing has happened, unless the reply to a commit was lost.
fn store_failure(error: Error) -> PaymentsError {
    match error {
        Error::Store(StoreError::CommitUnknown(_)) => PaymentsError::Unknown(Cause::new(error)),
        error => PaymentsError::Unavailable(Cause::new(error)),
    }
}

/// Returns an id that is derived from the key of the request, so that a repeated request has the same.
fn id_of(prefix: &str, key: &OpKey) -> String {
    let mut digits = hex(&Sha256::digest(key.as_str()));
    digits.truncate(ID_DIGITS);
    format!("{prefix}_{digits}")
}

fn to_method(method: &LedgerMethod) -> ProviderMethod {
    ProviderMethod {
        id: method.id.clone(),
        customer: method.customer.clone(),
        card: method.card.card(),
        created_at: method.created_at,
    }
}

fn decline(decline_code: &str) -> Decline {
    Decline {
        error_code: "card_declined".to_owned(),
        decline_code: Some(decline_code.to_owned()),
        is_hard: false,
    }
}

/// Returns why a card cannot be attached. Returns `None` if it can.
fn refusal_of(card: TestCard) -> Option<Decline> {
    match card {
        TestCard::Declined => Some(decline("generic_decline")),
        TestCard::InsufficientFunds => Some(decline("insufficient_funds")),
        TestCard::Visa | TestCard::DeclinedLater | TestCard::AuthenticationRequired => None,
    }
}

/// Returns the outcome of every charge of a card.
const fn outcome_of(card: TestCard) -> LedgerOutcome {
    match card {
        TestCard::Visa => LedgerOutcome::Paid,
        TestCard::Declined | TestCard::InsufficientFunds | TestCard::DeclinedLater => {
            LedgerOutcome::Declined
        }
        TestCard::AuthenticationRequired => LedgerOutcome::ActionRequired,
    }
}

fn to_status(status: LedgerInvoiceStatus) -> InvoiceStatus {
    match status {
        LedgerInvoiceStatus::Open => InvoiceStatus::Open,
        LedgerInvoiceStatus::Paid => InvoiceStatus::Paid,
        LedgerInvoiceStatus::Uncollectible => InvoiceStatus::Uncollectible,
        LedgerInvoiceStatus::Void => InvoiceStatus::Void,
    }
}

#[async_trait]
impl Payments for Ledger {
    fn provider(&self) -> PaymentProvider {
        PaymentProvider::Ledger
    }

    fn is_live(&self) -> bool {
        false
    }

    fn publishable_key(&self) -> Option<String> {
        None
    }

    async fn ensure_customer(
        &self,
        key: &OpKey,
        _: &PayingCustomer,
    ) -> Result<String, PaymentsError> {
        Ok(id_of("cus", key))
    }

    async fn update_customer(
        &self,
        _: &OpKey,
        _: &str,
        _: &PayingCustomer,
    ) -> Result<(), PaymentsError> {
        Ok(())
    }

    async fn create_setup_intent(
        &self,
        key: &OpKey,
        customer: &str,
    ) -> Result<ProviderSetupIntent, PaymentsError> {
        self.ensure_enabled()?;
        let id = &id_of("seti", key);
        let client_secret = &format!(
            "{id}_secret_{}",
            secret_token(self.entropy.as_ref(), TOKEN_LENGTH)
        );
        let created = self.transact(|uow, _| {
            Box::pin(async move { store_intent(uow, id, client_secret, customer).await })
        });
        created.await.map_err(store_failure)?;
        Ok(ProviderSetupIntent {
            id: id.clone(),
            client_secret: Secret::new(client_secret.as_str()),
            status: "requires_payment_method".to_owned(),
        })
    }

    async fn methods(&self, customer: &str) -> Result<Vec<ProviderMethod>, PaymentsError> {
        let of_customer = LedgerMethodQuery::Of(customer.to_owned());
        let mut uow = self.begin().await?;
        let methods = all_unowned::<LedgerMethod>(uow.as_mut(), of_customer).await;
        let methods = methods.map_err(store_failure)?;
        Ok(methods.iter().map(|method| to_method(method)).collect())
    }

    async fn method(&self, id: &str) -> Result<Option<ProviderMethod>, PaymentsError> {
        self.find_method(id).await
    }

    async fn attach(
        &self,
        key: &OpKey,
        method: &str,
        customer: &str,
    ) -> Result<ProviderMethod, PaymentsError> {
        self.ensure_enabled()?;
        let Some(card) = TestCard::of_method(method) else {
            return match self.find_method(method).await? {
                Some(own) if own.customer.as_deref() == Some(customer) => Ok(own),
                _ => Err(PaymentsError::Invalid(format!(
                    "the payment method {method} cannot be attached"
                ))),
            };
        };
        if let Some(refusal) = refusal_of(card) {
            return Err(PaymentsError::Declined(refusal));
        }
        let id = &id_of("pm", key);
        let attached = self.transact(|uow, _| {
            Box::pin(async move { store_method(uow, id, card, customer).await })
        });
        let attached = attached.await.map_err(store_failure)?;
        Ok(to_method(&attached))
    }

    async fn detach(&self, _: &OpKey, method: &str) -> Result<ProviderMethod, PaymentsError> {
        let detached = self.transact(|uow, _| {
            Box::pin(async move {
                let seen = unowned_records::<LedgerMethod>(uow).get(method).await?;
                let mut next = seen.edit();
                next.customer = None;
                unaudited::replace(uow, &seen, next).await
            })
        });
        match detached.await {
            Ok(detached) => Ok(to_method(&detached)),
            Err(Error::NotFound(_)) => Err(PaymentsError::Invalid(format!(
                "there is no payment method {method}"
            ))),
            Err(error) => Err(store_failure(error)),
        }
    }

    async fn set_default(&self, _: &OpKey, _: &str, _: &str) -> Result<(), PaymentsError> {
        Ok(())
    }

    async fn push_invoice(
        &self,
        invoice: &PushedInvoice,
    ) -> Result<ProviderInvoice, PaymentsError> {
        self.ensure_enabled()?;
        let lines: i128 = invoice
            .lines
            .iter()
            .map(|line| i128::from(line.amount))
            .sum();
        if lines != i128::from(invoice.amount_due.minor()) {
            return Err(PaymentsError::Invalid(
                "the lines of the invoice do not add up to the amount due".to_owned(),
            ));
        }
        let pushed =
            self.transact(|uow, _| Box::pin(async move { store_invoice(uow, invoice).await }));
        let pushed = pushed.await.map_err(store_failure)?;
        Ok(to_invoice(&pushed, None))
    }

    async fn collect(
        &self,
        key: &OpKey,
        provider_invoice: &str,
        method: &str,
    ) -> Result<CollectOutcome, PaymentsError> {
        self.ensure_enabled()?;
        let charged = self.transact(|uow, _| {
            Box::pin(async move { store_charge(uow, key, provider_invoice, method).await })
        });
        match charged.await {
            Ok(outcome) => Ok(self.to_collected(outcome)),
            Err(Error::NotFound(kind)) => {
                Err(PaymentsError::Invalid(format!("there is no such {kind}")))
            }
            Err(error @ Error::Refused { .. }) => Err(PaymentsError::Invalid(error.to_string())),
            Err(error) => Err(store_failure(error)),
        }
    }

    async fn close(
        &self,
        _: &OpKey,
        provider_invoice: &str,
        how: Close,
    ) -> Result<(), PaymentsError> {
        let status = match how {
            Close::Void => LedgerInvoiceStatus::Void,
            Close::Uncollectible => LedgerInvoiceStatus::Uncollectible,
            Close::PaidOutOfBand => LedgerInvoiceStatus::Paid,
        };
        let closed = self.transact(|uow, _| {
            Box::pin(async move {
                let seen = unowned_records::<LedgerInvoice>(uow)
                    .get(provider_invoice)
                    .await?;
                let is_final = seen.status == LedgerInvoiceStatus::Paid
                    || seen.status == LedgerInvoiceStatus::Void;
                if is_final {
                    return Ok(seen.status == status);
                }
                let mut next = seen.edit();
                next.status = status;
                unaudited::replace(uow, &seen, next).await?;
                Ok(true)
            })
        });
        match closed.await {
            Ok(true) => Ok(()),
            Ok(false) => Err(PaymentsError::Invalid("the invoice has ended".to_owned())),
            Err(error) => Err(store_failure(error)),
        }
    }

    async fn look_up(
        &self,
        invoice: &InvoiceReference,
    ) -> Result<Option<ProviderInvoice>, PaymentsError> {
        let mut uow = self.begin().await?;
        let invoices = unowned_records::<LedgerInvoice>(uow.as_mut());
        let known = invoices.find(&invoice.id).await.map_err(store_failure)?;
        let Some(known) = known else {
            return Ok(None);
        };
        let last = last_charge(uow.as_mut(), &invoice.id).await;
        let last = last.map_err(store_failure)?;
        let last = last.map(|charge| self.to_collected(charge.outcome));
        Ok(Some(to_invoice(&known, last)))
    }

    async fn invoice(&self, id: &str) -> Result<Option<ProviderInvoice>, PaymentsError> {
        let mut uow = self.begin().await?;
        let invoices = unowned_records::<LedgerInvoice>(uow.as_mut());
        let found = invoices.find(id).await.map_err(store_failure)?;
        Ok(found.map(|invoice| to_invoice(&invoice, None)))
    }

    async fn refunds(&self, _: &str) -> Result<Vec<ProviderRefund>, PaymentsError> {
        Ok(Vec::new())
    }

    async fn lost_dispute(&self, _: &str) -> Result<Option<LostDispute>, PaymentsError> {
        Ok(None)
    }

    async fn default_method(&self, _: &str) -> Result<Option<String>, PaymentsError> {
        Ok(None)
    }

    async fn portal(&self, _: &str, _: &str) -> Result<Option<String>, PaymentsError> {
        Ok(None)
    }

    async fn events_since(&self, _: Timestamp) -> Result<Vec<ProviderEvent>, PaymentsError> {
        Ok(Vec::new())
    }

    fn verify_webhook(
        &self,
        _: &[u8],
        _: &str,
        _: Timestamp,
    ) -> Result<ProviderEvent, WebhookError> {
        Err(WebhookError::NotConfigured)
    }
}

impl Ledger {
    fn to_collected(&self, outcome: LedgerOutcome) -> CollectOutcome {
        match outcome {
            LedgerOutcome::Paid => CollectOutcome::Paid,
            LedgerOutcome::Declined => CollectOutcome::Declined(decline("generic_decline")),
            LedgerOutcome::ActionRequired => CollectOutcome::ActionRequired {
                client_secret: Secret::new(format!(
                    "pi_secret_{}",
                    secret_token(self.entropy.as_ref(), TOKEN_LENGTH)
                )),
            },
        }
    }
}

fn to_invoice(invoice: &LedgerInvoice, last_charge: Option<CollectOutcome>) -> ProviderInvoice {
    ProviderInvoice {
        id: invoice.id.as_str().to_owned(),
        invoice_id: Some(invoice.id.clone()),
        status: to_status(invoice.status),
        amount_due: invoice.amount_due,
        currency: invoice.currency,
        last_charge,
        // The page of the ledger is ours.
        page_url: None,
    }
}

/// The time after which a setup intent can no longer be used.
pub(super) const INTENT_LIFETIME: Duration = Duration::from_secs(24 * 60 * 60);

/// Removes at most `limit` setup intents that can no longer be used. Returns the number of removed intents; 0 means that
/// none is left.
///
/// # Errors
/// Only those of the store.
pub async fn remove_expired_intents(uow: &mut dyn UnitOfWork, limit: u32) -> Result<u64> {
    let expired = LedgerSetupIntentQuery::Before(uow.now().await?.minus(INTENT_LIFETIME));
    remove_first::<LedgerSetupIntent>(uow, &expired, limit).await
}

/// Inserts a record whose key is derived from the request. If a concurrent unit for the same request has inserted it, the
/// unit runs again and finds it.
async fn insert_once<R: Persisted>(uow: &mut dyn UnitOfWork, record: R) -> Result<Stored<R>> {
    let inserted = unaudited::insert(uow, record).await;
    inserted.map_err(|error| match error {
        Error::Store(error) => Error::Store(error.conflict_as_retry()),
        error => error,
    })
}

/// Returns the digest under which the secret of a setup intent is stored.
pub(super) fn secret_hash(client_secret: &str) -> String {
    hex(&Sha256::digest(client_secret))
}

/// Stores a setup intent. A repeated request replaces the secret, of which only the digest is stored.
async fn store_intent(
    uow: &mut dyn UnitOfWork,
    id: &str,
    client_secret: &str,
    customer: &str,
) -> Result<()> {
    let secret_hash = secret_hash(client_secret);
    let known = unowned_records::<LedgerSetupIntent>(uow).find(id).await?;
    if let Some(known) = known {
        let mut next = known.edit();
        next.secret_hash = secret_hash;
        unaudited::replace(uow, &known, next).await?;
        return Ok(());
    }
    let intent = LedgerSetupIntent {
        id: id.to_owned(),
        secret_hash,
        customer: customer.to_owned(),
        method_id: None,
        created_at: uow.now().await?,
    };
    insert_once(uow, intent).await?;
    Ok(())
}

async fn store_method(
    uow: &mut dyn UnitOfWork,
    id: &str,
    card: TestCard,
    customer: &str,
) -> Result<Stored<LedgerMethod>> {
    if let Some(known) = unowned_records::<LedgerMethod>(uow).find(id).await? {
        return Ok(known);
    }
    let method = LedgerMethod {
        id: id.to_owned(),
        card,
        customer: Some(customer.to_owned()),
        created_at: uow.now().await?,
    };
    insert_once(uow, method).await
}

async fn store_invoice(
    uow: &mut dyn UnitOfWork,
    invoice: &PushedInvoice,
) -> Result<Stored<LedgerInvoice>> {
    if let Some(known) = unowned_records::<LedgerInvoice>(uow)
        .find(&invoice.id)
        .await?
    {
        return Ok(known);
    }
    let pushed = LedgerInvoice {
        id: invoice.id.clone(),
        customer: invoice.customer.clone(),
        amount_due: invoice.amount_due.minor(),
        currency: invoice.amount_due.currency(),
        status: LedgerInvoiceStatus::Open,
        created_at: uow.now().await?,
    };
    insert_once(uow, pushed).await
}

async fn last_charge(
    uow: &mut dyn UnitOfWork,
    invoice: &InvoiceId,
) -> Result<Option<Stored<LedgerCharge>>> {
    let charges = LedgerChargeQuery::Of(invoice.clone());
    unowned_records::<LedgerCharge>(uow).first(&charges).await
}

/// Charges an open invoice once for a key.
async fn store_charge(
    uow: &mut dyn UnitOfWork,
    key: &OpKey,
    invoice: &str,
    method: &str,
) -> Result<LedgerOutcome> {
    if let Some(known) = unowned_records::<LedgerCharge>(uow)
        .find(key.as_str())
        .await?
    {
        return Ok(known.outcome);
    }
    let invoice = unowned_records::<LedgerInvoice>(uow).get(invoice).await?;
    let method = unowned_records::<LedgerMethod>(uow).get(method).await?;
    let is_chargeable = matches!(
        invoice.status,
        LedgerInvoiceStatus::Open | LedgerInvoiceStatus::Uncollectible
    );
    if !is_chargeable || method.customer.as_ref() != Some(&invoice.customer) {
        let message = "the invoice cannot be charged to this payment method";
        return Err(Error::refused(crate::kernel::Code::InvalidState, message));
    }
    let outcome = outcome_of(method.card);
    if outcome == LedgerOutcome::Paid {
        let mut paid = invoice.edit();
        paid.status = LedgerInvoiceStatus::Paid;
        unaudited::replace(uow, &invoice, paid).await?;
    }
    let last = last_charge(uow, &invoice.id).await?;
    let charge = LedgerCharge {
        op_key: key.as_str().to_owned(),
        invoice_id: invoice.id.clone(),
        number: last.map_or(1, |last| last.number + 1),
        method_id: method.id.clone(),
        outcome,
        created_at: uow.now().await?,
    };
    insert_once(uow, charge).await?;
    Ok(outcome)
}
