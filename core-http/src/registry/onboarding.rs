//! Onboarding. The interface names the prefix alone; paths and bodies are ours.

use core_domain::access::{NewOrganizationScope, SignedInScope};
use core_domain::kernel::{Code, Error, JobId, OnboardingId, Result, Slug};
use core_domain::port::UnitOfWork;
use core_domain::provisioning::JobStatus;
use core_domain::registry::StartOnboarding;
use core_domain::use_case::registry::onboarding::{self, OnboardingView};
use http::StatusCode;
use schemars::JsonSchema;
use serde::Serialize;

use crate::kernel::{Cx, Endpoint, Input, Output, get, post};

pub(super) fn rows() -> Vec<Endpoint> {
    vec![
        post("/api/v1/onboarding/start", "startOnboarding")
            .summary("Asks for an organization with a platform; a job creates both.")
            .success(&[StatusCode::ACCEPTED])
            .refuses(&[
                Code::SlugTaken,
                Code::LimitReached,
                Code::NotFound,
                Code::InvalidState,
            ])
            .writes(start),
        get("/api/v1/onboarding/status/{onboardingId}", "getOnboarding")
            .summary("Shows how far an onboarding is.")
            .reads(show),
        get("/api/v1/onboarding/slug/{slug}", "checkSlug")
            .summary("Tells whether a slug is free.")
            .refuses(&[Code::ValidationError])
            .reads(check_slug),
    ]
}

/// An onboarding has begun.
#[derive(Clone, Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
struct Started {
    onboarding_id: OnboardingId,
    job_id: JobId,
    /// The status of the job.
    status: JobStatus,
}

/// Whether a slug is free.
#[derive(Clone, Debug, Serialize, JsonSchema)]
struct SlugAvailability {
    slug: Slug,
    available: bool,
}

async fn start(
    cx: &Cx,
    scope: NewOrganizationScope,
    uow: &mut dyn UnitOfWork,
    input: Input<(), (), StartOnboarding>,
) -> Result<Output<Started>> {
    let (started, job) = onboarding::start(cx, &scope, uow, input.body).await?;
    Ok(Output::new(Started {
        onboarding_id: started.id.clone(),
        job_id: job.id.clone(),
        status: job.status,
    }))
}

async fn show(
    cx: &Cx,
    scope: SignedInScope,
    uow: &mut dyn UnitOfWork,
    input: Input<(OnboardingId,)>,
) -> Result<Output<OnboardingView>> {
    let view = onboarding::get(cx, &scope, uow, &input.path.0).await?;
    Ok(Output::new(view))
}

// A text that is no slug is a mistake of who asks, not a slug that is missing.
async fn check_slug(
    _: &Cx,
    scope: SignedInScope,
    uow: &mut dyn UnitOfWork,
    input: Input<(String,)>,
) -> Result<Output<SlugAvailability>> {
    let slug = Slug::parse(&input.path.0)
        .map_err(|error| Error::invalid("slug", "pattern", error.to_string()))?;
    let available = onboarding::slug_is_available(&scope, uow, &slug).await?;
    Ok(Output::new(SlugAvailability { slug, available }))
}
