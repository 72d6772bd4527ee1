//! The scope of requests that create an organization for their caller.

use super::covers::covers_unowned;
use super::requirement::Requirement;
use super::signed_in::ensure_caller_not_suspended;
use crate::kernel::{Context, Error, Result, SessionId, UserId};
use crate::port::UnitOfWork;

/// A new organization's owner, who the caller is or may create organizations for. Only [`authorize_new_organization`] and
/// [`authorize_new_organization_for`] make one.
#[derive(Clone, Debug)]
pub struct NewOrganizationScope {
    owner: UserId,
    session_id: Option<SessionId>,
}

impl NewOrganizationScope {
    /// The person who will own the organization.
    #[must_use]
    pub const fn owner(&self) -> &UserId {
        &self.owner
    }

    /// The owner's session that the request came with; `None` if an operator creates the organization for somebody.
    #[must_use]
    pub const fn session_id(&self) -> Option<&SessionId> {
        self.session_id.as_ref()
    }
}

covers_unowned! { NewOrganizationScope; }

/// Lets in a person known by a session, to create an organization that they own. A person that a service vouches for counts
/// if the call carries their session.
///
/// # Errors
/// `UNAUTHORIZED`; `FORBIDDEN` for API keys, services and persons without a session; `PLATFORM_SUSPENDED` if the platform
/// that the caller acts for is suspended.
pub async fn authorize_new_organization(
    cx: &Context,
    uow: &mut dyn UnitOfWork,
) -> Result<NewOrganizationScope> {
    Requirement::NewOrganization.check(&cx.caller)?;
    let (person, session) = (cx.caller.person_id(), cx.caller.session_id());
    let (Some(owner), Some(session)) = (person, session) else {
        return Err(Error::Forbidden);
    };
    ensure_caller_not_suspended(cx, uow).await?;
    Ok(NewOrganizationScope {
        owner: owner.clone(),
        session_id: Some(session.clone()),
    })
}

/// As [`authorize_new_organization`], for an owner that the request names: operators may name anybody, others themselves.
///
/// # Errors
/// As [`authorize_new_organization`]; `FORBIDDEN` for an owner who is not the caller.
pub async fn authorize_new_organization_for(
    cx: &Context,
    uow: &mut dyn UnitOfWork,
    owner: &UserId,
) -> Result<NewOrganizationScope> {
    if cx.caller.is_operator() && cx.caller.person_id() != Some(owner) {
        return Ok(NewOrganizationScope {
            owner: owner.clone(),
            session_id: None,
        });
    }
    let scope = authorize_new_organization(cx, uow).await?;
    if scope.owner == *owner {
        Ok(scope)
    } else {
        Err(Error::Forbidden)
    }
}
