//! Starting an onboarding.

use schemars::JsonSchema;
use serde::Deserialize;

use crate::access::{NewOrganizationScope, SystemScope, audited, ensure_can_own_another, unowned};
use crate::iam::User;
use crate::kernel::{
    Code, Context, Environment, Error, OnboardingId, PlatformId, Record, Result, SessionId,
    StoreError, Stored, TemplateId, UserId,
};
use crate::port::UnitOfWork;
use crate::provisioning::Job;
use crate::registry::{Onboarding, OnboardingQuery, OnboardingStatus, StartOnboarding, Tier};
use crate::stacks::TemplateStatus;
use crate::use_case::iam::user;
use crate::use_case::provisioning::{self, enqueue};
use crate::use_case::registry::jobs::{Onboard, OnboardInput, Target};
use crate::use_case::registry::slug::{self, slug_taken};
use crate::use_case::stacks::template;

/// Queues an onboarding under an id of the caller's, for an owner who may be somebody else.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ProvisionOnboarding {
    /// The same id of the same caller is the same onboarding, and answers its job.
    pub onboarding_id: OnboardingId,
    /// Who shall own organization and platform.
    pub user_id: UserId,
    /// What is asked for.
    #[serde(flatten)]
    pub wanted: StartOnboarding,
}

/// Reserves the slug and queues the job that creates organization, platform and infrastructure, for the scope's owner.
///
/// # Errors
/// `SLUG_TAKEN`; `NOT_FOUND` for an unknown stack template; `INVALID_STATE` for one that is deprecated; `LIMIT_REACHED` for an
/// owner with as many organizations as one person may own, those of open onboardings included.
pub async fn start(
    cx: &Context,
    scope: &NewOrganizationScope,
    uow: &mut dyn UnitOfWork,
    command: StartOnboarding,
) -> Result<(Stored<Onboarding>, Stored<Job>)> {
    run(cx, scope, uow, None, command).await
}

/// As [`start`], under an id of the caller's.
///
/// # Errors
/// As [`start`]; `IDEMPOTENCY_KEY_REUSED` when the caller gave the id to another onboarding; `NOT_FOUND` for an unknown owner.
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

/// Who asks, as onboardings remember it.
pub(super) fn requester(cx: &Context) -> String {
    format!("{}:{}", cx.caller.kind(), cx.caller.actor_id())
}

/// An onboarding that is asked for.
struct Request {
    requested_id: Option<OnboardingId>,
    user_id: UserId,
    session_id: Option<SessionId>,
    wanted: StartOnboarding,
}

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
    // The job that creates the organization has no limits.
    ensure_can_own_another(cx, uow, &request.user_id).await?;
    let now = uow.now().await?;
    let id = OnboardingId::generate(now, cx.entropy.as_ref());
    let platform_id = PlatformId::generate(now, cx.entropy.as_ref());
    let template = stack_template_id.clone();
    let job = queue(cx, scope, uow, (&id, &platform_id), template, &request).await?;
    let wanted = request.wanted;
    // What a person asks for is given once billing or an operator says so.
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
        // The same request was faster: run again, its onboarding is the answer.
        Err(Error::Store(StoreError::Conflict {
            index: "requested_id",
            ..
        })) => Err(StoreError::Retry("the onboarding began elsewhere".into()).into()),
        Err(Error::Store(StoreError::Conflict { .. })) => Err(slug_taken()),
        stored => Ok((stored?, job)),
    }
}

/// The template that is asked for, provided it is offered.
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
        return Err(crate::kernel::IllegalMove::new(template.status, offered).into());
    }
    Ok(Some(template.id.clone()))
}

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
    unowned::<Onboarding>(uow).first(&same).await
}

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
            "The id belongs to another onboarding.",
        ));
    }
    let job = provisioning::find(SystemScope::new(), uow, &known.job_id).await?;
    Ok((known, job.ok_or(Error::NotFound(Job::KIND))?))
}

async fn queue(
    cx: &Context,
    scope: &NewOrganizationScope,
    uow: &mut dyn UnitOfWork,
    (id, platform): (&OnboardingId, &PlatformId),
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
