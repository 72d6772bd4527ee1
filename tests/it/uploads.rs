//! Large uploads: their memory use in the server, and the files that remain of them.

use std::path::Path;

use bytes::Bytes;
use futures_util::future::join_all;
use tokio::io::AsyncWriteExt;
use tokio::net::TcpStream;

use crate::world::{
    Backend, Fresh, Installation, PlatformMember, SERVICE_KEY, Server, sign_up, site_archive,
};

const MIB: u64 = 1024 * 1024;

/// Returns a site of 43 files with 2 MB each, whose bytes do not repeat.
fn large_site() -> Bytes {
    let mut archive = tar::Builder::new(Vec::with_capacity(90 * MIB as usize));
    let mut state = 0_u64;
    let mut add = |path: &str, content: &[u8]| {
        let mut header = tar::Header::new_gnu();
        header.set_size(content.len() as u64);
        header.set_mode(0o644);
        archive.append_data(&mut header, path, content).unwrap();
    };
    add("index.html", b"<h1>large</h1>");
    let mut content = Vec::with_capacity(2_000_000);
    for n in 0..43 {
        content.clear();
        while content.len() < 2_000_000 {
            // SplitMix64.
            state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
            let mixed = (state ^ (state >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
            content.extend_from_slice(&mixed.to_le_bytes());
        }
        add(&format!("assets/{n}.bin"), &content);
    }
    archive.into_inner().unwrap().into()
}

/// Deploys a site, and waits until it is live.
async fn deploy(server: &Server, platform: &PlatformMember, site: Bytes) {
    let ended = platform.deploy(server, site).await;
    assert_eq!(ended.text("status"), "active", "{}", ended.json);
}

#[cfg(target_os = "linux")]
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_upload_takes_at_most_32_mib_of_memory_and_six_take_at_most_64() {
    let data = tempfile::tempdir().unwrap();
    let server = Server::start(data.path(), &[]).await;
    let mut platforms = Vec::new();
    for n in 0..7 {
        platforms.push(PlatformMember::operating(&server, &format!("platform-{n}")).await);
    }
    deploy(&server, &platforms[0], site_archive().into()).await;
    let before = server.peak_memory();

    let site = large_site();
    deploy(&server, &platforms[0], site.clone()).await;
    let with_one = server.peak_memory() - before;
    assert!(with_one <= 32 * MIB, "{} MiB", with_one / MIB);

    let others = platforms[1..].iter();
    join_all(others.map(|platform| deploy(&server, platform, site.clone()))).await;
    let with_six = server.peak_memory() - before;
    assert!(with_six <= 64 * MIB, "{} MiB", with_six / MIB);
}

#[cfg(target_os = "linux")]
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_upload_with_many_long_names_takes_at_most_32_mib_of_memory() {
    let data = tempfile::tempdir().unwrap();
    let server = Server::start(data.path(), &[]).await;
    let platform = PlatformMember::operating(&server, "platform").await;
    deploy(&server, &platform, site_archive().into()).await;
    let before = server.peak_memory();

    let names = platform.deployment(long_names());
    let refused = server.send("gateway", names).await.expect(400);
    let issue = &refused.json["error"]["details"]["issues"][0];
    assert_eq!(issue["code"], "too_large");
    let with_names = server.peak_memory() - before;
    assert!(with_names <= 32 * MIB, "{} MiB", with_names / MIB);
}

/// Returns an archive with as many files as a site may have, with the longest allowed names.
fn long_names() -> Vec<u8> {
    let mut archive = tar::Builder::new(Vec::new());
    for n in 0..20_000 {
        let path = format!("{n}{}/x", "/folder".repeat(140));
        let mut header = tar::Header::new_gnu();
        header.set_size(0);
        header.set_mode(0o644);
        archive.append_data(&mut header, path, &b""[..]).unwrap();
    }
    archive.into_inner().unwrap()
}

fn names(folder: &Path) -> Vec<String> {
    let entries = std::fs::read_dir(folder).unwrap();
    let name = |entry: std::io::Result<std::fs::DirEntry>| entry.unwrap().file_name();
    entries
        .map(|entry| name(entry).into_string().unwrap())
        .collect()
}

#[tokio::test]
async fn a_partial_upload_of_a_killed_server_is_removed_at_the_next_start() {
    let data = tempfile::tempdir().unwrap();
    let staging = data.path().join("uploads/.staging");
    let server = Server::start(data.path(), &[]).await;
    let platform = PlatformMember::operating(&server, "platform")
        .await
        .platform;
    let address = server.url("cli").replace("http://", "");
    let mut client = TcpStream::connect(address).await.unwrap();
    let head = format!(
        "POST /api/v1/platforms/{platform}/deploy HTTP/1.1\r\nhost: x\r\n\
         content-type: application/gzip\r\n\
         authorization: Bearer {SERVICE_KEY}\r\ncontent-length: 1000000\r\n\r\n"
    );
    client.write_all(head.as_bytes()).await.unwrap();
    client.write_all(&vec![b'x'; 600_000]).await.unwrap();
    while names(&staging).is_empty() {
        tokio::task::yield_now().await;
    }
    server.kill().await;
    assert_eq!(names(&staging).len(), 1);
    let server = Server::start(data.path(), &[]).await;
    assert!(names(&staging).is_empty());
    assert!(server.terminate().await.success());
}

#[cfg(unix)]
#[tokio::test]
async fn the_error_of_a_failed_deployment_contains_no_server_path() {
    let fresh = Fresh::on(Backend::Memory).await;
    let suite = fresh.suite().await;
    let person = sign_up(&suite, "engines", "Analytical Engines").await;
    person.job_done(&suite, &person.job(&suite).await).await;

    // Breaks the folder in which a site is unpacked.
    let staging = fresh.folder().join("infrastructure/.staging");
    std::fs::remove_dir_all(&staging).unwrap();
    std::os::unix::fs::symlink("/etc/passwd", &staging).unwrap();
    let shown = person.deploy(&suite, site_archive()).await;
    assert_eq!(shown.text("status"), "failure");
    let failed = format!(
        "/api/v1/provisioning/jobs?platformId={}&status=FAILED",
        person.platform
    );
    let failed = suite.get(&person.token, &failed).await.expect(200);
    for answer in [shown, failed] {
        let text = answer.json.to_string();
        assert!(text.contains("the provider is out of order"), "{text}");
        let root = fresh.folder().to_str().unwrap();
        let paths = text.contains(root) || text.contains("staging");
        assert!(!paths, "{text}");
    }
    suite.shutdown().await;
}
