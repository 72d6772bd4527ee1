//! The installation's secret. It is generated once and stored in the data folder, so that sessions and cursors stay
//! valid after a restart.

use std::fs;
use std::io::Write;
use std::path::Path;

use core_domain::kernel::Entropy;
use sha2::{Digest, Sha256};

use crate::SuiteError;

const LENGTH: usize = 32;

/// The secret of an installation. Keys for single purposes are derived from it.
#[derive(Clone)]
pub(crate) struct InstallationSecret([u8; LENGTH]);

impl InstallationSecret {
    /// Creates a secret from bytes of the embedding program. Every node of an installation needs the same bytes.
    #[must_use]
    pub(crate) const fn new(bytes: [u8; LENGTH]) -> Self {
        Self(bytes)
    }

    pub(crate) fn generate(entropy: &dyn Entropy) -> Self {
        let mut bytes = [0; LENGTH];
        entropy.fill(&mut bytes);
        Self(bytes)
    }

    /// Reads the secret from the folder. Generates and stores one if there is none.
    pub(crate) fn load_or_create(folder: &Path, entropy: &dyn Entropy) -> Result<Self, SuiteError> {
        let file = folder.join("secret");
        match fs::read(&file) {
            Ok(bytes) => {
                let damaged = |_| SuiteError::Secret(file.display().to_string());
                bytes.try_into().map(Self).map_err(damaged)
            }
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
                let secret = Self::generate(entropy);
                secret.write(folder, &file)?;
                Ok(secret)
            }
            Err(error) => Err(error.into()),
        }
    }

    /// Writes the file atomically, readable by its owner only.
    fn write(&self, folder: &Path, file: &Path) -> Result<(), SuiteError> {
        let mut temporary = tempfile::NamedTempFile::new_in(folder)?;
        temporary.write_all(&self.0)?;
        temporary.as_file().sync_all()?;
        temporary.persist(file).map_err(|e| e.error)?;
        Ok(())
    }

    /// Derives the key for a purpose.
    pub(crate) fn key(&self, purpose: &str) -> [u8; 32] {
        let mut hash = Sha256::new();
        hash.update(self.0);
        hash.update(purpose.as_bytes());
        hash.finalize().into()
    }
}

impl std::fmt::Debug for InstallationSecret {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("InstallationSecret(..)")
    }
}

/// The key that encrypts stored data, set by the embedding program.
#[derive(Clone)]
pub(crate) struct MasterKey([u8; LENGTH]);

impl MasterKey {
    #[must_use]
    pub(crate) const fn new(bytes: [u8; LENGTH]) -> Self {
        Self(bytes)
    }

    pub(crate) const fn bytes(&self) -> [u8; LENGTH] {
        self.0
    }
}

impl std::fmt::Debug for MasterKey {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("MasterKey(..)")
    }
}

#[cfg(test)]
mod tests {
    use core_domain::testing::SeededEntropy;

    use super::*;

    #[test]
    fn a_restart_finds_the_same_secret() {
        let folder = tempfile::tempdir().unwrap();
        let entropy = SeededEntropy::new(1);
        let first = InstallationSecret::load_or_create(folder.path(), &entropy).unwrap();
        let second = InstallationSecret::load_or_create(folder.path(), &entropy).unwrap();
        assert_eq!(first.key("cookies"), second.key("cookies"));
        assert_ne!(first.key("cookies"), first.key("cursors"));
        let other = InstallationSecret::generate(&SeededEntropy::new(2));
        assert_ne!(first.key("cookies"), other.key("cookies"));
    }

    #[test]
    fn a_damaged_secret_is_not_replaced() {
        let folder = tempfile::tempdir().unwrap();
        fs::write(folder.path().join("secret"), "short").unwrap();
        assert!(InstallationSecret::load_or_create(folder.path(), &SeededEntropy::new(1)).is_err());
    }
}
