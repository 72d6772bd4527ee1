//! Deployments of Pages projects.

use core_domain::port::{ProviderError, SiteDeployment, SiteRedeploy, SiteState};
use http::Method;
use serde::Deserialize;

use super::project::{MISSING, PATH};
use crate::client::Client;
use crate::error::{CallError, shorten};
use crate::paging::{has_next, with_page};

/// Maximum number of pages that are searched for a deployment. The engine searches only for recent deployments, which
/// its current job created.
const MAX_SEARCHED_PAGES: u64 = 5;

/// The required fields of a deployment.
#[derive(Clone, Debug, Deserialize)]
pub(super) struct Deployment {
    id: String,
    #[serde(default)]
    url: String,
    latest_stage: Option<Stage>,
    #[serde(default)]
    stages: Vec<Stage>,
    deployment_trigger: Option<Trigger>,
}

#[derive(Clone, Debug, Deserialize)]
struct Stage {
    name: String,
    status: String,
}

#[derive(Clone, Debug, Deserialize)]
struct Trigger {
    metadata: Option<Metadata>,
}

#[derive(Clone, Debug, Deserialize)]
struct Metadata {
    commit_hash: Option<String>,
}

#[derive(Deserialize)]
struct Logs {
    #[serde(default)]
    data: Vec<LogLine>,
}

#[derive(Deserialize)]
struct LogLine {
    line: String,
}

/// The status of a deployment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Status {
    Deploying,
    Active,
    Failed,
    Canceled,
}

impl Deployment {
    /// Returns the deployment key, which is stored as the commit hash.
    fn key(&self) -> Option<&str> {
        let metadata = self.deployment_trigger.as_ref()?.metadata.as_ref()?;
        metadata.commit_hash.as_deref()
    }

    /// Returns the status. Unknown states count as in progress.
    fn status(&self) -> Status {
        let any = |status| {
            let mut stages = self.stages.iter().chain(&self.latest_stage);
            stages.any(|stage| stage.status == status)
        };
        let deployed = |stage: &Stage| stage.name == "deploy" && stage.status == "success";
        if any("failure") {
            Status::Failed
        } else if any("canceled") {
            Status::Canceled
        } else if self.latest_stage.as_ref().is_some_and(deployed) {
            Status::Active
        } else {
            Status::Deploying
        }
    }

    /// Converts the deployment to the type of the port. Fetches the reason of a failure.
    pub(super) async fn into_site_deployment(
        self,
        client: &Client,
        project: &str,
    ) -> Result<SiteDeployment, CallError> {
        let state = match self.status() {
            Status::Deploying => SiteState::Deploying,
            Status::Active => SiteState::Active,
            Status::Canceled => SiteState::Failed("canceled at the provider".to_owned()),
            Status::Failed => SiteState::Failed(self.reason(client, project).await?),
        };
        Ok(SiteDeployment {
            id: self.id,
            permalink: Some(self.url.clone()),
            url: self.url,
            state,
        })
    }

    /// Returns the last line of the deployment log.
    async fn reason(&self, client: &Client, project: &str) -> Result<String, CallError> {
        let path = [project, "deployments", &self.id, "history", "logs"];
        let call = client.call(Method::GET, "pages.logs", &[&PATH[..], &path].concat());
        let logs = client.find::<Logs>(call, MISSING).await?;
        let last = logs.and_then(|logs| logs.data.into_iter().next_back());
        Ok(match last {
            Some(last) => shorten(&last.line),
            None => "the deployment failed at the provider without a reason".to_owned(),
        })
    }
}

/// Returns the newest deployment with this key.
pub(super) async fn find(
    client: &Client,
    project: &str,
    key: &str,
) -> Result<Option<Deployment>, CallError> {
    for page in 1..=MAX_SEARCHED_PAGES {
        let path = [&PATH[..], &[project, "deployments"]].concat();
        let list = client.call(Method::GET, "pages.deployments", &path);
        let answer = match client.fetch::<Vec<Deployment>>(with_page(list, page)).await {
            Err(error) if error.is_missing(MISSING) => return Ok(None),
            answer => answer?,
        };
        let rows = answer.result.len();
        let mut deployments = answer.result.into_iter();
        if let Some(found) = deployments.find(|deployment| deployment.key() == Some(key)) {
            return Ok(Some(found));
        }
        if !has_next(&answer.info, page, rows) {
            break;
        }
    }
    Ok(None)
}

