//! Operations on setup intents.

use crate::card::TestCard;
use crate::envelope::{Refusal, Reply};
use crate::params::Params;
use crate::payment_method::attach_to;
use crate::state::State;
use crate::state::object::merge;
use crate::state::setup_intent::SetupIntent;

pub(crate) fn create(state: &mut State, params: &Params) -> Reply {
    params.only(&[
        "customer",
        "usage",
        "metadata",
        "allowed_payment_method_types",
    ])?;
    for kind in params.texts("allowed_payment_method_types")? {
        if kind != "card" {
            let message = "The fake supports cards only.";
            return Err(Refusal::parameter("allowed_payment_method_types", message));
        }
    }
    let usage = params.one_of("usage", &["off_session", "on_session"])?;
    let customer = params.text("customer")?;
    if let Some(customer) = customer {
        state.customer(customer, "customer")?;
    }
    let secret = state.ids.with_prefix("secret");
    let mut intent = SetupIntent::new(state.origin("seti"), secret);
    intent.customer = customer.map(str::to_owned);
    intent.usage = usage.unwrap_or("off_session").to_owned();
    merge(&mut intent.metadata, params.pairs("metadata")?);
    let rendered = intent.render();
    state.setup_intents.push(intent);
    state.emit("setup_intent.created", rendered.clone());
    Ok(rendered)
}

pub(crate) fn get(state: &State, id: &str, params: &Params) -> Reply {
    params.only(&[])?;
    Ok(state.setup_intent(id, "intent")?.render())
}

pub(crate) fn confirm(state: &mut State, id: &str, params: &Params) -> Reply {
    params.only(&["payment_method", "return_url"])?;
    let intent = state.setup_intent(id, "intent")?;
    if intent.status == "succeeded" {
        let message = "You cannot confirm this SetupIntent because it has already succeeded.";
        return Err(Refusal::state(message).code("setup_intent_unexpected_state"));
    }
    let customer = intent.customer.clone();
    let method = params.require("payment_method")?.to_owned();
    let attached = match customer {
        Some(customer) => attach_to(state, &method, &customer),
        None => find_card(state, &method),
    };
    match attached {
        Err(refusal) if refusal.status == 402 => {
            let intent = state.setup_intent_mut(id, "intent")?;
            intent.error = Some(refusal.error());
            let rendered = intent.render();
            state.emit("setup_intent.setup_failed", rendered.clone());
            Err(refusal.member("setup_intent", rendered))
        }
        Err(refusal) => Err(refusal),
        Ok(method) => {
            let intent = state.setup_intent_mut(id, "intent")?;
            intent.status = "succeeded";
            intent.error = None;
            intent.method = method["id"].as_str().map(str::to_owned);
            let rendered = intent.render();
            state.emit("setup_intent.succeeded", rendered.clone());
            Ok(rendered)
        }
    }
}

/// Returns a method that is not attached, unless its card is refused.
fn find_card(state: &State, method: &str) -> Reply {
    let card = TestCard::of_method(method);
    let card = card.map_or_else(
        || Ok(state.payment_method(method, "payment_method")?.card),
        Ok,
    )?;
    match card.attach_refusal() {
        Some(refusal) => Err(refusal),
        None => Ok(serde_json::json!({"id": method})),
    }
}
