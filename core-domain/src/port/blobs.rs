//! Bytes too large for a row: uploads waiting for the job that works on them.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use async_trait::async_trait;

/// What can go wrong with stored bytes.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum BlobError {
    /// Nothing is stored under the key.
    #[error("nothing is stored under this key")]
    Missing,
    /// The store failed; worth another try.
    #[error("the blob store failed: {0}")]
    Failed(String),
}

/// Keeps bytes by key, see [`is_blob_key`]; what was put is durable when `put` returns.
#[async_trait]
pub trait Blobs: Send + Sync + std::fmt::Debug {
    /// Stores the bytes, replacing what the key held.
    ///
    /// # Errors
    /// [`BlobError::Failed`]: nothing was changed.
    async fn put(&self, key: &str, bytes: Vec<u8>) -> Result<(), BlobError>;

    /// The bytes of the key.
    ///
    /// # Errors
    /// [`BlobError::Missing`] when there are none.
    async fn get(&self, key: &str) -> Result<Vec<u8>, BlobError>;

    /// Forgets the key; fine when it holds nothing.
    ///
    /// # Errors
    /// [`BlobError::Failed`]: the bytes may still be there.
    async fn remove(&self, key: &str) -> Result<(), BlobError>;

    /// The keys that were put longer ago than `age`, in no order: among them are those a process died with before
    /// anybody knew of them. Who keeps nothing beyond the life of the process need not tell.
    ///
    /// # Errors
    /// [`BlobError::Failed`] when that cannot be told.
    async fn older_than(&self, age: Duration) -> Result<Vec<String>, BlobError> {
        let _ = age;
        Ok(Vec::new())
    }
}

/// Tells whether bytes can be kept under this key: `^[a-z0-9-]{1,128}$`.
#[must_use]
pub fn is_blob_key(key: &str) -> bool {
    let fits = |b: u8| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'-';
    (1..=128).contains(&key.len()) && key.bytes().all(fits)
}

/// Bytes in memory, for tests: as durable as this value.
#[derive(Debug, Default)]
pub struct MemoryBlobs(Mutex<HashMap<String, Vec<u8>>>);

impl MemoryBlobs {
    fn under(&self, key: &str) -> Result<MutexGuard<'_, HashMap<String, Vec<u8>>>, BlobError> {
        if !is_blob_key(key) {
            return Err(BlobError::Failed(format!("{key:?} is not a blob key")));
        }
        Ok(self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

#[async_trait]
impl Blobs for MemoryBlobs {
    async fn put(&self, key: &str, bytes: Vec<u8>) -> Result<(), BlobError> {
        self.under(key)?.insert(key.to_owned(), bytes);
        Ok(())
    }

    async fn get(&self, key: &str) -> Result<Vec<u8>, BlobError> {
        self.under(key)?.get(key).cloned().ok_or(BlobError::Missing)
    }

    async fn remove(&self, key: &str) -> Result<(), BlobError> {
        self.under(key)?.remove(key);
        Ok(())
    }
}
