//! The caller's own sessions.

use crate::iam::{MAX_SESSIONS, Session, SessionQuery};
use crate::kernel::{Context, Error, Result, SessionId};
use crate::port::{Record, Stored, UnitOfWork};
use crate::shared::{Happening, audited};

/// The caller's sessions that are not over, newest first; there are never more than [`MAX_SESSIONS`].
///
/// # Errors
/// `UNAUTHORIZED` for a caller who is no person.
pub async fn sessions_of_caller(
    cx: &Context,
    uow: &mut dyn UnitOfWork,
) -> Result<Vec<Stored<Session>>> {
    let user = cx.caller.user_id().ok_or(Error::Unauthorized)?;
    let now = uow.now().await?;
    let active = SessionQuery::ActiveOf(user.clone(), now);
    Ok(uow.sessions().list(&active, MAX_SESSIONS).await?)
}

/// Ends one of the caller's sessions, at once and everywhere.
///
/// # Errors
/// `UNAUTHORIZED` for a caller who is no person; `NOT_FOUND` for a session that is over, unknown or somebody else's.
pub async fn revoke_session(
    cx: &Context,
    uow: &mut dyn UnitOfWork,
    id: &SessionId,
) -> Result<Stored<Session>> {
    let user = cx.caller.user_id().ok_or(Error::Unauthorized)?;
    let now = uow.now().await?;
    let session = uow.sessions().get(id.as_str()).await?;
    let session = session
        .filter(|session| session.user_id == *user && now < session.expires_at)
        .ok_or(Error::NotFound(Session::KIND))?;
    uow.sessions().remove(&session).await?;
    let happening = Happening {
        action: "session.revoked",
        entity_id: id.to_string(),
        ..Happening::default()
    };
    audited(cx, uow, happening).await?;
    Ok(session)
}
