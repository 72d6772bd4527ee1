//! Proofs of identity within a session.

use serde_json::json;

use crate::access::{AuditEvent, SessionScope, audited, unaudited, unowned};
use crate::iam::{Account, AccountQuery, ProofMethod, ProofStrength, Session};
use crate::kernel::{Context, Error, Result, Stored, UserId};
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
    if method.strength() == ProofStrength::SecondFactor {
        accept_password(uow, &session.user_id).await?;
    }
    unaudited::replace(uow, &session, next).await
}

/// Accepts the password of a user who has just shown a second factor as their own, also if a link set it.
pub(super) async fn accept_password(uow: &mut dyn UnitOfWork, user: &UserId) -> Result<()> {
    let password = AccountQuery::PasswordOf(user.clone());
    let account = unowned::<Account>(uow).first(&password).await?;
    if let Some(account) = account.filter(|account| account.set_by_link_at.is_some()) {
        let mut next = account.edit();
        next.set_by_link_at = None;
        unaudited::replace(uow, &account, next).await?;
    }
    Ok(())
}
