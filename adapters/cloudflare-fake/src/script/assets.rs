//! Static assets of a worker. A session lists the missing files, uploads add them, and a completion token proves that
//! all exist.

use std::collections::BTreeMap;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use serde::Deserialize;
use serde_json::{Value, json};

use super::code::INVALID;
use crate::envelope::{Refusal, Reply, ok};
use crate::jwt;
use crate::request::Request;
use crate::state::State;
use crate::state::assets::Session;

const BAD_TOKEN: Refusal = Refusal::new(401, 10000, "Authentication error");
const UNASKED: Refusal = Refusal::new(400, INVALID, "A file was not asked for by the session.");
const NO_BASE64: Refusal = Refusal::new(400, INVALID, "A file is no base64.");
/// Maximum number of files in one request.
const BUCKET: usize = 50;

#[derive(Deserialize)]
struct Open {
    manifest: BTreeMap<String, File>,
}

#[derive(Deserialize)]
struct File {
    hash: String,
}

/// `POST /accounts/{account_id}/workers/scripts/{script_name}/assets-upload-session`
pub(super) fn open(state: &mut State, request: &Request, script: &str) -> Reply {
    let body: Open = request.json(INVALID)?;
    let session = Session {
        script: script.to_owned(),
        hashes: body.manifest.into_values().map(|file| file.hash).collect(),
    };
    let missing = state.assets.missing(&session);
    let buckets: Vec<_> = missing.chunks(BUCKET).collect();
    let id = state.ids.hex();
    let jwt = token(&id);
    let view = json!({"jwt": jwt, "buckets": buckets});
    state.assets.sessions.insert(id, session);
    ok(view)
}

fn token(session: &str) -> String {
    jwt::sign(&json!({"assets_session": session}))
}

fn session<'a>(state: &'a State, token: &str) -> Option<&'a Session> {
    let payload = jwt::verify(token)?;
    state
        .assets
        .sessions
        .get(payload["assets_session"].as_str()?)
}

/// Returns whether a token proves that every file of a script's session is uploaded.
pub(super) fn is_complete(state: &State, script: &str, token: &str) -> bool {
    session(state, token)
        .is_some_and(|session| session.script == script && state.assets.missing(session).is_empty())
}

/// `POST /accounts/{account_id}/workers/assets/upload`, with the token of a session.
pub(crate) fn upload(state: &mut State, request: &Request, bearer: &str) -> Reply {
    if !request.flag("base64") {
        return Err(NO_BASE64);
    }
    let hashes = session(state, bearer).ok_or(BAD_TOKEN)?.hashes.clone();
    for part in request.form(INVALID)? {
        if !hashes.contains(&part.name) {
            return Err(UNASKED);
        }
        let bytes = STANDARD.decode(&part.body).map_err(|_| NO_BASE64)?;
        state.assets.files.insert(part.name, Bytes::from(bytes));
    }
    let is_complete = hashes
        .iter()
        .all(|hash| state.assets.files.contains_key(hash));
    ok(if is_complete {
        json!({"jwt": bearer})
    } else {
        Value::Object(serde_json::Map::new())
    })
}
