//! Proofs of identity within a session.

use serde_json::json;

use crate::access::{AuditEvent, SessionScope, audited, unaudited, unowned};
use crate::iam::{ProofMethod, Session};
use crate::kernel::{Context, Error, Result, Stored};
use crate::port::UnitOfWork;

/// Records that the person showed the password of the session's user. Where the user has a second factor, that is no fresh
/// proof: see [`crate::access::missing_proof`].
///
/// # Errors
/// `UNAUTHORIZED` when the session has ended.
pub async fn reauthenticate_by_password(
    cx: &Context,
    scope: &SessionScope,
    uow: &mut dyn UnitOfWork,
) -> Result<()> {
    reauthenticate(cx, scope, uow, ProofMethod::Password).await
}

/// Records that the person of a session proved who they are.
pub(in crate::use_case::iam) async fn reauthenticate(
    cx: &Context,
    scope: &SessionScope,
    uow: &mut dyn UnitOfWork,
    method: ProofMethod,
) -> Result<()> {
    let session = note_proof(scope, uow, method).await?;
    let event = AuditEvent {
        action: "session.reauthenticated",
        entity_id: session.id.to_string(),
        details: Some(json!({ "method": method })),
        ..AuditEvent::default()
    };
    audited::event(cx, uow, event).await
}

/// As [`reauthenticate`], for a proof that is a part of a change with an audit entry of its own.
pub(in crate::use_case::iam) async fn note_proof(
    scope: &SessionScope,
    uow: &mut dyn UnitOfWork,
    method: ProofMethod,
) -> Result<Stored<Session>> {
    let session = unowned::<Session>(uow).find(scope.session_id()).await?;
    let session = session.ok_or(Error::Unauthorized)?;
    let now = uow.now().await?;
    let next = session.authenticated(method.strength(), now);
    unaudited::replace(uow, &session, next).await
}
