//! Looking at onboardings.

use schemars::JsonSchema;
use serde::Serialize;

use crate::access::{SignedInScope, SystemScope, unowned};
use crate::kernel::{
    Context, Email, Error, JobId, Name, OnboardingId, PlatformId, Record, Result, Slug, Stored,
    TemplateId, Timestamp,
};
use crate::port::UnitOfWork;
use crate::provisioning::{Job, JobError, JobStatus};
use crate::registry::{Onboarding, OnboardingQuery, OnboardingTier};
use crate::use_case::provisioning;
use crate::use_case::registry::jobs::CREATE_PLATFORM;
use crate::use_case::registry::slug;

/// The most onboardings that callers gave one id.
const MOST_OF_ONE_ID: u32 = 100;

/// How far an onboarding is.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct OnboardingView {
    /// The onboarding.
    pub onboarding_id: OnboardingId,
    /// The job that creates it all.
    pub job_id: JobId,
    /// The status of the job.
    pub status: JobStatus,
    /// What organization and platform are called.
    pub platform_name: Name,
    /// The slug of both.
    pub slug: Slug,
    /// The tier that was asked for.
    pub tier: OnboardingTier,
    /// The stack template the platform shall begin with.
    pub stack_template_id: Option<TemplateId>,
    /// Where bills shall go.
    pub billing_email: Option<Email>,
    /// The platform, once it is there.
    pub platform_id: Option<PlatformId>,
    /// Steps that are done.
    pub completed_steps: usize,
    /// All steps.
    pub total_steps: usize,
    /// What happens now, in words.
    pub message: String,
    /// What went wrong last.
    pub error: Option<JobError>,
    /// When it was asked for.
    pub created_at: Timestamp,
    /// When it last changed.
    pub updated_at: Timestamp,
    /// When it ended.
    pub completed_at: Option<Timestamp>,
}

/// How far an onboarding is: one that the caller asked for, or that is for them.
///
/// # Errors
/// `NOT_FOUND`, also for one that is somebody else's.
pub async fn get(
    cx: &Context,
    _: &SignedInScope,
    uow: &mut dyn UnitOfWork,
    id: &OnboardingId,
) -> Result<OnboardingView> {
    let found = find_own(cx, uow, id).await?;
    let onboarding = found.ok_or(Error::NotFound(Onboarding::KIND))?;
    let job = provisioning::find(SystemScope::new(), uow, &onboarding.job_id).await?;
    let job = job.ok_or(Error::NotFound(Job::KIND))?;
    Ok(view(onboarding.into_inner(), &job))
}

/// An id means first of all what the caller gave it to.
async fn find_own(
    cx: &Context,
    uow: &mut dyn UnitOfWork,
    id: &OnboardingId,
) -> Result<Option<Stored<Onboarding>>> {
    let asked = super::start::requester(cx);
    let given = OnboardingQuery::RequestedAs {
        requested_by: asked.clone(),
        requested_id: id.clone(),
    };
    if let Some(found) = unowned::<Onboarding>(uow).first(&given).await? {
        return Ok(Some(found));
    }
    let is_own = |found: &Onboarding| {
        let for_them = found.user_id.is_some() && found.user_id.as_ref() == cx.caller.user_id();
        found.requested_by == asked || for_them || cx.caller.is_operator()
    };
    let by_id = unowned::<Onboarding>(uow).find(id).await?;
    if let Some(found) = by_id.filter(|found| is_own(found)) {
        return Ok(Some(found));
    }
    let with_id = OnboardingQuery::WithRequestedId(id.clone());
    let found = unowned::<Onboarding>(uow)
        .list(&with_id, MOST_OF_ONE_ID)
        .await?;
    Ok(found.into_iter().find(|found| is_own(found)))
}

fn view(onboarding: Onboarding, job: &Job) -> OnboardingView {
    let progress = job.progress();
    let created = job.output_of(CREATE_PLATFORM).is_some();
    OnboardingView {
        onboarding_id: onboarding.shown_id().clone(),
        job_id: onboarding.job_id,
        status: job.status,
        platform_name: onboarding.platform_name,
        slug: onboarding.slug,
        tier: onboarding.tier,
        stack_template_id: onboarding.stack_template_id,
        billing_email: onboarding.billing_email,
        platform_id: created.then_some(onboarding.platform_id),
        completed_steps: progress.completed_steps,
        total_steps: progress.total_steps,
        message: progress.message,
        error: job.error.clone(),
        created_at: onboarding.created_at,
        updated_at: job.updated_at,
        completed_at: job.finished_at,
    }
}

/// Tells whether a platform with this slug could be created.
///
/// # Errors
/// When the store failed.
pub async fn slug_is_available(
    _: &SignedInScope,
    uow: &mut dyn UnitOfWork,
    slug: &Slug,
) -> Result<bool> {
    Ok(!slug::is_taken(uow, slug).await?)
}
