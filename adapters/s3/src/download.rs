//! Downloads of blobs into local files.

use bytes::{Bytes, BytesMut};
use core_domain::port::Cause;
use futures_util::TryStreamExt;
use object_store::ObjectStoreExt;
use object_store::path::Path;

use crate::bucket::Bucket;
use crate::error::S3Error;
use crate::shared_file::{SharedFile, blocking};

/// The number of bytes that are collected before they are written to the file.
const WRITE_BYTES: usize = 256 * 1024;

/// Copies an object into a local file without a name. `object_store` continues an interrupted response if the object is
/// still the same.
pub(crate) async fn download(bucket: &Bucket, location: &Path) -> Result<SharedFile, S3Error> {
    let found = bucket.store().get(location).await?;
    let expected = found.meta.size;
    let mut file = bucket.create_file().await?;
    let mut pieces = found.into_stream();
    let mut collected = BytesMut::new();
    while let Some(piece) = pieces.try_next().await? {
        collected.extend_from_slice(&piece);
        if collected.len() >= WRITE_BYTES {
            file = append(file, collected.split().freeze()).await?;
        }
    }
    file = append(file, collected.freeze()).await?;
    if file.length() != expected {
        let problem = format!("{} of {expected} bytes arrived", file.length());
        return Err(S3Error::Failed(Cause::from(problem)));
    }
    Ok(file)
}

async fn append(mut file: SharedFile, bytes: Bytes) -> Result<SharedFile, S3Error> {
    blocking(move || file.append(&bytes).map(|()| file)).await
}
