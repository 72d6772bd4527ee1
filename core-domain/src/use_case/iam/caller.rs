//! Returns the callers whom a trusted service names. This is authentication itself, so no permission is checked.

use std::sync::Arc;

use super::{api_key, session};
use crate::access::{authorize_session, unowned};
use crate::iam::{Member, MemberQuery, Organization, OrganizationQuery, User, membership};
use crate::kernel::{
    ApiKeyId, Caller, Context, Error, Membership, OrganizationId, PlatformId, Result, SessionId,
    UserId,
};
use crate::port::UnitOfWork;

/// The organization that a named person acts for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum NamedOrganization {
    /// The organization with this id.
    Id(OrganizationId),
    /// The organization of this platform.
    OfPlatform(PlatformId),
}

/// Returns a person whom a service names, with the role and permissions of the store. The person has no session. Without an
/// organization of the person they have no membership.
///
/// Returns [`Caller::Anonymous`] for a user who is unknown or banned.
///
/// # Errors
/// When the store failed.
pub async fn named_person(
    uow: &mut dyn UnitOfWork,
    service: &str,
    user_id: UserId,
    organization: Option<&NamedOrganization>,
) -> Result<Caller> {
    let user = unowned::<User>(uow).find(&user_id).await?;
    if user.is_none_or(|user| user.banned_at.is_some()) {
        return Ok(Caller::Anonymous);
    }
    let membership = match organization {
        Some(organization) => membership_in(uow, organization, &user_id).await?,
        None => None,
    };
    Ok(Caller::User {
        user_id,
        session_id: None,
        service: Some(service.to_owned()),
        membership,
    })
}

async fn membership_in(
    uow: &mut dyn UnitOfWork,
    organization: &NamedOrganization,
    user: &UserId,
) -> Result<Option<Membership>> {
    let organizations = unowned::<Organization>(uow);
    let organization = match organization {
        NamedOrganization::Id(id) => organizations.find(id).await?,
        NamedOrganization::OfPlatform(platform) => {
            let of_platform = OrganizationQuery::OfPlatform(platform.clone());
            organizations.first(&of_platform).await?
        }
    };
    let Some(organization) = organization else {
        return Ok(None);
    };
    let own = MemberQuery::Of(organization.id.clone(), user.clone());
    let member = unowned::<Member>(uow).first(&own).await?;
    let now = uow.now().await?;
    Ok(member.map(|member| membership(&organization, &member, now)))
}

/// Returns the person of a session, as if they had presented the token of the session.
///
/// Returns [`Caller::Anonymous`] for a session that is unknown, expired or another user's, and for a banned user.
///
/// # Errors
/// When the store failed.
pub async fn named_session(
    uow: &mut dyn UnitOfWork,
    session: &SessionId,
    user: &UserId,
) -> Result<Caller> {
    let found = session::details_by_id(uow, session).await?;
    let found = found.filter(|found| found.session.user_id == *user);
    Ok(found.map_or(Caller::Anonymous, |found| found.caller()))
}

/// Returns the program of an API key, with the permissions of the store.
///
/// Returns [`Caller::Anonymous`] for a key that would not be accepted now, and if it is not the key of the named owner.
///
/// # Errors
/// When the store failed.
pub async fn named_api_key(
    uow: &mut dyn UnitOfWork,
    key: &ApiKeyId,
    owner: Option<&UserId>,
) -> Result<Caller> {
    let found = api_key::details_by_id(uow, key).await?;
    let found = found.filter(|found| owner.is_none() || found.key.user_id.as_ref() == owner);
    Ok(found.map_or(Caller::Anonymous, |found| found.caller()))
}

/// The caller as their credential would make them known now: for requests that last so long that a session may end or a
/// role be taken away meanwhile. A person whom a service vouches for without a session is read from the store as well; services
/// are who they were.
///
/// # Errors
/// `UNAUTHORIZED` when the session or key is over.
pub async fn current_caller(cx: &Context, uow: &mut dyn UnitOfWork) -> Result<Arc<Caller>> {
    let current = match &*cx.caller {
        Caller::User {
            session_id: Some(_),
            service: None,
            ..
        } => {
            let scope = authorize_session(cx)?;
            let found = session::details(&scope, uow).await?;
            found.map(|found| found.caller())
        }
        Caller::User {
            user_id,
            session_id: None,
            service: Some(service),
            membership,
        } => {
            let organization = membership
                .as_ref()
                .map(|own| NamedOrganization::Id(own.organization_id.clone()));
            let named = named_person(uow, service, user_id.clone(), organization.as_ref()).await?;
            Some(named).filter(|named| !named.is_anonymous())
        }
        Caller::ApiKey { key_id, .. } => {
            let found = api_key::details_by_id(uow, key_id).await?;
            found.map(|found| found.caller())
        }
        _ => return Ok(Arc::clone(&cx.caller)),
    };
    current.map(Arc::new).ok_or(Error::Unauthorized)
}
