//! Secrets of a script. Each change creates and deploys a version.

use serde::Deserialize;
use serde_json::{Map, Value};

use super::binding::{check_name, check_set};
use super::code::{INVALID, NOT_FOUND};
use super::version;
use crate::envelope::{Refusal, Reply, ok};
use crate::request::Request;
use crate::state::State;
use crate::state::binding;
use crate::state::script::Script;

const NOT_LATEST: Refusal = Refusal::new(
    400,
    10215,
    "The latest version of the Worker is not deployed; deploy it first.",
);
const TOO_MANY: Refusal = Refusal::new(400, INVALID, "More than 100 secrets in one request.");
const BAD_NAME: Refusal = Refusal::new(
    400,
    INVALID,
    "A secret's name is not the one it is given under.",
);
const TAKEN: Refusal = Refusal::new(400, 10053, "A binding of that name is no secret.");
const MOST: usize = 100;

/// `/accounts/{account_id}/workers/scripts/{script_name}/secrets/..`
pub(super) fn route(
    state: &mut State,
    at: usize,
    request: &Request,
    path: &[&str],
) -> Option<Reply> {
    Some(match (request.method.as_str(), path) {
        ("GET", []) => ok(secrets(&state.scripts[at]).map(binding::view).collect()),
        ("PUT", []) => put(state, at, request),
        _ => return None,
    })
}

fn secrets(script: &Script) -> impl Iterator<Item = &Value> {
    let bindings = script
        .latest_version()
        .map(|version| version.content.bindings.iter());
    bindings
        .into_iter()
        .flatten()
        .filter(|binding| binding::is_secret(binding))
}

/// Deploys the latest version with other bindings. Refuses the request if the latest version is not deployed.
pub(super) fn edit_bindings(
    state: &mut State,
    at: usize,
    edit: impl FnOnce(&mut Vec<Value>) -> Result<(), Refusal>,
) -> Result<(), Refusal> {
    let script = &state.scripts[at];
    let latest = script.latest_version().ok_or(NOT_FOUND)?;
    if script
        .deployed_version()
        .is_none_or(|version| version.id != latest.id)
    {
        return Err(NOT_LATEST);
    }
    let mut content = latest.content.clone();
    edit(&mut content.bindings)?;
    check_set(&content.bindings)?;
    let id = version::add_version(state, at, content);
    version::deploy_version(state, at, &id);
    Ok(())
}

/// Checks that a secret in a request body is valid.
fn check(secret: &Value) -> Result<(), Refusal> {
    let has_value = match binding::kind(secret) {
        "secret_text" => secret["text"].is_string(),
        "secret_key" => secret["key_base64"].is_string() || secret["key_jwk"].is_object(),
        _ => false,
    };
    if has_value {
        check_name(secret)
    } else {
        Err(Refusal::new(
            400,
            INVALID,
            "A secret has no type or no value.",
        ))
    }
}

fn upsert(bindings: &mut Vec<Value>, secret: Value) -> Result<(), Refusal> {
    let named = bindings
        .iter()
        .position(|own| binding::name(own) == binding::name(&secret));
    match named {
        Some(at) if !binding::is_secret(&bindings[at]) => return Err(TAKEN),
        Some(at) => bindings[at] = secret,
        None => bindings.push(secret),
    }
    Ok(())
}

fn put(state: &mut State, at: usize, request: &Request) -> Reply {
    let secret: Value = request.json(INVALID)?;
    check(&secret)?;
    let view = binding::view(&secret);
    edit_bindings(state, at, |bindings| upsert(bindings, secret))?;
    ok(view)
}

#[derive(Deserialize)]
struct Bulk {
    #[serde(default)]
    secrets: Map<String, Value>,
}

/// Applies a merge patch: a secret is set, and `null` deletes it.
pub(super) fn put_bulk(state: &mut State, at: usize, request: &Request) -> Reply {
    let Bulk { secrets: asked } = request.json(INVALID)?;
    if asked.len() > MOST {
        return Err(TOO_MANY);
    }
    for (name, secret) in asked.iter().filter(|(_, secret)| !secret.is_null()) {
        check(secret)?;
        if binding::name(secret) != name {
            return Err(BAD_NAME);
        }
    }
    edit_bindings(state, at, |bindings| {
        for (name, secret) in asked {
            if secret.is_null() {
                bindings.retain(|own| binding::name(own) != name || !binding::is_secret(own));
            } else {
                upsert(bindings, secret)?;
            }
        }
        Ok(())
    })?;
    let views = secrets(&state.scripts[at]);
    ok(Value::Object(
        views
            .map(|secret| (binding::name(secret).to_owned(), binding::view(secret)))
            .collect(),
    ))
}
