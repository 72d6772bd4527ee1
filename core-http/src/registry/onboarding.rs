//! Endpoints for onboarding. The interface only defines the prefix; the paths and bodies are defined here.

use core_domain::access::SignedInScope;
use core_domain::kernel::{Code, Error, JobId, OnboardingId, Result, Slug};
use core_domain::port::UnitOfWork;
use core_domain::provisioning::JobStatus;
use core_domain::use_case::registry::onboarding;
use http::StatusCode;
use schemars::JsonSchema;
use serde::Serialize;

use crate::kernel::{Cx, Endpoint, Input, Output, call_with_body, call_with_id, get, post};

pub(super) fn rows() -> Vec<Endpoint> {
    vec![
        post("/api/v1/onboarding/start", "startOnboarding")
            .summary("Creates an organization with a platform.")
            .description(
                "Reserves the slug and queues a job. The job creates the organization and the \
                 platform, then the infrastructure of the platform, and activates the stack \
                 template if one is given. The caller owns the organization. If the caller is not \
                 an operator, the platform starts in the tier `starter`.",
            )
            .success(&[StatusCode::ACCEPTED])
            .refuses(&[
                Code::SlugTaken,
                Code::LimitReached,
                Code::NotFound,
                Code::InvalidState,
            ])
            .writes(call_with_body(onboarding::start).map(|(started, job)| {
                Output::new(StartedOnboarding {
                    onboarding_id: started.id.clone(),
                    job_id: job.id.clone(),
                    status: job.status,
                })
            })),
        get("/api/v1/onboarding/status/{onboardingId}", "getOnboarding")
            .summary("Returns the progress of an onboarding.")
            .description(
                "Callers find onboardings that they requested and onboardings whose owner they \
                 are. Operators find all. `platformId` is `null` until the platform exists.",
            )
            .reads(call_with_id(onboarding::get).map(Output::new)),
        get("/api/v1/onboarding/slug/{slug}", "checkSlug")
            .summary("Reports whether a slug is available.")
            .description(
                "A slug is available if no platform, organization or pending onboarding has it. \
                 The check does not reserve the slug; another caller may still take it.",
            )
            .refuses(&[Code::ValidationError])
            .reads(check_slug),
    ]
}

/// The response to a started onboarding.
#[derive(Clone, Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
struct StartedOnboarding {
    /// The id of the onboarding, with which its progress can be read.
    onboarding_id: OnboardingId,
    /// The id of the job that creates everything.
    job_id: JobId,
    /// The status of the job.
    status: JobStatus,
}

/// The availability of a slug.
#[derive(Clone, Debug, Serialize, JsonSchema)]
struct SlugAvailability {
    /// The slug that was checked.
    slug: Slug,
    /// Whether a platform with this slug could be created now.
    available: bool,
}

// An invalid slug is a validation error and not a 404. The path parameter is therefore a plain string.
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
