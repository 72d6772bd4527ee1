//! Onboarding: a person requests a platform, and a job creates it with its organization.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::jobs::{CREATE_PLATFORM, Onboard, OnboardInput, Target};
use super::slug;
use super::slug::slug_taken;
use crate::access::{
    NewOrganizationScope, SignedInScope, SystemScope, audited, ensure_can_own_another,
    unowned_records,
};
use crate::iam::User;
use crate::kernel::{
    Code, Context, Email, Environment, Error, JobId, Name, OnboardingId, PlatformId, Record,
    Result, SessionId, Slug, StoreError, Stored, TemplateId, Timestamp, UserId,
};
use crate::port::UnitOfWork;
use crate::provisioning::{Job, JobError, JobStatus};
use crate::registry::{
    Onboarding, OnboardingQuery, OnboardingStatus, OnboardingTier, StartOnboarding, Tier,
};
use crate::stacks::TemplateStatus;
use crate::use_case::iam::user;
use crate::use_case::provisioning;
use crate::use_case::provisioning::enqueue;
use crate::use_case::stacks::template;

/// Maximum number of onboardings of different callers that are searched for the same requested id.
const MAX_ONBOARDINGS_PER_ID: u32 = 100;

/// The progress of an onboarding.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct OnboardingView {
    /// The id of the onboarding: the id that the caller chose, if any, otherwise the generated one.
    pub onboarding_id: OnboardingId,
    /// The job that creates the organization, the platform and its infrastructure.
    pub job_id: JobId,
    /// The status of the onboarding job.
    pub status: JobStatus,
    /// The name of the organization and of the platform.
    pub platform_name: Name,
    /// The slug of the organization and of the platform.
    pub slug: Slug,
    /// The requested tier of the platform.
    pub tier: OnboardingTier,
    /// The stack template that is activated on the new platform; `null` for none.
    pub stack_template_id: Option<TemplateId>,
    /// The email address for invoices; `null` if none was given.
    pub billing_email: Option<Email>,
    /// The id of the platform; `null` until it is created.
    pub platform_id: Option<PlatformId>,
    /// The number of completed steps of the job.
    pub completed_steps: usize,
    /// The total number of steps of the job.
    pub total_steps: usize,
    /// A description of the current step for people.
    pub message: String,
    /// The last error of the job; `null` if there was none.
    pub error: Option<JobError>,
    /// The time at which the onboarding was requested.
    pub created_at: Timestamp,
    /// The time of the last change of the job.
    pub updated_at: Timestamp,
    /// The time at which the job ended; `null` while it is in progress.
    pub completed_at: Option<Timestamp>,
}

/// Returns the progress of an onboarding. The caller must have requested it, be its future owner, or be an operator.
///
/// # Errors
/// `NOT_FOUND` if the onboarding does not exist or belongs to another person.
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

/// Finds an onboarding of the caller. An id that the caller chose has precedence over a generated id and over ids that
/// other callers chose.
async fn find_own(
    cx: &Context,
    uow: &mut dyn UnitOfWork,
    id: &OnboardingId,
) -> Result<Option<Stored<Onboarding>>> {
    let asked = requester(cx);
    let given = OnboardingQuery::RequestedAs {
        requested_by: asked.clone(),
        requested_id: id.clone(),
    };
    if let Some(found) = unowned_records::<Onboarding>(uow).first(&given).await? {
        return Ok(Some(found));
    }
    let is_own = |found: &Onboarding| {
        let for_them = found.user_id.is_some() && found.user_id.as_ref() == cx.caller.user_id();
        found.requested_by == asked || for_them || cx.caller.is_operator()
    };
    let by_id = unowned_records::<Onboarding>(uow).find(id).await?;
    if let Some(found) = by_id.filter(|found| is_own(found)) {
        return Ok(Some(found));
    }
    let with_id = OnboardingQuery::WithRequestedId(id.clone());
    let found = unowned_records::<Onboarding>(uow)
        .list(&with_id, MAX_ONBOARDINGS_PER_ID)
        .await?;
    Ok(found.into_iter().find(|found| is_own(found)))
}

