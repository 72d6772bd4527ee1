//! Settings of the script, and of its latest version with its bindings.

use serde_json::{Map, Value, json};

use super::binding::resolve;
use super::code::INVALID;
use super::secret;
use crate::envelope::{Refusal, Reply, ok};
use crate::request::Request;
use crate::state::State;
use crate::state::binding;
use crate::state::script::{Content, Script};

const NO_SETTINGS: Refusal = Refusal::new(400, INVALID, "The form has no part named settings.");

pub(super) fn view(script: &Script) -> Value {
    let mut view = script_view(script);
    let Some(content) = script.latest_version().map(|version| &version.content) else {
        return view;
    };
    let names = [
        "compatibility_date",
        "compatibility_flags",
        "limits",
        "placement",
        "annotations",
    ];
    for name in names {
        if let Some(value) = content.metadata.get(name) {
            view[name] = value.clone();
        }
    }
    view["bindings"] = content.bindings.iter().map(binding::view).collect();
    view
}

pub(super) fn script_view(script: &Script) -> Value {
    let setting = |name: &str| script.settings.get(name).cloned();
    json!({
        "logpush": setting("logpush").unwrap_or(json!(false)),
        "tags": setting("tags").unwrap_or(json!([])),
        "tail_consumers": setting("tail_consumers").unwrap_or(json!([])),
        "observability": setting("observability").unwrap_or_else(|| json!({"enabled": false})),
    })
}

/// Creates a version with the given settings. Without `bindings`, the previous bindings are kept.
pub(super) fn edit(state: &mut State, at: usize, request: &Request) -> Reply {
    let parts = request.form(INVALID)?;
    let settings = parts
        .iter()
        .find(|part| part.name == "settings")
        .ok_or(NO_SETTINGS)?;
    let mut settings: Map<String, Value> = serde_json::from_slice(&settings.body)
        .map_err(|error| Refusal::with(400, INVALID, format!("invalid settings: {error}")))?;
    if let Some(asked) = settings.remove("bindings") {
        let mut asked: Vec<Value> = serde_json::from_value(asked)
            .map_err(|error| Refusal::with(400, INVALID, format!("invalid bindings: {error}")))?;
        let script = &state.scripts[at];
        let previous: Option<&Content> = script.latest_version().map(|version| &version.content);
        let old = previous
            .map(|content| content.bindings.as_slice())
            .unwrap_or_default();
        asked
            .iter_mut()
            .for_each(|binding| inherit_if_bare(binding, old));
        let bindings = resolve(state, &script.name, previous, asked, &[], false)?;
        secret::edit_bindings(state, at, |own| {
            *own = bindings;
            Ok(())
        })?;
    }
    set(&mut state.scripts[at], settings);
    ok(view(&state.scripts[at]))
}

/// Keeps the previous binding if only its name and type are given, as wrangler does.
fn inherit_if_bare(binding: &mut Value, old: &[Value]) {
    let is_bare = binding
        .as_object()
        .is_some_and(|members| members.len() == 2);
    let is_same = |old: &Value| old["name"] == binding["name"] && old["type"] == binding["type"];
    if is_bare && old.iter().any(is_same) {
        binding["type"] = json!("inherit");
    }
}

pub(super) fn edit_script(state: &mut State, at: usize, request: &Request) -> Reply {
    set(&mut state.scripts[at], request.json(INVALID)?);
    ok(script_view(&state.scripts[at]))
}

fn set(script: &mut Script, settings: Map<String, Value>) {
    script.settings.extend(settings);
}
