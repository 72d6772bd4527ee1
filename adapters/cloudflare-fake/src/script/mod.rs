//! Worker scripts.

mod binding;
mod code;
mod form;
mod secret;
pub(crate) mod service;
mod settings;
mod upload;
mod version;

use serde::Deserialize;
use serde_json::{Value, json};

use self::code::{INVALID, NOT_FOUND};
use crate::envelope::{Refusal, Reply, ok};
use crate::request::Request;
use crate::state::State;
use crate::state::script::Script;
use crate::tail;
use crate::zone::domain;

const IN_USE: Refusal = Refusal::new(
    400,
    10064,
    "The Worker is still referred to; delete with force=true.",
);
const NO_SUBDOMAIN: Refusal =
    Refusal::new(404, 10007, "The account has no subdomain of workers.dev.");

/// `/accounts/{account_id}/workers/scripts/..`
pub(crate) fn route(state: &mut State, request: &Request, path: &[&str]) -> Option<Reply> {
    let method = request.method.as_str();
    let Some((name, rest)) = path.split_first() else {
        return (method == "GET").then(|| list(state, request));
    };
    if let ("PUT", []) = (method, rest) {
        return Some(upload::put(state, request, name));
    }
    let Some(at) = state.scripts.iter().position(|script| script.name == *name) else {
        return Some(Err(NOT_FOUND));
    };
    Some(match (method, rest) {
        ("DELETE", []) => delete(state, at, request),
        ("GET", ["settings"]) => ok(settings::view(&state.scripts[at])),
        ("PATCH", ["settings"]) => settings::edit(state, at, request),
        ("PATCH", ["script-settings"]) => settings::edit_script(state, at, request),
        (_, ["subdomain"]) => return subdomain(&mut state.scripts[at], request),
        (_, ["secrets", rest @ ..]) => return secret::route(state, at, request, rest),
        ("PATCH", ["secrets-bulk"]) => secret::put_bulk(state, at, request),
        (_, ["tails", rest @ ..]) => return tail::route(state, request, name, rest),
        (_, ["versions", rest @ ..]) => return version::route(state, at, request, rest),
        ("GET", ["deployments"]) => version::deployments(&state.scripts[at]),
        ("POST", ["deployments"]) => version::deploy(state, at, request),
        _ => return None,
    })
}

/// Lists scripts. `tags` is a list of `tag:yes` and `tag:no`.
fn list(state: &State, request: &Request) -> Reply {
    let filters: Vec<_> = request
        .param("tags")
        .unwrap_or_default()
        .split(',')
        .filter_map(|filter| filter.rsplit_once(':'))
        .collect();
    let has = |script: &Script, tag: &str| {
        let tags = script.settings.get("tags").and_then(Value::as_array);
        tags.into_iter().flatten().any(|own| own == tag)
    };
    let matches = |script: &&Script| {
        filters
            .iter()
            .all(|(tag, wanted)| has(script, tag) == (*wanted == "yes"))
    };
    ok(state
        .scripts
        .iter()
        .filter(matches)
        .map(Script::view)
        .collect())
}

fn delete(state: &mut State, at: usize, request: &Request) -> Reply {
    let name = state.scripts[at].name.clone();
    let is_in_use = state
        .scripts
        .iter()
        .any(|script| script.name != name && script.is_bound_to(&name))
        || state.queues.iter().any(|queue| queue.is_consumed_by(&name))
        || state
            .worker_domains
            .iter()
            .any(|domain| domain.service == name);
    if is_in_use && !request.flag("force") {
        return Err(IN_USE);
    }
    state.scripts.remove(at);
    domain::remove_references_to_worker(state, &name);
    for queue in &mut state.queues {
        queue.remove_consumer_of(&name);
    }
    ok(Value::Null)
}

#[derive(Deserialize)]
struct Subdomain {
    enabled: bool,
    previews_enabled: Option<bool>,
}

fn subdomain(script: &mut Script, request: &Request) -> Option<Reply> {
    match request.method.as_str() {
        "GET" => {}
        "POST" => match request.json::<Subdomain>(INVALID) {
            Err(refusal) => return Some(Err(refusal)),
            Ok(body) => {
                script.enabled = body.enabled;
                script.previews_enabled = body.previews_enabled.unwrap_or(body.enabled);
            }
        },
        _ => return None,
    }
    Some(ok(
        json!({"enabled": script.enabled, "previews_enabled": script.previews_enabled}),
    ))
}

/// `GET /accounts/{account_id}/workers/subdomain`
pub(crate) fn account_subdomain(state: &State, request: &Request) -> Option<Reply> {
    let subdomain = state.settings.workers_subdomain.as_ref();
    let reply = subdomain.ok_or(NO_SUBDOMAIN);
    let is_read = request.method == "GET";
    is_read.then(|| reply.and_then(|subdomain| ok(json!({"subdomain": subdomain}))))
}
