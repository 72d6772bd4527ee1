//! D1 databases.

use serde::Deserialize;
use serde_json::Value;

use crate::envelope::{Refusal, Reply, ok};
use crate::page::{PageSize, page};
use crate::request::Request;
use crate::state::State;
use crate::state::d1::Database;

const NOT_FOUND: Refusal = Refusal::new(404, 7404, "The database could not be found");
const EXISTS: Refusal = Refusal::new(400, 7502, "A database with that name already exists");
const INVALID: u32 = 7400;
const PAGE: PageSize = PageSize {
    min: 10,
    default: 1000,
    max: 10_000,
};

#[derive(Deserialize)]
struct Create {
    name: String,
    jurisdiction: Option<String>,
    read_replication: Option<Replication>,
}

#[derive(Deserialize)]
struct Replication {
    mode: String,
}

/// `/accounts/{account_id}/d1/database/..`
pub(crate) fn route(state: &mut State, request: &Request, path: &[&str]) -> Option<Reply> {
    Some(match (request.method.as_str(), path) {
        ("GET", []) => list(state, request),
        ("POST", []) => create(state, request),
        ("DELETE", [id]) => find(state, id).and_then(|at| {
            state.d1.remove(at);
            ok(Value::Null)
        }),
        _ => return None,
    })
}

fn find(state: &State, id: &str) -> Result<usize, Refusal> {
    let at = state.d1.iter().position(|database| database.uuid == id);
    at.ok_or(NOT_FOUND)
}

/// Lists databases. `name` matches any part of a name.
fn list(state: &State, request: &Request) -> Reply {
    let name = request.param("name").unwrap_or_default();
    let matching = state
        .d1
        .iter()
        .filter(|database| database.name.contains(name));
    page(request, matching.map(Database::view).collect(), PAGE)
}

fn create(state: &mut State, request: &Request) -> Reply {
    let body: Create = request.json(INVALID)?;
    let allowed = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || "-_".contains(c);
    if body.name.is_empty() || !body.name.chars().all(allowed) || body.name.starts_with(['-', '_'])
    {
        return Err(Refusal::new(400, INVALID, "The database name is invalid"));
    }
    if state.d1.iter().any(|database| database.name == body.name) {
        return Err(EXISTS);
    }
    let database = Database {
        uuid: state.ids.uuid(),
        name: body.name,
        created_at: state.clock.now(),
        jurisdiction: body.jurisdiction,
        replication: body
            .read_replication
            .map_or_else(|| "disabled".to_owned(), |replication| replication.mode),
    };
    let details = database.details();
    state.d1.push(database);
    ok(details)
}
