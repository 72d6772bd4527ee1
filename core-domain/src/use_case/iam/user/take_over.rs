//! Taking over an account whose address nobody had confirmed, by whoever shows that they read mail there.

use crate::access::{Covers, audited, unowned};
use crate::iam::{MAX_PASSKEYS, Passkey, PasskeyQuery, TwoFactor, User};
use crate::kernel::{Context, Effect, Result, Stored, Unowned};
use crate::port::UnitOfWork;
use crate::use_case::iam::api_key;
use crate::use_case::iam::session::{self, Kept};

/// Confirms the address of a user. Somebody else may have signed up with it, so everything that gives access and was set up before
/// goes: sessions and approved devices, the second factor, passkeys, API keys. What becomes of the password is for the caller to say.
pub(super) async fn take_over(
    cx: &Context,
    scope: &impl Covers<Unowned>,
    uow: &mut dyn UnitOfWork,
    user: &Stored<User>,
) -> Result<Stored<User>> {
    session::end_all(cx, scope, uow, &user.id, Kept::None).await?;
    remove_passkeys(cx, scope, uow, user).await?;
    if let Some(seen) = unowned::<TwoFactor>(uow).find(&user.id).await? {
        audited::remove(cx, scope, uow, &seen, "two_factor.unverified_removed").await?;
    }
    if api_key::remove_of_user(uow, &user.id).await? > 0 {
        uow.effects()
            .add(Effect::UserAccessChanged(user.id.clone()));
    }
    let mut next = user.edit();
    next.email_verified = true;
    audited::replace(cx, scope, uow, user, next, "user.email_verified").await
}

async fn remove_passkeys(
    cx: &Context,
    scope: &impl Covers<Unowned>,
    uow: &mut dyn UnitOfWork,
    user: &User,
) -> Result<()> {
    let of_user = PasskeyQuery::OfUser(user.id.clone());
    let passkeys = unowned::<Passkey>(uow);
    for passkey in passkeys.list(&of_user, MAX_PASSKEYS).await? {
        audited::remove(cx, scope, uow, &passkey, "passkey.unverified_removed").await?;
    }
    Ok(())
}
