//! The upload of a script.

use serde_json::json;

use super::{form, version};
use crate::envelope::{Refusal, Reply, ok};
use crate::request::Request;
use crate::state::State;
use crate::state::script::Script;

const BAD_NAME: Refusal = Refusal::new(400, 10016, "The Worker's name is invalid.");

/// `PUT /accounts/{account_id}/workers/scripts/{script_name}`: creates or replaces the script.
pub(super) fn put(state: &mut State, request: &Request, name: &str) -> Reply {
    let allowed = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || "-_".contains(c);
    if name.is_empty() || name.len() > 63 || name.starts_with('-') || !name.chars().all(allowed) {
        return Err(BAD_NAME);
    }
    let upload = form::parse(state, request, name)?;
    let existing = state.scripts.iter().position(|script| script.name == name);
    let at = existing.unwrap_or_else(|| {
        let script = Script::new(name, state.ids.hex(), state.clock.now());
        state.scripts.push(script);
        state.scripts.len() - 1
    });
    state.scripts[at].settings.extend(upload.settings);
    let entry = upload.content.entry.clone();
    let id = version::add_version(state, at, upload.content);
    let deployment = version::deploy_version(state, at, &id);
    let mut view = state.scripts[at].view();
    view["entry_point"] = json!(entry);
    view["startup_time_ms"] = json!(1);
    view["deployment_id"] = json!(deployment);
    ok(view)
}
