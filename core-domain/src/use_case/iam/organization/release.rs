//! Letting go of a platform that is gone.

use crate::access::{SystemScope, audited, unowned};
use crate::iam::{
    Invitation, InvitationQuery, Member, MemberQuery, Organization, OrganizationQuery,
    OrganizationType,
};
use crate::kernel::{Context, Effect, OrganizationId, PlatformId, Result, Stored};
use crate::port::UnitOfWork;
use crate::use_case::iam::api_key;

/// Frees the organization of a platform that is gone, its own one or a further one, and removes the keys that acted for it. An
/// organization goes with the last of its platforms: its slug is free again and its members' sessions act for nothing; one that
/// has others goes on without it.
///
/// # Errors
/// When the store failed.
pub(in crate::use_case) async fn release_platform(
    cx: &Context,
    scope: SystemScope,
    uow: &mut dyn UnitOfWork,
    platform: &PlatformId,
    organization: Option<&OrganizationId>,
    has_others: bool,
) -> Result<()> {
    api_key::remove_of_platform(uow, platform).await?;
    let Some(seen) = organization_of(uow, platform, organization).await? else {
        return Ok(());
    };
    // Whoever acted for it acted for the platform.
    uow.effects()
        .add(Effect::PlatformAccessChanged(platform.clone()));
    if has_others || seen.kind != OrganizationType::Tenant {
        let mut next = seen.edit();
        next.platform_id = next.platform_id.filter(|own| own != platform);
        audited::replace(cx, &scope, uow, &seen, next, "organization.updated").await?;
        return Ok(());
    }
    let members = MemberQuery::OfOrganization(seen.id.clone());
    unowned::<Member>(uow).remove_all(&members).await?;
    let invitations = InvitationQuery::OfOrganization(seen.id.clone());
    unowned::<Invitation>(uow).remove_all(&invitations).await?;
    audited::remove(cx, &scope, uow, &seen, "organization.removed").await
}

async fn organization_of(
    uow: &mut dyn UnitOfWork,
    platform: &PlatformId,
    organization: Option<&OrganizationId>,
) -> Result<Option<Stored<Organization>>> {
    let of_platform = OrganizationQuery::OfPlatform(platform.clone());
    let own = unowned::<Organization>(uow).first(&of_platform).await?;
    match organization {
        Some(id) if own.is_none() => unowned::<Organization>(uow).find(id).await,
        _ => Ok(own),
    }
}
