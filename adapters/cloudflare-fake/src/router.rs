//! Who may ask, and which product answers.

use crate::envelope::{Refusal, Reply};
use crate::request::Request;
use crate::script::{assets, service};
use crate::state::State;
use crate::{d1, kv, queue, r2, script};

const NO_ROUTE: Refusal = Refusal::new(
    404,
    7003,
    "Could not route the request, perhaps your object identifier is invalid?",
);
const UNAUTHENTICATED: Refusal = Refusal::new(401, 10000, "Authentication error");
const BAD_HEADER: Refusal = Refusal::new(400, 6111, "Invalid format for Authorization header");
const FOREIGN: Refusal = Refusal::new(403, 9109, "Unauthorized to access requested resource");

/// Carries a request out.
pub(crate) fn handle(state: &mut State, request: &Request) -> Reply {
    state.clock.tick();
    let segments: Vec<_> = request.segments.iter().map(String::as_str).collect();
    if request.header("authorization").is_none() {
        return Err(UNAUTHENTICATED);
    }
    let bearer = request.bearer().ok_or(BAD_HEADER)?;
    if let ["accounts", account, "workers", "assets", "upload"] = segments[..] {
        return owned(state, account).and_then(|()| assets::upload(state, request, bearer));
    }
    if bearer != state.settings.token {
        return Err(UNAUTHENTICATED);
    }
    let reply = match &segments[..] {
        ["accounts", account, path @ ..] => {
            owned(state, account)?;
            of_account(state, request, path)
        }
        _ => None,
    };
    reply.unwrap_or(Err(NO_ROUTE))
}

/// Refuses accounts that are not the token's.
fn owned(state: &State, account: &str) -> Result<(), Refusal> {
    let is_id = account.len() == 32 && account.chars().all(|c| c.is_ascii_hexdigit());
    if !is_id {
        return Err(NO_ROUTE);
    }
    if account == state.settings.account_id {
        Ok(())
    } else {
        Err(FOREIGN)
    }
}

fn of_account(state: &mut State, request: &Request, path: &[&str]) -> Option<Reply> {
    match path {
        ["d1", "database", path @ ..] => d1::route(state, request, path),
        ["r2", "buckets", path @ ..] => r2::route(state, request, path),
        ["storage", "kv", "namespaces", path @ ..] => kv::route(state, request, path),
        ["queues", path @ ..] => queue::route(state, request, path),
        ["workers", "scripts", path @ ..] => script::route(state, request, path),
        ["workers", "services", name] => service::route(state, request, name),
        ["workers", "subdomain"] => script::account_subdomain(state, request),
        _ => None,
    }
}
