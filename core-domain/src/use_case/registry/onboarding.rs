//! Onboarding: a person asks for a platform, a job makes it.

use serde_json::json;

use super::jobs::{Target, onboard};
use super::organization_setup::{Home, MadeHome, make_home};
use super::platforms::slug_taken;
use crate::iam::User;
use crate::kernel::{
    Code, Context, Email, Environment, Error, JobId, Name, OnboardingId, PlatformId, Result,
    SessionId, Slug, UserId,
};
use crate::port::{Record, StoreError, Stored, UnitOfWork};
use crate::provisioning::{Job, LaneKey};
use crate::registry::{
    Onboarding, OnboardingQuery, OnboardingStatus, OnboardingTier, PlatformQuery,
};
use crate::shared::{Happening, audited};
use crate::use_case::iam::{
    organization_slug_is_taken, resolve_session_of, set_active_organization, user_exists,
};
use crate::use_case::provisioning::{self, NewJob, enqueue};

/// The platform somebody asks for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StartOnboarding {
    /// The id of the onboarding; a new one when not given. The same id is the same onboarding.
    pub id: Option<OnboardingId>,
    /// What the platform shall be called.
    pub platform_name: Name,
    /// Its slug.
    pub slug: Slug,
    /// Its tier.
    pub tier: OnboardingTier,
    /// The stack template it shall begin with.
    pub stack_template_id: Option<String>,
    /// Where bills shall go.
    pub billing_email: Option<Email>,
    /// Who shall own it; nobody yet when not said.
    pub user_id: Option<UserId>,
    /// The session that acts for it once it is there, unless it acts for something else already.
    pub session_id: Option<SessionId>,
}

/// Takes the slug and queues the job that makes organization, platform and infrastructure. Wake the workers after the
/// commit.
///
/// # Errors
/// `UNAUTHORIZED`; `SLUG_TAKEN`; `IDEMPOTENCY_KEY_REUSED` when the id belongs to another onboarding; `FORBIDDEN` for an
/// owner who is not the caller, unless the caller operates the installation; `NOT_FOUND` when that owner is unknown.
pub async fn start_onboarding(
    cx: &Context,
    uow: &mut dyn UnitOfWork,
    wanted: StartOnboarding,
) -> Result<(Stored<Onboarding>, Stored<Job>)> {
    may_start(cx, uow, wanted.user_id.as_ref()).await?;
    if let Some(id) = &wanted.id
        && let Some(known) = uow.onboardings().get(id.as_str()).await?
    {
        return same_again(cx, uow, known, &wanted).await;
    }
    if slug_is_taken(uow, &wanted.slug).await? {
        return Err(slug_taken());
    }
    let now = uow.now().await?;
    let id = match &wanted.id {
        Some(id) => id.clone(),
        None => OnboardingId::generate(now, cx.entropy.as_ref()),
    };
    let platform_id = PlatformId::generate(now, cx.entropy.as_ref());
    let job = queue(cx, uow, &id, &platform_id, &wanted).await?;
    let onboarding = Onboarding {
        id,
        platform_name: wanted.platform_name,
        slug: wanted.slug,
        tier: wanted.tier,
        stack_template_id: wanted.stack_template_id,
        billing_email: wanted.billing_email,
        user_id: wanted.user_id,
        session_id: wanted.session_id,
        platform_id,
        job_id: job.id.clone(),
        status: OnboardingStatus::Open,
        created_at: now,
        updated_at: now,
    };
    let stored = match uow.onboardings().insert(onboarding).await {
        // The same request was faster: run again, its onboarding is the answer.
        Err(StoreError::Conflict { index: "key", .. }) => {
            return Err(StoreError::Retry("the onboarding began elsewhere".into()).into());
        }
        Err(StoreError::Conflict { .. }) => return Err(slug_taken()),
        outcome => outcome?,
    };
    let happening = Happening {
        action: "onboarding.started",
        entity_id: stored.id.to_string(),
        after: Some(json!({
            "platformName": stored.platform_name,
            "slug": stored.slug,
            "tier": stored.tier,
            "userId": stored.user_id,
            "jobId": stored.job_id,
        })),
        ..Happening::default()
    };
    audited(cx, uow, happening).await?;
    Ok((stored, job))
}

/// Whether the caller may ask for a platform of this owner.
async fn may_start(cx: &Context, uow: &mut dyn UnitOfWork, owner: Option<&UserId>) -> Result<()> {
    cx.caller.signed_in()?;
    let foreign = owner != cx.caller.user_id();
    if foreign && !cx.caller.is_operator() {
        return Err(Error::Forbidden);
    }
    if foreign
        && let Some(user) = owner
        && !user_exists(uow, user).await?
    {
        return Err(Error::NotFound(User::KIND));
    }
    Ok(())
}

async fn same_again(
    cx: &Context,
    uow: &mut dyn UnitOfWork,
    known: Stored<Onboarding>,
    wanted: &StartOnboarding,
) -> Result<(Stored<Onboarding>, Stored<Job>)> {
    let same = known.platform_name == wanted.platform_name
        && known.slug == wanted.slug
        && known.tier == wanted.tier
        && known.stack_template_id == wanted.stack_template_id
        && known.billing_email == wanted.billing_email
        && known.user_id == wanted.user_id;
    if !same {
        return Err(Error::refused(
            Code::IdempotencyKeyReused,
            "The id belongs to another onboarding.",
        ));
    }
    let job = job_of(cx, uow, &known.job_id).await?;
    Ok((known, job))
}

