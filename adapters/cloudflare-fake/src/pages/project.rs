//! Pages projects and their settings.

use serde::Deserialize;
use serde_json::{Map, Value, json};

use super::code::INVALID;
use crate::envelope::{Refusal, Reply, ok};
use crate::page::{PageSize, page};
use crate::request::Request;
use crate::state::State;
use crate::state::project::Project;

const EXISTS: Refusal = Refusal::new(
    409,
    8_000_002,
    "A project with this name already exists. Choose a different project name.",
);
const BAD_NAME: Refusal = Refusal::new(400, INVALID, "The project's name is invalid.");
const BAD_CONFIG: Refusal = Refusal::new(
    400,
    INVALID,
    "A deployment configuration is of no environment, or a variable has no type or no value.",
);
const NO_BRANCH: Refusal = Refusal::new(400, INVALID, "The project has no production branch.");
const HAS_DOMAINS: Refusal = Refusal::new(
    400,
    8_000_028,
    "The project has custom domains; delete them first.",
);
const PAGE: PageSize = PageSize {
    min: 1,
    default: 10,
    max: 100,
};
const LONGEST_NAME: usize = 58;
/// The suffix of a subdomain that another account already has.
const OTHERWISE: &str = "-4xd";

#[derive(Deserialize)]
struct Body {
    name: Option<String>,
    production_branch: Option<String>,
    build_config: Option<Map<String, Value>>,
    deployment_configs: Option<Map<String, Value>>,
}

/// The default configuration of a project.
fn default_config() -> Value {
    json!({
        "always_use_latest_compatibility_date": false,
        "build_image_major_version": 3,
        "compatibility_date": "2026-11-01",
        "compatibility_flags": [],
        "env_vars": {},
        "fail_open": true,
        "usage_model": "standard",
    })
}

/// Applies a merge patch (RFC 7396).
fn merge(target: &mut Value, patch: Value) {
    let Value::Object(patch) = patch else {
        *target = patch;
        return;
    };
    if !target.is_object() {
        *target = Value::Object(Map::new());
    }
    for (name, value) in patch {
        if value.is_null() {
            if let Some(target) = target.as_object_mut() {
                target.remove(&name);
            }
        } else {
            merge(&mut target[name], value);
        }
    }
}

pub(super) fn list(state: &State, request: &Request) -> Reply {
    page(
        request,
        state.projects.iter().map(Project::view).collect(),
        PAGE,
    )
}

pub(super) fn get(state: &State, at: usize) -> Reply {
    ok(state.projects[at].view())
}

/// Creates a project. Its subdomain can differ from its name.
pub(super) fn create(state: &mut State, request: &Request) -> Reply {
    let body: Body = request.json(INVALID)?;
    let name = body.name.unwrap_or_default();
    let alphanumeric = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit();
    let valid = name.len() <= LONGEST_NAME
        && name.starts_with(alphanumeric)
        && name.chars().all(|c| alphanumeric(c) || c == '-');
    if !valid {
        return Err(BAD_NAME);
    }
    if state.projects.iter().any(|project| project.name == name) {
        return Err(EXISTS);
    }
    let is_taken = state.settings.taken_pages_subdomains.contains(&name);
    let mut project = Project {
        id: state.ids.uuid(),
        subdomain: format!("{name}{}.pages.dev", if is_taken { OTHERWISE } else { "" }),
        name,
        production_branch: body
            .production_branch
            .filter(|branch| !branch.is_empty())
            .ok_or(NO_BRANCH)?,
        created: state.clock.now(),
        build_config: json!({"web_analytics_tag": null, "web_analytics_token": null}),
        configs: json!({"preview": default_config(), "production": default_config()}),
        deployments: Vec::new(),
        canonical: None,
        domains: Vec::new(),
    };
    set(&mut project, body.build_config, body.deployment_configs)?;
    let view = project.view();
    state.projects.push(project);
    ok(view)
}

fn set(
    project: &mut Project,
    build_config: Option<Map<String, Value>>,
    configs: Option<Map<String, Value>>,
) -> Result<(), Refusal> {
    let configs = configs.unwrap_or_default();
    for (environment, config) in &configs {
        check_config(environment, config)?;
    }
    merge(&mut project.configs, Value::Object(configs));
    for (name, value) in build_config.into_iter().flatten() {
        project.build_config[name] = value;
    }
    Ok(())
}

fn check_config(environment: &str, config: &Value) -> Result<(), Refusal> {
    let is_environment = matches!(environment, "preview" | "production");
    let is_type = |kind: &Value| kind == "plain_text" || kind == "secret_text";
    let is_variable = |variable: &Value| {
        variable.is_null() || variable["value"].is_string() && is_type(&variable["type"])
    };
    let are_variables = |variables: &Value| {
        let variables = variables.as_object().map(Map::values);
        variables.is_some_and(|mut variables| variables.all(is_variable))
    };
    let config = config.as_object().filter(|_| is_environment);
    let is_good = config.is_some_and(|config| config.get("env_vars").is_none_or(are_variables));
    if is_good { Ok(()) } else { Err(BAD_CONFIG) }
}

/// Changes the given settings and keeps all others; `null` deletes a setting.
pub(super) fn edit(state: &mut State, at: usize, request: &Request) -> Reply {
    let body: Body = request.json(INVALID)?;
    let project = &mut state.projects[at];
    set(project, body.build_config, body.deployment_configs)?;
    if let Some(branch) = body.production_branch {
        project.production_branch = branch;
    }
    ok(project.view())
}

pub(super) fn delete(state: &mut State, at: usize) -> Reply {
    if !state.projects[at].domains.is_empty() {
        return Err(HAS_DOMAINS);
    }
    state.projects.remove(at);
    ok(Value::Null)
}
