//! Zones and their objects.

mod dns;
pub(crate) mod domain;
mod hostname;
mod route;

use crate::access::{FOREIGN, check_id};
use crate::envelope::{Refusal, Reply};
use crate::page::{PageSize, page};
use crate::request::Request;
use crate::state::State;

const PAGE: PageSize = PageSize {
    min: 5,
    default: 20,
    max: 50,
};

/// `/zones/..`
pub(crate) fn route(state: &mut State, request: &Request, path: &[&str]) -> Option<Reply> {
    let Some((id, rest)) = path.split_first() else {
        return (request.method == "GET").then(|| list(state, request));
    };
    let at = match find(state, id) {
        Ok(at) => at,
        Err(refusal) => return Some(Err(refusal)),
    };
    match rest {
        ["dns_records", rest @ ..] => dns::route(state, at, request, rest),
        ["workers", "routes", rest @ ..] => route::route(state, at, request, rest),
        ["custom_hostnames", rest @ ..] => hostname::route(state, at, request, rest),
        _ => None,
    }
}

/// Finds a zone of the token. Ids of other zones are unknown.
fn find(state: &State, id: &str) -> Result<usize, Refusal> {
    check_id(id)?;
    let at = state.zones.iter().position(|zone| zone.id == id);
    at.ok_or(FOREIGN)
}

fn list(state: &State, request: &Request) -> Reply {
    let fits = |name: &str, own: &str| request.param(name).is_none_or(|asked| asked == own);
    let zones = state.zones.iter();
    let zones = zones.filter(|zone| fits("name", &zone.name) && fits("status", &zone.status));
    let views = zones.map(|zone| zone.view(&state.settings.account_id));
    page(request, views.collect(), PAGE)
}
