//! Endpoints that queue the jobs of platforms and onboardings.

use core_domain::access::{
    NewOrganizationScope, PlatformScope, Requirement, authorize_new_organization_for,
};
use core_domain::kernel::{Code, Context, PlatformId, Result, permission};
use core_domain::port::UnitOfWork;
use core_domain::use_case::registry::onboarding::{self, ProvisionOnboarding};
use core_domain::use_case::registry::provision::{self, DeprovisionCommand, ProvisionCommand};
use core_domain::use_case::registry::reconcile::{self, ReconcileCommand};
use futures_util::future::BoxFuture;

use super::queued::{QueuedResponse, SUCCESS, queued_response};
use crate::kernel::{Cx, DryRunQuery, Endpoint, Input, OnPlatform, OpenScope, post};

pub(super) fn rows() -> Vec<Endpoint> {
    vec![
        post("/api/v1/provision/platform", "provisionPlatform")
            .summary("Provisions the infrastructure of a platform in an environment.")
            .description(
                "Queues a job that creates the default resources of the platform, one step each. \
                 They belong to `defaultEntityId`, or to the first tenant of the platform, which \
                 is created if there is none. Repeated calls queue further jobs, which leave \
                 existing resources unchanged. With `dryRun=true` nothing is queued, and the \
                 response has the plan of the job.",
            )
            .success(SUCCESS)
            .refuses(&[Code::NotFound, Code::InvalidState, Code::LimitReached])
            .writes(provision_platform),
        post("/api/v1/provision/onboard", "provisionOnboarding")
            .summary("Creates an organization with a platform and its infrastructure.")
            .description(
                "Reserves the slug and queues a job that creates everything for the owner in \
                 `userId`. A repeated call of the same caller with the same `onboardingId` and \
                 content returns the existing job; with other content it is refused. If the \
                 caller is not an operator, the platform starts in the tier `starter`. With \
                 `dryRun=true` nothing is queued, and the response has the plan of the job.",
            )
            .success(SUCCESS)
            .refuses(&[
                Code::Forbidden,
                Code::NotFound,
                Code::SlugTaken,
                Code::LimitReached,
                Code::InvalidState,
            ])
            .writes(onboard),
        post(
            "/api/v1/provision/platform/deprovision",
            "deprovisionPlatform",
        )
        .summary("Removes the infrastructure of a platform in an environment.")
        .description(
            "Queues a job that runs before the other waiting jobs of the platform. It removes \
                 the hostnames and all resources in the environment, including their data. \
                 Features and stacks in the environment end, and in `prod` open deployments are \
                 cancelled. The platform itself stays. With `dryRun=true` nothing is queued, and \
                 the response has the plan of the job.",
        )
        .success(SUCCESS)
        .refuses(&[Code::NotFound, Code::InvalidState])
        .writes(deprovision_platform),
        post("/api/v1/provision/platform/reconcile", "reconcilePlatform")
            .summary("Compares the records of a platform with the provider.")
            .description(
                "Queues a job that reports the differences in its output. With `repair`, the job \
                 also fixes them: it creates what provisioning should have created, marks records \
                 without an object as `failed`, and removes objects whose records were deleted. \
                 Objects with data are only removed with `deleteData`, and unknown objects are \
                 only reported. With `dryRun=true` nothing is queued, and the response has the \
                 plan of the job.",
            )
            .success(SUCCESS)
            .refuses(&[Code::NotFound, Code::InvalidState])
            .writes(reconcile_platform),
    ]
}

impl OnPlatform for Input<(), DryRunQuery, ProvisionCommand> {
    fn platform_id(&self) -> &PlatformId {
        &self.body.platform_id
    }
}

impl OnPlatform for Input<(), DryRunQuery, ReconcileCommand> {
    fn platform_id(&self) -> &PlatformId {
        &self.body.platform_id
    }
}

impl OnPlatform for Input<(), DryRunQuery, DeprovisionCommand> {
    fn platform_id(&self) -> &PlatformId {
        &self.body.platform_id
    }
}

async fn provision_platform(
    cx: &Cx,
    scope: PlatformScope<permission::JobCreate>,
    uow: &mut dyn UnitOfWork,
    input: Input<(), DryRunQuery, ProvisionCommand>,
) -> Result<QueuedResponse> {
    let job = provision::provision(cx, &scope, uow, input.body).await?;
    queued_response(uow, input.query, &job).await
}

async fn deprovision_platform(
    cx: &Cx,
    scope: PlatformScope<permission::PlatformManage>,
    uow: &mut dyn UnitOfWork,
    input: Input<(), DryRunQuery, DeprovisionCommand>,
) -> Result<QueuedResponse> {
    let environment = input.body.environment;
    let job = provision::deprovision(cx, &scope, uow, environment).await?;
    queued_response(uow, input.query, &job).await
}

async fn reconcile_platform(
    cx: &Cx,
    scope: PlatformScope<permission::PlatformManage>,
    uow: &mut dyn UnitOfWork,
    input: Input<(), DryRunQuery, ReconcileCommand>,
) -> Result<QueuedResponse> {
    let job = reconcile::reconcile(cx, &scope, uow, input.body).await?;
    queued_response(uow, input.query, &job).await
}

/// The scope on the new organization of an onboarding. The body names its owner.
struct OnboardingScope(NewOrganizationScope);

impl OpenScope<Input<(), DryRunQuery, ProvisionOnboarding>> for OnboardingScope {
    const REQUIREMENT: Requirement = Requirement::SignedIn;

    fn open<'a>(
        cx: &'a Context,
        uow: &'a mut dyn UnitOfWork,
        input: &'a Input<(), DryRunQuery, ProvisionOnboarding>,
    ) -> BoxFuture<'a, Result<Self>> {
        Box::pin(async move {
            let scope = authorize_new_organization_for(cx, uow, &input.body.user_id).await;
            scope.map(Self)
        })
    }
}

async fn onboard(
    cx: &Cx,
    scope: OnboardingScope,
    uow: &mut dyn UnitOfWork,
    input: Input<(), DryRunQuery, ProvisionOnboarding>,
) -> Result<QueuedResponse> {
    let body = input.body;
    let (_, job) = onboarding::start_as(cx, &scope.0, uow, body.onboarding_id, body.wanted).await?;
    queued_response(uow, input.query, &job).await
}
