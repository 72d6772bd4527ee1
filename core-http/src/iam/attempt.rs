//! Counting of password attempts before the password is checked.

use core_domain::kernel::{Email, Result, SessionId};
use core_domain::port::transact;
use core_domain::use_case::iam::user;

use super::config::Iam;
use super::failed_sign_ins::{Attempt, NO_ADDRESS, Presenter};
use crate::kernel::Cx;

/// Counts a sign-in attempt with a password. A browser that signed in to the account before has a counter of its own.
///
/// # Errors
/// Returns `RATE_LIMITED` after too many wrong passwords, whether or not this one is right.
pub(super) async fn begin_sign_in_attempt(cx: &Cx, iam: &Iam, email: &Email) -> Result<Attempt> {
    let devices = iam.device_cookie(&cx.headers);
    let client = cx.request.ip.as_deref().and_then(|ip| ip.parse().ok());
    let presenter = match devices.nonce(&iam.signer, email) {
        Some(nonce) => Presenter::KnownDevice(nonce),
        None => Presenter::Stranger(client.unwrap_or(NO_ADDRESS)),
    };
    begin(cx, iam, presenter, email).await
}

/// Counts a password that a person enters within a session. Each session has a counter of its own.
///
/// # Errors
/// Returns `RATE_LIMITED` after too many wrong passwords, whether or not this one is right.
pub(super) async fn begin_session_attempt(
    cx: &Cx,
    iam: &Iam,
    session: &SessionId,
    email: &Email,
) -> Result<Attempt> {
    begin(cx, iam, Presenter::Session(session), email).await
}

/// Counts a password attempt. The audit log records only the first refusal of each delay or client window, so that an
/// attacker cannot flood it.
async fn begin(cx: &Cx, iam: &Iam, presenter: Presenter<'_>, email: &Email) -> Result<Attempt> {
    let refused = match iam.failed_sign_ins.begin(presenter, email).await {
        Ok(attempt) => return Ok(attempt),
        Err(refused) => refused,
    };
    if let Some(lockout) = &refused.lockout {
        transact(cx.app.store.as_ref(), |uow, _| {
            Box::pin(user::record_lockout(cx, uow, email, lockout))
        })
        .await?;
    }
    Err(refused.error)
}
