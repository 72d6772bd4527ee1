//! Attacks by archives through the HTTP API. Each one is refused with its defect, or is harmless, and leaves no file.

use std::collections::BTreeSet;
use std::path::Path;

use core_domain::kernel::hex;
use core_http::kernel::testing::Answer;
use core_suite::bytes_body;
use http::Request;
use http_body_util::BodyExt;
use serde_json::json;
use sha2::{Digest, Sha256};
use tower::ServiceExt;

use crate::archives::gz;
use crate::raw_archives::{
    RawZip, TAR_BLOCK, ZipEntry, pax_record, tar_entry, tar_header, tar_of, zip_of,
};
use crate::world::{SERVICE_KEY, World, request, send};

const PAGE: &[u8] = b"<h1>Hello</h1>";
const ANY: &str = "application/octet-stream";

/// An upload, and the expected issue. `None` if the site is accepted.
struct Attack {
    name: String,
    upload: Vec<u8>,
    issue: Option<&'static str>,
}

fn attack(name: &str, upload: Vec<u8>, issue: &'static str) -> Attack {
    Attack {
        name: name.to_owned(),
        upload,
        issue: Some(issue),
    }
}

fn harmless(name: &str, upload: Vec<u8>) -> Attack {
    Attack {
        name: name.to_owned(),
        upload,
        issue: None,
    }
}

fn page() -> Vec<u8> {
    tar_entry(b"index.html", b'0', PAGE)
}

/// Returns a tar with a front page and these entries.
fn page_and(entries: &[Vec<u8>]) -> Vec<u8> {
    tar_of(&[&[page()], entries].concat())
}

fn gnu_long(path: &[u8]) -> Vec<u8> {
    let name = tar_entry(b"././@LongLink", b'L', &[path, b"\0"].concat());
    [name, tar_entry(path, b'0', b"x")].concat()
}

fn pax(records: &[Vec<u8>]) -> Vec<u8> {
    let attributes = tar_entry(b"PaxHeaders/x", b'x', &records.concat());
    [attributes, tar_entry(b"short", b'0', b"x")].concat()
}

fn pax_path(path: &[u8]) -> Vec<u8> {
    pax(&[pax_record("path", path)])
}

/// Returns a tar entry with 12 bytes as its size.
fn entry_of_size(size: &[u8; 12], kind: u8) -> Vec<u8> {
    let mut header = tar_header(b"x", kind, 0);
    header[124..136].copy_from_slice(size);
    crate::raw_archives::write_checksum(&mut header);
    header
}

fn tar_attacks() -> Vec<Attack> {
    let largest = b"\x80\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff";
    let broken = "file: broken_archive";
    let bad_path = "file: bad_path";
    let leaves = "file: path_leaves_site";
    let long_name_alone = tar_entry(b"././@LongLink", b'L', b"x\0");
    let attributes_alone = tar_entry(b"x", b'x', &pax_record("path", b"x"));
    let with = |entry: Vec<u8>| page_and(&[entry]);
    let mut wrong_sum = page_and(&[tar_entry(b"x", b'0', b"x")]);
    wrong_sum[2 * TAR_BLOCK + 148] ^= 1;
    vec![
        attack("GNU: ..", with(gnu_long(b"a/../../x")), leaves),
        attack("PAX: ..", with(pax_path(b"../x")), leaves),
        attack("PAX: /", with(pax_path(b"/x")), "file: absolute_path"),
        attack("GNU: NUL", with(gnu_long(b"a\0b")), bad_path),
        attack("PAX: NUL", with(pax_path(b"a\0b")), bad_path),
        attack("PAX: line end", with(pax_path(b"a\nb")), bad_path),
        attack("PAX: empty path", with(pax_path(b"")), bad_path),
        harmless(
            "PAX: a binary value with line ends",
            with(pax(&[pax_record("SCHILY.xattr.x", b"\n13 path=../x\n")])),
        ),
        attack("GNU: alone", with(long_name_alone), broken),
        attack("PAX: alone", with(attributes_alone), broken),
        attack(
            "PAX: size",
            with(pax(&[pax_record("size", b"99999999999")])),
            broken,
        ),
        attack("PAX: length", with(pax(&[b"99 path=x\n".to_vec()])), broken),
        attack("PAX: no key", with(pax(&[b"6 abc\n".to_vec()])), broken),
        attack(
            "a file of 2^64 bytes",
            with(entry_of_size(largest, b'0')),
            broken,
        ),
        attack(
            "a folder of 2^64 bytes",
            with(entry_of_size(largest, b'5')),
            broken,
        ),
        attack(
            "global attributes of 2^64 bytes",
            with(entry_of_size(largest, b'g')),
            broken,
        ),
        attack(
            "attributes of 2^64 bytes",
            with(entry_of_size(largest, b'x')),
            broken,
        ),
        attack(
            "a file of 8 GiB",
            with(entry_of_size(b"77777777777\0", b'0')),
            "file: too_large",
        ),
        attack(
            "attributes of 8 GiB",
            with(entry_of_size(b"77777777777\0", b'x')),
            "file: too_large",
        ),
        attack(
            "a size of -1",
            with(entry_of_size(b"-00000000001", b'0')),
            broken,
        ),
        attack("a wrong checksum", wrong_sum, broken),
        attack(
            "a symlink and a file below it",
            with([tar_entry(b"x", b'2', b""), tar_entry(b"x/y", b'0', b"")].concat()),
            "file: symlink",
        ),
        attack(
            "a file below a file",
            with([tar_entry(b"x", b'0', b""), tar_entry(b"x/y", b'0', b"")].concat()),
            "file: duplicate_name",
        ),
        attack(
            "a second tar",
            [page_and(&[]), page_and(&[])].concat(),
            "file: trailing_data",
        ),
    ]
}

