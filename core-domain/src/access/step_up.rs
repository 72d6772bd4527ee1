//! What needs a fresh proof of who calls: a session that somebody took over is not enough for what cannot be undone.

use serde_json::json;

use super::records::unowned;
use super::signed_in::PersonScope;
use crate::iam::{
    Account, AccountQuery, Passkey, PasskeyQuery, ProofMethod, Session, SessionValidity, TwoFactor,
};
use crate::kernel::{Caller, Code, Context, Error, Result, UserId};
use crate::port::UnitOfWork;

/// Refuses people who have not proved within the last 10 minutes who they are. Ask after the scope is opened, so that nobody
/// learns from it what there is. The unit is marked, see [`Effects::needs_fresh_proof`](crate::kernel::Effects::needs_fresh_proof).
///
/// # Errors
/// `UNAUTHORIZED` when the session is over; `STEP_UP_REQUIRED`, whose `details.methods` say how to prove it.
pub async fn ensure_fresh(cx: &Context, uow: &mut dyn UnitOfWork) -> Result<()> {
    uow.effects().mark_fresh_proof();
    let Some(methods) = missing_proof(cx, uow).await? else {
        return Ok(());
    };
    Err(Error::Refused {
        code: Code::StepUpRequired,
        message: "Prove once more who you are to do this.".to_owned(),
        details: json!({ "methods": methods }),
    })
}

/// How the caller can prove who they are, when they have not within the last 10 minutes. Services and API keys prove it with
/// every request. A person without a session has never proved it, although a service vouches for them.
///
/// # Errors
/// `UNAUTHORIZED` when the session is over.
pub async fn missing_proof(
    cx: &Context,
    uow: &mut dyn UnitOfWork,
) -> Result<Option<Vec<ProofMethod>>> {
    let Caller::User {
        user_id,
        session_id,
        ..
    } = &*cx.caller
    else {
        return Ok(None);
    };
    let Some(session) = session_id else {
        return methods(uow, user_id).await.map(Some);
    };
    let now = uow.now().await?;
    let session = unowned::<Session>(uow).find(session).await?;
    let session = session.filter(|session| session.user_id == *user_id);
    let session = session.ok_or(Error::Unauthorized)?;
    if session.validity(now) == SessionValidity::Expired {
        return Err(Error::Unauthorized);
    }
    if session.is_fresh(now) {
        return Ok(None);
    }
    methods(uow, user_id).await.map(Some)
}

/// How a person can prove who they are, within their session where they can.
///
/// # Errors
/// When the store failed.
pub async fn proof_methods(
    scope: &PersonScope,
    uow: &mut dyn UnitOfWork,
) -> Result<Vec<ProofMethod>> {
    methods(uow, scope.user_id()).await
}

async fn methods(uow: &mut dyn UnitOfWork, user: &UserId) -> Result<Vec<ProofMethod>> {
    let mut methods = Vec::new();
    let two_factor = unowned::<TwoFactor>(uow).find(user).await?;
    if two_factor.is_some_and(|two_factor| two_factor.is_confirmed()) {
        methods.extend([ProofMethod::Totp, ProofMethod::BackupCode]);
    } else if has_password(uow, user).await? {
        methods.push(ProofMethod::Password);
    }
    let passkeys = PasskeyQuery::OfUser(user.clone());
    if unowned::<Passkey>(uow).first(&passkeys).await?.is_some() {
        methods.push(ProofMethod::Passkey);
    }
    if methods.is_empty() {
        methods.push(ProofMethod::SignIn);
    }
    Ok(methods)
}

async fn has_password(uow: &mut dyn UnitOfWork, user: &UserId) -> Result<bool> {
    let password = AccountQuery::PasswordOf(user.clone());
    let account = unowned::<Account>(uow).first(&password).await?;
    Ok(account.is_some_and(|account| account.password_hash.is_some()))
}
