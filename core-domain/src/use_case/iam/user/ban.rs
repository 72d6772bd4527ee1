//! Keeping people out, and letting them in again.

use crate::access::{OperatorScope, audited, unowned};
use crate::iam::{Ban, User};
use crate::kernel::{Code, Context, Effect, Error, Result, Stored, UserId};
use crate::port::UnitOfWork;
use crate::use_case::iam::session::{self, Kept};

/// Bans a user: their sessions end at once and they sign in no more. Their keys are refused.
///
/// # Errors
/// `NOT_FOUND`; `CONFLICT` when an operator would ban themselves; `VERSION_CONFLICT`.
pub async fn ban(
    cx: &Context,
    scope: &OperatorScope,
    uow: &mut dyn UnitOfWork,
    user: &UserId,
    command: Ban,
) -> Result<Stored<User>> {
    if cx.caller.user_id() == Some(user) {
        return Err(Error::refused(Code::Conflict, "You cannot ban yourself."));
    }
    let seen = unowned::<User>(uow).get(user).await?;
    let now = uow.now().await?;
    let mut next = seen.edit();
    next.banned_at = next.banned_at.or(Some(now));
    next.ban_reason = command.reason;
    let stored = audited::replace(cx, scope, uow, &seen, next, "user.banned").await?;
    session::end_all(cx, scope, uow, user, Kept::None).await?;
    uow.effects().add(Effect::UserAccessChanged(user.clone()));
    Ok(stored)
}

/// Lets a user in again.
///
/// # Errors
/// `NOT_FOUND`; `VERSION_CONFLICT`.
pub async fn unban(
    cx: &Context,
    scope: &OperatorScope,
    uow: &mut dyn UnitOfWork,
    user: &UserId,
) -> Result<Stored<User>> {
    let seen = unowned::<User>(uow).get(user).await?;
    let mut next = seen.edit();
    next.banned_at = None;
    next.ban_reason = None;
    let stored = audited::replace(cx, scope, uow, &seen, next, "user.unbanned").await?;
    uow.effects().add(Effect::UserAccessChanged(user.clone()));
    Ok(stored)
}
