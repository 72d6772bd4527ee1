//! The entry of a test card for a setup intent of the embedded provider. With Stripe, the browser of the customer enters the
//! card at Stripe instead.

use super::ledger::{INTENT_LIFETIME, secret_hash};
use super::{Billing, payment_method};
use crate::access::{unaudited, unowned_records};
use crate::billing::{Customer, CustomerQuery, LedgerSetupIntent, PaymentProvider};
use crate::kernel::{Code, Context, Error, Result, Stored};
use crate::port::{Mode, OpKey, Store, UnitOfWork, transact};

/// The kind of record that a missing setup intent is reported as.
const SETUP_INTENT: &str = "setup intent";

/// The first characters of every client secret.
const PREFIX: &str = "seti_";

/// The text between the id of a setup intent and the random part of its client secret.
const SEPARATOR: &str = "_secret_";

/// A setup intent for which a card can be entered.
#[derive(Clone, Debug)]
pub struct CardEntry {
    /// The customer who gets the card.
    pub customer: Stored<Customer>,
    /// Whether a card was entered. A setup intent adds one card.
    pub is_done: bool,
    intent: String,
}

/// Returns whether the token of a page has the form of a client secret.
#[must_use]
pub fn is_client_secret(token: &str) -> bool {
    token.starts_with(PREFIX) && token.contains(SEPARATOR)
}

/// Returns the setup intent of a client secret.
///
/// # Errors
/// `NOT_FOUND` if the secret is wrong or older than 24 hours, or payments are not simulated.
pub async fn find(store: &dyn Store, billing: &Billing, client_secret: &str) -> Result<CardEntry> {
    if billing.payments.provider() != PaymentProvider::Ledger {
        return Err(Error::NotFound(SETUP_INTENT));
    }
    let mut uow = store.begin(Mode::Read).await?;
    let found = load(uow.as_mut(), client_secret).await;
    uow.rollback().await;
    found?.ok_or(Error::NotFound(SETUP_INTENT))
}

async fn load(uow: &mut dyn UnitOfWork, client_secret: &str) -> Result<Option<CardEntry>> {
    let Some((id, _)) = client_secret.split_once(SEPARATOR) else {
        return Ok(None);
    };
    let Some(intent) = unowned_records::<LedgerSetupIntent>(uow).find(id).await? else {
        return Ok(None);
    };
    // The time of comparing digests does not help to guess the secret.
    let is_right = secret_hash(client_secret) == intent.secret_hash;
    let is_expired = uow.now().await?.since(intent.created_at) > INTENT_LIFETIME;
    if !is_right || is_expired {
        return Ok(None);
    }
    let of_intent = CustomerQuery::WithProviderId(intent.customer.clone());
    let customer = unowned_records::<Customer>(uow).first(&of_intent).await?;
    Ok(customer.map(|customer| CardEntry {
        customer,
        is_done: intent.method_id.is_some(),
        intent: intent.id.clone(),
    }))
}

/// Adds a test card to the customer of a setup intent. The first card becomes the default, which pays the open invoices at
/// once.
///
/// # Errors
/// - `INVALID_STATE` if a card was entered before.
/// - `NOT_FOUND` if there is no such test card.
/// - `PAYMENT_REQUIRED` if the card is refused, and `LIMIT_REACHED` if the customer has too many cards. Another card can be
///   entered then.
pub async fn enter(
    cx: &Context,
    store: &dyn Store,
    billing: &Billing,
    entry: &CardEntry,
    card: &str,
) -> Result<()> {
    if entry.is_done {
        return Err(Error::refused(
            Code::InvalidState,
            "A card was added with this link. Ask for a new link to add another one.",
        ));
    }
    let key = OpKey::new(&entry.intent, &format!("card:{card}"));
    let customer = &entry.customer.id;
    let attached = payment_method::attach(cx, store, billing, customer, card, &key).await?;
    transact(store, |uow, _| {
        let (intent, method) = (&entry.intent, &attached.id);
        Box::pin(async move { mark_done(uow, intent, method).await })
    })
    .await
}

async fn mark_done(uow: &mut dyn UnitOfWork, intent: &str, method: &str) -> Result<()> {
    let seen = unowned_records::<LedgerSetupIntent>(uow)
        .get(intent)
        .await?;
    if seen.method_id.is_some() {
        return Ok(());
    }
    let mut next = seen.edit();
    next.method_id = Some(method.to_owned());
    unaudited::replace(uow, &seen, next).await.map(drop)
}
