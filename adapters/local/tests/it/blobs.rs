//! Tests of blob storage, in a folder and in memory.

use std::fs::File;
use std::path::Path;
use std::time::{Duration, UNIX_EPOCH};

use core_domain::port::Blobs;
use core_domain::testing::MemoryBlobs;
use core_domain::testing::blobs_suite::{content_of, stage_and_commit, store_replace_and_remove};
use core_local::FileBlobs;

fn staged_in(folder: &Path) -> usize {
    std::fs::read_dir(folder.join(".staging")).unwrap().count()
}

#[tokio::test]
async fn blobs_can_be_stored_read_and_removed() {
    let folder = tempfile::tempdir().unwrap();
    store_replace_and_remove(&FileBlobs::open(folder.path()).await.unwrap()).await;
    store_replace_and_remove(&MemoryBlobs::default()).await;
}

#[tokio::test]
async fn staged_blob_is_hidden_until_its_commit() {
    let folder = tempfile::tempdir().unwrap();
    stage_and_commit(&FileBlobs::open(folder.path()).await.unwrap()).await;
    stage_and_commit(&MemoryBlobs::default()).await;
}

#[tokio::test]
async fn dropped_or_failed_staged_blob_leaves_no_file() {
    let folder = tempfile::tempdir().unwrap();
    let blobs = FileBlobs::open(folder.path()).await.unwrap();
    let mut staged = blobs.stage().await.unwrap();
    staged.append(vec![7; 100_000]).await.unwrap();
    assert_eq!(staged_in(folder.path()), 1);
    drop(staged);
    assert_eq!(staged_in(folder.path()), 0);
    let staged = blobs.stage().await.unwrap();
    assert!(staged.commit("not a key").await.is_err());
    assert_eq!(staged_in(folder.path()), 0);
}

#[tokio::test]
async fn staged_files_of_a_killed_process_are_removed_at_the_next_start() {
    let folder = tempfile::tempdir().unwrap();
    let blobs = FileBlobs::open(folder.path()).await.unwrap();
    blobs.put("kept", b"bytes".to_vec()).await.unwrap();
    let mut staged = blobs.stage().await.unwrap();
    staged.append(vec![7; 100_000]).await.unwrap();
    // Copies the files on the disk at this moment, which a killed process would leave.
    let after_kill = tempfile::tempdir().unwrap();
    std::fs::create_dir(after_kill.path().join(".staging")).unwrap();
    for name in std::fs::read_dir(folder.path().join(".staging")).unwrap() {
        let name = name.unwrap();
        let to = after_kill.path().join(".staging").join(name.file_name());
        std::fs::copy(name.path(), to).unwrap();
    }
    std::fs::copy(folder.path().join("kept"), after_kill.path().join("kept")).unwrap();
    assert_eq!(staged_in(after_kill.path()), 1);
    let blobs = FileBlobs::open(after_kill.path()).await.unwrap();
    assert_eq!(staged_in(after_kill.path()), 0);
    assert_eq!(content_of(&blobs, "kept").await, b"bytes");
}

#[tokio::test]
async fn blobs_survive_a_restart() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("deep/blobs");
    let blobs = FileBlobs::open(&path).await.unwrap();
    blobs.put("upload-1", vec![7; 300_000]).await.unwrap();
    drop(blobs);
    let blobs = FileBlobs::open(&path).await.unwrap();
    assert_eq!(content_of(&blobs, "upload-1").await, vec![7; 300_000]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn concurrent_reader_sees_the_old_or_the_new_content() {
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
        let bytes = content_of(&blobs, "key").await;
        assert_eq!(bytes.len(), 100_000);
        assert!(bytes.iter().all(|byte| *byte == bytes[0]));
    }
    writer.await.unwrap();
}

#[tokio::test]
async fn older_than_lists_only_old_blobs() {
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