fn gzip_attacks() -> Vec<Attack> {
    let broken = "file: broken_archive";
    let tar = page_and(&[tar_entry(b"x", b'0', &[b'x'; 3_000])]);
    let whole = gz(&tar);
    let changed = |at: usize| {
        let mut changed = whole.clone();
        changed[at] ^= 0x40;
        changed
    };
    let end = whole.len();
    let (first, second) = tar.split_at(700);
    let followed_by = |more: &[u8]| [&whole[..], more].concat();
    let mut optional_fields = whole[..10].to_vec();
    optional_fields[3] = 0b1_1100;
    optional_fields.extend([3, 0, 1, 2, 3]);
    optional_fields.extend(b"../../etc/passwd\0a comment\0");
    optional_fields.extend(&whole[10..]);
    let mut endless_name = whole[..10].to_vec();
    endless_name[3] = 8;
    endless_name.extend(vec![b'a'; 200_000]);
    vec![
        harmless("two members", [gz(first), gz(second)].concat()),
        harmless("an empty member", followed_by(&gz(b""))),
        harmless("20,000 empty members", followed_by(&gz(b"").repeat(20_000))),
        harmless("a name, a comment and an extra field", optional_fields),
        attack("a name without an end", endless_name, broken),
        attack("trailing garbage", followed_by(b"garbage"), broken),
        attack("a trailing zero", followed_by(b"\0"), broken),
        attack("half a second header", followed_by(&whole[..7]), broken),
        attack("half a second member", followed_by(&whole[..30]), broken),
        attack(
            "a second archive",
            followed_by(&whole),
            "file: trailing_data",
        ),
        attack("a wrong checksum", changed(end - 8), broken),
        attack("a wrong length", changed(end - 4), broken),
        attack("another method", changed(2), broken),
        attack("a gzip in a gzip", gz(&whole), "file: unknown_format"),
    ]
}

fn stored_entry<'a>(path: &'a [u8], content: &'a [u8]) -> ZipEntry<'a> {
    ZipEntry {
        path,
        content,
        ..ZipEntry::default()
    }
}

/// Returns a zip with a front page and this entry.
fn zip_and(entry: ZipEntry<'_>) -> Vec<u8> {
    RawZip::default()
        .add(stored_entry(b"index.html", PAGE))
        .add(entry)
        .finish()
}

