//! Password hashing outside of the async threads.

use async_trait::async_trait;

/// The reason why a password cannot be hashed or verified.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum PasswordError {
    /// Too many passwords are being hashed. The operation can be retried.
    #[error("too many passwords are being hashed")]
    Busy,
    /// The hash cannot be created or read.
    #[error("password hashing failed: {0}")]
    Failed(String),
}

/// The format of a stored hash from the point of view of a hasher.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HashForm {
    /// The format that the hasher creates.
    Current,
    /// An older format that the hasher can verify. Replace the hash when the password is known.
    Outdated,
    /// A format that the hasher cannot verify.
    Unreadable,
}

/// Creates and verifies password hashes. The methods are slow on purpose: never call them inside a unit of work.
#[cfg_attr(any(test, feature = "testing"), mockall::automock)]
#[async_trait]
pub trait PasswordHasher: Send + Sync + std::fmt::Debug {
    /// Returns a self-describing hash (PHC string) of the password with a new salt.
    ///
    /// # Errors
    /// [`PasswordError`] if the password cannot be hashed.
    async fn hash(&self, password: &str) -> Result<String, PasswordError>;

    /// Returns the format of a hash. Needs no password and is fast.
    fn form(&self, hash: &str) -> HashForm;

    /// Returns whether the password matches the hash. With `None` it takes as long and returns `false`, so that the
    /// time does not reveal whether an address has an account.
    ///
    /// # Errors
    /// [`PasswordError`] if the stored hash cannot be read, or if the hasher is busy.
    async fn verify<'a>(
        &self,
        password: &str,
        hash: Option<&'a str>,
    ) -> Result<bool, PasswordError>;
}
