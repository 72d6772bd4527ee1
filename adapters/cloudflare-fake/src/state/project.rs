//! A Pages project with its deployments.

use std::collections::BTreeMap;

use serde_json::{Map, Value, json};

use super::pages_domain::Domain;

/// A Pages project with its settings and deployments.
pub(crate) struct Project {
    pub(crate) id: String,
    pub(crate) name: String,
    /// The full host name, including `pages.dev`.
    pub(crate) subdomain: String,
    pub(crate) production_branch: String,
    pub(crate) created: String,
    pub(crate) build_config: Value,
    /// The configurations of `preview` and `production`, including the values of secrets.
    pub(crate) configs: Value,
    /// The deployments, oldest first.
    pub(crate) deployments: Vec<Deployment>,
    /// The id of the live production deployment.
    pub(crate) canonical: Option<String>,
    pub(crate) domains: Vec<Domain>,
}

/// Returns configurations without the values of secrets.
fn without_secret_values(configs: &Value) -> Value {
    let mut shown = configs.clone();
    for config in shown.as_object_mut().into_iter().flat_map(Map::values_mut) {
        hide_secrets(&mut config["env_vars"]);
    }
    shown
}

fn hide_secrets(variables: &mut Value) {
    let variables = variables
        .as_object_mut()
        .into_iter()
        .flat_map(Map::values_mut);
    for variable in variables.filter(|variable| variable["type"] == "secret_text") {
        variable["value"] = json!("");
    }
}

impl Project {
    fn deployment(&self, id: &str) -> Option<&Deployment> {
        self.deployments
            .iter()
            .find(|deployment| deployment.id == id)
    }

    pub(crate) fn deployment_count(&self) -> usize {
        self.deployments.len()
    }

    /// Returns the variables of an environment with their values, in the form of the API.
    pub(crate) fn variables(&self, environment: &str) -> &Value {
        &self.configs[environment]["env_vars"]
    }

    /// Returns the values of the variables and secrets of an environment.
    pub(crate) fn values(&self, environment: &str) -> BTreeMap<String, String> {
        let variables = self
            .variables(environment)
            .as_object()
            .into_iter()
            .flatten();
        let value = |variable: &Value| variable["value"].as_str().unwrap_or_default().to_owned();
        variables
            .map(|(name, variable)| (name.clone(), value(variable)))
            .collect()
    }

    /// Returns the paths that production serves, with the hashes of their contents.
    pub(crate) fn production(&self) -> Option<&BTreeMap<String, String>> {
        let canonical = self.deployment(self.canonical.as_ref()?)?;
        Some(&canonical.manifest)
    }

    /// Returns the paths that the newest preview of a branch serves, with the hashes of their contents.
    pub(crate) fn preview(&self, branch: &str) -> Option<&BTreeMap<String, String>> {
        let mut newest = self.deployments.iter().rev();
        let is_preview = |deployment: &&Deployment| {
            !deployment.is_production
                && deployment.is_live()
                && deployment.metadata["branch"] == branch
        };
        newest
            .find(is_preview)
            .map(|deployment| &deployment.manifest)
    }

    pub(crate) fn view(&self) -> Value {
        let canonical = self.canonical.as_ref().and_then(|id| self.deployment(id));
        let mut domains = vec![self.subdomain.clone()];
        domains.extend(self.domains.iter().map(|domain| domain.name.clone()));
        json!({
            "id": self.id,
            "name": self.name,
            "subdomain": self.subdomain,
            "domains": domains,
            "production_branch": self.production_branch,
            "created_on": self.created,
            "build_config": self.build_config,
            "deployment_configs": without_secret_values(&self.configs),
            "canonical_deployment": canonical.map(|deployment| deployment.view(self)),
            "latest_deployment": self.deployments.last().map(|deployment| deployment.view(self)),
            "framework": "",
            "framework_version": "",
            "preview_script_name": format!("pages-worker--{}-preview", self.name),
            "production_script_name": format!("pages-worker--{}-production", self.name),
            "uses_functions": false,
        })
    }
}

/// The outcome of a deployment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum DeploymentEnd {
    /// The deployment goes live.
    Success,
    /// The deployment fails; the text is the last line of its log.
    Failure(String),
    /// The deployment is canceled.
    Canceled,
}

/// A deployment of a project.
pub(crate) struct Deployment {
    pub(crate) id: String,
    pub(crate) created: String,
    pub(crate) is_production: bool,
    /// The hashes of the files by path.
    pub(crate) manifest: BTreeMap<String, String>,
    pub(crate) metadata: Value,
    /// The variables of its environment at the time of its creation.
    pub(crate) variables: Value,
    pub(crate) end: DeploymentEnd,
    pub(crate) polls: usize,
    pub(crate) polls_left: usize,
}

impl Deployment {
    /// Returns the name and status of the latest stage.
    fn stage(&self) -> (&'static str, &'static str) {
        match (self.polls_left, &self.end) {
            (left, _) if left == self.polls && left > 0 => ("queued", "active"),
            (left, _) if left > 0 => ("deploy", "active"),
            (_, DeploymentEnd::Success) => ("deploy", "success"),
            (_, DeploymentEnd::Failure(_)) => ("deploy", "failure"),
            (_, DeploymentEnd::Canceled) => ("deploy", "canceled"),
        }
    }

    pub(crate) const fn is_live(&self) -> bool {
        self.polls_left == 0 && matches!(self.end, DeploymentEnd::Success)
    }

    pub(crate) fn view(&self, project: &Project) -> Value {
        let (latest, status) = self.stage();
        let short_id = &self.id[..8];
        let stage = |name: &str, status: &str| {
            let has_ended = !matches!(status, "idle" | "active");
            json!({
                "name": name,
                "status": status,
                "started_on": if status == "idle" { Value::Null } else { json!(self.created) },
                "ended_on": if has_ended { json!(self.created) } else { Value::Null },
            })
        };
        let stages = if latest == "queued" {
            vec![stage("queued", status), stage("deploy", "idle")]
        } else {
            vec![stage("queued", "success"), stage("deploy", status)]
        };
        let mut variables = self.variables.clone();
        hide_secrets(&mut variables);
        json!({
            "id": self.id,
            "short_id": short_id,
            "project_id": project.id,
            "project_name": project.name,
            "environment": if self.is_production { "production" } else { "preview" },
            "url": format!("https://{short_id}.{}", project.subdomain),
            "aliases": null,
            "created_on": self.created,
            "modified_on": self.created,
            "is_skipped": false,
            "uses_functions": false,
            "latest_stage": stage(latest, status),
            "stages": stages,
            "env_vars": variables,
            "build_config": {"web_analytics_tag": null, "web_analytics_token": null},
            "deployment_trigger": {"type": "ad_hoc", "metadata": self.metadata},
            "source": source(&project.production_branch),
        })
    }
}

/// Returns the source, which the document requires for every deployment, even for uploads.
fn source(branch: &str) -> Value {
    json!({
        "type": "github",
        "config": {
            "owner": "",
            "owner_id": "",
            "repo_name": "",
            "repo_id": "",
            "production_branch": branch,
            "pr_comments_enabled": false,
            "deployments_enabled": false,
            "production_deployments_enabled": false,
            "preview_deployment_setting": "all",
            "preview_branch_includes": [],
            "preview_branch_excludes": [],
            "path_includes": [],
            "path_excludes": [],
        },
    })
}
