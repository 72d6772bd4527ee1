//! Authentication, idempotency keys, and dispatch of requests to the operations.

use http::Method;
use serde_json::Value;

use crate::envelope::{Refusal, Reply};
use crate::expand::expand;
use crate::params::Params;
use crate::request::Request;
use crate::state::State;
use crate::{
    customer, endpoint, event, invoice, pay, payment_intent, payment_method, portal, refund,
    setup_intent,
};

/// The response to a request.
pub(crate) struct Answer {
    pub(crate) status: u16,
    pub(crate) body: Value,
    /// Whether the response is that of an earlier request with the same key.
    pub(crate) is_replayed: bool,
}

fn answer(reply: Reply) -> Answer {
    let (status, body) = match reply {
        Ok(body) => (200, body),
        Err(refusal) => (refusal.status, refusal.body()),
    };
    Answer {
        status,
        body,
        is_replayed: false,
    }
}

/// Handles a request.
pub(crate) fn handle(state: &mut State, request: &Request) -> Answer {
    let params = match prepare(state, request) {
        Ok(params) => params,
        Err(refusal) => return answer(Err(refusal)),
    };
    let now = state.clock.now();
    if let Some(key) = request.idempotency_key() {
        match state.keys.find(request, key, now) {
            Ok(None) => {}
            Ok(Some((status, body))) => {
                return Answer {
                    status,
                    body,
                    is_replayed: true,
                };
            }
            Err(refusal) => return answer(Err(refusal)),
        }
    }
    let reply = dispatch(state, request, &params).and_then(|body| expand(state, body, &params));
    let is_kept = reply
        .as_ref()
        .map_or_else(|refusal| refusal.is_kept, |_| true);
    let answer = answer(reply);
    if is_kept {
        state.keys.store(request, answer.status, &answer.body, now);
    }
    answer
}

/// Authenticates a request and decodes its parameters.
fn prepare(state: &State, request: &Request) -> Result<Params, Refusal> {
    let refusal = |message: &'static str| Refusal::new(401, "invalid_request_error", message);
    match request.key() {
        None => return Err(refusal("You did not provide an API key.")),
        Some(key) if key != state.settings.secret_key => {
            return Err(refusal("Invalid API Key provided."));
        }
        Some(_) => {}
    }
    request.params()
}

fn dispatch(state: &mut State, request: &Request, params: &Params) -> Reply {
    let segments: Vec<_> = request.segments.iter().map(String::as_str).collect();
    let ["v1", path @ ..] = &segments[..] else {
        return Err(no_route(request));
    };
    match (request.method.as_str(), path) {
        ("POST", ["customers"]) => customer::create(state, params),
        ("GET", ["customers"]) => customer::list(state, params),
        ("GET", ["customers", id]) => customer::get(state, id, params),
        ("POST", ["customers", id]) => customer::update(state, id, params),
        ("POST", ["setup_intents"]) => setup_intent::create(state, params),
        ("GET", ["setup_intents", id]) => setup_intent::get(state, id, params),
        ("POST", ["setup_intents", id, "confirm"]) => setup_intent::confirm(state, id, params),
        ("POST", ["payment_methods"]) => payment_method::create(state, params),
        ("GET", ["payment_methods"]) => payment_method::list(state, params),
        ("GET", ["payment_methods", id]) => payment_method::get(state, id, params),
        ("POST", ["payment_methods", id, "attach"]) => payment_method::attach(state, id, params),
        ("POST", ["payment_methods", id, "detach"]) => payment_method::detach(state, id, params),
        ("GET", ["payment_intents", id]) => payment_intent::get(state, id, params),
        ("POST", ["payment_intents", id, "confirm"]) => payment_intent::confirm(state, id, params),
        ("POST", ["refunds"]) => refund::create(state, params),
        ("GET", ["refunds"]) => refund::list(state, params),
        ("GET", ["refunds", id]) => refund::get(state, id, params),
        ("POST", ["billing_portal", "sessions"]) => portal::create(state, params),
        ("GET", ["events"]) => event::list(state, params),
        ("GET", ["events", id]) => event::get(state, id, params),
        ("POST", ["webhook_endpoints"]) => endpoint::create(state, params),
        (_, ["invoices", path @ ..]) => {
            let reply = of_invoices(state, &request.method, path, params);
            reply.unwrap_or_else(|| Err(no_route(request)))
        }
        _ => Err(no_route(request)),
    }
}

fn of_invoices(
    state: &mut State,
    method: &Method,
    path: &[&str],
    params: &Params,
) -> Option<Reply> {
    Some(match (method.as_str(), path) {
        ("POST", []) => invoice::create(state, params),
        ("GET", []) => invoice::list(state, params),
        ("GET", [id]) => invoice::get(state, id, params),
        ("DELETE", [id]) => invoice::delete(state, id, params),
        ("POST", [id, "add_lines"]) => invoice::add_lines(state, id, params),
        ("GET", [id, "lines"]) => invoice::lines(state, id, params),
        ("POST", [id, "finalize"]) => invoice::finalize(state, id, params),
        ("POST", [id, "pay"]) => pay::pay(state, id, params),
        ("POST", [id, "void"]) => invoice::void(state, id, params),
        ("POST", [id, "mark_uncollectible"]) => invoice::mark_uncollectible(state, id, params),
        _ => return None,
    })
}

fn no_route(request: &Request) -> Refusal {
    let message = format!(
        "Unrecognized request URL ({}: {}).",
        request.method, request.path
    );
    Refusal::new(404, "invalid_request_error", message).not_kept()
}
