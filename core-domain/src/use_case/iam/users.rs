//! Looking at users.

use crate::kernel::{Result, UserId};
use crate::port::UnitOfWork;

/// Tells whether there is such a user.
///
/// # Errors
/// When the store failed.
pub async fn user_exists(uow: &mut dyn UnitOfWork, user: &UserId) -> Result<bool> {
    Ok(uow.users().get(user.as_str()).await?.is_some())
}
