//! Deployments of projects.

use core_domain::port::{ProviderError, SiteDeployment, SiteState};
use http::Method;
use serde::Deserialize;

use super::project::{MISSING, PATH};
use crate::client::Client;
use crate::error::{CallError, shortened};
use crate::paging::{at, has_next};

/// Pages of a project's deployments that are searched for one of ours: those of the last while. The engine asks for one that
/// was made by the job it works on.
const MOST_PAGES: u64 = 5;

/// A deployment, as far as it matters.
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

/// Where a deployment stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Status {
    Deploying,
    Active,
    Failed,
    Canceled,
}

impl Deployment {
    /// Our key of it.
    fn key(&self) -> Option<&str> {
        let metadata = self.deployment_trigger.as_ref()?.metadata.as_ref()?;
        metadata.commit_hash.as_deref()
    }

    /// Words nobody knows count as being worked on.
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

    /// What it is to us; a failure says why.
    pub(super) async fn into_site_deployment(
        self,
        client: &Client,
        project: &str,
    ) -> Result<SiteDeployment, CallError> {
        let state = match self.status() {
            Status::Deploying => SiteState::Deploying,
            Status::Active => SiteState::Active,
            Status::Canceled => SiteState::Failed("it was canceled at the provider".to_owned()),
            Status::Failed => SiteState::Failed(self.reason(client, project).await?),
        };
        Ok(SiteDeployment {
            id: self.id,
            url: self.url,
            state,
        })
    }

    /// The last line of its log.
    async fn reason(&self, client: &Client, project: &str) -> Result<String, CallError> {
        let path = [project, "deployments", &self.id, "history", "logs"];
        let call = client.call(Method::GET, "pages.logs", &[&PATH[..], &path].concat());
        let logs = client.find::<Logs>(call, MISSING).await?;
        let last = logs.and_then(|logs| logs.data.into_iter().next_back());
        Ok(match last {
            Some(last) => shortened(&last.line),
            None => "the provider could not deploy it, and does not say why".to_owned(),
        })
    }
}

/// The newest deployment with a key of ours.
pub(super) async fn find(
    client: &Client,
    project: &str,
    key: &str,
) -> Result<Option<Deployment>, CallError> {
    for page in 1..=MOST_PAGES {
        let path = [&PATH[..], &[project, "deployments"]].concat();
        let list = client.call(Method::GET, "pages.deployments", &path);
        let answer = match client.fetch::<Vec<Deployment>>(at(list, page)).await {
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

/// Looks for a deployment by our key.
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

/// One that is not at its end is asked for by itself: the list may be behind.
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

/// Makes a deployment of files that are uploaded. Asking twice would make two, so whatever leaves the outcome unknown is
/// followed by a search.
pub(super) async fn create(
    client: &Client,
    project: &str,
    key: &str,
    (content_type, body): (String, bytes::Bytes),
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
    ProviderError::Permanent(format!("there is no pages {project}"))
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
    fn every_stage_and_status_has_its_meaning_and_unknown_ones_are_waited_for() {
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
