//! Handlers of the operations that queue a job.

use core_domain::kernel::{
    Email, EntityId, Environment, JobId, Name, OnboardingId, PlatformId, Result, Slug, UserId,
};
use core_domain::port::UnitOfWork;
use core_domain::provisioning::{Job, JobStatus};
use core_domain::registry::OnboardingTier;
use core_domain::use_case::registry::{self as use_case, Provision, StartOnboarding};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::kernel::{Cx, Input, Output};

/// Body of `POST /api/v1/provision/platform`.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct ProvisionPlatform {
    platform_id: PlatformId,
    /// The plan it is for.
    #[schemars(length(min = 1, max = 100))]
    plan_tier: String,
    /// Where bills go.
    billing_email: Email,
    /// The entity the resources shall belong to; the platform's own tenant when not said.
    default_entity_id: Option<EntityId>,
    #[serde(default = "prod")]
    environment: Environment,
}

/// Body of `POST /api/v1/provision/platform/deprovision`.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct DeprovisionPlatform {
    platform_id: PlatformId,
    #[serde(default = "prod")]
    environment: Environment,
}

/// Body of `POST /api/v1/provision/onboard`.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct Onboard {
    /// The same id is the same onboarding, and answers its job.
    onboarding_id: OnboardingId,
    /// What organization and platform shall be called.
    platform_name: Name,
    /// The slug of both.
    slug: Slug,
    /// Who shall own both.
    user_id: UserId,
    /// The stack template the platform shall begin with.
    #[schemars(length(max = 128))]
    stack_template_id: Option<String>,
    #[serde(default = "starter")]
    tier: OnboardingTier,
    /// Where bills shall go.
    billing_email: Option<Email>,
}

fn prod() -> Environment {
    Environment::Prod
}

fn starter() -> OnboardingTier {
    OnboardingTier::Starter
}

/// A job was queued.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct Queued {
    job_id: JobId,
    /// `QUEUED`, also when the request is repeated and its job is further by now.
    status: JobStatus,
}

impl Queued {
    fn answer(job: &Job) -> Output<Self> {
        Output::new(Self {
            job_id: job.id.clone(),
            status: JobStatus::Queued,
        })
    }
}

pub(super) async fn platform(
    cx: &Cx,
    uow: &mut dyn UnitOfWork,
    input: Input<(), (), ProvisionPlatform>,
) -> Result<Output<Queued>> {
    let body = input.body;
    let wanted = Provision {
        plan_tier: body.plan_tier,
        billing_email: Some(body.billing_email),
        entity_id: body.default_entity_id,
        environment: body.environment,
    };
    let job = use_case::provision_platform(cx, uow, &body.platform_id, wanted).await?;
    Ok(Queued::answer(&job))
}

pub(super) async fn deprovision(
    cx: &Cx,
    uow: &mut dyn UnitOfWork,
    input: Input<(), (), DeprovisionPlatform>,
) -> Result<Output<Queued>> {
    let body = input.body;
    let job = use_case::deprovision_platform(cx, uow, &body.platform_id, body.environment).await?;
    Ok(Queued::answer(&job))
}

pub(super) async fn onboard(
    cx: &Cx,
    uow: &mut dyn UnitOfWork,
    input: Input<(), (), Onboard>,
) -> Result<Output<Queued>> {
    let body = input.body;
    let own = cx.caller.user_id() == Some(&body.user_id);
    let session_id = cx.caller.session_id().filter(|_| own).cloned();
    let wanted = StartOnboarding {
        id: Some(body.onboarding_id),
        platform_name: body.platform_name,
        slug: body.slug,
        tier: body.tier,
        stack_template_id: body.stack_template_id,
        billing_email: body.billing_email,
        user_id: Some(body.user_id),
        session_id,
    };
    let (_, job) = use_case::start_onboarding(cx, uow, wanted).await?;
    Ok(Queued::answer(&job))
}
