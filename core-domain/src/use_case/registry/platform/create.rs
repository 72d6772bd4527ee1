//! Creating platforms.

use super::record::insert_platform;
use crate::access::{OrganizationScope, Reach};
use crate::kernel::{Context, Error, PlatformId, Result, Stored, grant};
use crate::port::UnitOfWork;
use crate::registry::{CreatePlatform, Platform, PlatformOwner, Tier};
use crate::use_case::registry::slug::ensure_not_reserved;

/// Creates a platform. One created by a person belongs to the organization they act for.
///
/// # Errors
/// `SLUG_TAKEN`; `LIMIT_REACHED`; `FORBIDDEN` for somebody who acts for no organization, and for a tier beyond `starter`
/// that no operator asks for.
pub async fn create(
    cx: &Context,
    scope: &OrganizationScope<grant::PlatformCreate>,
    uow: &mut dyn UnitOfWork,
    command: CreatePlatform,
) -> Result<Stored<Platform>> {
    let raised = command.tier != Tier::Starter && !cx.caller.is_operator();
    if raised || *scope.reach() == Reach::Nowhere {
        return Err(Error::Forbidden);
    }
    ensure_not_reserved(uow, &command.slug).await?;
    let now = uow.now().await?;
    let owner = PlatformOwner {
        user_id: cx.caller.user_id().cloned(),
        organization_id: cx.caller.membership().map(|m| m.organization_id.clone()),
    };
    let id = PlatformId::generate(now, cx.entropy.as_ref());
    insert_platform(cx, scope, uow, id, owner, command).await
}
