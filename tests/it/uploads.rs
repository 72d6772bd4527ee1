//! Large uploads: their memory use in the server, and the files that remain of them.

use std::io::Write;
use std::path::Path;

use bytes::Bytes;
use flate2::Compression;
use flate2::write::GzEncoder;
use futures_util::future::join_all;
use tar::EntryType;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
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
async fn an_upload_takes_at_most_16_mib_of_memory_and_six_take_at_most_64() {
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
    assert!(with_one <= 16 * MIB, "{} MiB", with_one / MIB);

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

/// Sends bytes to the service and ends the sending side. Returns the statuses of the responses until the server closes.
async fn statuses(server: &Server, bytes: &[u8]) -> Vec<u16> {
    let address = server.url("cli").replace("http://", "");
    let mut client = TcpStream::connect(address).await.unwrap();
    // The server may respond and close before it has read everything.
    let _ = client.write_all(bytes).await;
    let _ = client.shutdown().await;
    let mut received = Vec::new();
    let _ = client.read_to_end(&mut received).await;
    let received = String::from_utf8_lossy(&received).into_owned();
    let lines = received.split("HTTP/1.1 ").skip(1);
    lines.map(|line| line[..3].parse().unwrap()).collect()
}

#[tokio::test]
async fn bodies_that_contradict_their_length_are_refused_and_leave_no_file() {
    let data = tempfile::tempdir().unwrap();
    let server = Server::start(data.path(), &[]).await;
    let platform = PlatformMember::operating(&server, "platform").await;
    deploy(&server, &platform, site_archive().into()).await;
    let site = site_archive();
    let length = site.len();
    let upload = |headers: &str, body: &[u8]| {
        let path = platform.at("/deploy");
        let head = format!(
            "POST {path} HTTP/1.1\r\nhost: x\r\ncontent-type: application/gzip\r\n\
             authorization: Bearer {SERVICE_KEY}\r\nx-core-deploy-branch: wrong\r\n{headers}\r\n\r\n"
        );
        [head.as_bytes(), body].concat()
    };
    let declared = |length: usize| format!("content-length: {length}");
    let chunks = |chunks: &[u8]| upload("transfer-encoding: chunked", chunks);
    let mut whole_chunk = format!("{length:x}\r\n").into_bytes();
    whole_chunk.extend(&site);
    let both = format!("{}\r\ntransfer-encoding: chunked", declared(length));
    let twice = format!("{}\r\n{}", declared(length), declared(length + 1));
    for (name, request) in [
        ("too few bytes", upload(&declared(length + 1), &site)),
        ("no bytes", upload(&declared(length), b"")),
        ("two lengths", upload(&twice, &site)),
        ("a negative length", upload("content-length: -1", &site)),
        (
            "a length of 2^64",
            upload("content-length: 18446744073709551616", &site),
        ),
        (
            "a length above the limit",
            upload(&declared(101 * MIB as usize), &site),
        ),
        (
            "a part of the archive",
            upload(&declared(length - 1), &site[..length - 1]),
        ),
        ("no end of the chunks", chunks(&whole_chunk)),
        ("half a chunk", chunks(&whole_chunk[..length / 2])),
        ("no size of a chunk", chunks(b"xyz\r\n")),
        ("a chunk of 2^64 bytes", chunks(b"fffffffffffffffff\r\n")),
        ("chunks and a length, without chunks", upload(&both, &site)),
    ] {
        let received = statuses(&server, &request).await;
        // The server may close a connection whose request ended early without a response.
        let is_refused = |status: &u16| [400, 413].contains(status);
        assert!(
            received.len() <= 1 && received.iter().all(is_refused),
            "{name}: {received:?}"
        );
        let staging = data.path().join("uploads/.staging");
        while !names(&staging).is_empty() {
            tokio::task::yield_now().await;
        }
        let stored = names(&data.path().join("uploads"));
        let is_internal = |name: &String| name.starts_with('.');
        assert!(stored.iter().all(is_internal), "{name}: {stored:?}");
    }
    // The bytes after a complete body are the next request.
    let more = [
        upload(&declared(length), &site),
        b"surplus\r\n\r\n".to_vec(),
    ]
    .concat();
    assert_eq!(statuses(&server, &more).await, [202, 400]);
    assert!(server.terminate().await.success());
}

/// Archives that would need much memory or time if the unpacker trusted their headers.
fn amplifying_archives() -> Vec<Vec<u8>> {
    let gz = |bytes: &[u8]| {
        let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
        encoder.write_all(bytes).unwrap();
        encoder.finish().unwrap()
    };
    let entry = |kind: EntryType, content: &[u8]| {
        let mut archive = tar::Builder::new(Vec::new());
        let mut header = tar::Header::new_ustar();
        header.set_path("x").unwrap();
        header.set_entry_type(kind);
        header.set_size(content.len() as u64);
        header.set_cksum();
        archive.append(&header, content).unwrap();
        archive.into_inner().unwrap()
    };
    let zeros = vec![0; 90 * MIB as usize];
    let attribute = b"12 comment=\n".repeat(80_000);
    vec![
        gz(&entry(EntryType::Regular, &zeros)),
        gz(&entry(EntryType::GNULongName, &zeros)),
        gz(&entry(EntryType::XGlobalHeader, &zeros)),
        // The end mark of each is the end of the whole.
        gz(&entry(EntryType::XHeader, &attribute)[..512 + 960_000].repeat(60)),
        gz(b"").repeat(1_000_000),
        gz(&gz(&zeros)),
    ]
}

#[cfg(target_os = "linux")]
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn archives_that_amplify_their_size_are_refused_within_32_mib_of_memory() {
    let data = tempfile::tempdir().unwrap();
    let server = Server::start(data.path(), &[]).await;
    let platform = PlatformMember::operating(&server, "platform").await;
    deploy(&server, &platform, site_archive().into()).await;
    let before = server.peak_memory();
    for (number, archive) in amplifying_archives().into_iter().enumerate() {
        let refused = server.send("gateway", platform.deployment(archive)).await;
        assert_eq!(refused.status, 400, "{number}: {}", refused.json);
        let used = server.peak_memory() - before;
        assert!(used <= 32 * MIB, "{number}: {} MiB", used / MIB);
    }
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
