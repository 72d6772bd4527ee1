//! The blobs suite: cases that every store for blobs must pass. Each case needs an empty store.

#![expect(
    clippy::unwrap_used,
    reason = "a case fails with the test that runs it"
)]

use std::io::SeekFrom;

use crate::port::{BlobError, BlobReader, Blobs};

/// Reads a blob to its end.
#[must_use]
pub fn read_all(mut reader: Box<dyn BlobReader>) -> Vec<u8> {
    let mut bytes = Vec::new();
    reader.read_to_end(&mut bytes).unwrap();
    bytes
}

/// Returns the content of the blob with this key, which must exist.
pub async fn content_of(blobs: &dyn Blobs, key: &str) -> Vec<u8> {
    read_all(blobs.open(key).await.unwrap())
}

/// Blobs can be stored, read, replaced and removed, and an open reader keeps its bytes. Texts that are no keys are refused.
/// Leaves the blob `upload-2`.
pub async fn store_replace_and_remove(blobs: &dyn Blobs) {
    let missing = |error| matches!(error, BlobError::Missing);
    assert!(blobs.open("upload-1").await.is_err_and(missing));
    blobs.put("upload-1", b"one".to_vec()).await.unwrap();
    blobs.put("upload-2", Vec::new()).await.unwrap();
    let first = blobs.open("upload-1").await.unwrap();
    blobs.put("upload-1", b"two".to_vec()).await.unwrap();
    assert_eq!(content_of(blobs, "upload-1").await, b"two");
    assert_eq!(content_of(blobs, "upload-2").await, b"");
    blobs.remove("upload-1").await.unwrap();
    blobs.remove("upload-1").await.unwrap();
    assert_eq!(read_all(first), b"one", "an open reader keeps its bytes");
    assert!(blobs.open("upload-1").await.is_err_and(missing));
    assert!(blobs.open("upload-2").await.is_ok());
    for bad in bad_keys() {
        let failed = |error| matches!(error, BlobError::Failed(_));
        let put = blobs.put(&bad, Vec::new()).await;
        assert!(put.is_err_and(failed), "{bad:?}");
        assert!(blobs.open(&bad).await.is_err_and(failed), "{bad:?}");
        assert!(blobs.remove(&bad).await.is_err_and(failed), "{bad:?}");
    }
}

/// Returns texts that are not keys of blobs.
#[must_use]
pub fn bad_keys() -> Vec<String> {
    let long = "k".repeat(129);
    let bad = ["", "..", "../x", "A", "a/b", ".staging", "a\0", &long];
    bad.map(str::to_owned).to_vec()
}

/// A blob is hidden until its commit. Its readers are open beyond the commit.
pub async fn stage_and_commit(blobs: &dyn Blobs) {
    let mut staged = blobs.stage().await.unwrap();
    staged.append(b"hello ".to_vec()).await.unwrap();
    staged.append(b"world".to_vec()).await.unwrap();
    let missing = |error| matches!(error, BlobError::Missing);
    assert!(blobs.open("upload-1").await.is_err_and(missing));
    let mut reader = staged.open().await.unwrap();
    reader.seek(SeekFrom::End(-5)).unwrap();
    let mut end = String::new();
    reader.read_to_string(&mut end).unwrap();
    assert_eq!(end, "world");
    assert!(reader.seek(SeekFrom::Current(-100)).is_err());
    staged.commit("upload-1").await.unwrap();
    assert_eq!(content_of(blobs, "upload-1").await, b"hello world");
    reader.rewind().unwrap();
    assert_eq!(read_all(reader), b"hello world");
}
