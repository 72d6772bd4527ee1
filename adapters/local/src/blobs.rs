//! Bytes by key, in a folder.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use core_domain::port::{BlobError, Blobs, is_blob_key};

use crate::error::{LocalError, Result, blocking};
use crate::vault::Vault;

/// Bytes in a folder, a file a key.
#[derive(Clone, Debug)]
pub struct FileBlobs {
    vault: Arc<Vault>,
}

impl FileBlobs {
    /// Opens the folder, making it when needed. The folder must be used for nothing else.
    ///
    /// # Errors
    /// [`LocalError::Io`] when the folder cannot be made or read.
    pub async fn open(root: impl Into<PathBuf>) -> Result<Self> {
        let root = root.into();
        let vault = blocking(move || Vault::open(&root)).await?;
        Ok(Self {
            vault: Arc::new(vault),
        })
    }
}

#[async_trait]
impl Blobs for FileBlobs {
    async fn put(&self, key: &str, bytes: Vec<u8>) -> Result<(), BlobError> {
        let (vault, key) = (Arc::clone(&self.vault), checked(key)?);
        blocking(move || vault.replace_file(&[&key], &[&bytes])).await?;
        Ok(())
    }

    async fn get(&self, key: &str) -> Result<Vec<u8>, BlobError> {
        let (vault, key) = (Arc::clone(&self.vault), checked(key)?);
        blocking(move || vault.read(&[&key]))
            .await?
            .ok_or(BlobError::Missing)
    }

    async fn remove(&self, key: &str) -> Result<(), BlobError> {
        let (vault, key) = (Arc::clone(&self.vault), checked(key)?);
        blocking(move || vault.remove_file(&[&key])).await?;
        Ok(())
    }

    async fn older_than(&self, age: Duration) -> Result<Vec<String>, BlobError> {
        let vault = Arc::clone(&self.vault);
        let old = blocking(move || {
            let mut old = Vec::new();
            for key in vault
                .list(&[])?
                .into_iter()
                .filter(|key| checked(key).is_ok())
            {
                if vault.age(&[&key])?.is_some_and(|found| found > age) {
                    old.push(key);
                }
            }
            Ok(old)
        });
        Ok(old.await?)
    }
}

fn checked(key: &str) -> Result<String> {
    if is_blob_key(key) {
        Ok(key.to_owned())
    } else {
        Err(LocalError::Invalid(format!("{key:?} is not a blob key")))
    }
}
