//! People: signing up and in with an address and a password.

mod import;
mod rehash;
mod sign_in;
mod sign_up;

pub use import::{ImportOutcome, ImportedUser, import, preview_import};
pub use rehash::rehash_password;
pub use sign_in::{PasswordCredential, SignIn, password_credential, sign_in, sign_in_failed};
pub use sign_up::{SignUp, sign_up, sign_up_refused};

use crate::access::unowned;
use crate::iam::User;
use crate::kernel::{Result, UserId};
use crate::port::UnitOfWork;

/// Tells whether there is such a user.
pub(in crate::use_case) async fn exists(uow: &mut dyn UnitOfWork, user: &UserId) -> Result<bool> {
    Ok(unowned::<User>(uow).find(user).await?.is_some())
}
