//! Scopes on the platforms of an organization: for lists of platforms, and for new ones.

use std::marker::PhantomData;

use super::covers::covers_unowned;
use super::signed_in::ensure_not_suspended;
use crate::kernel::{Context, Error, Grant, OrganizationId, PlatformId, Result};
use crate::port::UnitOfWork;

/// How far a caller reaches.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Reach {
    /// Everywhere: an operator.
    Installation,
    /// To the platforms of an organization, and the one it acts for.
    Organization {
        /// The organization.
        organization_id: OrganizationId,
        /// The platform it acts for.
        platform_id: Option<PlatformId>,
    },
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
        Some(own) => Reach::Organization {
            organization_id: own.organization_id.clone(),
            platform_id: own.platform_id.clone(),
        },
        None => Reach::Nowhere,
    };
    ensure_not_suspended(cx, uow).await?;
    Ok(OrganizationScope {
        reach,
        grant: PhantomData,
    })
}
