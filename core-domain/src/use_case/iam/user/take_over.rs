//! Taking over an account whose address nobody had confirmed, by whoever shows that they read mail there.

use super::factors::{FactorRemoval, remove_all_factors};
use crate::access::{Covers, audited};
use crate::iam::User;
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
    remove_all_factors(cx, scope, uow, &user.id, FactorRemoval::Unverified).await?;
    if api_key::remove_of_user(uow, &user.id).await? > 0 {
        uow.effects()
            .add(Effect::UserAccessChanged(user.id.clone()));
    }
    let mut next = user.edit();
    next.email_verified = true;
    audited::replace(cx, scope, uow, user, next, "user.email_verified").await
}
