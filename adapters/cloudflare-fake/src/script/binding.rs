//! Bindings of scripts: their validation and their public form.

use serde_json::Value;

use crate::envelope::Refusal;
use crate::state::State;
use crate::state::binding::{kind, name, text};
use crate::state::r2::Bucket;
use crate::state::script::Content;

const INVALID: Refusal = Refusal::new(400, 10021, "A binding has no name or no type.");
const BAD_NAME: Refusal = Refusal::new(
    400,
    10021,
    "A binding's name is no identifier of JavaScript.",
);
const TWICE: Refusal = Refusal::new(400, 10021, "Two bindings have the same name.");
const TOO_MANY: Refusal = Refusal::new(
    400,
    10021,
    "There are more secrets and variables than a Worker may have.",
);
const TOO_LONG: Refusal = Refusal::new(400, 10021, "A secret or variable is longer than 5 KB.");
const NOTHING_TO_INHERIT: Refusal = Refusal::new(
    400,
    10057,
    "A binding inherits from a version that has none of its name.",
);
const MAX_VARIABLES: usize = 128;
const LONGEST_VARIABLE: usize = 5 * 1024;

/// Returns the bindings of a new version: requested ones, inherited ones, and those kept from the previous version.
pub(super) fn resolve(
    state: &State,
    script: &str,
    previous: Option<&Content>,
    asked: Vec<Value>,
    keep: &[String],
    strict: bool,
) -> Result<Vec<Value>, Refusal> {
    let before = previous
        .map(|content| content.bindings.as_slice())
        .unwrap_or_default();
    let mut bindings = Vec::new();
    for mut binding in asked {
        check_name(&binding)?;
        complete_d1(&mut binding);
        if kind(&binding) != "inherit" {
            check_target(state, script, &binding)?;
            bindings.push(binding);
            continue;
        }
        let old_name = binding["old_name"]
            .as_str()
            .unwrap_or_else(|| name(&binding));
        match before.iter().find(|old| name(old) == old_name) {
            Some(old) => {
                let mut inherited = old.clone();
                inherited["name"] = binding["name"].clone();
                bindings.push(inherited);
            }
            None if strict => return Err(NOTHING_TO_INHERIT),
            None => {}
        }
    }
    for old in before {
        let is_kept = keep.iter().any(|keep| keep == kind(old));
        if is_kept && !bindings.iter().any(|new| name(new) == name(old)) {
            bindings.push(old.clone());
        }
    }
    check_set(&bindings)?;
    Ok(bindings)
}

/// Completes a D1 binding. wrangler uses `id` for the field `database_id` of the document, so both are returned.
fn complete_d1(binding: &mut Value) {
    if kind(binding) != "d1" {
        return;
    }
    let id = binding
        .get("database_id")
        .or_else(|| binding.get("id"))
        .cloned();
    binding["database_id"] = id.clone().unwrap_or_default();
    binding["id"] = id.unwrap_or_default();
}

pub(super) fn check_name(binding: &Value) -> Result<(), Refusal> {
    if name(binding).is_empty() || kind(binding).is_empty() {
        return Err(INVALID);
    }
    let is_identifier = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '$';
    let name = name(binding);
    if name.starts_with(|c: char| c.is_ascii_digit()) || !name.chars().all(is_identifier) {
        return Err(BAD_NAME);
    }
    Ok(())
}

/// Checks the rules for all bindings of a version.
pub(super) fn check_set(bindings: &[Value]) -> Result<(), Refusal> {
    let is_variable = |binding: &&Value| {
        matches!(
            kind(binding),
            "plain_text" | "json" | "secret_text" | "secret_key"
        )
    };
    let variables: Vec<_> = bindings.iter().filter(is_variable).collect();
    if variables.len() > MAX_VARIABLES {
        return Err(TOO_MANY);
    }
    if variables
        .iter()
        .any(|binding| text(binding, "text").len() > LONGEST_VARIABLE)
    {
        return Err(TOO_LONG);
    }
    let mut names: Vec<_> = bindings.iter().map(name).collect();
    names.sort_unstable();
    if names.windows(2).any(|pair| pair[0] == pair[1]) {
        return Err(TWICE);
    }
    Ok(())
}

/// Refuses a binding to a missing object. The codes come from messages of the API, because the contract has none.
fn check_target(state: &State, script: &str, binding: &Value) -> Result<(), Refusal> {
    let (exists, code) = match kind(binding) {
        "kv_namespace" => {
            let id = text(binding, "namespace_id");
            (state.kv.iter().any(|namespace| namespace.id == id), 10041)
        }
        "d1" => {
            let id = text(binding, "id");
            (state.d1.iter().any(|database| database.uuid == id), 10181)
        }
        "r2_bucket" => {
            let bucket = text(binding, "bucket_name");
            let jurisdiction = binding["jurisdiction"].as_str().unwrap_or("default");
            let is_it = |own: &Bucket| own.name == bucket && own.jurisdiction == jurisdiction;
            (state.r2.iter().any(is_it), 10085)
        }
        "queue" => {
            let queue = text(binding, "queue_name");
            (state.queues.iter().any(|own| own.name == queue), 11000)
        }
        "service" => {
            let service = text(binding, "service");
            (service == script || state.script(service).is_some(), 10143)
        }
        _ => (true, 0),
    };
    if exists {
        return Ok(());
    }
    let message = format!(
        "binding {} refers to something that does not exist",
        name(binding)
    );
    Err(Refusal::with(400, code, message))
}
