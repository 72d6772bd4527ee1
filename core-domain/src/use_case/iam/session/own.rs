//! Creates sessions, and lets a person list and end their own.

use super::challenge::remove_trusted_devices;
use super::lookup::session_of_token;
use crate::access::{
    Covers, PersonScope, PublicScope, SessionScope, all_unowned, audited, unowned_records,
};
use crate::iam::{Session, SessionQuery, TokenHash, TwoFactorChallenge, TwoFactorChallengeQuery};
use crate::kernel::{Context, Effect, Error, Record, Result, SessionId, Stored, Unowned, UserId};
use crate::port::UnitOfWork;
use crate::use_case::iam::oauth::revoke_approvals;
use crate::use_case::shared::remove_first;

/// Returns the valid sessions of the person, newest first. A limit keeps the list short.
///
/// # Errors
/// Only those of the store.
pub async fn list(scope: &PersonScope, uow: &mut dyn UnitOfWork) -> Result<Vec<Stored<Session>>> {
    let now = uow.now().await?;
    let active = SessionQuery::ActiveOf(scope.user_id().clone(), now);
    all_unowned::<Session>(uow, active).await
}

/// Ends a session of the person. Takes effect everywhere at once.
///
/// # Errors
/// `NOT_FOUND` if the session is unknown, expired or another user's.
pub async fn revoke(
    cx: &Context,
    scope: &PersonScope,
    uow: &mut dyn UnitOfWork,
    id: &SessionId,
) -> Result<()> {
    let now = uow.now().await?;
    let session = unowned_records::<Session>(uow).get(id).await?;
    if session.user_id != *scope.user_id() || now >= session.expires_at {
        return Err(Error::NotFound(Session::KIND));
    }
    audited::remove(cx, scope, uow, &session, "session.revoked").await?;
    uow.effects().add(Effect::SessionChanged(id.clone()));
    Ok(())
}

/// The session of a user that continues when all others end.
#[derive(Clone, Copy, Debug)]
pub(in crate::use_case::iam) enum KeptSession<'a> {
    /// No session continues.
    None,
    /// Only this session continues.
    Only(&'a SessionId),
}

/// Ends the sessions of a user, with effect everywhere at once. Also ends everything that could create a session
/// without a new proof: pending second-factor challenges, approved devices without tokens, and the trust in devices.
pub(in crate::use_case::iam) async fn end_all(
    cx: &Context,
    scope: &impl Covers<Unowned>,
    uow: &mut dyn UnitOfWork,
    user: &UserId,
    kept: KeptSession<'_>,
) -> Result<()> {
    let cx = cx.without_conditions();
    let waiting = TwoFactorChallengeQuery::OfUser(user.clone());
    unowned_records::<TwoFactorChallenge>(uow)
        .remove_all(&waiting)
        .await?;
    remove_trusted_devices(uow, user).await?;
    revoke_approvals(&cx, scope, uow, user).await?;
    let all = SessionQuery::OldestOf(user.clone());
    for session in all_unowned::<Session>(uow, all).await? {
        if matches!(kept, KeptSession::Only(kept) if *kept == session.id) {
            continue;
        }
        audited::remove(&cx, scope, uow, &session, "session.revoked").await?;
        uow.effects()
            .add(Effect::SessionChanged(session.id.clone()));
    }
    Ok(())
}

/// Ends all sessions of the person. The caller's session ends only with `include_own`.
///
/// # Errors
/// `UNAUTHORIZED` if the caller's session has ended.
pub async fn revoke_all(
    cx: &Context,
    scope: &SessionScope,
    uow: &mut dyn UnitOfWork,
    include_own: bool,
) -> Result<()> {
    let own = unowned_records::<Session>(uow)
        .find(scope.session_id())
        .await?;
    let own = own.ok_or(Error::Unauthorized)?;
    let kept = if include_own {
        KeptSession::None
    } else {
        KeptSession::Only(&own.id)
    };
    end_all(cx, scope, uow, &own.user_id, kept).await
}

/// Ends a session of the person, by its token or its id. Does nothing if the session is unknown or another user's.
///
/// # Errors
/// `UNAUTHORIZED` if the caller's session has ended.
pub async fn revoke_by_token_or_id(
    cx: &Context,
    scope: &SessionScope,
    uow: &mut dyn UnitOfWork,
    name: &str,
) -> Result<()> {
    let own = unowned_records::<Session>(uow)
        .find(scope.session_id())
        .await?;
    let own = own.ok_or(Error::Unauthorized)?;
    let with_token = SessionQuery::WithToken(TokenHash::of(name));
    let mut found = unowned_records::<Session>(uow).first(&with_token).await?;
    if let (None, Some(id)) = (&found, SessionId::parse(name)) {
        found = unowned_records::<Session>(uow).find(&id).await?;
    }
    let Some(session) = found.filter(|session| session.user_id == own.user_id) else {
        return Ok(());
    };
    audited::remove(cx, scope, uow, &session, "session.revoked").await?;
    uow.effects()
        .add(Effect::SessionChanged(session.id.clone()));
    Ok(())
}

/// Ends the session of this token, with effect everywhere at once. Requires only the token. Does nothing if the token
/// is unknown.
///
/// # Errors
/// Only those of the store.
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

/// Removes at most `limit` expired sessions, in the order of their expiry. Returns their number; 0 means that none is
/// left.
///
/// # Errors
/// Only those of the store.
pub async fn remove_expired(uow: &mut dyn UnitOfWork, limit: u32) -> Result<u64> {
    let now = uow.now().await?;
    remove_first::<Session>(uow, &SessionQuery::ExpiredAt(now), limit).await
}
