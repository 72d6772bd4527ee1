//! Scopes on the platforms of an organization: for lists of platforms, and for new ones.

use std::marker::PhantomData;

use super::covers::covers_unowned;
use super::records::unowned;
use super::signed_in::ensure_caller_not_suspended;
use crate::kernel::{Context, Error, Grant, Membership, OrganizationId, PlatformId, Result};
use crate::port::UnitOfWork;
use crate::registry::Platform;

/// How far a caller reaches.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Reach {
    /// Everywhere: an operator.
    Installation,
    /// To the platforms of an organization.
    Organization(OrganizationId),
    /// To one platform: somebody acts for it whose organization is not the platform's.
    Platform(PlatformId),
    /// Nowhere: somebody who acts for no organization.
    Nowhere,
}

/// The platforms that the caller was let in to do `G` on. Only [`authorize_organization`] makes one.
#[derive(Clone, Debug)]
pub struct OrganizationScope<G> {
    reach: Reach,
    grant: PhantomData<fn() -> G>,
}

impl<G> OrganizationScope<G> {
    /// How far the caller reaches.
    #[must_use]
    pub const fn reach(&self) -> &Reach {
        &self.reach
    }
}

covers_unowned! { OrganizationScope<G>, for G; }

/// Lets the caller in to the platforms of the organization they act for.
///
/// # Errors
/// `UNAUTHORIZED`; `FORBIDDEN`; `PLATFORM_SUSPENDED` when the platform the caller acts for is suspended.
pub async fn authorize_organization<G: Grant>(
    cx: &Context,
    uow: &mut dyn UnitOfWork,
) -> Result<OrganizationScope<G>> {
    if cx.caller.is_anonymous() {
        return Err(Error::Unauthorized);
    }
    let reach = match cx.caller.membership() {
        _ if cx.caller.is_operator() => Reach::Installation,
        Some(own) if !own.permissions.allows(G::PERMISSION) => return Err(Error::Forbidden),
        Some(own) => reach_of(uow, own).await?,
        None => Reach::Nowhere,
    };
    ensure_caller_not_suspended(cx, uow).await?;
    Ok(OrganizationScope {
        reach,
        grant: PhantomData,
    })
}

// Not both by one condition: no index has the platforms of either in order.
async fn reach_of(uow: &mut dyn UnitOfWork, own: &Membership) -> Result<Reach> {
    let organization = Reach::Organization(own.organization_id.clone());
    let Some(platform) = &own.platform_id else {
        return Ok(organization);
    };
    let of = unowned::<Platform>(uow).find(platform).await?;
    let foreign = of.is_some_and(|p| p.organization_id.as_ref() != Some(&own.organization_id));
    Ok(match foreign {
        true => Reach::Platform(platform.clone()),
        false => organization,
    })
}
