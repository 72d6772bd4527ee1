//! Disputes: a customer had the bank take a payment back.

use core_domain::billing::Currency;
use core_domain::port::LostDispute;
use serde::Deserialize;

use crate::call::Call;
use crate::currency::from_stripe;
use crate::error::CallError;
use crate::event::Reference;
use crate::session::Session;

#[derive(Deserialize)]
struct Event {
    data: Data,
}

#[derive(Deserialize)]
struct Data {
    object: Dispute,
}

/// The changed object of an event. Its members are those of a dispute, if it is one.
#[derive(Deserialize)]
struct Dispute {
    id: Option<String>,
    object: Option<String>,
    status: Option<String>,
    amount: Option<i64>,
    currency: Option<String>,
    payment_intent: Option<Reference>,
}

#[derive(Deserialize)]
struct PaymentIntent {
    customer: Option<Reference>,
}

/// Returns the dispute that an event is about, if it is lost. A lost dispute never changes, so the event is as good as the
/// dispute, which the key has no permission to read.
pub(crate) async fn find_lost(
    session: &Session<'_>,
    event: &str,
) -> Result<Option<LostDispute>, CallError> {
    let event: Option<Event> = session
        .find(&Call::get("event.find", &["events", event]))
        .await?;
    let Some(dispute) = event.map(|event| event.data.object) else {
        return Ok(None);
    };
    let is_lost =
        dispute.object.as_deref() == Some("dispute") && dispute.status.as_deref() == Some("lost");
    let payment = dispute.payment_intent.filter(|_| is_lost);
    let (Some(id), Some(payment)) = (dispute.id, payment) else {
        return Ok(None);
    };
    let payment = Call::get(
        "payment_intent.find",
        &["payment_intents", &payment.into_id()],
    );
    let payment: Option<PaymentIntent> = session.find(&payment).await?;
    let Some(customer) = payment.and_then(|payment| payment.customer) else {
        return Ok(None);
    };
    let why = || CallError::Impossible(format!("the amount of the dispute {id} is not valid"));
    let currency = dispute
        .currency
        .and_then(|code| Currency::parse(&code).ok());
    let currency = currency.ok_or_else(why)?;
    let amount = dispute
        .amount
        .and_then(|amount| from_stripe(amount, currency));
    Ok(Some(LostDispute {
        amount: amount.ok_or_else(why)?,
        customer: customer.into_id(),
        currency,
        id,
    }))
}
