//! Proving once more who one is, within a session.

use serde_json::json;

use crate::access::{AuditEvent, SessionScope, audited, unaudited, unowned};
use crate::iam::{Session, TwoFactor};
use crate::kernel::{Context, Error, Result};
use crate::port::UnitOfWork;

/// The person showed the password of their session's user: that is a fresh proof, unless they have a second factor. Then
/// that is the proof, as a password alone signs them in nowhere either.
///
/// # Errors
/// `UNAUTHORIZED` when the session is gone.
pub async fn reauthenticate_by_password(
    cx: &Context,
    scope: &SessionScope,
    uow: &mut dyn UnitOfWork,
) -> Result<()> {
    let session = unowned::<Session>(uow).find(scope.session_id()).await?;
    let session = session.ok_or(Error::Unauthorized)?;
    let two_factor = unowned::<TwoFactor>(uow).find(&session.user_id).await?;
    if two_factor.is_some_and(|two_factor| two_factor.is_confirmed()) {
        return Ok(());
    }
    reauthenticate(cx, scope, uow, "password").await
}

/// The person of a session proved who they are.
pub(in crate::use_case::iam) async fn reauthenticate(
    cx: &Context,
    scope: &SessionScope,
    uow: &mut dyn UnitOfWork,
    method: &'static str,
) -> Result<()> {
    let session = unowned::<Session>(uow).find(scope.session_id()).await?;
    let session = session.ok_or(Error::Unauthorized)?;
    let now = uow.now().await?;
    let mut next = session.edit();
    next.authenticated_at = Some(now);
    unaudited::replace(uow, &session, next).await?;
    let event = AuditEvent {
        action: "session.reauthenticated",
        entity_id: session.id.to_string(),
        details: Some(json!({ "method": method })),
        ..AuditEvent::default()
    };
    audited::event(cx, uow, event).await
}
