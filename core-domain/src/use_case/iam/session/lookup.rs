//! Finds and extends sessions by their token. This is authentication itself, so no permission is checked.

use crate::access::{SessionScope, session_context, unaudited, unowned_records};
use crate::iam::{
    AccessToken, Member, Organization, Session, SessionQuery, SessionValidity, TokenHash, User,
    is_access_token, membership,
};
use crate::kernel::{Caller, Membership, Result, SessionId, Stored, Timestamp};
use crate::port::{SessionContext, SessionKey, UnitOfWork};

/// The organization that a session acts for, with the user's permissions in it.
#[derive(Clone, Debug, PartialEq)]
pub struct ActiveMembership {
    /// The stored record of the organization.
    pub organization: Stored<Organization>,
    /// The user's membership in the organization.
    pub member: Stored<Member>,
    /// The user's roles and permissions at the time of the look-up.
    pub membership: Membership,
}

/// A valid session, with the records that belong to it.
#[derive(Clone, Debug, PartialEq)]
pub struct SessionDetails {
    /// The stored record of the session.
    pub session: Stored<Session>,
    /// The user of the session.
    pub user: Stored<User>,
    /// The active organization; `None` if none is active or the user is no longer a member.
    pub active: Option<ActiveMembership>,
    /// Whether the platform of that organization is suspended.
    pub suspended: bool,
    /// The time until which these details stay valid if no record changes: the end of the session, or of a grant of the
    /// user.
    pub valid_until: Timestamp,
    /// Whether the session must be extended now, by [`extend`] in a write unit.
    pub is_extension_due: bool,
    /// The expiry of the access token that found the session; `None` if it was found otherwise.
    pub access_token_expires_at: Option<Timestamp>,
}

impl SessionDetails {
    /// Returns the time at which the presented credential expires.
    #[must_use]
    pub fn expires_at(&self) -> Timestamp {
        let session = self.session.expires_at;
        self.access_token_expires_at
            .map_or(session, |token| token.min(session))
    }

    /// Returns the caller that the session authenticates.
    #[must_use]
    pub fn caller(&self) -> Caller {
        let active = self.active.as_ref();
        Caller::User {
            user_id: self.session.user_id.clone(),
            session_id: Some(self.session.id.clone()),
            service: None,
            membership: active.map(|active| active.membership.clone()),
        }
    }
}

/// Finds the session of a session token or access token. Returns `None` if the token is unknown or expired, if the
/// session has expired, or if its user is banned. Only reads.
///
/// # Errors
/// Only those of the store.
pub async fn details_by_token(
    uow: &mut dyn UnitOfWork,
    token: &str,
) -> Result<Option<SessionDetails>> {
    let hash = TokenHash::of(token);
    if is_access_token(token) {
        return details_by_access_token(uow, &hash).await;
    }
    load_session_details(uow, SessionKey::Token(&hash)).await
}

async fn details_by_access_token(
    uow: &mut dyn UnitOfWork,
    hash: &TokenHash,
) -> Result<Option<SessionDetails>> {
    let Some(token) = valid_access_token(uow, hash).await? else {
        return Ok(None);
    };
    let found = load_session_details(uow, SessionKey::Id(&token.session_id)).await?;
    Ok(found.map(|found| SessionDetails {
        valid_until: found.valid_until.min(token.expires_at),
        access_token_expires_at: Some(token.expires_at),
        ..found
    }))
}

async fn valid_access_token(
    uow: &mut dyn UnitOfWork,
    hash: &TokenHash,
) -> Result<Option<Stored<AccessToken>>> {
    let token = unowned_records::<AccessToken>(uow).find(hash).await?;
    let now = uow.now().await?;
    Ok(token.filter(|token| now < token.expires_at))
}

/// Like [`details_by_token`], for the caller's own session.
///
/// # Errors
/// Only those of the store.
pub async fn details(
    scope: &SessionScope,
    uow: &mut dyn UnitOfWork,
) -> Result<Option<SessionDetails>> {
    details_by_id(uow, scope.session_id()).await
}