/// Combines an onboarding and its job to a progress report.
fn view(onboarding: Onboarding, job: &Job) -> OnboardingView {
    let progress = job.progress();
    let created = job.output_of(CREATE_PLATFORM).is_some();
    OnboardingView {
        onboarding_id: onboarding.public_id().clone(),
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

/// Returns whether a platform with this slug could be created.
///
/// # Errors
/// Only those of the store.
pub async fn slug_is_available(
    _: &SignedInScope,
    uow: &mut dyn UnitOfWork,
    slug: &Slug,
) -> Result<bool> {
    Ok(!slug::is_taken(uow, slug).await?)
}

/// Starts an onboarding with an id that the caller chooses, for any owner.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ProvisionOnboarding {
    /// The id of the onboarding. A repeated request of the same caller with the same id returns the existing job.
    pub onboarding_id: OnboardingId,
    /// The user who will own the organization and the platform.
    pub user_id: UserId,
    /// The requested organization and platform.
    #[serde(flatten)]
    pub wanted: StartOnboarding,
}

/// Starts an onboarding for the scope's owner: reserves the slug and queues the job that creates the organization, the
/// platform and its infrastructure.
///
/// # Errors
/// - `SLUG_TAKEN` if the slug is taken or reserved.
/// - `NOT_FOUND` if the stack template does not exist.
/// - `INVALID_STATE` if the stack template is deprecated.
/// - `LIMIT_REACHED` if the owner has the maximum number of organizations. Open onboardings count too.
pub async fn start(
    cx: &Context,
    scope: &NewOrganizationScope,
    uow: &mut dyn UnitOfWork,
    command: StartOnboarding,
) -> Result<(Stored<Onboarding>, Stored<Job>)> {
    run(cx, scope, uow, None, command).await
}

/// Starts an onboarding like [`start`], with an id that the caller chooses.
///
/// # Errors
/// Those of [`start`]; `IDEMPOTENCY_KEY_REUSED` if the caller used the id for another onboarding; `NOT_FOUND` if the
/// owner does not exist.
pub async fn start_as(
    cx: &Context,
    scope: &NewOrganizationScope,
    uow: &mut dyn UnitOfWork,
    requested_id: OnboardingId,
    command: StartOnboarding,
) -> Result<(Stored<Onboarding>, Stored<Job>)> {
    if !user::exists(uow, scope.owner()).await? {
        return Err(Error::NotFound(User::KIND));
    }
    run(cx, scope, uow, Some(requested_id), command).await
}

/// Returns the caller in the form in which onboardings store it: `{kind}:{id}`.
fn requester(cx: &Context) -> String {
    format!("{}:{}", cx.caller.kind(), cx.caller.actor_id())
}

/// A request for an onboarding.
struct Request {
    requested_id: Option<OnboardingId>,
    user_id: UserId,
    session_id: Option<SessionId>,
    wanted: StartOnboarding,
}

/// Starts an onboarding, or returns the existing one if the request is a repetition.
async fn run(
    cx: &Context,
    scope: &NewOrganizationScope,
    uow: &mut dyn UnitOfWork,
    requested_id: Option<OnboardingId>,
    wanted: StartOnboarding,
) -> Result<(Stored<Onboarding>, Stored<Job>)> {
    let request = Request {
        requested_id,
        user_id: scope.owner().clone(),
        session_id: scope.session_id().cloned(),
        wanted,
    };
    let stack_template_id = template_id(uow, &request.wanted).await?;
    if let Some(known) = find_replay(cx, uow, &request).await? {
        return replay_or_conflict(uow, known, &request, stack_template_id.as_ref()).await;
    }
    if slug::is_taken(uow, &request.wanted.slug).await? {
        return Err(slug_taken());
    }
    // The limit is checked here because the job that creates the organization runs without limits.
    ensure_can_own_another(cx, uow, &request.user_id).await?;
    let now = uow.now().await?;
    let id = OnboardingId::generate(now, cx.entropy.as_ref());
    let platform_id = PlatformId::generate(now, cx.entropy.as_ref());
    let template = stack_template_id.clone();
    let job = queue(cx, scope, uow, &id, &platform_id, template, &request).await?;
    let wanted = request.wanted;
    // Higher tiers take effect only after billing or an operator sets them.
    let platform_tier = if cx.caller.is_operator() {
        wanted.tier.platform_tier()
    } else {
        Tier::Starter
    };
    let onboarding = Onboarding {
        id,
        requested_by: requester(cx),
        requested_id: request.requested_id,
        platform_name: wanted.platform_name.into(),
        slug: wanted.slug,
        tier: wanted.tier,
        platform_tier,
        stack_template_id,
        billing_email: wanted.billing_email,
        user_id: Some(request.user_id),
        session_id: request.session_id,
        platform_id,
        job_id: job.id.clone(),
        status: OnboardingStatus::Open,
        created_at: now,
        updated_at: now,
    };
    match audited::insert(cx, scope, uow, onboarding, "onboarding.started").await {
        // A concurrent identical request created the onboarding. The retry of this unit of work finds it.
        Err(Error::Store(StoreError::Conflict {
            index: "requested_id",
            ..
        })) => Err(StoreError::Retry("a concurrent request created the onboarding".into()).into()),
        Err(Error::Store(StoreError::Conflict { .. })) => Err(slug_taken()),
        stored => Ok((stored?, job)),
    }
}

/// Returns the id of the requested template. Returns `INVALID_STATE` if it is deprecated.
async fn template_id(
    uow: &mut dyn UnitOfWork,
    wanted: &StartOnboarding,
) -> Result<Option<TemplateId>> {
    let Some(wanted) = &wanted.stack_template_id else {
        return Ok(None);
    };
    let template = template::resolve(uow, wanted.as_str()).await?;
    if template.status == TemplateStatus::Deprecated {
        let offered = [TemplateStatus::Active];
        return Err(crate::kernel::IllegalTransition::new(template.status, offered).into());
    }
    Ok(Some(template.id.clone()))
}

/// Finds the caller's onboarding with the requested id.
async fn find_replay(
    cx: &Context,
    uow: &mut dyn UnitOfWork,
    request: &Request,
) -> Result<Option<Stored<Onboarding>>> {
    let Some(requested_id) = &request.requested_id else {
        return Ok(None);
    };
    let same = OnboardingQuery::RequestedAs {
        requested_by: requester(cx),
        requested_id: requested_id.clone(),
    };
    unowned_records::<Onboarding>(uow).first(&same).await
}

/// Returns the existing onboarding if the request equals the first one; otherwise `IDEMPOTENCY_KEY_REUSED`.
async fn replay_or_conflict(
    uow: &mut dyn UnitOfWork,
    known: Stored<Onboarding>,
    request: &Request,
    stack_template_id: Option<&TemplateId>,
) -> Result<(Stored<Onboarding>, Stored<Job>)> {
    let wanted = &request.wanted;
    let same = known.platform_name.as_str() == wanted.platform_name.as_str()
        && known.slug == wanted.slug
        && known.tier == wanted.tier
        && known.stack_template_id.as_ref() == stack_template_id
        && known.billing_email == wanted.billing_email
        && known.user_id.as_ref() == Some(&request.user_id);
    if !same {
        return Err(Error::refused(
            Code::IdempotencyKeyReused,
            "This onboarding id was used with another onboarding.",
        ));
    }
    let job = provisioning::find(SystemScope::new(), uow, &known.job_id).await?;
    Ok((known, job.ok_or(Error::NotFound(Job::KIND))?))
}

/// Queues the onboarding job.
async fn queue(
    cx: &Context,
    scope: &NewOrganizationScope,
    uow: &mut dyn UnitOfWork,
    id: &OnboardingId,
    platform: &PlatformId,
    stack_template_id: Option<TemplateId>,
    request: &Request,
) -> Result<Stored<Job>> {
    let wanted = &request.wanted;
    let input = OnboardInput {
        onboarding_id: id.clone(),
        stack_template_id,
        target: Target {
            platform_id: platform.clone(),
            slug: wanted.slug.clone(),
            entity_id: None,
            environment: Environment::Prod,
            plan_tier: wanted.tier.as_str().to_owned(),
            billing_email: wanted.billing_email.clone(),
        },
    };
    enqueue::<Onboard>(cx, scope, uow, &input).await
}
