//! The contract of the port, the prefix, and the age of blobs.

use std::time::Duration;

use core_domain::kernel::Timestamp;
use core_domain::port::Blobs;
use core_domain::testing::blobs_suite::{
    bad_keys, read_all, stage_and_commit, store_replace_and_remove,
};

use crate::world::{World, failure};

#[tokio::test]
async fn blobs_can_be_stored_read_replaced_and_removed() {
    let world = World::new().await;
    store_replace_and_remove(&world.blobs).await;
    assert_eq!(world.server.keys().unwrap(), ["core/upload-2"]);
}

#[tokio::test]
async fn a_text_that_is_no_key_is_named_in_the_error() {
    let world = World::new().await;
    let blobs: &dyn Blobs = &world.blobs;
    for bad in bad_keys() {
        for text in [
            failure(blobs.put(&bad, Vec::new()).await),
            failure(blobs.open(&bad).await),
            failure(blobs.remove(&bad).await),
        ] {
            assert!(text.contains("is not a blob key"), "{text}");
        }
    }
}

#[tokio::test]
async fn staged_blob_is_hidden_until_its_commit() {
    let world = World::new().await;
    stage_and_commit(&world.blobs).await;
}

#[tokio::test]
async fn a_reader_of_a_staged_blob_has_the_bytes_that_were_appended_before() {
    let world = World::new().await;
    let mut staged = world.blobs.stage().await.unwrap();
    staged.append(b"hello ".to_vec()).await.unwrap();
    let early = staged.open().await.unwrap();
    staged.append(b"world".to_vec()).await.unwrap();
    assert_eq!(read_all(early), b"hello ");
    assert_eq!(read_all(staged.open().await.unwrap()), b"hello world");
    assert!(world.server.keys().unwrap().is_empty());
}

#[tokio::test]
async fn a_staged_blob_that_is_dropped_or_fails_leaves_nothing_behind() {
    let world = World::new().await;
    let mut staged = world.blobs.stage().await.unwrap();
    staged.append(vec![7; 100_000]).await.unwrap();
    // The file has no name, so a killed process leaves nothing either.
    assert_eq!(world.local_files(), 0);
    drop(staged);
    let staged = world.blobs.stage().await.unwrap();
    assert!(staged.commit("not a key").await.is_err());
    assert_eq!(world.local_files(), 0);
    assert!(world.server.keys().unwrap().is_empty());
    assert_eq!(world.server.incomplete_uploads().unwrap(), 0);
}

#[tokio::test]
async fn keys_with_a_prefix_do_not_see_other_prefixes() {
    let world = World::new().await;
    let others = ["uploads/core2", "uploads/core/inner", "uploads"];
    let others = others.map(|path| world.client(&world.server.config(path)));
    world.blobs.put("mine", b"mine".to_vec()).await.unwrap();
    for (number, other) in others.iter().enumerate() {
        assert!(other.open("mine").await.is_err());
        let key = format!("theirs-{number}");
        other.put(&key, b"theirs".to_vec()).await.unwrap();
        assert!(world.blobs.open(&key).await.is_err());
        other.remove("mine").await.unwrap();
        assert_eq!(other.older_than(Duration::ZERO).await.unwrap(), [key]);
    }
    let keys = world.blobs.older_than(Duration::ZERO).await.unwrap();
    assert_eq!(keys, ["mine"]);
    assert_eq!(
        world.server.keys().unwrap(),
        [
            "core/inner/theirs-1",
            "core/mine",
            "core2/theirs-0",
            "theirs-2"
        ]
    );
}

#[tokio::test]
async fn older_than_lists_only_old_blobs() {
    let world = World::new().await;
    let blobs = &world.blobs;
    blobs.put("upload-1", b"bytes".to_vec()).await.unwrap();
    blobs.put("upload-2", b"bytes".to_vec()).await.unwrap();
    let mut found = blobs.older_than(Duration::from_secs(3_600)).await.unwrap();
    found.sort();
    assert_eq!(found, ["upload-1", "upload-2"]);
    // The clock is some billions of seconds ahead, but nothing is that old.
    let age = Duration::from_secs(4_000_000_000);
    assert!(blobs.older_than(age).await.unwrap().is_empty());
    blobs.remove("upload-1").await.unwrap();
    // The clock of the server is ahead.
    world.clock.set(Timestamp::from_seconds(1));
    assert!(blobs.older_than(Duration::ZERO).await.unwrap().is_empty());
    assert_eq!(blobs.keys().await.unwrap(), ["upload-2"]);
}

#[tokio::test]
async fn older_than_lists_the_blobs_of_all_pages() {
    let world = World::new().await;
    // A page has at most 1,000 keys.
    world.server.fill("core/upload", 1_100).unwrap();
    world.server.fill("core/not/a-blob", 1).unwrap();
    let found = world.blobs.older_than(Duration::ZERO).await.unwrap();
    assert_eq!(found.len(), 1_100);
}

#[tokio::test]
async fn the_check_writes_reads_lists_and_removes_an_object() {
    let world = World::new().await;
    world.blobs.check("doctor-1").await.unwrap();
    assert!(world.server.keys().unwrap().is_empty());
}
