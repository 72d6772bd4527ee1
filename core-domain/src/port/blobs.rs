//! Data that is too large for a row: uploads that wait for their job.

use std::io::{Read, Seek};
use std::time::Duration;

use async_trait::async_trait;

use super::Cause;

/// The error of a blob store.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum BlobError {
    /// No blob has this key.
    #[error("no blob has this key")]
    Missing,
    /// The blob store failed. The operation can be retried.
    #[error("the blob store failed")]
    Failed(#[source] Cause),
}

/// Reads a blob from any position. Its methods can block on disk access, so do not call them on an async thread.
pub trait BlobReader: Read + Seek + Send {}

impl<T: Read + Seek + Send> BlobReader for T {}

/// Stores blobs by key; see [`is_blob_key`]. The memory use does not depend on the size of a blob: data is written in
/// parts with [`Blobs::stage`] and read with a reader. A remote store uses local files for staging and for reading.
#[cfg_attr(any(test, feature = "testing"), mockall::automock)]
#[async_trait]
pub trait Blobs: Send + Sync + std::fmt::Debug {
    /// Starts a blob without a key.
    ///
    /// # Errors
    /// [`BlobError::Failed`] if the blob cannot be created, for example on a full disk.
    async fn stage(&self) -> Result<Box<dyn StagedBlob>, BlobError>;

    /// Opens the blob with this key. The reader keeps returning the same data if the blob is replaced or removed.
    ///
    /// # Errors
    /// - [`BlobError::Missing`] if no blob has the key.
    /// - [`BlobError::Failed`] if the store fails.
    async fn open(&self, key: &str) -> Result<Box<dyn BlobReader>, BlobError>;

    /// Removes the blob with this key. Does nothing if there is none.
    ///
    /// # Errors
    /// [`BlobError::Failed`] if the store fails. The blob may still exist.
    async fn remove(&self, key: &str) -> Result<(), BlobError>;

    /// Returns the keys of blobs that were stored longer ago than `age`, in no particular order. They include blobs of
    /// a process that died before it recorded their keys. A store whose blobs end with the process returns none.
    ///
    /// # Errors
    /// [`BlobError::Failed`] if the keys cannot be listed.
    async fn older_than(&self, age: Duration) -> Result<Vec<String>, BlobError> {
        let _ = age;
        Ok(Vec::new())
    }

    /// Returns the keys of all blobs, in no particular order. A store whose blobs end with the process returns none.
    ///
    /// # Errors
    /// [`BlobError::Failed`] if the keys cannot be listed.
    async fn keys(&self) -> Result<Vec<String>, BlobError> {
        self.older_than(Duration::ZERO).await
    }

    /// Stores a small blob under a key and replaces an existing blob. The blob is durable when the method returns.
    ///
    /// # Errors
    /// [`BlobError::Failed`] if the store fails. An existing blob is unchanged.
    async fn put(&self, key: &str, bytes: Vec<u8>) -> Result<(), BlobError> {
        let mut staged = self.stage().await?;
        staged.append(bytes).await?;
        staged.commit(key).await
    }
}

/// A blob that is being written. It is removed if it is dropped without a commit. Blobs of a killed process are removed
/// when the store is opened again.
#[cfg_attr(any(test, feature = "testing"), mockall::automock)]
#[async_trait]
pub trait StagedBlob: Send + Sync + std::fmt::Debug {
    /// Appends bytes to the blob.
    ///
    /// # Errors
    /// [`BlobError::Failed`] if the store fails. The staged blob cannot be used any more.
    async fn append(&mut self, bytes: Vec<u8>) -> Result<(), BlobError>;

    /// Returns a reader of the data appended so far. The reader stays valid after a commit.
    ///
    /// # Errors
    /// [`BlobError::Failed`] if the store fails.
    async fn open(&self) -> Result<Box<dyn BlobReader>, BlobError>;

    /// Stores the blob under a key and replaces an existing blob. The blob is durable when the method returns.
    ///
    /// # Errors
    /// [`BlobError::Failed`] if the store fails. An existing blob is unchanged.
    async fn commit(self: Box<Self>, key: &str) -> Result<(), BlobError>;
}

/// Returns whether the text is a valid blob key: `^[a-z0-9-]{1,128}$`.
#[must_use]
pub fn is_blob_key(key: &str) -> bool {
    let fits = |b: u8| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'-';
    (1..=128).contains(&key.len()) && key.bytes().all(fits)
}
