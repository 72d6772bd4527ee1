//! Blobs of several parts, and the memory that they need.

use std::process::Command;

use core_domain::port::{BlobReader, Blobs};
use core_s3::PART_BYTES;

use core_domain::testing::blobs_suite::content_of;

use crate::world::World;

/// The environment variable that is set in the child process.
const MEASURED: &str = "CORE_S3_TESTS_MEASURED";

const MIB: usize = 1024 * 1024;

/// The memory that a blob of any size may need: two parts that are sent and one that is read, twice because a body is
/// copied once, and some for buffers.
const MAX_MEMORY: usize = 6 * 8 * MIB;

/// Returns the content of a blob at a position, so that exchanged parts are noticed.
fn piece(number: usize) -> Vec<u8> {
    (0..MIB).map(|at| ((at + number * 7) % 251) as u8).collect()
}

async fn put_large(world: &World, key: &str, mebibytes: usize) {
    let mut staged = world.blobs.stage().await.unwrap();
    for number in 0..mebibytes {
        staged.append(piece(number)).await.unwrap();
    }
    staged.commit(key).await.unwrap();
}

fn check_large(reader: &mut dyn BlobReader, mebibytes: usize) {
    let mut bytes = vec![0; MIB];
    for number in 0..mebibytes {
        reader.read_exact(&mut bytes).unwrap();
        assert!(bytes == piece(number), "the mebibyte {number} differs");
    }
    assert_eq!(reader.read(&mut bytes).unwrap(), 0);
}

#[tokio::test]
async fn a_blob_of_several_parts_is_stored_read_and_replaced() {
    let world = World::new().await;
    put_large(&world, "large", 20).await;
    assert_eq!(world.server.keys().unwrap(), ["core/large"]);
    assert_eq!(world.server.incomplete_uploads().unwrap(), 0);
    let mut reader = world.blobs.open("large").await.unwrap();
    check_large(reader.as_mut(), 20);
    // A blob of exactly one part.
    let one_part = vec![7; usize::try_from(PART_BYTES).unwrap()];
    world.blobs.put("large", one_part.clone()).await.unwrap();
    assert!(content_of(&world.blobs, "large").await == one_part);
}

#[tokio::test]
async fn a_multipart_upload_that_fails_is_aborted_and_the_old_blob_stays() {
    let world = World::new().await;
    world.blobs.put("large", b"old".to_vec()).await.unwrap();
    let mut staged = world.blobs.stage().await.unwrap();
    for number in 0..20 {
        staged.append(piece(number)).await.unwrap();
    }
    world.server.refuse_parts(true).unwrap();
    assert!(staged.commit("large").await.is_err());
    world.server.refuse_parts(false).unwrap();
    assert_eq!(world.server.incomplete_uploads().unwrap(), 0);
    assert_eq!(content_of(&world.blobs, "large").await, b"old");
}

/// Returns the largest memory of this process so far, in bytes.
fn peak_memory() -> usize {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let peak = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    let kib = peak.unwrap().trim().trim_end_matches(" kB");
    kib.parse::<usize>().unwrap() * 1024
}

/// Measures a process of its own, which runs only this test.
#[cfg(target_os = "linux")]
#[test]
fn the_memory_use_does_not_depend_on_the_size_of_a_blob() {
    if std::env::var_os(MEASURED).is_none() {
        let test = "large::the_memory_use_does_not_depend_on_the_size_of_a_blob";
        let mut child = Command::new(std::env::current_exe().unwrap());
        child
            .args(["--exact", test, "--nocapture"])
            .env(MEASURED, "1");
        let output = child.output().unwrap();
        let out = String::from_utf8_lossy(&output.stdout);
        let log = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{out}{log}");
        assert!(out.contains("1 passed"), "{out}");
        return;
    }
    let runtime = tokio::runtime::Runtime::new().unwrap();
    runtime.block_on(async {
        let world = World::new().await;
        // The first requests also load the code.
        put_large(&world, "large", 9).await;
        check_large(world.blobs.open("large").await.unwrap().as_mut(), 9);
        let before = peak_memory();
        put_large(&world, "large", 128).await;
        check_large(world.blobs.open("large").await.unwrap().as_mut(), 128);
        let needed = peak_memory() - before;
        assert!(needed < MAX_MEMORY, "{needed}");
    });
}
