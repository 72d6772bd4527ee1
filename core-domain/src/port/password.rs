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

/// Makes and checks password hashes. Slow on purpose: never call it inside a unit of work.
#[cfg_attr(any(test, feature = "testing"), mockall::automock)]
#[async_trait]
pub trait PasswordHasher: Send + Sync + std::fmt::Debug {
    /// A self-describing hash (PHC string) of the password with a new salt.
    ///
    /// # Errors
    /// [`PasswordError`] when hashing is not possible.
    async fn hash(&self, password: &str) -> Result<String, PasswordError>;

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
