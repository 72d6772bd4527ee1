//! From a token to who is behind it.

use crate::iam::{
    Member, MemberQuery, Organization, Session, SessionQuery, Standing, TokenHash, User, membership,
};
use crate::kernel::{Caller, Result, Role, SessionId};
use crate::port::{Stored, UnitOfWork};

/// The organization a session acts for, and the user's place in it.
#[derive(Clone, Debug, PartialEq)]
pub struct Place {
    /// The organization.
    pub organization: Stored<Organization>,
    /// The user's role in it.
    pub role: Role,
}

/// A session that is not over, and what belongs to it.
#[derive(Clone, Debug, PartialEq)]
pub struct ResolvedSession {
    /// The session.
    pub session: Stored<Session>,
    /// Whose it is.
    pub user: Stored<User>,
    /// The active organization, as long as the user is a member of it.
    pub place: Option<Place>,
    /// Whether the session should be extended now, with [`extend_session`] in a write unit.
    pub extension_due: bool,
}

impl ResolvedSession {
    /// The caller the session stands for.
    #[must_use]
    pub fn caller(&self) -> Caller {
        caller(&self.session, self.place.as_ref())
    }
}

pub(super) fn caller(session: &Session, place: Option<&Place>) -> Caller {
    Caller::User {
        user_id: session.user_id.clone(),
        session_id: Some(session.id.clone()),
        membership: place.map(|place| membership(&place.organization, place.role)),
    }
}

/// Finds the session of a token; `None` for an unknown token and for a session that is over. Reads only.
///
/// # Errors
/// When the store failed.
pub async fn resolve_session(
    uow: &mut dyn UnitOfWork,
    token: &str,
) -> Result<Option<ResolvedSession>> {
    match live_session(uow, token).await? {
        Some((session, standing)) => with_belongings(uow, session, standing).await,
        None => Ok(None),
    }
}

/// As [`resolve_session`], for a caller who is known already.
///
/// # Errors
/// When the store failed.
pub async fn resolve_session_of(
    uow: &mut dyn UnitOfWork,
    id: &SessionId,
) -> Result<Option<ResolvedSession>> {
    let Some(session) = uow.sessions().get(id.as_str()).await? else {
        return Ok(None);
    };
    let standing = session.standing(uow.now().await?);
    with_belongings(uow, session, standing).await
}

async fn with_belongings(
    uow: &mut dyn UnitOfWork,
    session: Stored<Session>,
    standing: Standing,
) -> Result<Option<ResolvedSession>> {
    if standing == Standing::Expired {
        return Ok(None);
    }
    let Some(user) = uow.users().get(session.user_id.as_str()).await? else {
        return Ok(None);
    };
    let place = place_of(uow, &session).await?;
    Ok(Some(ResolvedSession {
        session,
        user,
        place,
        extension_due: matches!(standing, Standing::ExtendTo(_)),
    }))
}

pub(super) async fn live_session(
    uow: &mut dyn UnitOfWork,
    token: &str,
) -> Result<Option<(Stored<Session>, Standing)>> {
    let with_token = SessionQuery::WithToken(TokenHash::of(token));
    let Some(session) = uow.sessions().first(&with_token).await? else {
        return Ok(None);
    };
    match session.standing(uow.now().await?) {
        Standing::Expired => Ok(None),
        standing => Ok(Some((session, standing))),
    }
}

pub(super) async fn place_of(uow: &mut dyn UnitOfWork, session: &Session) -> Result<Option<Place>> {
    let Some(active) = &session.active_organization_id else {
        return Ok(None);
    };
    let of = MemberQuery::Of(active.clone(), session.user_id.clone());
    let Some(member): Option<Stored<Member>> = uow.members().first(&of).await? else {
        return Ok(None);
    };
    let organization = uow.organizations().get(active.as_str()).await?;
    Ok(organization.map(|organization| Place {
        organization,
        role: member.role,
    }))
}

/// Extends the session of a token if that is due, and removes it if it is over. Gives the session when it was extended.
///
/// # Errors
/// When the store failed.
pub async fn extend_session(
    uow: &mut dyn UnitOfWork,
    token: &str,
) -> Result<Option<Stored<Session>>> {
    let with_token = SessionQuery::WithToken(TokenHash::of(token));
    let Some(session) = uow.sessions().first(&with_token).await? else {
        return Ok(None);
    };
    let now = uow.now().await?;
    match session.standing(now) {
        Standing::Valid => Ok(None),
        Standing::ExtendTo(until) => {
            let next = session.extended(now, until);
            Ok(Some(uow.sessions().replace(&session, next).await?))
        }
        Standing::Expired => {
            uow.sessions().remove(&session).await?;
            Ok(None)
        }
    }
}
