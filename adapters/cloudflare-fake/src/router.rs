//! Authentication and dispatch of requests to the products.

use crate::access::{FOREIGN, NO_ROUTE, check_id};
use crate::envelope::{Refusal, Reply};
use crate::request::Request;
use crate::script::service;
use crate::state::State;
use crate::{d1, kv, pages, queue, r2, script, user, zone};

const UNAUTHENTICATED: Refusal = Refusal::new(401, 10000, "Authentication error");
const BAD_HEADER: Refusal = Refusal::new(400, 6111, "Invalid format for Authorization header");

/// Handles a request.
pub(crate) fn handle(state: &mut State, request: &Request) -> Reply {
    state.clock.tick();
    let segments: Vec<_> = request.segments.iter().map(String::as_str).collect();
    if request.header("authorization").is_none() {
        return Err(UNAUTHENTICATED);
    }
    let bearer = request.bearer().ok_or(BAD_HEADER)?;
    if let ["pages", "assets", path @ ..] = &segments[..] {
        return pages::asset::route(state, request, bearer, path).unwrap_or(Err(NO_ROUTE));
    }
    if bearer != state.settings.token {
        return Err(UNAUTHENTICATED);
    }
    let reply = match &segments[..] {
        ["zones", path @ ..] => zone::route(state, request, path),
        ["accounts", account, path @ ..] => {
            check_account(state, account)?;
            of_account(state, request, path)
        }
        path => user::route(state, request, path),
    };
    reply.unwrap_or(Err(NO_ROUTE))
}

/// Refuses any account other than the one of the token.
fn check_account(state: &State, account: &str) -> Result<(), Refusal> {
    check_id(account)?;
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
        ["workers", "domains", path @ ..] => zone::domain::route(state, request, path),
        ["pages", "projects", path @ ..] => pages::route(state, request, path),
        ["workers", "subdomain"] => script::account_subdomain(state, request),
        _ => None,
    }
}
