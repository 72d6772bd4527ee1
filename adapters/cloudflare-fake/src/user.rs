//! The token, its user and the accounts.

use serde_json::json;

use crate::envelope::{Reply, ok};
use crate::page::{PageSize, page};
use crate::request::Request;
use crate::state::State;

const PAGE: PageSize = PageSize {
    min: 5,
    default: 20,
    max: 50,
};
const ACCOUNT_NAME: &str = "Fake account";
const EMAIL: &str = "user@example.com";

/// `/user`, `/user/tokens/verify`, `/accounts`
pub(crate) fn route(state: &State, request: &Request, path: &[&str]) -> Option<Reply> {
    let id = &state.settings.account_id;
    Some(match (request.method.as_str(), path) {
        ("GET", ["user"]) => ok(json!({"id": id, "email": EMAIL})),
        ("GET", ["user", "tokens", "verify"]) => ok(json!({"id": id, "status": "active"})),
        ("GET", ["accounts"]) => {
            let account = json!({"id": id, "name": ACCOUNT_NAME, "type": "standard"});
            page(request, vec![account], PAGE)
        }
        _ => return None,
    })
}
