//! What people say of themselves.

use crate::access::{AccountScope, PersonScope, audited, unowned};
use crate::iam::{UpdateUser, User};
use crate::kernel::{Context, Result, Stored};
use crate::port::UnitOfWork;

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
