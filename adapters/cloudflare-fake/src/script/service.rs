//! The endpoint with which wrangler checks whether a worker exists, and deletes it.

use serde_json::json;

use super::delete;
use crate::envelope::{Refusal, Reply, ok};
use crate::request::Request;
use crate::state::State;

const NOT_FOUND: Refusal = Refusal::new(404, 10090, "This Worker does not exist on your account.");

/// `/accounts/{account_id}/workers/services/{script_name}`
pub(crate) fn route(state: &mut State, request: &Request, name: &str) -> Option<Reply> {
    let Some(at) = state.scripts.iter().position(|script| script.name == name) else {
        return Some(Err(NOT_FOUND));
    };
    let script = &state.scripts[at];
    match request.method.as_str() {
        "GET" => Some(ok(json!({
            "id": script.name,
            "default_environment": {
                "environment": "production",
                "script": {"last_deployed_from": "api", "tag": script.tag},
            },
        }))),
        "DELETE" => Some(delete(state, at, request)),
        _ => None,
    }
}
