//! Expansion of ids to objects, as the parameter `expand` asks.

use serde_json::{Value, json};

use crate::envelope::{Refusal, Reply};
use crate::params::Params;
use crate::state::State;
use crate::state::object::embedded_list;

/// Maximum depth of an expansion.
const MAX_LEVELS: usize = 4;

/// Expands the members of a response.
pub(crate) fn expand(state: &State, mut response: Value, params: &Params) -> Reply {
    for path in params.texts("expand")? {
        let names: Vec<_> = path.split('.').collect();
        if names.len() > MAX_LEVELS {
            let message = "You cannot expand more than 4 levels of a property.";
            return Err(Refusal::parameter("expand", message).code("property_expansion_max_depth"));
        }
        if expand_member(state, &mut response, &names).is_none() {
            let message = format!("This property cannot be expanded ({path}).");
            return Err(Refusal::parameter("expand", message));
        }
    }
    Ok(response)
}

/// Expands a member. Returns `None` if it cannot be expanded.
fn expand_member(state: &State, value: &mut Value, path: &[&str]) -> Option<()> {
    let Some((name, rest)) = path.split_first() else {
        return Some(());
    };
    match value {
        Value::Array(elements) => elements
            .iter_mut()
            .try_for_each(|element| expand_member(state, element, path)),
        Value::Object(members) => {
            if !members.contains_key(*name) {
                let id = members.get("id").and_then(Value::as_str)?;
                let added = invoice_member(state, id, name)?;
                members.insert((*name).to_owned(), added);
            }
            let member = members.get_mut(*name)?;
            if let Some(id) = member.as_str() {
                *member = object(state, id)?;
            }
            expand_member(state, member, rest)
        }
        Value::Null => Some(()),
        _ => None,
    }
}

/// Returns the object with an id.
fn object(state: &State, id: &str) -> Option<Value> {
    let customer = state.customer(id, "").map(|own| own.render());
    let method = || state.payment_method(id, "").map(|own| own.render());
    let intent = || state.payment_intent(id, "").map(|own| own.render());
    let invoice = || state.rendered_invoice(id);
    let found = customer.or_else(|_| method()).or_else(|_| intent());
    found.or_else(|_| invoice()).ok()
}

/// Returns a member of an invoice that is only there if it is expanded.
fn invoice_member(state: &State, invoice: &str, name: &str) -> Option<Value> {
    let invoice = state.invoice(invoice, "").ok()?;
    let intent = invoice.payment_intent.as_ref();
    let intent = intent.and_then(|id| state.payment_intent(id, "").ok());
    match name {
        "confirmation_secret" => Some(intent.map_or(
            Value::Null,
            |intent| json!({"client_secret": intent.client_secret(), "type": "payment_intent"}),
        )),
        "payments" => {
            let payments = intent.into_iter().map(|intent| {
                let is_paid = intent.status == "succeeded";
                let canceled_at = (intent.status == "canceled").then(|| state.clock.now());
                json!({
                    "id": intent.id.replacen("pi_", "inpay_", 1),
                    "object": "invoice_payment",
                    "amount_paid": is_paid.then_some(intent.amount),
                    "amount_requested": intent.amount,
                    "created": intent.origin.created,
                    "currency": intent.currency,
                    "invoice": intent.invoice,
                    "is_default": true,
                    "livemode": intent.origin.is_live,
                    "payment": {"type": "payment_intent", "payment_intent": intent.id},
                    "status": if is_paid { "paid" } else { "open" },
                    "status_transitions": {"canceled_at": canceled_at, "paid_at": invoice.paid_at.filter(|_| is_paid)},
                })
            });
            Some(embedded_list(
                payments.collect(),
                false,
                "/v1/invoice_payments",
            ))
        }
        _ => None,
    }
}
