//! The customer at the payment provider, and the errors of the provider as callers see them.

use serde_json::json;

use super::Billing;
use crate::access::{SystemScope, audited, unowned_records};
use crate::billing::Customer;
use crate::kernel::{Code, Context, Error, InvoiceId, Result};
use crate::port::{
    Cause, Decline, OpKey, PayingCustomer, PaymentsError, Store, UnitOfWork, transact,
};

/// The reason of a `PAYMENT_REQUIRED` for an attempt that the customer must confirm.
pub(super) const AUTHENTICATION_REQUIRED: &str = "authentication_required";

/// The reason of a `PAYMENT_REQUIRED` without a payment method.
pub(super) const NO_PAYMENT_METHOD: &str = "no_payment_method";

/// Why a charge has no outcome yet.
#[derive(Debug)]
pub(super) enum ChargeFailure {
    /// The provider has failed.
    Provider(PaymentsError),
    /// The outcome is not known yet.
    Unknown,
    /// The store has failed.
    Store(Error),
}

impl From<Error> for ChargeFailure {
    fn from(error: Error) -> Self {
        Self::Store(error)
    }
}

impl From<ChargeFailure> for Error {
    fn from(failure: ChargeFailure) -> Self {
        match failure {
            ChargeFailure::Provider(error) => payments_error(error),
            ChargeFailure::Unknown => outcome_unknown(),
            ChargeFailure::Store(error) => error,
        }
    }
}

/// Returns the details that the provider gets.
pub(super) fn details_of(customer: &Customer) -> PayingCustomer {
    PayingCustomer {
        id: customer.id.clone(),
        platform_id: customer.platform_id.clone(),
        email: customer.email.as_str().to_owned(),
        name: customer.name.as_ref().map(|name| name.as_str().to_owned()),
    }
}

/// Returns the id of a customer at the provider. Creates the customer there if it has none.
pub(super) async fn provider_customer(
    cx: &Context,
    store: &dyn Store,
    billing: &Billing,
    customer: &Customer,
) -> Result<String, PaymentsError> {
    if let Some(id) = &customer.provider_id {
        return Ok(id.clone());
    }
    let key = OpKey::new("cus", customer.id.as_str());
    let details = details_of(customer);
    let id = billing.payments.ensure_customer(&key, &details).await?;
    let stored = store_customer_id(cx, store, &details, &id).await;
    stored.map_err(|error| PaymentsError::Unknown(Cause::new(error)))?;
    Ok(id)
}

async fn store_customer_id(
    cx: &Context,
    store: &dyn Store,
    sent: &PayingCustomer,
    id: &str,
) -> Result<()> {
    transact(store, |uow, _| {
        Box::pin(async move { record_provider_id(cx, uow, sent, id).await })
    })
    .await
}

/// Stores the id of a customer at the provider, which has got these details.
async fn record_provider_id(
    cx: &Context,
    uow: &mut dyn UnitOfWork,
    sent: &PayingCustomer,
    provider_id: &str,
) -> Result<()> {
    let seen = unowned_records::<Customer>(uow).get(&sent.id).await?;
    let mut next = seen.edit();
    next.provider_id = Some(provider_id.to_owned());
    if details_of(&seen) != *sent {
        next.mark_unsent(uow.now().await?);
    }
    let cx = &cx.without_conditions();
    let scope = &SystemScope::new();
    audited::replace(cx, scope, uow, &seen, next, "customer.updated").await?;
    Ok(())
}

/// Returns the refusal of a request that needs a charge.
pub(super) fn payment_required(
    reason: &str,
    decline_code: Option<String>,
    invoice: Option<&InvoiceId>,
    client_secret: Option<&str>,
) -> Error {
    let message = match reason {
        AUTHENTICATION_REQUIRED => "The charge must be confirmed by the owner of the card.",
        NO_PAYMENT_METHOD => "There is no payment method. Add one first.",
        _ => "The card was declined.",
    };
    Error::Refused {
        code: Code::PaymentRequired,
        message: message.to_owned(),
        details: json!({
            "reason": reason,
            "declineCode": decline_code,
            "invoiceId": invoice,
            "clientSecret": client_secret,
        }),
    }
}

/// Returns the code that says most about a decline.
pub(super) fn decline_code(decline: &Decline) -> String {
    let code = decline.decline_code.as_ref();
    code.unwrap_or(&decline.error_code).clone()
}

/// Returns the reason of a `PAYMENT_REQUIRED` for the code of a decline.
pub(super) fn reason_of(code: Option<&str>) -> &'static str {
    match code {
        Some("insufficient_funds") => "insufficient_funds",
        Some("expired_card") => "expired_card",
        Some(AUTHENTICATION_REQUIRED) => AUTHENTICATION_REQUIRED,
        _ => "card_declined",
    }
}

/// Converts an error of the provider. Its cause appears in the log only.
pub(super) fn payments_error(error: PaymentsError) -> Error {
    match error {
        PaymentsError::Disabled(why) => Error::refused(Code::ServiceUnavailable, why),
        PaymentsError::Unknown(_) | PaymentsError::Conflict => outcome_unknown(),
        PaymentsError::Declined(decline) => {
            let code = decline_code(&decline);
            payment_required(reason_of(Some(&code)), Some(code), None, None)
        }
        _ => nothing_happened(),
    }
}

/// Returns the error of a request that was undone. A repetition begins from the start.
pub(super) fn nothing_happened() -> Error {
    Error::refused(
        Code::PaymentProviderUnavailable,
        "The payment provider failed. Nothing has happened; try again.",
    )
}

/// Returns the error of a change that could not be undone, so that it may still be made.
pub(super) fn not_undone(_: Error) -> Error {
    outcome_unknown()
}

/// Returns the error of a charge whose outcome is not known.
pub(super) fn outcome_unknown() -> Error {
    Error::refused(
        Code::PaymentOutcomeUnknown,
        "The outcome at the payment provider is not known yet. Repeat the request with the same idempotency key.",
    )
}
