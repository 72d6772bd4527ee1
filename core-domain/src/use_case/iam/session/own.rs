//! A person's own sessions: listed, and ended.

use super::super::oauth::revoke_approvals;
use super::lookup::session_of_token;
use super::trusted_device::trust_no_device;
use crate::access::{
    Covers, PersonScope, PublicScope, SessionScope, all_unowned, audited, unowned,
};
use crate::iam::{Session, SessionQuery, TokenHash, TwoFactorChallenge, TwoFactorChallengeQuery};
use crate::kernel::{Context, Effect, Error, Record, Result, SessionId, Stored, Unowned, UserId};
use crate::port::UnitOfWork;

/// The person's sessions that are valid, newest first; a limit keeps them few.
///
/// # Errors
/// When the store failed.
pub async fn list(scope: &PersonScope, uow: &mut dyn UnitOfWork) -> Result<Vec<Stored<Session>>> {
    let now = uow.now().await?;
    let active = SessionQuery::ActiveOf(scope.user_id().clone(), now);
    all_unowned::<Session>(uow, active).await
}

/// Ends one of the person's sessions, at once and everywhere.
///
/// # Errors
/// `NOT_FOUND` for a session that has expired, is unknown or somebody else's.
pub async fn revoke(
    cx: &Context,
    scope: &PersonScope,
    uow: &mut dyn UnitOfWork,
    id: &SessionId,
) -> Result<()> {
    let now = uow.now().await?;
    let session = unowned::<Session>(uow).get(id).await?;
    if session.user_id != *scope.user_id() || now >= session.expires_at {
        return Err(Error::NotFound(Session::KIND));
    }
    audited::remove(cx, scope, uow, &session, "session.revoked").await?;
    uow.effects().add(Effect::SessionChanged(id.clone()));
    Ok(())
}

/// Which session of a person goes on when all others end.
#[derive(Clone, Copy, Debug)]
pub(in crate::use_case::iam) enum Kept<'a> {
    /// None.
    None,
    /// This one.
    Only(&'a SessionId),
}

/// Ends the sessions of a user, at once and everywhere, and what would begin one without a new proof: the sign-ins that wait for a
/// second factor, the devices that were approved and have no tokens yet. No device is trusted any more.
pub(in crate::use_case::iam) async fn end_all(
    cx: &Context,
    scope: &impl Covers<Unowned>,
    uow: &mut dyn UnitOfWork,
    user: &UserId,
    kept: Kept<'_>,
) -> Result<()> {
    let cx = cx.consequence();
    let waiting = TwoFactorChallengeQuery::OfUser(user.clone());
    unowned::<TwoFactorChallenge>(uow)
        .remove_all(&waiting)
        .await?;
    trust_no_device(uow, user).await?;
    revoke_approvals(&cx, scope, uow, user).await?;
    let all = SessionQuery::OldestOf(user.clone());
    for session in all_unowned::<Session>(uow, all).await? {
        if matches!(kept, Kept::Only(kept) if *kept == session.id) {
            continue;
        }
        audited::remove(&cx, scope, uow, &session, "session.revoked").await?;
        uow.effects()
            .add(Effect::SessionChanged(session.id.clone()));
    }
    Ok(())
}

/// Ends all sessions of the person, or all but the caller's.
///
/// # Errors
/// `UNAUTHORIZED` when the caller's session has ended.
pub async fn revoke_all(
    cx: &Context,
    scope: &SessionScope,
    uow: &mut dyn UnitOfWork,
    also_own: bool,
) -> Result<()> {
    let own = unowned::<Session>(uow).find(scope.session_id()).await?;
    let own = own.ok_or(Error::Unauthorized)?;
    let kept = if also_own {
        Kept::None
    } else {
        Kept::Only(&own.id)
    };
    end_all(cx, scope, uow, &own.user_id, kept).await
}

/// Ends one of the person's sessions, named by its token or its id. One that is unknown or somebody else's changes nothing.
///
/// # Errors
/// `UNAUTHORIZED` when the caller's session has ended.
pub async fn revoke_named(
    cx: &Context,
    scope: &SessionScope,
    uow: &mut dyn UnitOfWork,
    name: &str,
) -> Result<()> {
    let own = unowned::<Session>(uow).find(scope.session_id()).await?;
    let own = own.ok_or(Error::Unauthorized)?;
    let with_token = SessionQuery::WithToken(TokenHash::of(name));
    let mut found = unowned::<Session>(uow).first(&with_token).await?;
    if let (None, Some(id)) = (&found, SessionId::parse(name)) {
        found = unowned::<Session>(uow).find(&id).await?;
    }
    let Some(session) = found.filter(|session| session.user_id == own.user_id) else {
        return Ok(());
    };
    audited::remove(cx, scope, uow, &session, "session.revoked").await?;
    uow.effects()
        .add(Effect::SessionChanged(session.id.clone()));
    Ok(())
}

/// Ends the session of this token, at once and everywhere. Whoever holds the token may; an unknown one changes nothing.
///
/// # Errors
/// When the store failed.
pub async fn sign_out(
    cx: &Context,
    scope: &PublicScope,
    uow: &mut dyn UnitOfWork,
    token: &str,
) -> Result<()> {
    let Some(session) = session_of_token(uow, token).await? else {
        return Ok(());
    };
    audited::remove(cx, scope, uow, &session, "session.signed_out").await?;
    uow.effects()
        .add(Effect::SessionChanged(session.id.clone()));
    Ok(())
}