async fn queue(
    cx: &Context,
    uow: &mut dyn UnitOfWork,
    id: &OnboardingId,
    platform: &PlatformId,
    wanted: &StartOnboarding,
) -> Result<Stored<Job>> {
    let target = Target {
        platform_id: platform.clone(),
        slug: wanted.slug.clone(),
        entity_id: None,
        environment: Environment::Prod,
        plan_tier: wanted.tier.as_str().to_owned(),
        billing_email: wanted.billing_email.clone(),
    };
    let job = NewJob {
        kind: onboard::NAME,
        definition_version: 1,
        steps: onboard::STEPS.iter().map(|s| (*s).to_owned()).collect(),
        platform_id: None,
        entity_id: None,
        environment: Some(Environment::Prod),
        input: onboard::input(id, &target),
        lane: LaneKey::onboarding(id),
        front: false,
        idempotency_key: Some(format!("onboarding:{id}")),
        parent_job_id: None,
    };
    enqueue(cx, uow, job).await
}

/// An onboarding, and the job that makes it.
///
/// # Errors
/// `UNAUTHORIZED`; `NOT_FOUND`, also for one that somebody else began.
pub async fn find_onboarding(
    cx: &Context,
    uow: &mut dyn UnitOfWork,
    id: &OnboardingId,
) -> Result<(Stored<Onboarding>, Stored<Job>)> {
    cx.caller.signed_in()?;
    let found = uow.onboardings().get(id.as_str()).await?;
    let found = found.ok_or(Error::NotFound(Onboarding::KIND))?;
    let own = found.user_id.is_some() && found.user_id.as_ref() == cx.caller.user_id();
    if !own && !cx.caller.is_operator() {
        return Err(Error::NotFound(Onboarding::KIND));
    }
    let job = job_of(cx, uow, &found.job_id).await?;
    Ok((found, job))
}

/// Whoever may see the onboarding may see its job, though it belongs to no platform yet.
async fn job_of(cx: &Context, uow: &mut dyn UnitOfWork, job: &JobId) -> Result<Stored<Job>> {
    let system = Context::system(cx.entropy.clone());
    provisioning::get(&system, uow, job).await
}

/// Tells whether a platform with this slug could be made.
///
/// # Errors
/// `UNAUTHORIZED`.
pub async fn slug_is_available(
    cx: &Context,
    uow: &mut dyn UnitOfWork,
    slug: &Slug,
) -> Result<bool> {
    cx.caller.signed_in()?;
    Ok(!slug_is_taken(uow, slug).await?)
}

async fn slug_is_taken(uow: &mut dyn UnitOfWork, slug: &Slug) -> Result<bool> {
    let platforms = PlatformQuery::WithSlug(slug.clone());
    Ok(uow.platforms().first(&platforms).await?.is_some()
        || slug_is_promised(uow, slug).await?
        || organization_slug_is_taken(uow, slug).await?)
}

async fn slug_is_promised(uow: &mut dyn UnitOfWork, slug: &Slug) -> Result<bool> {
    let onboardings = OnboardingQuery::OpenWithSlug(slug.clone());
    Ok(uow.onboardings().first(&onboardings).await?.is_some())
}

/// Refuses a slug that an open onboarding has taken for the platform it will make.
pub(super) async fn refuse_promised(uow: &mut dyn UnitOfWork, slug: &Slug) -> Result<()> {
    if slug_is_promised(uow, slug).await? {
        return Err(slug_taken());
    }
    Ok(())
}

/// Makes organization, platform and tenant of an onboarding.
pub(super) async fn make_onboarded(
    cx: &Context,
    uow: &mut dyn UnitOfWork,
    onboarding: &OnboardingId,
) -> Result<MadeHome> {
    let found = uow.onboardings().get(onboarding.as_str()).await?;
    let onboarding = found.ok_or(Error::NotFound(Onboarding::KIND))?;
    let home = Home {
        platform_id: onboarding.platform_id.clone(),
        name: onboarding.platform_name.clone(),
        slug: onboarding.slug.clone(),
        tier: onboarding.tier.platform_tier(),
        owner: onboarding.user_id.clone(),
    };
    let made = make_home(cx, uow, home).await?;
    if let Some(session) = &onboarding.session_id {
        let resolved = resolve_session_of(uow, session).await?;
        if resolved.is_some_and(|session| session.place.is_none()) {
            set_active_organization(uow, session, &made.organization_id).await?;
        }
    }
    Ok(made)
}

/// Notes where an onboarding stands now.
pub(super) async fn note(
    uow: &mut dyn UnitOfWork,
    onboarding: &OnboardingId,
    status: OnboardingStatus,
) -> Result<()> {
    let found = uow.onboardings().get(onboarding.as_str()).await?;
    let seen = found.ok_or(Error::NotFound(Onboarding::KIND))?;
    if seen.status == status {
        return Ok(());
    }
    let next = Onboarding {
        status,
        updated_at: uow.now().await?,
        ..seen.clone().into_inner()
    };
    match uow.onboardings().replace(&seen, next).await {
        Err(StoreError::Conflict { .. }) => Err(slug_taken()),
        outcome => {
            outcome?;
            Ok(())
        }
    }
}