fn zip_attacks() -> Vec<Attack> {
    let broken = "file: broken_archive";
    let overlapping = "file: overlapping_entries";
    let large = [b'x'; 900];
    let entry = ZipEntry {
        is_deflated: true,
        ..stored_entry(b"x", &large)
    };
    let plain = stored_entry(b"x", &large);
    let size = |size| ZipEntry {
        size: Some(size),
        ..entry
    };
    let packed = |base, packed| ZipEntry {
        packed_size: Some(packed),
        ..base
    };
    let flags = |flags| ZipEntry { flags, ..entry };
    let zip64 = ZipEntry {
        is_zip64: true,
        ..entry
    };
    let described = ZipEntry {
        has_descriptor: true,
        ..entry
    };
    let mut shared = RawZip::default();
    shared.add(stored_entry(b"index.html", PAGE));
    let at = u32::try_from(shared.len()).unwrap();
    shared.add(entry);
    let beyond = RawZip::default()
        .add(stored_entry(b"index.html", PAGE))
        .list(entry, 1_000_000)
        .finish();
    // The content of the first file is a whole entry, which the directory lists in addition.
    let mut inner = RawZip::default();
    let inner = inner.add(stored_entry(b"y", b"inner")).finish();
    let quoted = RawZip::default()
        .add(stored_entry(b"index.html", &inner))
        .list(stored_entry(b"y", b"inner"), 30 + 10)
        .finish();
    let mut counted = zip_and(entry);
    let end = counted.len() - 22;
    counted[end + 8..end + 12].fill(0xff);
    let mut split = zip_and(entry);
    split[end + 4] = 1;
    let many = |count, size| {
        let mut zip = RawZip::default();
        zip.add(stored_entry(b"index.html", PAGE))
            .finish_as_zip64(count, size)
    };
    vec![
        harmless("sizes in ZIP64 fields", zip_and(zip64)),
        harmless("a data descriptor", zip_and(described)),
        attack("a small size", zip_and(size(10)), broken),
        attack("a large size", zip_and(size(2_000)), broken),
        attack(
            "a size of 4 GiB",
            zip_and(size(u32::MAX - 1)),
            "file: too_large",
        ),
        attack("a small packed size", zip_and(packed(entry, 3)), broken),
        attack(
            "a packed size beyond the file",
            zip_and(packed(plain, 70_000)),
            overlapping,
        ),
        attack(
            "a packed size up to the directory's end",
            zip_and(packed(plain, 930)),
            overlapping,
        ),
        attack(
            "a wrong checksum",
            zip_and(ZipEntry {
                crc: Some(7),
                ..entry
            }),
            broken,
        ),
        attack("encrypted", zip_and(flags(1)), "file: encrypted"),
        attack(
            "strongly encrypted",
            zip_and(flags(0x41)),
            "file: encrypted",
        ),
        attack(
            "two names of one entry",
            shared
                .list(
                    ZipEntry {
                        path: b"y",
                        ..entry
                    },
                    at,
                )
                .finish(),
            overlapping,
        ),
        attack("an entry in an entry", quoted, overlapping),
        attack("an entry beyond the end", beyond, broken),
        attack("65,535 declared entries", counted, broken),
        attack("several disks", split, broken),
        attack("2^63 declared entries", many(1 << 63, 56), broken),
        attack(
            "a directory of 2^63 bytes",
            many((1 << 63) / 46, 1 << 63),
            broken,
        ),
        attack(
            "a folder with ..",
            zip_and(stored_entry(b"../x/", b"")),
            "file: path_leaves_site",
        ),
        attack(
            "bytes before the zip",
            [b"PK"[..].to_vec(), zip_and(entry)].concat(),
            broken,
        ),
        attack(
            "a script before the zip",
            [b"#!/bin/sh\n".repeat(60), zip_and(entry)].concat(),
            "file: unknown_format",
        ),
    ]
}

/// Names of the longest permitted length, and of one byte more, in every encoding.
fn name_attacks() -> Vec<Attack> {
    let names = |length: usize| {
        let name = format!("{}/{}", "f".repeat(255), "n".repeat(length - 256));
        let zip = zip_and(stored_entry(name.as_bytes(), b"x"));
        [
            ("GNU", page_and(&[gnu_long(name.as_bytes())])),
            ("PAX", page_and(&[pax_path(name.as_bytes())])),
            ("zip", zip),
        ]
    };
    let longest = names(1_024)
        .into_iter()
        .map(|(format, upload)| harmless(&format!("a name of 1,024 bytes: {format}"), upload));
    let longer = names(1_025).into_iter().map(|(format, upload)| {
        let name = format!("a name of 1,025 bytes: {format}");
        attack(&name, upload, "file: path_too_long")
    });
    longest.chain(longer).collect()
}

/// Returns the paths of all files and folders below a folder.
fn files_below(folder: &Path) -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            found.extend(files_below(&path));
        }
        found.insert(path.display().to_string());
    }
    found
}

struct Target {
    world: World,
    platform: String,
}

impl Target {
    async fn new() -> Self {
        let world = World::new().await;
        let platform = world.platform("shop").await;
        let deployed = world
            .deploy(&platform, "first", ANY, &page_and(&[]))
            .await
            .expect(202);
        world.live(&platform, &deployed).await;
        let target = Self { world, platform };
        // The job removes the upload after the site is live.
        let is_upload = |path: &String| path.contains("/uploads/deploy-");
        while target.files().iter().any(is_upload) {
            tokio::task::yield_now().await;
        }
        target
    }

