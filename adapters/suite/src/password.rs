//! Argon2id on threads of its own.

use std::sync::Arc;
use std::time::Duration;

use argon2::password_hash::phc::PasswordHash;
use argon2::password_hash::{PasswordHasher as _, PasswordVerifier as _};
use argon2::{Algorithm, Argon2, Params, Version};
use async_trait::async_trait;
use core_domain::kernel::Entropy;
use core_domain::port::{PasswordError, PasswordHasher};
use tokio::sync::Semaphore;

use crate::background_threads::BackgroundThreads;

/// KiB of memory a hash takes: 19 MiB.
const MEMORY: u32 = 19 * 1024;
const PASSES: u32 = 2;
const LANES: u32 = 1;
const SALT_LENGTH: usize = 16;

/// How long a password waits for a permit: who waits longer has most likely left.
const PERMIT_TIMEOUT: Duration = Duration::from_secs(10);

/// Argon2id with 19 MiB, two passes and one lane. Hashes run on threads of their own, half as many as there are cores,
/// which on Linux give way to all others: many sign-ins at once do not slow down who is signed in. Who comes later waits,
/// at most ten seconds.
#[derive(Clone, Debug)]
pub struct Argon2Hasher {
    entropy: Arc<dyn Entropy>,
    permits: Arc<Semaphore>,
    threads: Arc<BackgroundThreads>,
}

impl Argon2Hasher {
    /// A hasher with salts from this entropy.
    #[must_use]
    pub fn new(entropy: Arc<dyn Entropy>) -> Self {
        let cores = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
        let count = (cores / 2).max(1);
        Self {
            entropy,
            permits: Arc::new(Semaphore::new(count)),
            threads: Arc::new(BackgroundThreads::new("password", count)),
        }
    }

    /// Does slow work with a permit.
    async fn slowly<T: Send + 'static>(
        &self,
        work: impl FnOnce() -> Result<T, PasswordError> + Send + 'static,
    ) -> Result<T, PasswordError> {
        let permit = Arc::clone(&self.permits).acquire_owned();
        let permit = tokio::time::timeout(PERMIT_TIMEOUT, permit)
            .await
            .map_err(|_| PasswordError::Busy)?
            .map_err(failed)?;
        // The permit goes with the work: a request that is given up keeps it until its hash is done.
        let done = self.threads.run(move || {
            let outcome = work();
            drop(permit);
            outcome
        });
        done.await.map_err(failed)?
    }

    fn salt(&self) -> [u8; SALT_LENGTH] {
        let mut salt = [0_u8; SALT_LENGTH];
        self.entropy.fill(&mut salt);
        salt
    }
}

#[async_trait]
impl PasswordHasher for Argon2Hasher {
    async fn hash(&self, password: &str) -> Result<String, PasswordError> {
        let (password, salt) = (password.to_owned(), self.salt());
        self.slowly(move || hashed(&password, &salt)).await
    }

    async fn verify<'a>(
        &self,
        password: &str,
        hash: Option<&'a str>,
    ) -> Result<bool, PasswordError> {
        let password = password.to_owned();
        let Some(hash) = hash.map(str::to_owned) else {
            let salt = self.salt();
            return self
                .slowly(move || hashed(&password, &salt).map(|_| false))
                .await;
        };
        self.slowly(move || is_hash_of(&password, &hash)).await
    }
}

fn argon2() -> Result<Argon2<'static>, PasswordError> {
    let params = Params::new(MEMORY, PASSES, LANES, None).map_err(failed)?;
    Ok(Argon2::new(Algorithm::Argon2id, Version::V0x13, params))
}

fn hashed(password: &str, salt: &[u8]) -> Result<String, PasswordError> {
    let hash = argon2()?
        .hash_password_with_salt(password.as_bytes(), salt)
        .map_err(failed)?;
    Ok(hash.to_string())
}

fn is_hash_of(password: &str, hash: &str) -> Result<bool, PasswordError> {
    let hash = PasswordHash::new(hash).map_err(failed)?;
    match argon2()?.verify_password(password.as_bytes(), &hash) {
        Ok(()) => Ok(true),
        Err(argon2::password_hash::Error::PasswordInvalid) => Ok(false),
        Err(error) => Err(failed(error)),
    }
}

fn failed(error: impl std::fmt::Display) -> PasswordError {
    PasswordError::Failed(error.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::SystemEntropy;

    #[tokio::test]
    async fn a_hash_says_how_it_was_made_and_fits_its_password_alone() {
        let hasher = Argon2Hasher::new(Arc::new(SystemEntropy));
        let hash = hasher.hash("correct horse").await.unwrap();
        assert!(
            hash.starts_with("$argon2id$v=19$m=19456,t=2,p=1$"),
            "{hash}"
        );
        assert_ne!(hash, hasher.hash("correct horse").await.unwrap());
        assert!(hasher.verify("correct horse", Some(&hash)).await.unwrap());
        assert!(!hasher.verify("correct horsf", Some(&hash)).await.unwrap());
        assert!(!hasher.verify("correct horse", None).await.unwrap());
        assert!(
            hasher
                .verify("correct horse", Some("garbage"))
                .await
                .is_err()
        );
    }

    #[tokio::test(start_paused = true)]
    async fn a_hash_without_a_permit_in_time_is_busy() {
        let hasher = Argon2Hasher::new(Arc::new(SystemEntropy));
        let count = u32::try_from(hasher.permits.available_permits()).unwrap();
        let all = hasher.permits.acquire_many(count).await.unwrap();
        let late = hasher.hash("correct horse").await.unwrap_err();
        assert!(matches!(late, PasswordError::Busy));
        drop(all);
        assert!(hasher.hash("correct horse").await.is_ok());
    }
}
