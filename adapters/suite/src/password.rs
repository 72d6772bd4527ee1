//! Password hashing with Argon2id on background threads, and verification of hashes imported from other installations.

use std::sync::Arc;
use std::time::Duration;

use argon2::password_hash::phc::PasswordHash as PhcHash;
use argon2::password_hash::{PasswordHasher as _, PasswordVerifier as _};
use argon2::{Algorithm, Argon2, Params, Version};
use async_trait::async_trait;
use core_domain::kernel::Entropy;
use core_domain::port::{HashForm, PasswordError, PasswordHasher};
use tokio::sync::Semaphore;

use crate::background_threads::BackgroundThreads;
use crate::scrypt_hash::ScryptHash;

/// The memory that a hash takes, in KiB: 19 MiB.
const MEMORY: u32 = 19 * 1024;
const PASSES: u32 = 2;
const LANES: u32 = 1;
const SALT_LENGTH: usize = 16;

/// Maximum memory in KiB, passes and lanes of an imported Argon2 hash. Higher values could be used to overload the
/// machine.
const MOST: (u32, u32, u32) = (256 * 1024, 16, 16);

/// How long a password waits for a permit. After that the client has most likely disconnected.
const PERMIT_TIMEOUT: Duration = Duration::from_secs(10);

/// Argon2id with 19 MiB, two passes and one lane. It also verifies Argon2 hashes with other parameters, and scrypt
/// hashes as better-auth stores them; these are replaced at the next sign-in. Hashes are computed on background
/// threads, half as many as there are cores. On Linux the threads have a lower priority, so many sign-ins at the same
/// time do not slow down other requests. Further hashes wait for at most ten seconds.
#[derive(Clone, Debug)]
pub struct Argon2Hasher {
    entropy: Arc<dyn Entropy>,
    permits: Arc<Semaphore>,
    threads: Arc<BackgroundThreads>,
}

impl Argon2Hasher {
    /// Creates a hasher that draws salts from `entropy`.
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

    /// Runs a slow computation with a permit.
    async fn run_with_permit<T: Send + 'static>(
        &self,
        work: impl FnOnce() -> Result<T, PasswordError> + Send + 'static,
    ) -> Result<T, PasswordError> {
        let permit = Arc::clone(&self.permits).acquire_owned();
        let permit = tokio::time::timeout(PERMIT_TIMEOUT, permit)
            .await
            .map_err(|_| PasswordError::Busy)?
            .map_err(password_error)?;
        // The work owns the permit: if the request is dropped, the permit is still released only after the hash is
        // done.
        let done = self.threads.run(move || {
            let outcome = work();
            drop(permit);
            outcome
        });
        done.await.map_err(password_error)?
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
        self.run_with_permit(move || hash_password(&password, &salt))
            .await
    }

    fn form(&self, hash: &str) -> HashForm {
        StoredHash::read(hash).map_or(HashForm::Unreadable, |stored| stored.form())
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
                .run_with_permit(move || hash_password(&password, &salt).map(|_| false))
                .await;
        };
        self.run_with_permit(move || is_hash_of(&password, &hash))
            .await
    }
}

/// A stored hash in one of the supported formats.
enum StoredHash {
    Argon2(Box<PhcHash>, Params),
    Scrypt(ScryptHash),
}

impl StoredHash {
    fn read(hash: &str) -> Result<Self, PasswordError> {
        if let Some(scrypt) = ScryptHash::parse(hash) {
            return Ok(Self::Scrypt(scrypt));
        }
        let phc = PhcHash::new(hash).map_err(password_error)?;
        Algorithm::try_from(phc.algorithm.as_str()).map_err(password_error)?;
        let params = Params::try_from(&phc.params).map_err(password_error)?;
        let (memory, passes, lanes) = MOST;
        let costly =
            params.m_cost() > memory || params.t_cost() > passes || params.p_cost() > lanes;
        match (&phc.salt, &phc.hash) {
            (Some(_), Some(_)) if !costly => Ok(Self::Argon2(Box::new(phc), params)),
            _ => Err(password_error(
                "the hash is too expensive to verify, or invalid",
            )),
        }
    }

    fn form(&self) -> HashForm {
        let Self::Argon2(phc, params) = self else {
            return HashForm::Outdated;
        };
        let costs = (params.m_cost(), params.t_cost(), params.p_cost());
        let version = phc.version.is_some_and(|v| v == u32::from(Version::V0x13));
        let is_ours = phc.algorithm.as_str() == Algorithm::Argon2id.as_str();
        if costs == (MEMORY, PASSES, LANES) && version && is_ours {
            HashForm::Current
        } else {
            HashForm::Outdated
        }
    }
}

fn argon2() -> Result<Argon2<'static>, PasswordError> {
    let params = Params::new(MEMORY, PASSES, LANES, None).map_err(password_error)?;
    Ok(Argon2::new(Algorithm::Argon2id, Version::V0x13, params))
}

fn hash_password(password: &str, salt: &[u8]) -> Result<String, PasswordError> {
    let hash = argon2()?
        .hash_password_with_salt(password.as_bytes(), salt)
        .map_err(password_error)?;
    Ok(hash.to_string())
}

