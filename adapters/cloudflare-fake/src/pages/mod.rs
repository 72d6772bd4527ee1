//! Pages: projects, direct uploads, deployments and domains.

pub(crate) mod asset;
mod code;
mod deployment;
mod domain;
mod project;

use self::code::NOT_FOUND;
use crate::envelope::Reply;
use crate::request::Request;
use crate::state::State;

/// `/accounts/{account_id}/pages/projects/..`
pub(crate) fn route(state: &mut State, request: &Request, path: &[&str]) -> Option<Reply> {
    let method = request.method.as_str();
    let Some((name, rest)) = path.split_first() else {
        return match method {
            "GET" => Some(project::list(state, request)),
            "POST" => Some(project::create(state, request)),
            _ => None,
        };
    };
    let Some(at) = state
        .projects
        .iter()
        .position(|project| project.name == *name)
    else {
        return Some(Err(NOT_FOUND));
    };
    match (method, rest) {
        ("GET", []) => Some(project::get(state, at)),
        ("PATCH", []) => Some(project::edit(state, at, request)),
        ("DELETE", []) => Some(project::delete(state, at)),
        ("GET", ["upload-token"]) => Some(asset::token(state, at)),
        (_, ["deployments", rest @ ..]) => deployment::route(state, at, request, rest),
        (_, ["domains", rest @ ..]) => domain::route(state, at, request, rest),
        _ => None,
    }
}
