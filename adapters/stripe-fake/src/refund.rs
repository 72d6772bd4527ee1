//! Operations on refunds.

use serde_json::json;

use crate::envelope::{Refusal, Reply};
use crate::page::{PAGE, TimeRange, page};
use crate::params::Params;
use crate::state::State;
use crate::state::object::merge;
use crate::state::payment_intent::PaymentIntent;
use crate::state::refund::Refund;

pub(crate) fn create(state: &mut State, params: &Params) -> Reply {
    params.only(&["amount", "charge", "payment_intent", "reason", "metadata"])?;
    let reason = params.one_of(
        "reason",
        &["duplicate", "fraudulent", "requested_by_customer"],
    )?;
    let intent = refunded_intent(state, params)?.id.clone();
    let id = refund(state, &intent, params.integer("amount")?)?;
    let own = state.refund_mut(&id, "refund")?;
    own.reason = reason.map(str::to_owned);
    merge(&mut own.metadata, params.pairs("metadata")?);
    Ok(own.render())
}

/// Refunds a payment, completely without an amount. Returns the id of the refund.
pub(crate) fn refund(
    state: &mut State,
    intent: &str,
    amount: Option<i64>,
) -> Result<String, Refusal> {
    let intent = state.payment_intent(intent, "payment_intent")?;
    if intent.status != "succeeded" {
        let message = "This PaymentIntent does not have a successful charge to refund.";
        return Err(Refusal::state(message));
    }
    let left = intent.amount - refunded_amount(state, &intent.charge_id());
    if left == 0 {
        let message = "Charge has already been refunded.";
        return Err(Refusal::state(message).code("charge_already_refunded"));
    }
    let amount = amount.unwrap_or(left);
    if !(1..=left).contains(&amount) {
        let message = format!("Refund amount ({amount}) is not between 1 and {left}.");
        return Err(Refusal::parameter("amount", message));
    }
    let intent = intent.id.clone();
    let origin = state.origin("re");
    let of = state.payment_intent(&intent, "payment_intent")?;
    let refund = Refund::new(origin, of, amount);
    let (id, rendered) = (refund.id.clone(), refund.render());
    state.refunds.push(refund);
    state.emit("refund.created", rendered);
    emit_charge(state, &intent);
    Ok(id)
}

pub(crate) fn get(state: &State, id: &str, params: &Params) -> Reply {
    params.only(&[])?;
    Ok(state.refund(id, "refund")?.render())
}

pub(crate) fn list(state: &State, params: &Params) -> Reply {
    params.only(&[&PAGE[..], &["charge", "created", "payment_intent"]].concat())?;
    let created = TimeRange::of_creation(params)?;
    let (charge, intent) = (params.text("charge")?, params.text("payment_intent")?);
    let rows = state.refunds.iter().rev().filter(|own| {
        created.contains(own.origin.created)
            && charge.is_none_or(|charge| own.charge == charge)
            && intent.is_none_or(|intent| own.payment_intent == intent)
    });
    page(rows.map(Refund::render).collect(), params, "/v1/refunds")
}

/// Returns the payment that the request names by its charge or by itself.
fn refunded_intent<'s>(state: &'s State, params: &Params) -> Result<&'s PaymentIntent, Refusal> {
    if let Some(id) = params.text("payment_intent")? {
        return state.payment_intent(id, "payment_intent");
    }
    let charge = params.require("charge")?;
    let mut intents = state.payment_intents.iter();
    let found = intents.find(|intent| intent.charge_id() == charge);
    found.ok_or_else(|| Refusal::missing("charge", charge, "charge"))
}

/// Returns the sum of all refunds of a charge.
fn refunded_amount(state: &State, charge: &str) -> i64 {
    let of_charge = state.refunds.iter().filter(|own| own.charge == charge);
    of_charge.map(|own| own.amount).sum()
}

/// Records the event that a charge was refunded. The fake has no charges of their own, so the object has only the members
/// that tell about the refund.
fn emit_charge(state: &mut State, intent: &str) {
    let Ok(intent) = state.payment_intent(intent, "payment_intent") else {
        return;
    };
    let refunded = refunded_amount(state, &intent.charge_id());
    let charge = json!({
        "id": intent.charge_id(),
        "object": "charge",
        "amount": intent.amount,
        "amount_refunded": refunded,
        "currency": intent.currency,
        "customer": intent.customer,
        "payment_intent": intent.id,
        "refunded": refunded == intent.amount,
    });
    state.emit("charge.refunded", charge);
}