/// Returns the current state of the deployment with this key.
pub(crate) async fn observe(
    client: &Client,
    project: &str,
    key: &str,
) -> Result<Option<SiteDeployment>, ProviderError> {
    let Some(found) = find(client, project, key).await? else {
        return Ok(None);
    };
    let latest = refresh(client, project, found).await?;
    Ok(Some(latest.into_site_deployment(client, project).await?))
}

/// Fetches an unfinished deployment separately, because the list can be outdated.
async fn refresh(
    client: &Client,
    project: &str,
    found: Deployment,
) -> Result<Deployment, CallError> {
    if found.status() != Status::Deploying {
        return Ok(found);
    }
    let path = [&PATH[..], &[project, "deployments", &found.id]].concat();
    let call = client.call(Method::GET, "pages.deployment", &path);
    let latest = client.find::<Deployment>(call, MISSING).await?;
    Ok(latest.unwrap_or(found))
}

/// Makes an earlier deployment of production live again in production. Repeating the call has no further effect.
pub(crate) async fn roll_back(
    client: &Client,
    request: &SiteRedeploy,
) -> Result<SiteDeployment, ProviderError> {
    let project = request.project.as_str();
    let id = match &request.source_id {
        Some(id) => id.clone(),
        None => match find(client, project, &request.source_key).await? {
            Some(found) => found.id,
            None => return Err(source_removed()),
        },
    };
    let path = [&PATH[..], &[project, "deployments", &id, "rollback"]].concat();
    let call = client.call(Method::POST, "pages.rollback", &path);
    match client.find::<Deployment>(call, MISSING).await? {
        Some(found) => Ok(found.into_site_deployment(client, project).await?),
        None => Err(source_removed()),
    }
}

fn source_removed() -> ProviderError {
    let message = "the earlier deployment no longer exists at Cloudflare; deploy the site again";
    ProviderError::Permanent(message.to_owned())
}

/// Creates a deployment of uploaded files. A second request would create a second deployment, so an unknown outcome is
/// resolved by a search.
pub(super) async fn create(
    client: &Client,
    project: &str,
    key: &str,
    content_type: String,
    body: bytes::Bytes,
) -> Result<Deployment, ProviderError> {
    let path = [&PATH[..], &[project, "deployments"]].concat();
    let call = client.call(Method::POST, "pages.deploy", &path);
    let call = call.body(content_type, body).upload();
    match client.fetch::<Deployment>(call).await {
        Ok(answer) => Ok(answer.result),
        Err(error) if error.is_missing(MISSING) => Err(no_project(project)),
        Err(error) if error.is_ambiguous() => {
            let found = find(client, project, key).await;
            found.ok().flatten().ok_or_else(|| error.into())
        }
        Err(error) => Err(error.into()),
    }
}

pub(super) fn no_project(project: &str) -> ProviderError {
    ProviderError::Permanent(format!("the pages project {project} does not exist"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn status(stages: &[(&str, &str)]) -> Status {
        let stages: Vec<_> = stages
            .iter()
            .map(|(name, status)| serde_json::json!({ "name": name, "status": status }))
            .collect();
        let deployment =
            serde_json::json!({ "id": "d", "latest_stage": stages.last(), "stages": stages });
        serde_json::from_value::<Deployment>(deployment)
            .unwrap()
            .status()
    }

    #[test]
    fn stages_determine_the_status_and_unknown_ones_are_in_progress() {
        let done = ("build", "success");
        for (stages, expected) in [
            (&[][..], Status::Deploying),
            (&[("queued", "idle")], Status::Deploying),
            (&[done], Status::Deploying),
            (&[done, ("deploy", "idle")], Status::Deploying),
            (&[done, ("deploy", "active")], Status::Deploying),
            (&[done, ("deploy", "contemplating")], Status::Deploying),
            (
                &[("build", "skipped"), ("deploy", "success")],
                Status::Active,
            ),
            (&[done, ("deploy", "failure")], Status::Failed),
            (&[("build", "failure"), ("deploy", "idle")], Status::Failed),
            (&[("queued", "canceled")], Status::Canceled),
        ] {
            assert_eq!(status(stages), expected, "{stages:?}");
        }
    }
}
