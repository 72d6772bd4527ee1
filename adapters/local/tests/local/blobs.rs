//! Bytes by key, in a folder and in memory.

use std::fs::File;
use std::time::{Duration, UNIX_EPOCH};

use core_domain::port::{BlobError, Blobs, MemoryBlobs};
use core_local::FileBlobs;

async fn keeps_what_was_put(blobs: &dyn Blobs) {
    let missing = |error| matches!(error, BlobError::Missing);
    assert!(blobs.get("upload-1").await.is_err_and(missing));
    blobs.put("upload-1", b"one".to_vec()).await.unwrap();
    blobs.put("upload-2", Vec::new()).await.unwrap();
    blobs.put("upload-1", b"two".to_vec()).await.unwrap();
    assert_eq!(blobs.get("upload-1").await.unwrap(), b"two");
    assert_eq!(blobs.get("upload-2").await.unwrap(), b"");
    blobs.remove("upload-1").await.unwrap();
    blobs.remove("upload-1").await.unwrap();
    assert!(blobs.get("upload-1").await.is_err_and(missing));
    assert!(blobs.get("upload-2").await.is_ok());
    let long = "k".repeat(129);
    for bad in ["", "..", "../x", "A", "a/b", ".staging", "a\0", &long] {
        let failed = |error| matches!(error, BlobError::Failed(_));
        assert!(
            blobs.put(bad, Vec::new()).await.is_err_and(failed),
            "{bad:?}"
        );
        assert!(blobs.get(bad).await.is_err_and(failed), "{bad:?}");
        assert!(blobs.remove(bad).await.is_err_and(failed), "{bad:?}");
    }
}

#[tokio::test]
async fn both_kinds_keep_what_was_put() {
    let folder = tempfile::tempdir().unwrap();
    keeps_what_was_put(&FileBlobs::open(folder.path()).await.unwrap()).await;
    keeps_what_was_put(&MemoryBlobs::default()).await;
}

#[tokio::test]
async fn files_outlive_the_process() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("deep/blobs");
    let blobs = FileBlobs::open(&path).await.unwrap();
    blobs.put("upload-1", vec![7; 300_000]).await.unwrap();
    drop(blobs);
    let blobs = FileBlobs::open(&path).await.unwrap();
    assert_eq!(blobs.get("upload-1").await.unwrap(), vec![7; 300_000]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_reader_sees_the_old_or_the_new_bytes_whole() {
    let folder = tempfile::tempdir().unwrap();
    let blobs = FileBlobs::open(folder.path()).await.unwrap();
    blobs.put("key", vec![0; 100_000]).await.unwrap();
    let writer = {
        let blobs = blobs.clone();
        tokio::spawn(async move {
            for round in 1..20_u8 {
                blobs.put("key", vec![round; 100_000]).await.unwrap();
            }
        })
    };
    while !writer.is_finished() {
        let bytes = blobs.get("key").await.unwrap();
        assert_eq!(bytes.len(), 100_000);
        assert!(bytes.iter().all(|byte| *byte == bytes[0]));
    }
    writer.await.unwrap();
}

#[tokio::test]
async fn what_was_put_long_ago_is_told_and_nothing_else() {
    let folder = tempfile::tempdir().unwrap();
    let blobs = FileBlobs::open(folder.path()).await.unwrap();
    let day = Duration::from_secs(24 * 60 * 60);
    for key in ["old", "replaced", "new"] {
        blobs.put(key, b"bytes".to_vec()).await.unwrap();
    }
    for name in ["old", "replaced", ".lock", ".in-use"] {
        let path = folder.path().join(name);
        let file = File::options()
            .create(true)
            .append(true)
            .open(path)
            .unwrap();
        file.set_modified(UNIX_EPOCH + day).unwrap();
    }
    blobs.put("replaced", b"again".to_vec()).await.unwrap();
    assert_eq!(blobs.older_than(day).await.unwrap(), ["old"]);
    blobs.remove("old").await.unwrap();
    assert!(blobs.older_than(day).await.unwrap().is_empty());
}