    /// Creates a plan whose upload must have these files.
    async fn plan(&self, files: &[(&str, &[u8])]) -> String {
        let file = |(path, content): &(&str, &[u8])| {
            let digest = hex(&Sha256::digest(content));
            json!({ "path": path, "size": content.len(), "digest": digest })
        };
        let body = json!({ "files": files.iter().map(file).collect::<Vec<_>>() });
        let path = format!("/api/v1/cli/platforms/{}/deploy/plan", self.platform);
        let plan = self.world.call("POST", &path, SERVICE_KEY, body).await;
        plan.expect(201).text("planId").to_owned()
    }

    async fn deploy_planned(&self, plan: &str, upload: &[u8]) -> Answer {
        self.send(&format!("?plan={plan}"), "planned", ANY, upload)
            .await
    }

    async fn deploy(&self, branch: &str, upload: &[u8]) -> Answer {
        self.send("", branch, ANY, upload).await
    }

    /// Sends an upload to the service directly, because the gateway would limit the rate of uploads.
    async fn send(&self, query: &str, branch: &str, content_type: &str, upload: &[u8]) -> Answer {
        let path = format!("/api/v1/platforms/{}/deploy{query}", self.platform);
        let request = request("POST", &path, SERVICE_KEY)
            .header("x-core-deploy-branch", branch)
            .header("content-type", content_type)
            .body(bytes_body(upload.to_vec()));
        send(self.world.suite.cli(), request.unwrap()).await
    }

    /// Returns the paths of all files of the suite.
    fn files(&self) -> BTreeSet<String> {
        files_below(self.world.folder.path())
    }

    /// Checks that every attack is refused with its issue, and that no file appears.
    async fn assert_refused(&self, attacks: Vec<Attack>) {
        let before = self.files();
        for Attack {
            name,
            upload,
            issue,
        } in attacks
        {
            let Some(issue) = issue else { continue };
            let refused = self.deploy("main", &upload).await;
            assert_eq!(refused.status, 400, "{name}: {}", refused.json);
            assert_eq!(refused.issues(), [issue], "{name}");
            assert_eq!(self.files(), before, "{name}");
        }
    }

    /// Checks that every harmless archive becomes live.
    async fn assert_accepted(&self, attacks: Vec<Attack>) {
        for (number, attack) in attacks.into_iter().enumerate() {
            if attack.issue.is_some() {
                continue;
            }
            let branch = format!("b{number}");
            let accepted = self.deploy(&branch, &attack.upload).await;
            assert_eq!(accepted.status, 202, "{}: {}", attack.name, accepted.json);
            self.world.live(&self.platform, &accepted).await;
        }
        let staging = self.world.folder.path().join("data/uploads/.staging");
        assert_eq!(files_below(&staging), BTreeSet::new());
    }
}

#[tokio::test]
async fn tars_with_false_headers_are_refused_and_leave_no_file() {
    let target = Target::new().await;
    target.assert_refused(tar_attacks()).await;
    target.assert_accepted(tar_attacks()).await;
    let compressed = tar_attacks().into_iter().map(|attack| Attack {
        upload: gz(&attack.upload),
        ..attack
    });
    target.assert_refused(compressed.collect()).await;
}

#[tokio::test]
async fn gzips_with_false_ends_are_refused_and_several_members_are_one_archive() {
    let target = Target::new().await;
    target.assert_refused(gzip_attacks()).await;
    target.assert_accepted(gzip_attacks()).await;
}

#[tokio::test]
async fn zips_with_false_sizes_or_shared_bytes_are_refused_and_leave_no_file() {
    let target = Target::new().await;
    target.assert_refused(zip_attacks()).await;
    target.assert_accepted(zip_attacks()).await;
}

#[tokio::test]
async fn names_of_1024_bytes_are_accepted_and_longer_ones_are_refused() {
    let target = Target::new().await;
    target.assert_refused(name_attacks()).await;
    target.assert_accepted(name_attacks()).await;
}