/// Like [`details_by_token`], by the id of the session.
///
/// # Errors
/// Only those of the store.
pub(in crate::use_case::iam) async fn details_by_id(
    uow: &mut dyn UnitOfWork,
    id: &SessionId,
) -> Result<Option<SessionDetails>> {
    load_session_details(uow, SessionKey::Id(id)).await
}

async fn load_session_details(
    uow: &mut dyn UnitOfWork,
    key: SessionKey<'_>,
) -> Result<Option<SessionDetails>> {
    let Some((context, validity)) = valid_session(uow, key).await? else {
        return Ok(None);
    };
    let now = uow.now().await?;
    let active = active_membership(&context, now);
    let valid_until = valid_until(&context, now);
    let user = context.user.filter(|user| user.banned_at.is_none());
    Ok(user.map(|user| SessionDetails {
        suspended: context.suspension.is_some(),
        valid_until,
        session: context.session,
        user,
        active,
        is_extension_due: matches!(validity, SessionValidity::ExtendTo(_)),
        access_token_expires_at: None,
    }))
}

async fn valid_session(
    uow: &mut dyn UnitOfWork,
    key: SessionKey<'_>,
) -> Result<Option<(SessionContext, SessionValidity)>> {
    let Some(context) = session_context(uow, key).await? else {
        return Ok(None);
    };
    match context.session.validity(uow.now().await?) {
        SessionValidity::Expired => Ok(None),
        validity => Ok(Some((context, validity))),
    }
}

fn valid_until(context: &SessionContext, now: Timestamp) -> Timestamp {
    let session = context.session.expires_at;
    let grants = first_grant_expiry(context.member.as_deref(), now);
    grants.map_or(session, |end| end.min(session))
}

/// Returns the first expiry of the member's grants and denials that apply now; `None` if none expires.
pub(in crate::use_case::iam) fn first_grant_expiry(
    member: Option<&Member>,
    now: Timestamp,
) -> Option<Timestamp> {
    let grants = member.into_iter().flat_map(|member| &member.grants);
    let ends = grants
        .filter(|grant| grant.is_active(now))
        .filter_map(|grant| grant.expires_at);
    ends.min()
}

fn active_membership(context: &SessionContext, now: Timestamp) -> Option<ActiveMembership> {
    let (organization, member) = (context.organization.clone()?, context.member.clone()?);
    Some(ActiveMembership {
        membership: membership(&organization, &member, now),
        organization,
        member,
    })
}

/// Returns whether a token belongs to a session, even an expired one.
///
/// # Errors
/// Only those of the store.
pub async fn exists(uow: &mut dyn UnitOfWork, token: &str) -> Result<bool> {
    Ok(session_of_token(uow, token).await?.is_some())
}

/// Returns the session of a session token, even if it has expired, or of a valid access token.
pub(super) async fn session_of_token(
    uow: &mut dyn UnitOfWork,
    token: &str,
) -> Result<Option<Stored<Session>>> {
    let hash = TokenHash::of(token);
    if !is_access_token(token) {
        let with_token = SessionQuery::WithToken(hash);
        return unowned_records::<Session>(uow).first(&with_token).await;
    }
    match valid_access_token(uow, &hash).await? {
        Some(token) => {
            unowned_records::<Session>(uow)
                .find(&token.session_id)
                .await
        }
        None => Ok(None),
    }
}

/// Extends the session of a token if that is due, and removes it if it has expired. Returns the session if it was
/// extended. Look the token up first, because a write unit is too expensive for unknown tokens.
///
/// # Errors
/// Only those of the store.
pub async fn extend(uow: &mut dyn UnitOfWork, token: &str) -> Result<Option<Stored<Session>>> {
    let with_token = SessionQuery::WithToken(TokenHash::of(token));
    let Some(session) = unowned_records::<Session>(uow).first(&with_token).await? else {
        return Ok(None);
    };
    let now = uow.now().await?;
    match session.validity(now) {
        SessionValidity::Valid => Ok(None),
        SessionValidity::ExtendTo(until) => {
            let next = session.with_expiry(now, until);
            Ok(Some(unaudited::replace(uow, &session, next).await?))
        }
        SessionValidity::Expired => {
            unaudited::remove(uow, &session).await?;
            Ok(None)
        }
    }
}
