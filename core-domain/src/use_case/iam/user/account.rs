//! Profiles of users, bans, and the removal of factors.

use crate::access::{
    AccountScope, Covers, OperatorScope, PersonScope, all_unowned, audited, ensure_fresh,
    unowned_records,
};
use crate::iam::{Ban, Passkey, PasskeyQuery, TwoFactor, UpdateUser, User};
use crate::kernel::{Code, Context, Effect, Error, Result, Stored, Unowned, UserId};
use crate::port::UnitOfWork;
use crate::use_case::iam::session::KeptSession;
use crate::use_case::iam::verification::Notice;
use crate::use_case::iam::verification::Notices;
use crate::use_case::iam::{api_key, session};

/// Returns the user of the account.
///
/// # Errors
/// `NOT_FOUND` if the user was deleted.
pub async fn get_profile(scope: &AccountScope, uow: &mut dyn UnitOfWork) -> Result<Stored<User>> {
    unowned_records::<User>(uow).get(scope.user_id()).await
}

/// Changes the profile of the person.
///
/// # Errors
/// - `NOT_FOUND` if the user was deleted.
/// - `VERSION_CONFLICT` if the `If-Match` condition of the request does not hold.
pub async fn update(
    cx: &Context,
    scope: &PersonScope,
    uow: &mut dyn UnitOfWork,
    command: UpdateUser,
) -> Result<Stored<User>> {
    let seen = unowned_records::<User>(uow).get(scope.user_id()).await?;
    let mut next = seen.edit();
    command.apply_to(&mut next);
    audited::replace(cx, scope, uow, &seen, next, "user.updated").await
}

/// Bans a user. Their sessions end at once, their API keys are refused, and they can no longer sign in.
///
/// # Errors
/// - `NOT_FOUND` if the user does not exist.
/// - `CONFLICT` if operators try to ban themselves.
/// - `VERSION_CONFLICT` if the `If-Match` condition of the request does not hold.
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
    let seen = unowned_records::<User>(uow).get(user).await?;
    let now = uow.now().await?;
    let mut next = seen.edit();
    next.banned_at = next.banned_at.or(Some(now));
    next.ban_reason = command.reason;
    let stored = audited::replace(cx, scope, uow, &seen, next, "user.banned").await?;
    session::end_all(cx, scope, uow, user, KeptSession::None).await?;
    uow.effects().add(Effect::UserAccessChanged(user.clone()));
    Ok(stored)
}

/// Lifts the ban of a user.
///
/// # Errors
/// - `NOT_FOUND` if the user does not exist.
/// - `VERSION_CONFLICT` if the `If-Match` condition of the request does not hold.
pub async fn unban(
    cx: &Context,
    scope: &OperatorScope,
    uow: &mut dyn UnitOfWork,
    user: &UserId,
) -> Result<Stored<User>> {
    let seen = unowned_records::<User>(uow).get(user).await?;
    let mut next = seen.edit();
    next.banned_at = None;
    next.ban_reason = None;
    let stored = audited::replace(cx, scope, uow, &seen, next, "user.unbanned").await?;
    uow.effects().add(Effect::UserAccessChanged(user.clone()));
    Ok(stored)
}

/// Marks the address of a user as verified. Because another person may have signed up with it, removes everything that
/// gave access before: sessions, approved devices, the second factor, passkeys, and API keys. The caller decides about
/// the password.
pub(super) async fn take_over(
    cx: &Context,
    scope: &impl Covers<Unowned>,
    uow: &mut dyn UnitOfWork,
    user: &Stored<User>,
) -> Result<Stored<User>> {
    session::end_all(cx, scope, uow, &user.id, KeptSession::None).await?;
    remove_all_factors(cx, scope, uow, &user.id, FactorRemoval::Unverified).await?;
    if api_key::remove_of_user(uow, &user.id).await? > 0 {
        uow.effects()
            .add(Effect::UserAccessChanged(user.id.clone()));
    }
    let mut next = user.edit();
    next.email_verified = true;
    audited::replace(cx, scope, uow, user, next, "user.email_verified").await
}

/// The reason for the removal of all second factors of a user.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum FactorRemoval {
    /// They were enrolled before the address was verified.
    Unverified,
    /// An operator removes them, because the user has lost them.
    ByOperator,
}

impl FactorRemoval {
    /// Returns the audit actions for the authenticator app and for each passkey.
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

/// Removes the authenticator app and the passkeys of a user who has lost them. Ends their sessions and their trusted
/// devices, and notifies them by mail. Does nothing if the user has no factors.
///
/// # Errors
/// - `NOT_FOUND` if the user does not exist.
/// - `STEP_UP_REQUIRED` without a fresh proof of the operator's identity.
pub async fn remove_factors(
    cx: &Context,
    scope: &OperatorScope,
    uow: &mut dyn UnitOfWork,
    user: &UserId,
    notices: Notices<'_>,
) -> Result<Stored<User>> {
    ensure_fresh(cx, uow).await?;
    let user = unowned_records::<User>(uow).get(user).await?;
    let cx = &cx.without_conditions();
    if remove_all_factors(cx, scope, uow, &user.id, FactorRemoval::ByOperator).await? {
        session::end_all(cx, scope, uow, &user.id, KeptSession::None).await?;
        notices.send(cx, uow, &user, Notice::FactorsRemoved).await?;
    }
    Ok(user)
}

/// Removes the authenticator app and the passkeys of a user. Returns whether there were any.
pub(super) async fn remove_all_factors(
    cx: &Context,
    scope: &impl Covers<Unowned>,
    uow: &mut dyn UnitOfWork,
    user: &UserId,
    reason: FactorRemoval,
) -> Result<bool> {
    let [of_two_factor, of_passkey] = reason.actions();
    let two_factor = unowned_records::<TwoFactor>(uow).find(user).await?;
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
