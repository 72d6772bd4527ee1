//! Password hashing, off the async threads.

use async_trait::async_trait;

/// Why a hash could not be made or read.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum PasswordError {
    /// Too many others are being hashed; worth another try.
    #[error("too many passwords are being hashed")]
    Busy,
    /// The hash cannot be made or read.
    #[error("password hashing failed: {0}")]
    Failed(String),
}

/// What a hasher makes of a stored hash.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HashForm {
    /// As it makes them itself.
    Current,
    /// It checks them and makes better ones: to be made anew when the password is known.
    Outdated,
    /// It cannot check them.
    Unreadable,
}

/// Makes and checks password hashes. Slow on purpose: never call it inside a unit of work.
#[cfg_attr(any(test, feature = "testing"), mockall::automock)]
#[async_trait]
pub trait PasswordHasher: Send + Sync + std::fmt::Debug {
    /// A self-describing hash (PHC string) of the password with a new salt.
    ///
    /// # Errors
    /// [`PasswordError`] when hashing is not possible.
    async fn hash(&self, password: &str) -> Result<String, PasswordError>;

    /// What this hash is, without a password; quick.
    fn form(&self, hash: &str) -> HashForm;

    /// Tells whether the password has this hash; with `None` it works as long and answers `false`, so that an unknown
    /// address takes the time of a known one.
    ///
    /// # Errors
    /// [`PasswordError`] when the stored hash cannot be read.
    async fn verify<'a>(
        &self,
        password: &str,
        hash: Option<&'a str>,
    ) -> Result<bool, PasswordError>;
}
