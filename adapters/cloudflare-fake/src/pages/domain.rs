//! Custom domains of a Pages project. Their states advance with each poll.

use serde::Deserialize;
use serde_json::Value;

use super::code::INVALID;
use crate::envelope::{Refusal, Reply, ok};
use crate::request::Request;
use crate::state::State;
use crate::state::pages_domain::Domain;

const NOT_FOUND: Refusal = Refusal::new(404, 8_000_021, "The domain does not exist.");
const EXISTS: Refusal = Refusal::new(409, 8_000_018, "You have already added this custom domain.");
const BAD_NAME: Refusal = Refusal::new(400, INVALID, "The domain's name is invalid.");

/// `/accounts/{account_id}/pages/projects/{project_name}/domains/..`
pub(super) fn route(
    state: &mut State,
    project: usize,
    request: &Request,
    path: &[&str],
) -> Option<Reply> {
    let method = request.method.as_str();
    let Some((name, [])) = path.split_first() else {
        return match (method, path) {
            ("GET", []) => Some(ok(state.projects[project]
                .domains
                .iter()
                .map(Domain::view)
                .collect())),
            ("POST", []) => Some(create(state, project, request)),
            _ => None,
        };
    };
    let domains = &mut state.projects[project].domains;
    let Some(at) = domains.iter().position(|domain| domain.name == *name) else {
        return Some(Err(NOT_FOUND));
    };
    Some(match method {
        // A request makes the fake check the domain again, like the real API.
        "GET" | "PATCH" => {
            domains[at].step += 1;
            ok(domains[at].view())
        }
        "DELETE" => {
            domains.remove(at);
            ok(Value::Null)
        }
        _ => return None,
    })
}

fn create(state: &mut State, project: usize, request: &Request) -> Reply {
    #[derive(Deserialize)]
    struct Body {
        name: String,
    }
    let body: Body = request.json(INVALID)?;
    if !body.name.contains('.') || body.name.contains(['/', ' ', ':']) {
        return Err(BAD_NAME);
    }
    let mut domains = state.projects.iter().flat_map(|project| &project.domains);
    if domains.any(|domain| domain.name == body.name) {
        return Err(EXISTS);
    }
    let domain = Domain {
        id: state.ids.uuid(),
        name: body.name,
        created: state.clock.now(),
        zone: state.ids.hex(),
        step: 0,
    };
    let view = domain.view();
    state.projects[project].domains.push(domain);
    ok(view)
}
