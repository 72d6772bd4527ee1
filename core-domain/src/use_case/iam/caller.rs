//! Builds the callers that a trusted service names in a request. This is a part of authentication, so no permission is
//! checked.

use std::sync::Arc;

use super::{api_key, session};
use crate::access::{authorize_session, unowned_records};
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
    /// The organization that owns this platform.
    OfPlatform(PlatformId),
}

/// Returns a person that a service names, with the roles and permissions from the store. The caller has no session. If
/// the person does not belong to the organization, the caller has no membership.
///
/// Returns [`Caller::Anonymous`] for a user who is unknown or banned.
///
/// # Errors
/// Only those of the store.
pub async fn named_person(
    uow: &mut dyn UnitOfWork,
    service: &str,
    user_id: UserId,
    organization: Option<&NamedOrganization>,
) -> Result<Caller> {
    let user = unowned_records::<User>(uow).find(&user_id).await?;
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
    let organizations = unowned_records::<Organization>(uow);
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
    let member = unowned_records::<Member>(uow).first(&own).await?;
    let now = uow.now().await?;
    Ok(member.map(|member| membership(&organization, &member, now)))
}

/// Returns the person of a session, as if they had presented the session token.
///
/// Returns [`Caller::Anonymous`] if the session is unknown, expired or another user's, and if the user is banned.
///
/// # Errors
/// Only those of the store.
pub async fn named_session(
    uow: &mut dyn UnitOfWork,
    session: &SessionId,
    user: &UserId,
) -> Result<Caller> {
    let found = session::details_by_id(uow, session).await?;
    let found = found.filter(|found| found.session.user_id == *user);
    Ok(found.map_or(Caller::Anonymous, |found| found.caller()))
}

/// Returns the program that uses an API key, with the permissions from the store.
///
/// Returns [`Caller::Anonymous`] if the key would not be accepted now, and if it does not belong to the named owner.
///
/// # Errors
/// Only those of the store.
pub async fn named_api_key(
    uow: &mut dyn UnitOfWork,
    key: &ApiKeyId,
    owner: Option<&UserId>,
) -> Result<Caller> {
    let found = api_key::details_by_id(uow, key).await?;
    let found = found.filter(|found| owner.is_none() || found.key.user_id.as_ref() == owner);
    Ok(found.map_or(Caller::Anonymous, |found| found.caller()))
}

/// Authenticates the caller again from the store. Long requests use it, because a session may end or a role may change
/// while they run. A person for whom a service calls without a session is read again too. Services stay as they are.
///
/// # Errors
/// `UNAUTHORIZED` if the session or API key is no longer valid, or the person was banned.
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
