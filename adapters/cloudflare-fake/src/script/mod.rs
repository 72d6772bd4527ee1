//! Worker scripts.

pub(crate) mod assets;
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
use crate::envelope::{Refusal, Reply, ok, raw};
use crate::multipart::{self, Part};
use crate::request::Request;
use crate::state::State;
use crate::state::script::Script;
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
    match (method, rest) {
        ("PUT", []) => return Some(upload::put(state, request, name)),
        ("POST", ["assets-upload-session"]) => return Some(assets::open(state, request, name)),
        _ => {}
    }
    let Some(at) = state.scripts.iter().position(|script| script.name == *name) else {
        return Some(Err(NOT_FOUND));
    };
    Some(match (method, rest) {
        ("GET", []) => content(&state.scripts[at]),
        ("DELETE", []) => delete(state, at, request),
        ("GET", ["settings"]) => ok(settings::view(&state.scripts[at])),
        ("PATCH", ["settings"]) => settings::edit(state, at, request),
        ("GET", ["script-settings"]) => ok(settings::script_view(&state.scripts[at])),
        ("PATCH", ["script-settings"]) => settings::edit_script(state, at, request),
        (_, ["subdomain"]) => return subdomain(&mut state.scripts[at], request),
        (_, ["schedules"]) => return schedules(state, at, request),
        (_, ["secrets", rest @ ..]) => return secret::route(state, at, request, rest),
        ("PATCH", ["secrets-bulk"]) => secret::put_bulk(state, at, request),
        (_, ["versions", rest @ ..]) => return version::route(state, at, request, rest),
        ("GET", ["deployments"]) => version::deployments(&state.scripts[at]),
        ("POST", ["deployments"]) => version::deploy(state, at, request),
        _ => return None,
    })
}

/// Returns the modules of a script: a text for a service worker, otherwise a form.
fn content(script: &Script) -> Reply {
    let version = script.latest().ok_or(NOT_FOUND)?;
    let kind = |part: &Part| part.content_type.clone().unwrap_or_default();
    if let ([only], false) = (&version.content.modules[..], version.content.is_module) {
        return Ok(raw("application/javascript", only.body.clone()));
    }
    let kinds: Vec<_> = version
        .content
        .modules
        .iter()
        .map(|part| (part, kind(part)))
        .collect();
    let files = kinds
        .iter()
        .map(|(part, kind)| (part.name.as_str(), kind.as_str(), &part.body[..]));
    let (content_type, body) = multipart::write(files);
    Ok(raw(content_type, body))
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
        "DELETE" => (script.enabled, script.previews_enabled) = (false, false),
        _ => return None,
    }
    Some(ok(
        json!({"enabled": script.enabled, "previews_enabled": script.previews_enabled}),
    ))
}

#[derive(Deserialize)]
struct Schedule {
    cron: String,
}

fn schedules(state: &mut State, at: usize, request: &Request) -> Option<Reply> {
    let script = &mut state.scripts[at];
    match request.method.as_str() {
        "GET" => {}
        "PUT" => match request.json::<Vec<Schedule>>(INVALID) {
            Err(refusal) => return Some(Err(refusal)),
            Ok(body) => {
                let now = state.clock.now();
                let view = |schedule: Schedule| json!({"cron": schedule.cron, "created_on": now, "modified_on": now});
                script.schedules = body.into_iter().map(view).collect();
            }
        },
        _ => return None,
    }
    Some(ok(json!({"schedules": script.schedules})))
}

/// `/accounts/{account_id}/workers/subdomain`
pub(crate) fn account_subdomain(state: &mut State, request: &Request) -> Option<Reply> {
    #[derive(Deserialize)]
    struct Body {
        subdomain: String,
    }
    match request.method.as_str() {
        "GET" => {}
        "PUT" => match request.json::<Body>(INVALID) {
            Err(refusal) => return Some(Err(refusal)),
            Ok(body) => state.settings.workers_subdomain = Some(body.subdomain),
        },
        _ => return None,
    }
    Some(match &state.settings.workers_subdomain {
        Some(subdomain) => ok(json!({"subdomain": subdomain})),
        None => Err(NO_SUBDOMAIN),
    })
}
