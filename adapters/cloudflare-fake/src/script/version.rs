//! Versions and deployments of a script.

use serde::Deserialize;
use serde_json::{Map, Value, json};

use super::code::INVALID;
use super::form;
use crate::envelope::{Refusal, Reply, ok};
use crate::request::Request;
use crate::state::State;
use crate::state::script::{Content, Deployment, Script, Version};

const NO_VERSION: Refusal = Refusal::new(404, 10008, "The version does not exist.");
const BAD_SHARES: Refusal = Refusal::new(
    400,
    INVALID,
    "The percentages of the versions do not make 100.",
);

/// Adds a version and returns its id.
pub(super) fn add_version(state: &mut State, at: usize, content: Content) -> String {
    let (id, created) = (state.ids.uuid(), state.clock.now());
    let script = &mut state.scripts[at];
    script.modified.clone_from(&created);
    script.versions.push(Version {
        id: id.clone(),
        number: script.versions.len() + 1,
        created,
        content,
    });
    id
}

/// Deploys only this version and returns the id of the deployment.
pub(super) fn deploy_version(state: &mut State, at: usize, version: &str) -> String {
    let versions = vec![json!({"version_id": version, "percentage": 100})];
    let deployment = deployment(state, versions, Map::new());
    let id = deployment.id.clone();
    state.scripts[at].deployments.push(deployment);
    id
}

fn deployment(
    state: &mut State,
    versions: Vec<Value>,
    annotations: Map<String, Value>,
) -> Deployment {
    Deployment {
        id: state.ids.uuid(),
        created: state.clock.now(),
        versions,
        annotations,
    }
}

/// `/accounts/{account_id}/workers/scripts/{script_name}/versions/..`
pub(super) fn route(
    state: &mut State,
    at: usize,
    request: &Request,
    path: &[&str],
) -> Option<Reply> {
    Some(match (request.method.as_str(), path) {
        ("GET", []) => list(&state.scripts[at]),
        ("POST", []) => create(state, at, request),
        ("GET", [id]) => {
            let mut versions = state.scripts[at].versions.iter();
            versions
                .find(|version| version.id == *id)
                .ok_or(NO_VERSION)
                .and_then(|version| ok(version.view()))
        }
        _ => return None,
    })
}

/// Lists the versions, newest first.
fn list(script: &Script) -> Reply {
    let versions = script.versions.iter().rev();
    let items = versions.map(|version| json!({"id": version.id, "number": version.number, "metadata": version.metadata()}));
    ok(json!({"items": items.collect::<Vec<_>>()}))
}

fn create(state: &mut State, at: usize, request: &Request) -> Reply {
    let name = state.scripts[at].name.clone();
    let upload = form::parse(state, request, &name)?;
    add_version(state, at, upload.content);
    let version = state.scripts[at].latest_version().map(Version::view);
    let mut view = version.unwrap_or_default();
    view["startup_time_ms"] = json!(1);
    ok(view)
}

/// Lists the deployments, newest first.
pub(super) fn deployments(script: &Script) -> Reply {
    let views: Vec<_> = script
        .deployments
        .iter()
        .rev()
        .map(Deployment::view)
        .collect();
    ok(json!({"deployments": views}))
}

#[derive(Deserialize)]
struct Deploy {
    versions: Vec<Share>,
    #[serde(default)]
    annotations: Map<String, Value>,
}

#[derive(Deserialize)]
struct Share {
    version_id: String,
    percentage: f64,
}

pub(super) fn deploy(state: &mut State, at: usize, request: &Request) -> Reply {
    let body: Deploy = request.json(INVALID)?;
    let exists = |share: &Share| {
        state.scripts[at]
            .versions
            .iter()
            .any(|version| version.id == share.version_id)
    };
    if !body.versions.iter().all(exists) {
        return Err(NO_VERSION);
    }
    let sum: f64 = body.versions.iter().map(|share| share.percentage).sum();
    if (sum - 100.0).abs() > 0.01 {
        return Err(BAD_SHARES);
    }
    let view =
        |share: Share| json!({"version_id": share.version_id, "percentage": share.percentage});
    let versions = body.versions.into_iter().map(view).collect();
    let deployment = deployment(state, versions, body.annotations);
    let view = deployment.view();
    state.scripts[at].deployments.push(deployment);
    ok(view)
}
