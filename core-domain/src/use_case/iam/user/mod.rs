//! Users: sign-up, sign-in with a password or a mailed link, profiles, import, and bans.

mod account;
mod email_verification;
mod import;
mod magic_link;
mod password;
mod sign_in;
mod sign_up;

pub use account::{ban, get_profile, remove_factors, unban, update};
pub(super) use email_verification::confirm_email;
pub use email_verification::{
    AccountProof, ConfirmableAccount, VerifiedEmail, confirmable_account, delete_by_link,
    send_verification_email, take_over_by_link, verify_email,
};
pub use import::{ImportOutcome, ImportedUser, KnownUsers, import, preview_import};
pub use magic_link::{LinkSignIn, check_magic_link, send_magic_link, verify_magic_link};
pub use password::{
    PasswordChange, PasswordReset, change_password, check_reset_token, find_own_credential,
    list_accounts, record_failed_password_check, rehash_password, request_password_reset,
    reset_password, wrong_password,
};
pub(super) use password::{person_of_password, person_of_session};
pub(super) use sign_in::ensure_confirmed;
pub use sign_in::{
    Lockout, PasswordCredential, PasswordSignIn, SignIn, password_credential,
    record_failed_sign_in, record_lockout, refuse_unconfirmed, sign_in,
};
pub use sign_up::{SignUp, record_refused_sign_up, sign_up, sign_up_unconfirmed};

use crate::access::unowned_records;
use crate::iam::User;
use crate::kernel::{Email, Result, UserId};
use crate::port::UnitOfWork;

/// Returns whether a user with this id exists.
pub(in crate::use_case) async fn exists(uow: &mut dyn UnitOfWork, user: &UserId) -> Result<bool> {
    Ok(unowned_records::<User>(uow).find(user).await?.is_some())
}

/// Returns the email address of a user. Returns `None` if there is no such user.
pub(in crate::use_case) async fn email_of(
    uow: &mut dyn UnitOfWork,
    user: &UserId,
) -> Result<Option<Email>> {
    let user = unowned_records::<User>(uow).find(user).await?;
    Ok(user.map(|user| user.email.clone()))
}
