//! What people say of themselves.

use crate::access::{
    AccountScope, Covers, OperatorScope, PersonScope, all_unowned, audited, ensure_fresh, unowned,
};
use crate::iam::{Ban, Passkey, PasskeyQuery, TwoFactor, UpdateUser, User};
use crate::kernel::{Code, Context, Effect, Error, Result, Stored, Unowned, UserId};
use crate::port::UnitOfWork;
use crate::use_case::iam::session::Kept;
use crate::use_case::iam::verification::Notice;
use crate::use_case::iam::verification::Notices;
use crate::use_case::iam::{api_key, session};

/// The person.
///
/// # Errors
/// `NOT_FOUND` when they are gone.
pub async fn profile(scope: &AccountScope, uow: &mut dyn UnitOfWork) -> Result<Stored<User>> {
    unowned::<User>(uow).get(scope.user_id()).await
}

/// Changes what the person says of themselves.
///
/// # Errors
/// `NOT_FOUND` when they are gone; `VERSION_CONFLICT`.
pub async fn update(
    cx: &Context,
    scope: &PersonScope,
    uow: &mut dyn UnitOfWork,
    command: UpdateUser,
) -> Result<Stored<User>> {
    let seen = unowned::<User>(uow).get(scope.user_id()).await?;
    let mut next = seen.edit();
    command.apply_to(&mut next);
    audited::replace(cx, scope, uow, &seen, next, "user.updated").await
}

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

/// Confirms the address of a user. Somebody else may have signed up with it, so everything that gives access and was set up before
/// goes: sessions and approved devices, the second factor, passkeys, API keys. What becomes of the password is for the caller to say.
pub(super) async fn take_over(
    cx: &Context,
    scope: &impl Covers<Unowned>,
    uow: &mut dyn UnitOfWork,
    user: &Stored<User>,
) -> Result<Stored<User>> {
    session::end_all(cx, scope, uow, &user.id, Kept::None).await?;
    remove_all_factors(cx, scope, uow, &user.id, FactorRemoval::Unverified).await?;
    if api_key::remove_of_user(uow, &user.id).await? > 0 {
        uow.effects()
            .add(Effect::UserAccessChanged(user.id.clone()));
    }
    let mut next = user.edit();
    next.email_verified = true;
    audited::replace(cx, scope, uow, user, next, "user.email_verified").await
}

/// The reason for which all second factors of a user are removed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum FactorRemoval {
    /// They were enrolled before anybody had confirmed the address.
    Unverified,
    /// An operator removes them, because the user has lost them.
    ByOperator,
}

impl FactorRemoval {
    /// The actions in the audit: of the authenticator, and of each passkey.
    const fn actions(self) -> [&'static str; 2] {
        match self {
            Self::Unverified => [
                "two_factor.unverified_removed",
                "passkey.unverified_removed",
            ],
            Self::ByOperator => [
                "two_factor.removed_by_operator",
                "passkey.removed_by_operator",
            ],
        }
    }
}

/// Removes the authenticator and the passkeys of a user who has lost them. Their sessions end, and no device is trusted any
/// more. Without factors nothing happens.
///
/// # Errors
/// `NOT_FOUND`; `STEP_UP_REQUIRED` without a fresh proof of the operator.
pub async fn remove_factors(
    cx: &Context,
    scope: &OperatorScope,
    uow: &mut dyn UnitOfWork,
    user: &UserId,
    notices: Notices<'_>,
) -> Result<Stored<User>> {
    ensure_fresh(cx, uow).await?;
    let user = unowned::<User>(uow).get(user).await?;
    let cx = &cx.consequence();
    if remove_all_factors(cx, scope, uow, &user.id, FactorRemoval::ByOperator).await? {
        session::end_all(cx, scope, uow, &user.id, Kept::None).await?;
        notices.tell(cx, uow, &user, Notice::FactorsRemoved).await?;
    }
    Ok(user)
}

/// Removes the authenticator and the passkeys of a user. Returns whether there were any.
pub(super) async fn remove_all_factors(
    cx: &Context,
    scope: &impl Covers<Unowned>,
    uow: &mut dyn UnitOfWork,
    user: &UserId,
    reason: FactorRemoval,
) -> Result<bool> {
    let [of_two_factor, of_passkey] = reason.actions();
    let two_factor = unowned::<TwoFactor>(uow).find(user).await?;
    if let Some(seen) = &two_factor {
        audited::remove(cx, scope, uow, seen, of_two_factor).await?;
    }
    let passkeys = PasskeyQuery::OfUser(user.clone());
    let passkeys = all_unowned::<Passkey>(uow, passkeys).await?;
    for passkey in &passkeys {
        audited::remove(cx, scope, uow, passkey, of_passkey).await?;
    }
    Ok(two_factor.is_some() || !passkeys.is_empty())
}
