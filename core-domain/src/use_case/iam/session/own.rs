//! A person's own sessions.

use super::lookup::session_of_token;
use crate::access::{PersonScope, PublicScope, audited, unowned};
use crate::iam::{MAX_SESSIONS, Session, SessionQuery};
use crate::kernel::{Context, Effect, Error, Record, Result, SessionId, Stored};
use crate::port::UnitOfWork;

/// The person's sessions that are valid, newest first; there are never more than [`MAX_SESSIONS`].
///
/// # Errors
/// When the store failed.
pub async fn list(scope: &PersonScope, uow: &mut dyn UnitOfWork) -> Result<Vec<Stored<Session>>> {
    let now = uow.now().await?;
    let active = SessionQuery::ActiveOf(scope.user_id().clone(), now);
    unowned::<Session>(uow).list(&active, MAX_SESSIONS).await
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
