//! `deploy`: puts an uploaded site up, and lets the deployment's record follow.

use std::sync::Arc;

use async_trait::async_trait;
use serde::{Deserialize, Serialize};

use super::deploy_steps::{Activate, Cleanup, Project, Upload};
use crate::kernel::{Context, DeploymentId, Error, Result};
use crate::port::{Record, SiteArchives, Stored, UnitOfWork};
use crate::provisioning::{FailureKind, Job, JobKind, JobStep};
use crate::registry::{Deployment, DeploymentChange, DeploymentStatus, ResourceType};
use crate::use_case::provisioning::{NewJob, enqueue};
use crate::use_case::registry::{
    MakeResource, Target, as_asked_by, change_deployment, look_up_deployment, read_input,
};

pub(super) const NAME: &str = "deploy";

const PROJECT: &str = "project";
const UPLOAD: &str = "upload";
const ACTIVATE: &str = "activate";
const CLEANUP: &str = "cleanup";

/// The steps: the pages project is there, the site is with the provider, it is served, the upload is forgotten.
pub(super) const STEPS: [&str; 4] = [PROJECT, UPLOAD, ACTIVATE, CLEANUP];

/// What a deploy job works on. The target's fields stand beside the others, where the step that makes the project
/// looks for them.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct DeployInput {
    pub(super) deployment_id: DeploymentId,
    pub(super) project: String,
    pub(super) branch: String,
    #[serde(flatten)]
    pub(super) target: Target,
}

/// The kinds of jobs of the command line's service.
#[must_use]
pub fn kinds(archives: Arc<dyn SiteArchives>) -> Vec<Arc<dyn JobKind>> {
    vec![Arc::new(DeploySite {
        project: Project(MakeResource(ResourceType::Pages)),
        upload: Upload(archives),
        activate: Activate,
        cleanup: Cleanup,
    })]
}

#[derive(Debug)]
struct DeploySite {
    project: Project,
    upload: Upload,
    activate: Activate,
    cleanup: Cleanup,
}

#[async_trait]
impl JobKind for DeploySite {
    fn name(&self) -> &'static str {
        NAME
    }

    fn step(&self, name: &str) -> Option<&dyn JobStep> {
        match name {
            PROJECT => Some(&self.project),
            UPLOAD => Some(&self.upload),
            ACTIVATE => Some(&self.activate),
            CLEANUP => Some(&self.cleanup),
            _ => None,
        }
    }

    /// Only a job that an operator declared done leaves anything to do.
    async fn completed(&self, cx: &Context, uow: &mut dyn UnitOfWork, job: &Job) -> Result<()> {
        if !job.forced || !deploys(job) {
            return Ok(());
        }
        let change = DeploymentChange {
            status: Some(DeploymentStatus::Active),
            ..DeploymentChange::default()
        };
        end(cx, uow, job, &change).await
    }

    async fn failed(&self, cx: &Context, uow: &mut dyn UnitOfWork, job: &Job) -> Result<()> {
        if !deploys(job) {
            return Ok(());
        }
        let status = if job.failure_kind == Some(FailureKind::Cancelled) {
            DeploymentStatus::Canceled
        } else {
            DeploymentStatus::Failure
        };
        let error = job.error.as_ref();
        let said = error.map(|error| format!("{}: {}", error.code, error.message));
        let change = DeploymentChange {
            status: Some(status),
            error_message: said.or_else(|| job.reason.clone()),
            ..DeploymentChange::default()
        };
        end(cx, uow, job, &change).await
    }

    /// A deployment that has ended stays as it is, so its job cannot go on.
    async fn resumed(&self, _cx: &Context, uow: &mut dyn UnitOfWork, job: &Job) -> Result<()> {
        if !deploys(job) {
            return Ok(());
        }
        let deployment = deployment_of(uow, job).await?;
        match deployment {
            Some(deployment) if !deployment.status.is_terminal() => Ok(()),
            Some(deployment) => Err(Error::InvalidState {
                status: deployment.status.as_str(),
                allowed_from: DeploymentStatus::IN_FLIGHT
                    .iter()
                    .map(|s| s.as_str())
                    .collect(),
            }),
            None => Err(Error::NotFound(Deployment::KIND)),
        }
    }
}

/// Tells a job that deploys from one that only forgets the upload of another.
fn deploys(job: &Job) -> bool {
    job.steps.iter().any(|step| step.name == UPLOAD)
}

async fn deployment_of(uow: &mut dyn UnitOfWork, job: &Job) -> Result<Option<Stored<Deployment>>> {
    let input: DeployInput = read_input(job)?;
    look_up_deployment(uow, &input.deployment_id).await
}

/// Ends the deployment unless it has ended, and queues what forgets its upload.
async fn end(
    cx: &Context,
    uow: &mut dyn UnitOfWork,
    job: &Job,
    change: &DeploymentChange,
) -> Result<()> {
    let cx = as_asked_by(cx, job);
    let input: DeployInput = read_input(job)?;
    let deployment = deployment_of(uow, job).await?;
    if deployment.is_some_and(|d| !d.status.is_terminal()) {
        change_deployment(&cx, uow, &input.deployment_id, change).await?;
    }
    let forget = NewJob {
        environment: job.environment,
        input: job.input.clone(),
        parent_job_id: Some(job.id.clone()),
        ..NewJob::for_platform(NAME, input.target.platform_id, &[CLEANUP])
    };
    enqueue(&cx, uow, forget).await?;
    Ok(())
}
