//! The operations that queue a job.

use core_domain::access::{
    NewOrganizationScope, PlatformScope, Requirement, authorize_new_organization_for,
};
use core_domain::kernel::{Code, Context, PlatformId, Result, grant};
use core_domain::port::UnitOfWork;
use core_domain::use_case::registry::onboarding::{self, ProvisionOnboarding};
use core_domain::use_case::registry::provision::{self, DeprovisionCommand, ProvisionCommand};
use core_domain::use_case::registry::reconcile::{self, ReconcileCommand};
use futures_util::future::BoxFuture;

use super::queued::{Queued, SUCCESS, queued};
use crate::kernel::{Cx, DryRunQuery, Endpoint, Input, OnPlatform, OpenScope, post};

pub(super) fn rows() -> Vec<Endpoint> {
    vec![
        post("/api/v1/provision/platform", "provisionPlatform")
            .summary("Queues the job that gives a platform its infrastructure in an environment. With dryRun only tells what it would do.")
            .success(SUCCESS)
            .refuses(&[Code::NotFound, Code::InvalidState, Code::LimitReached])
            .writes(provision_platform),
        post("/api/v1/provision/onboard", "provisionOnboarding")
            .summary("Queues the job that creates an organization with its platform and infrastructure. With dryRun only tells what it would do.")
            .success(SUCCESS)
            .refuses(&[Code::Forbidden, Code::NotFound, Code::SlugTaken, Code::LimitReached, Code::InvalidState])
            .writes(onboard),
        post("/api/v1/provision/platform/deprovision", "deprovisionPlatform")
            .summary("Queues the job that removes a platform's infrastructure in an environment, before its other jobs. With dryRun only tells what it would do.")
            .success(SUCCESS)
            .refuses(&[Code::NotFound, Code::InvalidState])
            .writes(deprovision_platform),
        post("/api/v1/provision/platform/reconcile", "reconcilePlatform")
            .summary("Queues the job that compares what the registry knows of a platform with what the provider has, and with repair mends it.")
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
    scope: PlatformScope<grant::JobCreate>,
    uow: &mut dyn UnitOfWork,
    input: Input<(), DryRunQuery, ProvisionCommand>,
) -> Result<Queued> {
    let job = provision::provision(cx, &scope, uow, input.body).await?;
    queued(uow, input.query, &job).await
}

async fn deprovision_platform(
    cx: &Cx,
    scope: PlatformScope<grant::PlatformManage>,
    uow: &mut dyn UnitOfWork,
    input: Input<(), DryRunQuery, DeprovisionCommand>,
) -> Result<Queued> {
    let environment = input.body.environment;
    let job = provision::deprovision(cx, &scope, uow, environment).await?;
    queued(uow, input.query, &job).await
}

async fn reconcile_platform(
    cx: &Cx,
    scope: PlatformScope<grant::PlatformManage>,
    uow: &mut dyn UnitOfWork,
    input: Input<(), DryRunQuery, ReconcileCommand>,
) -> Result<Queued> {
    let job = reconcile::reconcile(cx, &scope, uow, input.body).await?;
    queued(uow, input.query, &job).await
}

/// The scope on the new organization of an onboarding, whose owner the body names.
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
) -> Result<Queued> {
    let body = input.body;
    let (_, job) = onboarding::start_as(cx, &scope.0, uow, body.onboarding_id, body.wanted).await?;
    queued(uow, input.query, &job).await
}
