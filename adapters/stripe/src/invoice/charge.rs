//! Charging an invoice.

use core_domain::port::{CollectOutcome, OpKey};
use serde::Deserialize;

use super::look_up::find_by_id;
use super::{CHARGE, Invoice, action_required};
use crate::call::Call;
use crate::error::{CallError, SecretText};
use crate::session::Session;

#[derive(Deserialize)]
struct Confirmation {
    confirmation_secret: Option<ConfirmationSecret>,
}

#[derive(Deserialize)]
struct ConfirmationSecret {
    client_secret: SecretText,
}

/// Charges an open invoice to a payment method.
pub(crate) async fn collect(
    session: &Session<'_>,
    key: &OpKey,
    id: &str,
    method: &str,
) -> Result<CollectOutcome, CallError> {
    let pay = Call::post("invoice.pay", &["invoices", id, "pay"])
        .param("payment_method", method)
        .param("off_session", true)
        .param("expand[0]", CHARGE)
        .key(key.as_str());
    match session
        .change(&pay, || Box::pin(find_charged(session, id)))
        .await
    {
        Ok(invoice) if invoice.status.as_deref() == Some("paid") => Ok(CollectOutcome::Paid),
        Ok(invoice) => Ok(invoice.last_charge().unwrap_or(CollectOutcome::Processing)),
        Err(error) => outcome_of(session, id, error).await,
    }
}

/// Finds an invoice that is paid, or whose charge is pending. Otherwise it was not charged and can be charged again: a
/// declined charge has no effect.
async fn find_charged(session: &Session<'_>, id: &str) -> Result<Option<Invoice>, CallError> {
    let found = find_by_id(session, id).await?;
    Ok(found.filter(|own| {
        let is_pending = own.last_charge() == Some(CollectOutcome::Processing);
        is_pending || own.status.as_deref() == Some("paid")
    }))
}

/// Returns the outcome of a charge that the issuer refused.
async fn outcome_of(
    session: &Session<'_>,
    id: &str,
    error: CallError,
) -> Result<CollectOutcome, CallError> {
    let Some(card) = error.card_error() else {
        return Err(error);
    };
    if !card.needs_authentication() {
        return Ok(CollectOutcome::Declined(card.decline()));
    }
    let secret = match card.client_secret() {
        Some(secret) => Some(secret),
        None => confirmation_secret(session, id).await?,
    };
    Ok(match secret {
        Some(secret) => action_required(secret),
        None => CollectOutcome::Declined(card.decline()),
    })
}

async fn confirmation_secret(
    session: &Session<'_>,
    id: &str,
) -> Result<Option<core_domain::kernel::Secret>, CallError> {
    let get = Call::get("invoice.find", &["invoices", id]);
    let get = get.param("expand[0]", "confirmation_secret");
    let found: Confirmation = session.fetch(&get).await?;
    Ok(found.confirmation_secret.map(|own| own.client_secret.0))
}
