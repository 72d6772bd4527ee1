//! Files of direct uploads, stored by hash. The endpoints require an upload token.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use serde::Deserialize;
use serde_json::{Value, json};

use super::code::{INVALID, NOT_FOUND};
use crate::envelope::{Refusal, Reply, bare, ok};
use crate::jwt;
use crate::request::Request;
use crate::state::State;

const EXPIRED: Refusal = Refusal::new(401, 8_000_013, "Authorization failed");
const TOO_MANY: Refusal = Refusal::new(400, INVALID, "More than 2000 files in one request.");
const TOO_LARGE: Refusal = Refusal::new(
    413,
    INVALID,
    "More than 40 MiB in one request, or more than 25 MiB in one file.",
);
const NO_BASE64: Refusal = Refusal::new(400, INVALID, "A file is no base64.");
const NO_HASH: Refusal = Refusal::new(400, INVALID, "A key is no hash.");
const MAX_FILES: usize = 2000;
const LARGEST_BUCKET: usize = 40 * 1024 * 1024;
const LARGEST_FILE: usize = 25 * 1024 * 1024;

/// Returns the hash of a file over its content and extension.
pub(super) fn hash(path: &str, bytes: &[u8]) -> String {
    let mut hasher = blake3::Hasher::new();
    hasher.update(STANDARD.encode(bytes).as_bytes());
    hasher.update(extension(path).as_bytes());
    hasher.finalize().to_hex()[..32].to_owned()
}

/// Returns the extension like node's `extname`, without the dot.
fn extension(path: &str) -> &str {
    let name = path.rsplit('/').next().unwrap_or_default();
    match name.rsplit_once('.') {
        Some((stem, extension)) if !stem.is_empty() => extension,
        _ => "",
    }
}

/// `GET /accounts/{account_id}/pages/projects/{project_name}/upload-token`
pub(super) fn token(state: &mut State, at: usize) -> Reply {
    let assets = &mut state.pages_assets;
    assets.issued += 1;
    let payload = json!({
        "pages_project": state.projects[at].id,
        "number": assets.issued,
        "exp": state.settings.upload_token_exp,
        "max_file_count_allowed": state.settings.max_pages_files,
    });
    ok(json!({"jwt": jwt::sign(&payload)}))
}

fn authorize(state: &State, bearer: &str) -> Result<(), Refusal> {
    let assets = &state.pages_assets;
    let payload = jwt::verify(bearer).ok_or(EXPIRED)?;
    let number = payload["number"].as_u64().ok_or(EXPIRED)?;
    if number < assets.valid_from || assets.revoked.contains(bearer) {
        return Err(EXPIRED);
    }
    let exists = state
        .projects
        .iter()
        .any(|project| payload["pages_project"] == *project.id);
    if exists { Ok(()) } else { Err(NOT_FOUND) }
}

#[derive(Deserialize)]
struct Hashes {
    hashes: Vec<String>,
}

#[derive(Deserialize)]
struct Upload {
    key: String,
    value: String,
    #[expect(dead_code, reason = "a body without it is refused")]
    metadata: Metadata,
    base64: bool,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Metadata {
    #[expect(dead_code, reason = "a body without it is refused")]
    content_type: String,
}

/// `/pages/assets/..`
pub(crate) fn route(
    state: &mut State,
    request: &Request,
    bearer: &str,
    path: &[&str],
) -> Option<Reply> {
    if let Err(refusal) = authorize(state, bearer) {
        return Some(Err(refusal));
    }
    Some(match (request.method.as_str(), path) {
        ("POST", ["check-missing"]) => check_missing(state, request),
        ("POST", ["upload"]) => upload(state, request),
        ("POST", ["upsert-hashes"]) => request.json::<Hashes>(INVALID).map(|_| empty_success()),
        _ => return None,
    })
}

fn empty_success() -> crate::envelope::Answer {
    bare(json!({"success": true, "errors": [], "messages": [], "result": null}))
}

fn check_missing(state: &State, request: &Request) -> Reply {
    let Hashes { hashes } = request.json(INVALID)?;
    let missing = hashes
        .into_iter()
        .filter(|hash| state.pages_assets.file(hash).is_none());
    ok(missing.map(Value::String).collect())
}

/// Stores uploaded files. A wrong key is detected only when a manifest refers to it, because the hash includes the
/// extension.
fn upload(state: &mut State, request: &Request) -> Reply {
    let uploads: Vec<Upload> = request.json(INVALID)?;
    if uploads.len() > MAX_FILES {
        return Err(TOO_MANY);
    }
    let is_hash = |key: &str| {
        key.len() == 32
            && key
                .chars()
                .all(|c| c.is_ascii_hexdigit() && !c.is_ascii_uppercase())
    };
    let mut files = Vec::new();
    for upload in uploads {
        if !is_hash(&upload.key) {
            return Err(NO_HASH);
        }
        let bytes = Some(&upload)
            .filter(|upload| upload.base64)
            .and_then(|upload| STANDARD.decode(&upload.value).ok());
        files.push((upload.key, Bytes::from(bytes.ok_or(NO_BASE64)?)));
    }
    let sizes = files.iter().map(|(_, bytes)| bytes.len());
    if sizes.clone().sum::<usize>() > LARGEST_BUCKET
        || sizes.clone().any(|size| size > LARGEST_FILE)
    {
        return Err(TOO_LARGE);
    }
    state.pages_assets.files.extend(files);
    Ok(empty_success())
}

#[cfg(test)]
mod tests {
    use super::hash;

    #[test]
    fn hashes_are_those_of_a_manifest_that_wrangler_made() {
        assert_eq!(
            hash("/index.html", b"<h1>hi</h1>\n"),
            "17453d0cfb9bacc76d9f30d3cb9ca048"
        );
        assert_eq!(
            hash("/a/style.css", b"body{}\n"),
            "aa42bba514e8ddfea838ec1a715ca332"
        );
        for without_extension in ["/empty", "/a.b/empty", "/.env"] {
            assert_eq!(
                hash(without_extension, b""),
                "af1349b9f5f9a1a6a0404dea36dcc949"
            );
        }
    }
}