#[tokio::test]
async fn an_archive_that_ends_at_any_byte_is_refused_and_leaves_no_file() {
    let target = Target::new().await;
    let tar = page_and(&[]);
    let zip = zip_of([("index.html", PAGE), ("x", &[b'x'; 100])]);
    let cut = |name: &'static str, whole: Vec<u8>, ends: Vec<usize>| {
        ends.into_iter()
            .map(move |end| (format!("{name} of {end} bytes"), whole[..end].to_vec()))
    };
    let packed = gz(&tar);
    let (gzip_ends, zip_ends) = (1..packed.len(), 1..zip.len());
    // The end mark is complete with one block of zeros.
    let tar_ends = (1..3 * TAR_BLOCK).step_by(37);
    let archives = cut("a gzip", packed, gzip_ends.collect())
        .chain(cut("a zip", zip, zip_ends.collect()))
        .chain(cut("a tar", tar, tar_ends.collect()));
    let before = target.files();
    for (name, upload) in archives {
        let refused = target.deploy("main", &upload).await;
        assert_eq!(refused.status, 400, "{name}: {}", refused.json);
        let issues = refused.issues();
        let expected = ["file: broken_archive", "file: unknown_format"];
        assert!(expected.contains(&&*issues[0]), "{name}: {issues:?}");
    }
    assert_eq!(target.files(), before);
}

#[tokio::test]
async fn attacks_on_planned_uploads_are_refused_and_leave_only_the_plan() {
    let target = Target::new().await;
    let plan = target.plan(&[("index.html", PAGE), ("x", b"other")]).await;
    let before = target.files();
    let all = [tar_attacks(), gzip_attacks(), zip_attacks(), name_attacks()];
    for attack in all.into_iter().flatten() {
        let refused = target.deploy_planned(&plan, &attack.upload).await;
        // Harmless archives have another `x` than the plan, or a file that is not in it.
        let issues = refused.issues();
        let name = &attack.name;
        assert_eq!(refused.status, 400, "{name}: {}", refused.json);
        match attack.issue {
            Some(issue) => assert_eq!(issues, [issue], "{name}"),
            None => assert!(
                ["file: content_differs", "file: not_planned"].contains(&&*issues[0]),
                "{name}: {issues:?}"
            ),
        }
        assert_eq!(target.files(), before, "{name}");
    }
    // The plan is still valid.
    let upload = page_and(&[tar_entry(b"x", b'0', b"other")]);
    let accepted = target.deploy_planned(&plan, &upload).await.expect(202);
    target.world.live(&target.platform, &accepted).await;
}

#[tokio::test]
async fn an_archive_in_an_archive_is_a_file_like_others() {
    let target = Target::new().await;
    let evil = tar_of(&[tar_entry(b"../../evil", b'0', b"evil")]);
    let bomb = gz(&vec![0; 10_000_000]);
    let files = [
        ("inner.tar", evil.clone()),
        ("inner.tar.gz", gz(&evil)),
        ("inner.zip", zip_of([("../../evil", &b"evil"[..])])),
        ("bomb.gz", bomb),
    ];
    let entries = files
        .each_ref()
        .map(|(path, content)| tar_entry(path.as_bytes(), b'0', content));
    let packed = files.each_ref().map(|(path, content)| (*path, &**content));
    let zip = zip_of([("index.html", PAGE)].into_iter().chain(packed));
    for (branch, upload) in [("tar", page_and(&entries)), ("zip", zip)] {
        let accepted = target.deploy(branch, &upload).await;
        let live = target
            .world
            .live(&target.platform, &accepted.expect(202))
            .await;
        for (path, content) in &files {
            let url = format!("{}/{path}", live.text("url").trim_end_matches('/'));
            assert_eq!(&visit(&target.world, &url).await, content, "{url}");
        }
    }
    let names = target.files();
    assert!(!names.iter().any(|name| name.contains("evil")), "{names:?}");
}

async fn visit(world: &World, url: &str) -> Vec<u8> {
    let request = Request::get(url).body(core_suite::empty_body()).unwrap();
    let sites = world.suite.sites().unwrap();
    let response = sites.oneshot(request).await.unwrap();
    assert_eq!(response.status(), 200, "{url}");
    let body = response.into_body().collect().await.unwrap();
    body.to_bytes().to_vec()
}

#[tokio::test]
async fn a_form_that_ends_at_any_byte_is_refused_and_leaves_no_file() {
    let target = Target::new().await;
    let head = b"--b\r\nContent-Disposition: form-data; name=\"file\"\r\n\r\n";
    let form = [&head[..], &gz(&page_and(&[])), b"\r\n--b--"].concat();
    let before = target.files();
    let kind = "multipart/form-data; boundary=b";
    for end in 0..form.len() {
        let upload = &form[..end];
        let refused = target.send("", "main", kind, upload).await;
        assert_eq!(refused.status, 400, "{end}: {}", refused.json);
        assert_eq!(refused.code(), "BAD_REQUEST", "{end}");
    }
    assert_eq!(target.files(), before);
    let whole = target.send("", "main", kind, &form);
    let _ = whole.await.expect(202);
}
