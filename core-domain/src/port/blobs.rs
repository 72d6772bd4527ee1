//! Bytes too large for a row: uploads waiting for the job that works on them.

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

/// Keeps bytes by key. A key is `[a-z0-9-]{1,128}`; what was put is durable when `put` returns.
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
