//! What the job of an onboarding does to it.

use crate::access::{SystemScope, audited, unowned};
use crate::kernel::{Context, Error, Machine, OnboardingId, Result, StoreError};
use crate::port::UnitOfWork;
use crate::registry::{Onboarding, OnboardingEvent};
use crate::use_case::iam::organization;
use crate::use_case::registry::slug::slug_taken;
use crate::use_case::registry::tenant_setup::{Tenant, TenantSetup, create_tenant};

/// Creates organization, platform and tenant of an onboarding. The session that asked acts for the organization from
/// then on, unless it acts for another one.
pub(in crate::use_case::registry) async fn create_onboarded(
    cx: &Context,
    scope: SystemScope,
    uow: &mut dyn UnitOfWork,
    onboarding: &OnboardingId,
) -> Result<Tenant> {
    let onboarding = unowned::<Onboarding>(uow).get(onboarding).await?;
    let setup = TenantSetup {
        platform_id: onboarding.platform_id.clone(),
        name: onboarding.platform_name.clone(),
        slug: onboarding.slug.clone(),
        tier: onboarding.platform_tier,
        owner: onboarding.user_id.clone(),
    };
    let tenant = create_tenant(cx, &scope, uow, setup).await?;
    if let Some(session) = &onboarding.session_id {
        let organization = &tenant.organization_id;
        organization::set_active_if_none(cx, &scope, uow, session, organization).await?;
    }
    Ok(tenant)
}

/// Lets an event happen to an onboarding; one that cannot happen (any more) changes nothing.
pub(in crate::use_case::registry) async fn record_event(
    cx: &Context,
    scope: SystemScope,
    uow: &mut dyn UnitOfWork,
    onboarding: &OnboardingId,
    event: OnboardingEvent,
) -> Result<()> {
    let seen = unowned::<Onboarding>(uow).get(onboarding).await?;
    let Ok(status) = event.next(seen.status) else {
        return Ok(());
    };
    let mut next = seen.edit();
    next.status = status;
    let action = event.of_event().action;
    match audited::replace(cx, &scope, uow, &seen, next, action).await {
        Err(Error::Store(StoreError::Conflict { .. })) => Err(slug_taken()),
        outcome => outcome.map(drop),
    }
}
