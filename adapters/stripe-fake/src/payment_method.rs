//! Operations on payment methods.

use serde_json::Value;

use crate::card::TestCard;
use crate::envelope::{Refusal, Reply};
use crate::page::{PAGE, page};
use crate::params::Params;
use crate::state::State;
use crate::state::object::merge;
use crate::state::payment_method::PaymentMethod;

pub(crate) fn create(state: &mut State, params: &Params) -> Reply {
    params.only(&["type", "card", "metadata"])?;
    params.require("type")?;
    params.one_of("type", &["card"])?;
    let card = params.object("card")?;
    card.only(&["number", "exp_month", "exp_year", "cvc"])?;
    let number = card.require("number")?;
    let known = TestCard::of_number(number).ok_or_else(|| {
        let message = "Your card number is not the number of a test card.";
        Refusal::new(402, "card_error", message).code("incorrect_number")
    })?;
    let mut method = PaymentMethod::new(state.origin("pm"), known);
    method.exp_month = card.integer("exp_month")?.unwrap_or(method.exp_month);
    method.exp_year = card.integer("exp_year")?.unwrap_or(method.exp_year);
    merge(&mut method.metadata, params.pairs("metadata")?);
    let rendered = method.render();
    state.payment_methods.push(method);
    Ok(rendered)
}

pub(crate) fn list(state: &State, params: &Params) -> Reply {
    params.only(&[&PAGE[..], &["customer", "type"]].concat())?;
    params.one_of("type", &["card"])?;
    let customer = params.require("customer")?;
    state.customer(customer, "customer")?;
    let rows = state.payment_methods.iter().rev();
    let rows = rows.filter(|own| own.customer.as_deref() == Some(customer));
    let rows = rows.map(PaymentMethod::render).collect();
    page(rows, params, "/v1/payment_methods")
}

pub(crate) fn get(state: &mut State, id: &str, params: &Params) -> Reply {
    params.only(&[])?;
    if let Some(card) = TestCard::of_method(id) {
        // Stripe returns a new method each time, which is not attached.
        return Ok(PaymentMethod::new(state.origin("pm"), card).render());
    }
    Ok(state.payment_method(id, "payment_method")?.render())
}

pub(crate) fn attach(state: &mut State, id: &str, params: &Params) -> Reply {
    params.only(&["customer"])?;
    let customer = params.require("customer")?.to_owned();
    attach_to(state, id, &customer)
}

/// Attaches a method to a customer. The id of a test card stands for a new method.
pub(crate) fn attach_to(state: &mut State, id: &str, customer: &str) -> Reply {
    state.customer(customer, "customer")?;
    let id = match TestCard::of_method(id) {
        None => id.to_owned(),
        Some(card) => {
            if let Some(refusal) = card.attach_refusal() {
                return Err(refusal);
            }
            let method = PaymentMethod::new(state.origin("pm"), card);
            let id = method.id.clone();
            state.payment_methods.push(method);
            id
        }
    };
    let method = state.payment_method_mut(&id, "payment_method")?;
    if let Some(refusal) = method.card.attach_refusal() {
        return Err(refusal);
    }
    if method.is_detached {
        let message = "This PaymentMethod was previously used without being attached to a Customer or was detached from a Customer, and may not be used again.";
        return Err(Refusal::state(message));
    }
    match &method.customer {
        Some(own) if own != customer => {
            let message =
                "The payment method you provided has already been attached to a customer.";
            return Err(Refusal::state(message).code("payment_method_already_attached"));
        }
        Some(_) => return Ok(method.render()),
        None => method.customer = Some(customer.to_owned()),
    }
    let rendered = method.render();
    state.emit("payment_method.attached", rendered.clone());
    Ok(rendered)
}

pub(crate) fn detach(state: &mut State, id: &str, params: &Params) -> Reply {
    params.only(&[])?;
    let method = state.payment_method_mut(id, "payment_method")?;
    if method.customer.is_none() {
        let message = "The payment method you provided is not attached to a customer so detachment is impossible.";
        return Err(Refusal::state(message));
    }
    method.customer = None;
    method.is_detached = true;
    let rendered: Value = method.render();
    for customer in &mut state.customers {
        if customer.default_method.as_deref() == Some(id) {
            customer.default_method = None;
        }
    }
    state.emit("payment_method.detached", rendered.clone());
    Ok(rendered)
}
