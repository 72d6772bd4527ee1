//! Deployments of a Pages project. Their stages advance with each poll.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use super::asset;
use super::code::INVALID;
use crate::envelope::{Refusal, Reply, ok};
use crate::multipart::Part;
use crate::page::{PageSize, page};
use crate::request::Request;
use crate::state::State;
use crate::state::project::{Deployment, DeploymentEnd, Project};
use crate::tail;

const NOT_FOUND: Refusal = Refusal::new(404, 8_000_009, "The deployment does not exist.");
const NO_MANIFEST: Refusal = Refusal::new(
    400,
    INVALID,
    "The form has no manifest, or one that is no map of paths to hashes.",
);
const TOO_MANY: Refusal = Refusal::new(
    400,
    INVALID,
    "The manifest has more files than the project may have.",
);
const LONG_MESSAGE: Refusal =
    Refusal::new(400, INVALID, "commit_message is longer than 384 bytes.");
const TWO_WORKERS: Refusal = Refusal::new(
    400,
    INVALID,
    "_worker.js and _worker.bundle exclude each other.",
);
const NO_ROLLBACK: Refusal = Refusal::new(
    400,
    INVALID,
    "Only a successful deployment of production can be rolled back to.",
);
const LONGEST_MESSAGE: usize = 384;
const PAGE: PageSize = PageSize {
    min: 1,
    default: 25,
    max: 25,
};

/// `/accounts/{account_id}/pages/projects/{project_name}/deployments/..`
pub(super) fn route(
    state: &mut State,
    project: usize,
    request: &Request,
    path: &[&str],
) -> Option<Reply> {
    let method = request.method.as_str();
    let Some((id, rest)) = path.split_first() else {
        return match method {
            "GET" => Some(list(&state.projects[project], request)),
            "POST" => Some(create(state, project, request)),
            _ => None,
        };
    };
    let Some(at) = state.projects[project]
        .deployments
        .iter()
        .position(|deployment| deployment.id == *id)
    else {
        return Some(Err(NOT_FOUND));
    };
    Some(match (method, rest) {
        ("GET", []) => poll(&mut state.projects[project], at),
        ("POST", ["rollback"]) => roll_back(&mut state.projects[project], at),
        (_, ["tails", rest @ ..]) if method != "GET" => {
            let name = state.projects[project].name.clone();
            return tail::route(state, request, &name, rest);
        }
        ("GET", ["history", "logs"]) => logs(&state.projects[project].deployments[at]),
        _ => return None,
    })
}

/// Lists the deployments, newest first.
fn list(project: &Project, request: &Request) -> Reply {
    let asked = request.param("env");
    let fits = |deployment: &&Deployment| match asked {
        Some("production") => deployment.is_production,
        Some("preview") => !deployment.is_production,
        _ => true,
    };
    let deployments = project.deployments.iter().rev().filter(fits);
    page(
        request,
        deployments
            .map(|deployment| deployment.view(project))
            .collect(),
        PAGE,
    )
}

fn poll(project: &mut Project, at: usize) -> Reply {
    let deployment = &mut project.deployments[at];
    if deployment.polls_left > 0 {
        deployment.polls_left -= 1;
        if deployment.is_live() && deployment.is_production {
            project.canonical = Some(deployment.id.clone());
        }
    }
    ok(project.deployments[at].view(project))
}

/// Makes an earlier deployment of production live again.
fn roll_back(project: &mut Project, at: usize) -> Reply {
    let deployment = &project.deployments[at];
    if !deployment.is_production || !deployment.is_live() {
        return Err(NO_ROLLBACK);
    }
    project.canonical = Some(deployment.id.clone());
    ok(project.deployments[at].view(project))
}

/// Creates a deployment from a form with a manifest. Each request creates another deployment.
fn create(state: &mut State, at: usize, request: &Request) -> Reply {
    let parts = request.form(INVALID)?;
    let manifest = manifest(state, &parts)?;
    let project = &state.projects[at];
    let field = |name: &str| {
        let part = parts.iter().find(|part| part.name == name);
        part.map(|part| String::from_utf8_lossy(&part.body).into_owned())
    };
    let branch = field("branch").unwrap_or_else(|| project.production_branch.clone());
    let message = field("commit_message").unwrap_or_default();
    if message.len() > LONGEST_MESSAGE {
        return Err(LONG_MESSAGE);
    }
    if field("_worker.js").is_some() && field("_worker.bundle").is_some() {
        return Err(TWO_WORKERS);
    }
    let metadata = json!({
        "branch": branch,
        "commit_hash": field("commit_hash").unwrap_or_default(),
        "commit_message": message,
        "commit_dirty": field("commit_dirty").is_some_and(|dirty| dirty == "true"),
    });
    add(
        state,
        at,
        branch == state.projects[at].production_branch,
        manifest,
        metadata,
    )
}

/// Returns paths and hashes, if every file exists and matches its hash.
fn manifest(state: &State, parts: &[Part]) -> Result<BTreeMap<String, String>, Refusal> {
    let part = parts
        .iter()
        .find(|part| part.name == "manifest")
        .ok_or(NO_MANIFEST)?;
    let manifest: BTreeMap<String, String> =
        serde_json::from_slice(&part.body).map_err(|_| NO_MANIFEST)?;
    if manifest.len() > state.settings.max_pages_files {
        return Err(TOO_MANY);
    }
    for (path, hash) in &manifest {
        let refused = |why| Refusal::with(400, INVALID, format!("{path}: {why}"));
        if !path.starts_with('/') {
            return Err(refused("the path does not begin with a slash"));
        }
        let bytes = state
            .pages_assets
            .file(hash)
            .ok_or_else(|| refused("the file was not uploaded"))?;
        if asset::hash(path, bytes) != *hash {
            return Err(refused("the hash is not the file's"));
        }
    }
    Ok(manifest)
}

fn add(
    state: &mut State,
    at: usize,
    is_production: bool,
    manifest: BTreeMap<String, String>,
    metadata: Value,
) -> Reply {
    let polls = state.settings.deployment_polls;
    let environment = if is_production {
        "production"
    } else {
        "preview"
    };
    let deployment = Deployment {
        id: state.ids.uuid(),
        created: state.clock.now(),
        is_production,
        manifest,
        metadata,
        variables: state.projects[at].variables(environment).clone(),
        end: state
            .deployment_ends
            .pop_front()
            .unwrap_or(DeploymentEnd::Success),
        polls,
        polls_left: polls,
    };
    let project = &mut state.projects[at];
    if deployment.is_live() && is_production {
        project.canonical = Some(deployment.id.clone());
    }
    let view = deployment.view(project);
    project.deployments.push(deployment);
    ok(view)
}

fn logs(deployment: &Deployment) -> Reply {
    let mut lines = vec!["Deploying your site to Cloudflare's global network...".to_owned()];
    match &deployment.end {
        _ if deployment.polls_left > 0 => {}
        DeploymentEnd::Success => lines.push("Success: Your site was deployed!".to_owned()),
        DeploymentEnd::Failure(reason) => lines.push(reason.clone()),
        DeploymentEnd::Canceled => lines.push("The deployment was canceled.".to_owned()),
    }
    let data: Vec<_> = lines
        .iter()
        .map(|line| json!({"ts": deployment.created, "line": line}))
        .collect();
    ok(json!({"total": data.len(), "includes_container_logs": false, "data": data}))
}
