//! A blob store in memory, for tests.

use std::collections::HashMap;
use std::io::Cursor;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use async_trait::async_trait;

use crate::port::{BlobError, BlobReader, Blobs, StagedBlob, is_blob_key};

/// A blob store in memory. The blobs exist as long as this value or a clone of it. Clones share the blobs.
#[derive(Clone, Debug, Default)]
pub struct MemoryBlobs(Arc<Mutex<ByKey>>);

type ByKey = HashMap<String, Arc<[u8]>>;

impl MemoryBlobs {
    /// Returns the keys of all blobs, in no particular order.
    #[must_use]
    pub fn keys(&self) -> Vec<String> {
        let blobs = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        blobs.keys().cloned().collect()
    }

    fn blobs(&self, key: &str) -> Result<MutexGuard<'_, ByKey>, BlobError> {
        if !is_blob_key(key) {
            let what = format!("{key:?} is not a blob key");
            return Err(BlobError::Failed(what.into()));
        }
        Ok(self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

#[async_trait]
impl Blobs for MemoryBlobs {
    async fn stage(&self) -> Result<Box<dyn StagedBlob>, BlobError> {
        Ok(Box::new(MemoryStagedBlob {
            blobs: self.clone(),
            bytes: Vec::new(),
        }))
    }

    async fn open(&self, key: &str) -> Result<Box<dyn BlobReader>, BlobError> {
        let bytes = self.blobs(key)?.get(key).cloned();
        Ok(Box::new(Cursor::new(bytes.ok_or(BlobError::Missing)?)))
    }

    async fn remove(&self, key: &str) -> Result<(), BlobError> {
        self.blobs(key)?.remove(key);
        Ok(())
    }
}

#[derive(Debug)]
struct MemoryStagedBlob {
    blobs: MemoryBlobs,
    bytes: Vec<u8>,
}

#[async_trait]
impl StagedBlob for MemoryStagedBlob {
    async fn append(&mut self, bytes: Vec<u8>) -> Result<(), BlobError> {
        self.bytes.extend(bytes);
        Ok(())
    }

    async fn open(&self) -> Result<Box<dyn BlobReader>, BlobError> {
        Ok(Box::new(Cursor::new(self.bytes.clone())))
    }

    async fn commit(self: Box<Self>, key: &str) -> Result<(), BlobError> {
        let Self { blobs, bytes } = *self;
        blobs.blobs(key)?.insert(key.to_owned(), bytes.into());
        Ok(())
    }
}
