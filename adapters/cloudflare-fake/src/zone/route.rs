//! Worker routes of a zone.

use serde::Deserialize;
use serde_json::json;

use crate::envelope::{Refusal, Reply, ok};
use crate::request::Request;
use crate::state::State;
use crate::state::route::Route;
use crate::state::zone::Zone;

const NOT_FOUND: Refusal = Refusal::new(404, 10009, "The route does not exist.");
const EXISTS: Refusal = Refusal::new(409, 10020, "A route with the same pattern already exists.");
const NO_SCRIPT: Refusal = Refusal::new(400, 10019, "The Worker of the route does not exist.");
const BAD_PATTERN: Refusal = Refusal::new(400, 10022, "The route's pattern is invalid.");

#[derive(Deserialize)]
struct Body {
    pattern: String,
    script: Option<String>,
}

/// `/zones/{zone_id}/workers/routes/..`
pub(super) fn route(
    state: &mut State,
    zone: usize,
    request: &Request,
    path: &[&str],
) -> Option<Reply> {
    let method = request.method.as_str();
    let Some((id, [])) = path.split_first() else {
        return match (method, path) {
            ("GET", []) => Some(ok(state.zones[zone]
                .routes
                .iter()
                .map(Route::view)
                .collect())),
            ("POST", []) => Some(create(state, zone, request)),
            _ => None,
        };
    };
    let Some(at) = state.zones[zone]
        .routes
        .iter()
        .position(|route| route.id == *id)
    else {
        return Some(Err(NOT_FOUND));
    };
    Some(match method {
        "PUT" => read(state, zone, request, Some(at)).and_then(|body| {
            let route = &mut state.zones[zone].routes[at];
            (route.pattern, route.script) = (body.pattern, body.script);
            ok(route.view())
        }),
        "DELETE" => {
            state.zones[zone].routes.remove(at);
            ok(json!({"id": id}))
        }
        _ => return None,
    })
}

fn create(state: &mut State, zone: usize, request: &Request) -> Reply {
    let body = read(state, zone, request, None)?;
    let route = Route {
        id: state.ids.hex(),
        pattern: body.pattern,
        script: body.script,
    };
    let view = route.view();
    state.zones[zone].routes.push(route);
    ok(view)
}

fn read(
    state: &State,
    zone: usize,
    request: &Request,
    but: Option<usize>,
) -> Result<Body, Refusal> {
    let body: Body = request.json(BAD_PATTERN.code)?;
    let zone = &state.zones[zone];
    if !is_valid(zone, &body.pattern) {
        return Err(BAD_PATTERN);
    }
    let mut routes = zone.routes.iter().enumerate();
    if routes.any(|(at, route)| route.pattern == body.pattern && Some(at) != but) {
        return Err(EXISTS);
    }
    if body
        .script
        .as_ref()
        .is_some_and(|script| state.script(script).is_none())
    {
        return Err(NO_SCRIPT);
    }
    Ok(body)
}

/// Returns whether a pattern is valid: a host or custom hostname of the zone with `*` only at its start, and a path
/// with `*` only at its end.
fn is_valid(zone: &Zone, pattern: &str) -> bool {
    let pattern = pattern
        .strip_prefix("https://")
        .or_else(|| pattern.strip_prefix("http://"))
        .unwrap_or(pattern);
    let (host, path) = pattern.split_once('/').unwrap_or((pattern, ""));
    let host = host.strip_prefix('*').unwrap_or(host);
    let host = host.strip_prefix('.').unwrap_or(host);
    let path = path.strip_suffix('*').unwrap_or(path);
    let is_custom = zone.hostnames.iter().any(|own| own.hostname == host);
    (zone.contains(host) || is_custom) && !host.contains('*') && !path.contains(['*', '?'])
}