fn is_hash_of(password: &str, hash: &str) -> Result<bool, PasswordError> {
    let hash = match StoredHash::read(hash)? {
        StoredHash::Scrypt(hash) => return hash.verify(password).map_err(password_error),
        StoredHash::Argon2(hash, _) => hash,
    };
    match argon2()?.verify_password(password.as_bytes(), &*hash) {
        Ok(()) => Ok(true),
        Err(argon2::password_hash::Error::PasswordInvalid) => Ok(false),
        Err(error) => Err(password_error(error)),
    }
}

fn password_error(error: impl std::fmt::Display) -> PasswordError {
    PasswordError::Failed(error.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::SystemEntropy;

    #[tokio::test]
    async fn a_hash_states_its_parameters_and_matches_only_its_password() {
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

    /// A hash made by better-auth's algorithm, which uses the hexadecimal text of the salt.
    const OF_BETTER_AUTH: &str = "000102030405060708090a0b0c0d0e0f:70cc7d605f9fd0bfd324b3978bd79ee81076d98810046ed91604c3cb8aa6957761a2b0b97abf1e7c417ec4a9baa7bd1ce53449880d90dc1117c88d69b4f0b72e";

    const WITHOUT_A_HASH: &str = "$argon2i$v=19$m=8192,t=3,p=4$c29tZXNhbHQxMjM0NTY";

    #[tokio::test]
    async fn a_better_auth_hash_matches_only_its_password_and_is_outdated() {
        let hasher = Argon2Hasher::new(Arc::new(SystemEntropy));
        for (password, fits) in [
            ("correct horse battery", true),
            ("correct horse batterx", false),
            ("", false),
        ] {
            let verified = hasher.verify(password, Some(OF_BETTER_AUTH)).await;
            assert_eq!(verified.unwrap(), fits, "{password}");
        }
        let upper = OF_BETTER_AUTH.replace("70cc7d", "70CC7D");
        let verified = hasher.verify("correct horse battery", Some(&upper)).await;
        assert!(verified.unwrap());
        assert_eq!(hasher.form(OF_BETTER_AUTH), HashForm::Outdated);
    }

    #[tokio::test]
    async fn only_a_hash_with_current_parameters_is_current_and_an_expensive_one_is_unreadable() {
        let hasher = Argon2Hasher::new(Arc::new(SystemEntropy));
        let ours = hasher.hash("correct horse").await.unwrap();
        assert_eq!(hasher.form(&ours), HashForm::Current);
        let other = |from: &str, to: &str| hasher.form(&ours.replacen(from, to, 1));
        assert_eq!(other("m=19456", "m=19457"), HashForm::Outdated);
        assert_eq!(other("t=2", "t=3"), HashForm::Outdated);
        assert_eq!(other("argon2id", "argon2i"), HashForm::Outdated);
        assert_eq!(other("v=19", "v=16"), HashForm::Outdated);
        for (from, to) in [
            ("m=19456", "m=4000000"),
            ("t=2", "t=1000"),
            ("p=1", "p=64"),
            ("argon2id", "bcrypt"),
        ] {
            assert_eq!(other(from, to), HashForm::Unreadable, "{to}");
        }
        let too_much = ours.replacen("m=19456", "m=4000000", 1);
        let refused = hasher.verify("correct horse", Some(&too_much)).await;
        assert!(refused.is_err());
        for none in [
            "",
            "garbage",
            "$2b$12$abcdefghijklmnopqrstuv",
            WITHOUT_A_HASH,
            &OF_BETTER_AUTH[1..],
            &format!("{OF_BETTER_AUTH}00"),
            &OF_BETTER_AUTH.replace("70cc", "zzzz"),
        ] {
            assert_eq!(hasher.form(none), HashForm::Unreadable, "{none}");
        }
    }

    #[tokio::test]
    async fn a_hash_with_other_argon2_parameters_matches_its_password() {
        let params = Params::new(64, 1, 2, None).unwrap();
        let other = Argon2::new(Algorithm::Argon2d, Version::V0x10, params);
        let hash = other
            .hash_password_with_salt(b"correct horse", b"0123456789abcdef")
            .unwrap()
            .to_string();
        let hasher = Argon2Hasher::new(Arc::new(SystemEntropy));
        assert!(hasher.verify("correct horse", Some(&hash)).await.unwrap());
        assert!(!hasher.verify("correct horsf", Some(&hash)).await.unwrap());
        assert_eq!(hasher.form(&hash), HashForm::Outdated);
    }

    #[tokio::test(start_paused = true)]
    async fn a_hash_that_gets_no_permit_in_time_fails_as_busy() {
        let hasher = Argon2Hasher::new(Arc::new(SystemEntropy));
        let count = u32::try_from(hasher.permits.available_permits()).unwrap();
        let all = hasher.permits.acquire_many(count).await.unwrap();
        let late = hasher.hash("correct horse").await.unwrap_err();
        assert!(matches!(late, PasswordError::Busy));
        drop(all);
        assert!(hasher.hash("correct horse").await.is_ok());
    }
}
