//! Operations on payment intents, which belong to invoices.

use crate::card::ChargeEnd;
use crate::envelope::{Refusal, Reply};
use crate::params::Params;
use crate::pay::settle;
use crate::state::State;

pub(crate) fn get(state: &State, id: &str, params: &Params) -> Reply {
    params.only(&[])?;
    Ok(state.payment_intent(id, "intent")?.render())
}

/// Confirms a charge, as the browser of the owner of the card does. A card that requires confirmation is then charged.
pub(crate) fn confirm(state: &mut State, id: &str, params: &Params) -> Reply {
    params.only(&["payment_method", "return_url"])?;
    let intent = state.payment_intent(id, "intent")?;
    if !["requires_payment_method", "requires_action"].contains(&intent.status) {
        let message = format!(
            "You cannot confirm this PaymentIntent because it has a status of {}.",
            intent.status
        );
        return Err(Refusal::state(message).code("payment_intent_unexpected_state"));
    }
    let method = match params.text("payment_method")? {
        Some(method) => method.to_owned(),
        None => intent
            .method
            .clone()
            .ok_or_else(|| Refusal::parameter("payment_method", "There is no payment method."))?,
    };
    let end = state
        .payment_method(&method, "payment_method")?
        .charge_end
        .clone();
    let end = match end {
        ChargeEnd::AuthenticationRequired => ChargeEnd::Paid,
        end => end,
    };
    settle(state, id, &method, &end)?;
    Ok(state.payment_intent(id, "intent")?.render())
}
