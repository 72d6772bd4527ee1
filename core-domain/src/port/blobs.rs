//! Bytes too large for a row: uploads waiting for the job that works on them.

use std::io::{Read, Seek};
use std::time::Duration;

use async_trait::async_trait;

use super::Cause;

/// What can go wrong with stored bytes.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum BlobError {
    /// Nothing is stored under the key.
    #[error("nothing is stored under this key")]
    Missing,
    /// The store failed; worth another try.
    #[error("the blob store failed")]
    Failed(#[source] Cause),
}

/// Reads a blob from any position. Its calls may wait for a disk: make them off the async threads.
pub trait BlobReader: Read + Seek + Send {}

impl<T: Read + Seek + Send> BlobReader for T {}

/// Keeps bytes by key, see [`is_blob_key`]. Memory does not grow with the size of a blob: bytes go in piece by piece through
/// [`Blobs::stage`] and come out through a reader. A store elsewhere stages in local files, and reads from one.
#[cfg_attr(any(test, feature = "testing"), mockall::automock)]
#[async_trait]
pub trait Blobs: Send + Sync + std::fmt::Debug {
    /// Begins a blob that has no key yet.
    ///
    /// # Errors
    /// [`BlobError::Failed`] when there is no room for one.
    async fn stage(&self) -> Result<Box<dyn StagedBlob>, BlobError>;

    /// Opens the blob of a key. The reader goes on with the same bytes when the key is replaced or removed.
    ///
    /// # Errors
    /// [`BlobError::Missing`] when there is none.
    async fn open(&self, key: &str) -> Result<Box<dyn BlobReader>, BlobError>;

    /// Removes the blob of a key; fine when there is none.
    ///
    /// # Errors
    /// [`BlobError::Failed`]: the bytes may still be there.
    async fn remove(&self, key: &str) -> Result<(), BlobError>;

    /// The keys that were stored longer ago than `age`, in no order: among them are those a process died with before
    /// anybody knew of them. A store that keeps nothing beyond the life of the process has none.
    ///
    /// # Errors
    /// [`BlobError::Failed`] when that cannot be told.
    async fn older_than(&self, age: Duration) -> Result<Vec<String>, BlobError> {
        let _ = age;
        Ok(Vec::new())
    }

    /// Stores a few bytes under a key, replacing what it held. Durable when it returns.
    ///
    /// # Errors
    /// [`BlobError::Failed`]: nothing was changed.
    async fn put(&self, key: &str, bytes: Vec<u8>) -> Result<(), BlobError> {
        let mut staged = self.stage().await?;
        staged.append(bytes).await?;
        staged.commit(key).await
    }
}

/// A blob being written. Without a commit it leaves nothing behind: it is removed when dropped, and what a killed process
/// leaves is removed when the store is opened again.
#[cfg_attr(any(test, feature = "testing"), mockall::automock)]
#[async_trait]
pub trait StagedBlob: Send + Sync + std::fmt::Debug {
    /// Adds bytes at the end.
    ///
    /// # Errors
    /// [`BlobError::Failed`]; the blob is of no use any more.
    async fn append(&mut self, bytes: Vec<u8>) -> Result<(), BlobError>;

    /// Reads what was appended so far. The reader stays good after a commit.
    ///
    /// # Errors
    /// [`BlobError::Failed`].
    async fn open(&self) -> Result<Box<dyn BlobReader>, BlobError>;

    /// Puts the blob under a key, replacing what it held. Durable when it returns.
    ///
    /// # Errors
    /// [`BlobError::Failed`]: the key holds what it held.
    async fn commit(self: Box<Self>, key: &str) -> Result<(), BlobError>;
}

/// Tells whether bytes can be kept under this key: `^[a-z0-9-]{1,128}$`.
#[must_use]
pub fn is_blob_key(key: &str) -> bool {
    let fits = |b: u8| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'-';
    (1..=128).contains(&key.len()) && key.bytes().all(fits)
}
