//! The operations that queue a job.

use core_domain::access::{PlatformScope, SignedInScope};
use core_domain::kernel::{Code, JobId, PlatformId, Result, grant};
use core_domain::port::UnitOfWork;
use core_domain::provisioning::{Job, JobStatus};
use core_domain::use_case::registry::onboarding::{self, ProvisionOnboarding};
use core_domain::use_case::registry::provision::{self, DeprovisionCommand, ProvisionCommand};
use http::StatusCode;
use schemars::JsonSchema;
use serde::Serialize;

use crate::kernel::{Cx, Endpoint, Input, OnPlatform, Output, post};

pub(super) fn rows() -> Vec<Endpoint> {
    vec![
        post("/api/v1/provision/platform", "provisionPlatform")
            .summary("Queues the job that gives a platform its infrastructure in an environment.")
            .success(&[StatusCode::ACCEPTED])
            .refuses(&[Code::NotFound, Code::InvalidState])
            .writes(provision_platform),
        post("/api/v1/provision/onboard", "provisionOnboarding")
            .summary("Queues the job that creates an organization with its platform and infrastructure.")
            .success(&[StatusCode::ACCEPTED])
            .refuses(&[Code::Forbidden, Code::NotFound, Code::SlugTaken, Code::InvalidState])
            .writes(onboard),
        post("/api/v1/provision/platform/deprovision", "deprovisionPlatform")
            .summary("Queues the job that removes a platform's infrastructure in an environment, before its other jobs.")
            .success(&[StatusCode::ACCEPTED])
            .refuses(&[Code::NotFound, Code::InvalidState])
            .writes(deprovision_platform),
    ]
}

impl OnPlatform for Input<(), (), ProvisionCommand> {
    fn platform_id(&self) -> &PlatformId {
        &self.body.platform_id
    }
}

impl OnPlatform for Input<(), (), DeprovisionCommand> {
    fn platform_id(&self) -> &PlatformId {
        &self.body.platform_id
    }
}

/// A job was queued.
#[derive(Clone, Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
struct Queued {
    job_id: JobId,
    /// `QUEUED`, also when the request is repeated and its job is further by now.
    status: JobStatus,
}

fn queued(job: &Job) -> Output<Queued> {
    Output::new(Queued {
        job_id: job.id.clone(),
        status: JobStatus::Queued,
    })
}

async fn provision_platform(
    cx: &Cx,
    scope: PlatformScope<grant::JobCreate>,
    uow: &mut dyn UnitOfWork,
    input: Input<(), (), ProvisionCommand>,
) -> Result<Output<Queued>> {
    let job = provision::provision(cx, &scope, uow, input.body).await?;
    Ok(queued(&job))
}

async fn deprovision_platform(
    cx: &Cx,
    scope: PlatformScope<grant::PlatformManage>,
    uow: &mut dyn UnitOfWork,
    input: Input<(), (), DeprovisionCommand>,
) -> Result<Output<Queued>> {
    let environment = input.body.environment;
    let job = provision::deprovision(cx, &scope, uow, environment).await?;
    Ok(queued(&job))
}

async fn onboard(
    cx: &Cx,
    scope: SignedInScope,
    uow: &mut dyn UnitOfWork,
    input: Input<(), (), ProvisionOnboarding>,
) -> Result<Output<Queued>> {
    let (_, job) = onboarding::start_for(cx, &scope, uow, input.body).await?;
    Ok(queued(&job))
}
