//! Password hashing, off the async threads.

use async_trait::async_trait;

/// A hash could not be made or read.
#[derive(Debug, thiserror::Error)]
#[error("password hashing failed: {0}")]
pub struct PasswordError(pub String);

/// Makes and checks password hashes. Slow on purpose: never call it inside a unit of work.
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
    async fn verify(&self, password: &str, hash: Option<&str>) -> Result<bool, PasswordError>;
}
