//! Blobs that are being written.

use async_trait::async_trait;
use core_domain::port::{BlobError, BlobReader, Cause, StagedBlob};
use futures_util::TryStreamExt;
use futures_util::stream::FuturesUnordered;
use object_store::aws::AmazonS3;
use object_store::path::Path;
use object_store::{MultipartUpload, ObjectStoreExt};

use crate::bucket::Bucket;
use crate::error::S3Error;
use crate::shared_file::{SharedFile, blocking};

/// The size of a part of a multipart upload, in bytes. Smaller blobs are one request. An upload has at most 10,000 parts, so
/// a blob has at most 78 GiB.
pub const PART_BYTES: u64 = 8 * 1024 * 1024;

/// The number of parts that one commit sends at the same time, and has in memory.
const CONCURRENT_PARTS: usize = 2;

/// A blob that is not committed yet: a local file without a name.
#[derive(Debug)]
pub(crate) struct StagedFile {
    bucket: Bucket,
    file: SharedFile,
}

impl StagedFile {
    pub(crate) const fn new(bucket: Bucket, file: SharedFile) -> Self {
        Self { bucket, file }
    }
}

#[async_trait]
impl StagedBlob for StagedFile {
    async fn append(&mut self, bytes: Vec<u8>) -> Result<(), BlobError> {
        let mut file = self.file.clone();
        let appended = blocking(move || file.append(&bytes).map(|()| file));
        self.file = appended.await?;
        Ok(())
    }

    async fn open(&self) -> Result<Box<dyn BlobReader>, BlobError> {
        Ok(Box::new(self.file.reader()))
    }

    async fn commit(self: Box<Self>, key: &str) -> Result<(), BlobError> {
        let Self { bucket, file } = *self;
        let location = bucket.location(key)?;
        // The upload completes, or is aborted, even if the caller no longer waits for it.
        let upload = tokio::spawn(async move { upload(bucket.store(), &location, &file).await });
        let outcome = upload.await;
        outcome.map_err(|error| BlobError::Failed(Cause::new(error)))??;
        Ok(())
    }
}

async fn upload(store: &AmazonS3, location: &Path, file: &SharedFile) -> Result<(), S3Error> {
    if file.length() <= PART_BYTES {
        let content = read_part(file, 0).await?;
        store.put(location, content.into()).await?;
        return Ok(());
    }
    let mut parts = store.put_multipart(location).await?;
    let outcome = match send_parts(parts.as_mut(), file).await {
        Ok(()) => parts.complete().await.map(drop).map_err(S3Error::from),
        Err(error) => Err(error),
    };
    if outcome.is_err() {
        // The error that is returned says more. What stays in the bucket is deleted by its lifecycle rule.
        let _ = parts.abort().await;
    }
    outcome
}

/// Sends all parts. They are numbered in the order in which they are read.
async fn send_parts(parts: &mut dyn MultipartUpload, file: &SharedFile) -> Result<(), S3Error> {
    let mut in_flight = FuturesUnordered::new();
    let mut position = 0;
    while position < file.length() {
        if in_flight.len() == CONCURRENT_PARTS {
            in_flight.try_next().await?;
        }
        let content = read_part(file, position).await?;
        in_flight.push(parts.put_part(content.into()));
        position += PART_BYTES;
    }
    while in_flight.try_next().await?.is_some() {}
    Ok(())
}

async fn read_part(file: &SharedFile, position: u64) -> Result<Vec<u8>, S3Error> {
    let file = file.clone();
    let limit = PART_BYTES.min(file.length() - position);
    blocking(move || file.read_part(position, usize::try_from(limit).unwrap_or(usize::MAX))).await
}
