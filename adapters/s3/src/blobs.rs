//! The store for blobs.

use std::io::Read;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use core_domain::kernel::{Clock, Timestamp};
use core_domain::port::{BlobError, BlobReader, Blobs, StagedBlob};
use futures_util::TryStreamExt;
use object_store::path::Path;
use object_store::{ObjectMeta, ObjectStoreExt};

use crate::bucket::Bucket;
use crate::config::S3Config;
use crate::download::download;
use crate::error::S3Error;
use crate::options::OptionError;
use crate::shared_file::blocking;
use crate::staged::StagedFile;

/// Blob storage in a bucket. Cheap to clone; clones share the connections.
#[derive(Clone, Debug)]
pub struct S3Blobs {
    bucket: Bucket,
    clock: Arc<dyn Clock>,
}

impl S3Blobs {
    /// Creates the client of a bucket. No request is sent. `folder` must exist when blobs are staged or opened, and needs
    /// the space for all blobs that are written or read at the same time.
    ///
    /// # Errors
    /// [`OptionError`] names the invalid option.
    pub fn open(
        config: &S3Config,
        folder: impl Into<PathBuf>,
        clock: Arc<dyn Clock>,
    ) -> Result<Self, OptionError> {
        let target = config.target()?;
        Ok(Self {
            bucket: Bucket::new(target, folder.into()),
            clock,
        })
    }

    /// Writes, reads, lists and removes an object with this key, to check the bucket and the permissions. The key must be a
    /// blob key that nothing else uses.
    ///
    /// # Errors
    /// [`S3Error`] of the first step that fails.
    pub async fn check(&self, key: &str) -> Result<(), S3Error> {
        let content = b"written by the check of the object store";
        let location = self.bucket.location(key)?;
        self.bucket
            .store()
            .put(&location, content[..].into())
            .await?;
        let outcome = self.check_object(&location, content).await;
        let removed = self.remove_object(&location).await;
        outcome.and(removed)
    }

    async fn check_object(&self, location: &Path, content: &[u8]) -> Result<(), S3Error> {
        let mut reader = download(&self.bucket, location).await?.reader();
        let found = blocking(move || {
            let mut bytes = Vec::new();
            reader.read_to_end(&mut bytes).map(|_| bytes)
        });
        if found.await? != content {
            return Err(S3Error::Failed("an object has another content".into()));
        }
        let mut found = self.bucket.list();
        while let Some(object) = found.try_next().await? {
            if object.location == *location {
                return Ok(());
            }
        }
        Err(S3Error::Failed("an object is not in the list".into()))
    }

    async fn remove_object(&self, location: &Path) -> Result<(), S3Error> {
        match self
            .bucket
            .store()
            .delete(location)
            .await
            .map_err(S3Error::from)
        {
            // S3 deletes missing objects; some other servers do not.
            Ok(()) | Err(S3Error::NoObject) => Ok(()),
            Err(error) => Err(error),
        }
    }

    /// Returns the keys of the blobs whose object fulfils a condition.
    async fn keys_of(&self, fits: impl Fn(&ObjectMeta) -> bool) -> Result<Vec<String>, S3Error> {
        let mut found = self.bucket.list();
        let mut keys = Vec::new();
        while let Some(object) = found.try_next().await? {
            if fits(&object) {
                keys.extend(self.bucket.key_of(&object.location));
            }
        }
        Ok(keys)
    }
}

#[async_trait]
impl Blobs for S3Blobs {
    async fn stage(&self) -> Result<Box<dyn StagedBlob>, BlobError> {
        let file = self.bucket.create_file().await?;
        Ok(Box::new(StagedFile::new(self.bucket.clone(), file)))
    }

    async fn open(&self, key: &str) -> Result<Box<dyn BlobReader>, BlobError> {
        let location = self.bucket.location(key)?;
        let file = download(&self.bucket, &location).await?;
        Ok(Box::new(file.reader()))
    }

    async fn remove(&self, key: &str) -> Result<(), BlobError> {
        let location = self.bucket.location(key)?;
        Ok(self.remove_object(&location).await?)
    }

    async fn older_than(&self, age: Duration) -> Result<Vec<String>, BlobError> {
        let latest = self.clock.now().minus(age);
        let is_old = |object: &ObjectMeta| {
            Timestamp::from_millis(object.last_modified.timestamp_millis()) < latest
        };
        Ok(self.keys_of(is_old).await?)
    }

    /// Does not compare times, because the clock of the server may be ahead.
    async fn keys(&self) -> Result<Vec<String>, BlobError> {
        Ok(self.keys_of(|_| true).await?)
    }
}
