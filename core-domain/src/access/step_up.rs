//! What needs a fresh proof of who calls: a session that somebody took over is not enough for what cannot be undone.

use serde_json::json;

use super::records::unowned;
use crate::iam::{Account, AccountQuery, Session, SessionValidity, TwoFactor};
use crate::kernel::{Caller, Code, Context, Error, Result, UserId};
use crate::port::UnitOfWork;

/// Refuses people who have not proved within the last 10 minutes who they are. Services and API keys prove it with every
/// request; so do those whom a service vouches for without a session of theirs. Ask after the scope is opened, so that
/// nobody learns from it what there is.
///
/// # Errors
/// `UNAUTHORIZED` when the session is over; `STEP_UP_REQUIRED`, whose `details.methods` say how to prove it.
pub(crate) async fn ensure_fresh(cx: &Context, uow: &mut dyn UnitOfWork) -> Result<()> {
    let Caller::User {
        user_id,
        session_id,
        service,
        ..
    } = &*cx.caller
    else {
        return Ok(());
    };
    let session = match (session_id, service) {
        (Some(session), _) => session,
        (None, Some(_)) => return Ok(()),
        (None, None) => return Err(refusal(uow, user_id).await?),
    };
    let now = uow.now().await?;
    let session = unowned::<Session>(uow).find(session).await?;
    let session = session.filter(|session| session.user_id == *user_id);
    let session = session.ok_or(Error::Unauthorized)?;
    if session.validity(now) == SessionValidity::Expired {
        return Err(Error::Unauthorized);
    }
    if session.is_fresh(now) {
        return Ok(());
    }
    Err(refusal(uow, user_id).await?)
}

async fn refusal(uow: &mut dyn UnitOfWork, user: &UserId) -> Result<Error> {
    Ok(Error::Refused {
        code: Code::StepUpRequired,
        message: "Prove once more who you are to do this.".to_owned(),
        details: json!({ "methods": methods(uow, user).await? }),
    })
}

/// How the person can prove who they are, within their session where they can.
async fn methods(uow: &mut dyn UnitOfWork, user: &UserId) -> Result<&'static [&'static str]> {
    let two_factor = unowned::<TwoFactor>(uow).find(user).await?;
    if two_factor.is_some_and(|two_factor| two_factor.is_confirmed()) {
        return Ok(&["totp", "backup-code"]);
    }
    let password = AccountQuery::PasswordOf(user.clone());
    let account = unowned::<Account>(uow).first(&password).await?;
    if account.is_some_and(|account| account.password_hash.is_some()) {
        return Ok(&["password"]);
    }
    Ok(&["sign-in"])
}
