//! A bucket, and the local files of blobs that are written or read.

use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;

use core_domain::port::is_blob_key;
use futures_util::Stream;
use object_store::aws::AmazonS3;
use object_store::path::Path;
use object_store::{ObjectMeta, ObjectStore};

use crate::config::Target;
use crate::error::S3Error;
use crate::shared_file::{SharedFile, blocking};

/// A bucket, the prefix of its keys, and the folder of local files.
#[derive(Clone)]
pub(crate) struct Bucket(Arc<Inner>);

struct Inner {
    store: AmazonS3,
    name: String,
    prefix: String,
    folder: PathBuf,
}

impl fmt::Debug for Bucket {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Bucket")
            .field("name", &self.0.name)
            .field("prefix", &self.0.prefix)
            .finish_non_exhaustive()
    }
}

impl Bucket {
    pub(crate) fn new(target: Target, folder: PathBuf) -> Self {
        Self(Arc::new(Inner {
            store: target.store,
            name: target.bucket.bucket,
            prefix: target.bucket.prefix,
            folder,
        }))
    }

    pub(crate) fn store(&self) -> &AmazonS3 {
        &self.0.store
    }

    /// Returns the location of a blob.
    pub(crate) fn location(&self, key: &str) -> Result<Path, S3Error> {
        if !is_blob_key(key) {
            return Err(S3Error::Key(key.to_owned()));
        }
        Ok(Path::from(format!("{}/{key}", self.0.prefix)))
    }

    /// Returns the key of a blob; `None` if the object is not a blob.
    pub(crate) fn key_of(&self, location: &Path) -> Option<String> {
        let location = location.as_ref();
        let key = match self.0.prefix.as_str() {
            "" => location,
            prefix => location.strip_prefix(prefix)?.strip_prefix('/')?,
        };
        is_blob_key(key).then(|| key.to_owned())
    }

    /// Returns the objects below the prefix.
    pub(crate) fn list(
        &self,
    ) -> impl Stream<Item = object_store::Result<ObjectMeta>> + Unpin + use<> {
        let prefix = Path::from(self.0.prefix.as_str());
        self.store().list(Some(&prefix))
    }

    /// Creates an empty local file.
    pub(crate) async fn create_file(&self) -> Result<SharedFile, S3Error> {
        let folder = self.0.folder.clone();
        blocking(move || SharedFile::create_in(&folder)).await
    }
}
