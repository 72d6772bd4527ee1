//! A password whose hash is not as hashes are made today is hashed anew when its owner signs in with it.

use super::PasswordCredential;
use crate::access::{PublicScope, SystemScope, audited, unowned};
use crate::iam::{Account, PasswordHash, User};
use crate::kernel::{Context, Result};
use crate::port::UnitOfWork;
use crate::use_case::iam::session;

/// Puts another hash of the same password in the place of the one that was checked; tells whether it did. When the password
/// was changed in between, or hashed anew by another sign-in, everything stays as it is.
///
/// # Errors
/// When the store failed.
pub async fn rehash_password(
    cx: &Context,
    _: &PublicScope,
    uow: &mut dyn UnitOfWork,
    checked: &PasswordCredential,
    hash: &PasswordHash,
) -> Result<bool> {
    let account = unowned::<Account>(uow).find(&checked.account_id).await?;
    let is_checked = |account: &Account| account.password_hash.as_ref() == Some(&checked.hash);
    let Some(account) = account.filter(|account| is_checked(account)) else {
        return Ok(false);
    };
    let mut next = account.edit();
    next.password_hash = Some(hash.clone());
    let Some(user) = unowned::<User>(uow).find(&checked.user_id).await? else {
        return Ok(false);
    };
    let (cx, scope) = (
        &session::as_user(&cx.consequence(), &user),
        &SystemScope::new(),
    );
    audited::replace(cx, scope, uow, &account, next, "account.password_rehashed").await?;
    Ok(true)
}
