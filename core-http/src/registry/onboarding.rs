//! Onboarding. The interface names the prefix alone; paths and bodies are ours.

use core_domain::kernel::{
    Email, Error, JobId, Name, OnboardingId, PlatformId, Result, Slug, Timestamp,
};
use core_domain::port::{Stored, UnitOfWork};
use core_domain::provisioning::{Job, JobStatus};
use core_domain::registry::{Onboarding, OnboardingTier};
use core_domain::use_case::registry::{self as use_case, StartOnboarding};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::kernel::{Cx, Input, Output};

/// Body of `POST /api/v1/onboarding/start`.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct Start {
    /// What organization and platform shall be called.
    platform_name: Name,
    /// The slug of both.
    slug: Slug,
    #[serde(default = "starter")]
    tier: OnboardingTier,
    /// The stack template the platform shall begin with.
    #[schemars(length(min = 1, max = 128))]
    stack_template_id: Option<String>,
    /// Where bills shall go.
    billing_email: Option<Email>,
}

fn starter() -> OnboardingTier {
    OnboardingTier::Starter
}

/// An onboarding has begun.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct Started {
    onboarding_id: OnboardingId,
    job_id: JobId,
    /// The status of the job.
    status: JobStatus,
}

/// How far an onboarding is.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct OnboardingShape {
    onboarding_id: OnboardingId,
    job_id: JobId,
    /// The status of the job.
    status: JobStatus,
    platform_name: Name,
    slug: Slug,
    tier: OnboardingTier,
    stack_template_id: Option<String>,
    billing_email: Option<Email>,
    /// The platform, once it is there.
    platform_id: Option<PlatformId>,
    completed_steps: usize,
    total_steps: usize,
    /// What happens now, in words.
    message: String,
    /// What went wrong last: `{code, message, details}`.
    error: Option<Value>,
    created_at: Timestamp,
    updated_at: Timestamp,
    completed_at: Option<Timestamp>,
}

/// Whether a slug is free.
#[derive(Debug, Serialize, JsonSchema)]
pub(super) struct SlugAnswer {
    slug: Slug,
    available: bool,
}

pub(super) async fn start(
    cx: &Cx,
    uow: &mut dyn UnitOfWork,
    input: Input<(), (), Start>,
) -> Result<Output<Started>> {
    let body = input.body;
    let wanted = StartOnboarding {
        id: None,
        platform_name: body.platform_name,
        slug: body.slug,
        tier: body.tier,
        stack_template_id: body.stack_template_id,
        billing_email: body.billing_email,
        user_id: cx.caller.user_id().cloned(),
        session_id: cx.caller.session_id().cloned(),
    };
    let (onboarding, job) = use_case::start_onboarding(cx, uow, wanted).await?;
    Ok(Output::new(Started {
        onboarding_id: onboarding.id.clone(),
        job_id: job.id.clone(),
        status: job.status,
    }))
}

pub(super) async fn status(
    cx: &Cx,
    uow: &mut dyn UnitOfWork,
    input: Input<(OnboardingId,)>,
) -> Result<Output<OnboardingShape>> {
    let (id,) = input.path;
    let (onboarding, job) = use_case::find_onboarding(cx, uow, &id).await?;
    Ok(Output::new(shown(onboarding, &job)))
}

fn shown(onboarding: Stored<Onboarding>, job: &Job) -> OnboardingShape {
    let progress = job.progress();
    let made = job.output_of("platform").is_some();
    let onboarding = onboarding.into_inner();
    OnboardingShape {
        onboarding_id: onboarding.id,
        job_id: onboarding.job_id,
        status: job.status,
        platform_name: onboarding.platform_name,
        slug: onboarding.slug,
        tier: onboarding.tier,
        stack_template_id: onboarding.stack_template_id,
        billing_email: onboarding.billing_email,
        platform_id: made.then_some(onboarding.platform_id),
        completed_steps: progress.completed_steps,
        total_steps: progress.total_steps,
        message: progress.message,
        error: job
            .error
            .as_ref()
            .and_then(|error| serde_json::to_value(error).ok()),
        created_at: onboarding.created_at,
        updated_at: job.updated_at,
        completed_at: job.finished_at,
    }
}

pub(super) async fn slug(
    cx: &Cx,
    uow: &mut dyn UnitOfWork,
    input: Input<(String,)>,
) -> Result<Output<SlugAnswer>> {
    let slug = Slug::parse(&input.path.0)
        .map_err(|error| Error::invalid("slug", "pattern", error.to_string()))?;
    let available = use_case::slug_is_available(cx, uow, &slug).await?;
    Ok(Output::new(SlugAnswer { slug, available }))
}
