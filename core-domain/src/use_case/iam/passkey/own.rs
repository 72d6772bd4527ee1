//! A person's own passkeys: listed, named and removed.

use crate::access::{PersonScope, all_unowned, audited, ensure_fresh, unowned};
use crate::iam::{Passkey, PasskeyQuery, User};
use crate::kernel::{Code, Context, Error, Line, PasskeyId, Result, Stored, UserId};
use crate::port::UnitOfWork;
use crate::use_case::iam::verification::Notices;
use crate::use_case::iam::verification::mail::Notice;

/// The passkeys of a user, oldest first.
pub(super) async fn of_user(
    uow: &mut dyn UnitOfWork,
    user: &UserId,
) -> Result<Vec<Stored<Passkey>>> {
    let of_user = PasskeyQuery::OfUser(user.clone());
    all_unowned::<Passkey>(uow, of_user).await
}

/// The person's passkeys, oldest first; a limit keeps them few.
///
/// # Errors
/// When the store failed.
pub async fn list(scope: &PersonScope, uow: &mut dyn UnitOfWork) -> Result<Vec<Stored<Passkey>>> {
    of_user(uow, scope.user_id()).await
}

/// One of the person's passkeys; one that is somebody else's does not exist.
async fn find_own(
    scope: &PersonScope,
    uow: &mut dyn UnitOfWork,
    id: &PasskeyId,
) -> Result<Stored<Passkey>> {
    let found = unowned::<Passkey>(uow).find(id).await?;
    let found = found.filter(|found| found.user_id == *scope.user_id());
    found.ok_or_else(|| Error::refused(Code::PasskeyNotFound, "Passkey not found"))
}

/// Calls one of the person's passkeys otherwise.
///
/// # Errors
/// `PASSKEY_NOT_FOUND`.
pub async fn rename(
    cx: &Context,
    scope: &PersonScope,
    uow: &mut dyn UnitOfWork,
    id: &PasskeyId,
    name: Line<1, 255>,
) -> Result<Stored<Passkey>> {
    let seen = find_own(scope, uow, id).await?;
    let mut next = seen.edit();
    next.name = Some(name);
    audited::replace(cx, scope, uow, &seen, next, "passkey.renamed").await
}

/// Removes one of the person's passkeys: it does not sign in any more.
///
/// # Errors
/// `STEP_UP_REQUIRED` without a fresh proof of who calls; `PASSKEY_NOT_FOUND`.
pub async fn remove(
    cx: &Context,
    scope: &PersonScope,
    uow: &mut dyn UnitOfWork,
    id: &PasskeyId,
    notices: Notices<'_>,
) -> Result<()> {
    ensure_fresh(cx, uow).await?;
    let seen = find_own(scope, uow, id).await?;
    audited::remove(cx, scope, uow, &seen, "passkey.removed").await?;
    let owner = unowned::<User>(uow).get(scope.user_id()).await?;
    notices.tell(cx, uow, &owner, Notice::PasskeyRemoved).await
}
