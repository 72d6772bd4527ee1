//! Which organization a session acts for.

use crate::access::{Covers, audited, find_member, unowned};
use crate::iam::{Organization, Session};
use crate::kernel::{
    Context, Effect, Error, OrganizationId, Record, Result, SessionId, Stored, Unowned,
};
use crate::port::UnitOfWork;

/// Lets a session act for an organization its user is a member of; from the next request on.
///
/// # Errors
/// `UNAUTHORIZED` if the session has ended; `NOT_FOUND` for an organization the user is no member of.
pub(in crate::use_case) async fn set_active(
    cx: &Context,
    scope: &impl Covers<Unowned>,
    uow: &mut dyn UnitOfWork,
    session: &SessionId,
    organization: &OrganizationId,
) -> Result<Stored<Session>> {
    let seen = unowned::<Session>(uow).find(session).await?;
    let seen = seen.ok_or(Error::Unauthorized)?;
    if find_member(uow, organization, &seen.user_id)
        .await?
        .is_none()
    {
        return Err(Error::NotFound(Organization::KIND));
    }
    let mut next = seen.edit();
    next.active_organization_id = Some(organization.clone());
    let cx = cx.consequence();
    let action = "session.organization_changed";
    let stored = audited::replace(&cx, scope, uow, &seen, next, action).await?;
    uow.effects().add(Effect::SessionChanged(session.clone()));
    Ok(stored)
}

/// As [`set_active`], for a session that may have ended or chosen meanwhile: then it stays as it is.
pub(in crate::use_case) async fn set_active_if_none(
    cx: &Context,
    scope: &impl Covers<Unowned>,
    uow: &mut dyn UnitOfWork,
    session: &SessionId,
    organization: &OrganizationId,
) -> Result<()> {
    let seen = unowned::<Session>(uow).find(session).await?;
    let acts_for_none = match seen.and_then(|seen| seen.active_organization_id.clone()) {
        Some(active) => unowned::<Organization>(uow).find(&active).await?.is_none(),
        None => unowned::<Session>(uow).find(session).await?.is_some(),
    };
    if acts_for_none {
        set_active(cx, scope, uow, session, organization).await?;
    }
    Ok(())
}
