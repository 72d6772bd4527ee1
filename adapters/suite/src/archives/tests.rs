//! Tests with real archives that are built here: valid ones, and one for each kind of defect.

use std::io::{self, Cursor, Read, Seek, SeekFrom, Write};
use std::time::Duration;

use core_domain::cli::SiteError;
use flate2::Compression;
use flate2::write::GzEncoder;
use proptest::prelude::*;
use sha2::{Digest, Sha256};
use tar::{EntryType, Header};
use zip::write::SimpleFileOptions;
use zip::{CompressionMethod, ZipWriter};

use super::*;

type Entries<'a> = &'a [(&'a str, &'a [u8])];

const SITE: Entries<'static> = &[
    ("index.html", b"<h1>Hello</h1>"),
    ("css/site.css", b"h1 { color: teal }"),
    ("empty.txt", b""),
];

/// Builds a header with the path exactly as given, even if it is invalid.
fn header(path: &str, kind: EntryType, size: u64) -> Header {
    let mut header = Header::new_gnu();
    header.as_mut_bytes()[..path.len()].copy_from_slice(path.as_bytes());
    header.set_entry_type(kind);
    header.set_size(size);
    header.set_mode(0o644);
    header.set_cksum();
    header
}

fn tar_of(entries: Entries<'_>) -> Vec<u8> {
    let mut builder = tar::Builder::new(Vec::new());
    for (path, content) in entries {
        let header = header(path, EntryType::Regular, content.len() as u64);
        builder.append(&header, *content).unwrap();
    }
    builder.into_inner().unwrap()
}

fn gz(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::default());
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap()
}

fn zip_with(
    entries: Entries<'_>,
    method: CompressionMethod,
    more: impl FnOnce(&mut ZipWriter<Cursor<Vec<u8>>>),
) -> Vec<u8> {
    let mut writer = ZipWriter::new(Cursor::new(Vec::new()));
    let options = SimpleFileOptions::default().compression_method(method);
    for (path, content) in entries {
        writer.start_file(*path, options).unwrap();
        writer.write_all(content).unwrap();
    }
    more(&mut writer);
    writer.finish().unwrap().into_inner()
}

fn zip_of(entries: Entries<'_>) -> Vec<u8> {
    zip_with(entries, CompressionMethod::Deflated, |_| {})
}

/// The files of a site with their contents, sorted by path.
type SiteFiles = Vec<(String, Vec<u8>)>;

fn open_archive(upload: &[u8], limits: SiteLimits) -> Result<ArchivedSite, SiteError> {
    let upload = Cursor::new(upload.to_vec());
    ArchivedSite::open(Box::new(upload), limits).map_err(|error| match error {
        ArchiveError::Refused(why) => why,
        other => panic!("{other:?}"),
    })
}

fn contents(site: &dyn Site) -> io::Result<SiteFiles> {
    let mut found = Vec::new();
    site.read(&mut |file, content| {
        let mut bytes = Vec::new();
        content.read_to_end(&mut bytes)?;
        assert_eq!(file.size, bytes.len() as u64);
        let digest: [u8; 32] = Sha256::digest(&bytes).into();
        assert_eq!(file.digest, digest);
        found.push((file.path.clone(), bytes));
        Ok(())
    })?;
    found.sort();
    Ok(found)
}

fn unpack(upload: &[u8], limits: SiteLimits) -> Result<SiteFiles, SiteError> {
    open_archive(upload, limits).map(|site| contents(&site).unwrap())
}

fn read(upload: &[u8]) -> Result<SiteFiles, SiteError> {
    unpack(upload, SiteLimits::default())
}

fn paths(upload: &[u8]) -> Vec<String> {
    let files = read(upload).unwrap();
    files.into_iter().map(|(path, _)| path).collect()
}

fn code(upload: &[u8]) -> &'static str {
    match read(upload) {
        Err(SiteError::NotAllowed(code, _)) => code,
        other => panic!("{other:?}"),
    }
}

fn is_too_large<T>(outcome: &Result<T, SiteError>) -> bool {
    matches!(outcome, Err(SiteError::TooLarge(_)))
}

#[tokio::test]
async fn the_three_formats_give_the_same_site() {
    let archives = UnpackArchives::default();
    let open = |upload| archives.open(Box::new(Cursor::new(upload)));
    let expected = contents(open(tar_of(SITE)).await.unwrap().as_ref()).unwrap();
    assert_eq!(expected.len(), 3);
    let front = ("index.html".to_owned(), b"<h1>Hello</h1>".to_vec());
    assert_eq!(expected[2], front);
    let stored = zip_with(SITE, CompressionMethod::Stored, |_| {});
    for upload in [gz(&tar_of(SITE)), zip_of(SITE), stored] {
        let site = open(upload).await.unwrap();
        assert_eq!(contents(site.as_ref()).unwrap(), expected);
        assert_eq!(contents(site.as_ref()).unwrap(), expected, "read again");
    }
}

#[test]
fn a_visitor_may_skip_content_and_may_stop_the_walk() {
    for upload in [tar_of(SITE), gz(&tar_of(SITE)), zip_of(SITE)] {
        let site = open_archive(&upload, SiteLimits::default()).unwrap();
        let mut first_bytes = Vec::new();
        site.read(&mut |_, content| content.take(1).read_to_end(&mut first_bytes).map(drop))
            .unwrap();
        assert_eq!(first_bytes, b"<h");
        let mut seen = 0;
        let stopped = site.read(&mut |_, _| {
            seen += 1;
            Err(io::Error::from(io::ErrorKind::StorageFull))
        });
        assert_eq!(stopped.unwrap_err().kind(), io::ErrorKind::StorageFull);
        assert_eq!(seen, 1);
    }
}

#[test]
fn a_disk_that_cannot_be_read_is_not_taken_for_a_damaged_archive() {
    /// A reader that fails from the 100th byte on.
    struct Failing(Cursor<Vec<u8>>, u64);
    impl Read for Failing {
        fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
            if self.0.position() >= self.1 {
                return Err(io::Error::other("bad sector"));
            }
            self.0.read(buffer)
        }
    }
    impl Seek for Failing {
        fn seek(&mut self, to: SeekFrom) -> io::Result<u64> {
            self.0.seek(to)
        }
    }
    let content = [b'x'; 200_000];
    let entries: Entries<'_> = &[("index.html", &content)];
    let stored = zip_with(entries, CompressionMethod::Stored, |_| {});
    for upload in [tar_of(entries), stored] {
        let failing = Failing(Cursor::new(upload), 100_000);
        let error = ArchivedSite::open(Box::new(failing), SiteLimits::default()).unwrap_err();
        assert!(matches!(error, ArchiveError::Unreadable(_)), "{error:?}");
        assert!(!error.to_string().contains("bad sector"));
    }
}

#[test]
fn names_are_normalised_and_twins_in_another_spelling_are_refused_in_every_format() {
    let site: Entries<'_> = &[("index.html", b""), ("cafe\u{301}.html", b"x")];
    let twins: Entries<'_> = &[
        ("index.html", b""),
        ("cafe\u{301}.html", b"x"),
        ("Caf\u{e9}.html", b"y"),
    ];
    for upload in [tar_of(site), gz(&tar_of(site)), zip_of(site)] {
        assert_eq!(paths(&upload), ["caf\u{e9}.html", "index.html"]);
    }
    for upload in [tar_of(twins), gz(&tar_of(twins)), zip_of(twins)] {
        assert_eq!(code(&upload), "duplicate_name");
    }
}

#[test]
fn folders_one_wrapping_folder_and_global_attributes_leave_no_trace() {
    let mut builder = tar::Builder::new(Vec::new());
    let comment = b"52 comment=0123456789012345678901234567890123456789\n";
    let size = comment.len() as u64;
    let global = header("pax_global_header", EntryType::XGlobalHeader, size);
    builder.append(&global, &comment[..]).unwrap();
    for folder in ["./", "./dist/", "./dist/css"] {
        let header = header(folder, EntryType::Directory, 0);
        builder.append(&header, &b""[..]).unwrap();
    }
    let old_folder = header("dist/js/", EntryType::Regular, 0);
    builder.append(&old_folder, &b""[..]).unwrap();
    let page = header("./dist/index.html", EntryType::Regular, 2);
    builder.append(&page, &b"hi"[..]).unwrap();
    assert_eq!(paths(&builder.into_inner().unwrap()), ["index.html"]);

    let zip = zip_with(
        &[("dist/index.html", b"hi")],
        CompressionMethod::Stored,
        |w| {
            let options = SimpleFileOptions::default();
            w.add_directory("dist/css", options).unwrap();
        },
    );
    assert_eq!(paths(&zip), ["index.html"]);
}

#[test]
fn long_names_are_read_in_both_tar_encodings() {
    let long = format!("{}/page.html", "a".repeat(200));
    let mut gnu = tar::Builder::new(Vec::new());
    let mut plain = header("index.html", EntryType::Regular, 0);
    gnu.append(&plain, &b""[..]).unwrap();
    gnu.append_data(&mut plain, &long, &b""[..]).unwrap();
    assert_eq!(paths(&gnu.into_inner().unwrap()), [&long, "index.html"]);

    let mut pax = tar::Builder::new(Vec::new());
    pax.append(&plain_page(), &b""[..]).unwrap();
    pax.append_pax_extensions([("path", long.as_bytes()), ("size", b"3"), ("mtime", b"1.5")])
        .unwrap();
    let short = header("short", EntryType::Regular, 3);
    pax.append(&short, &b"abc"[..]).unwrap();
    assert_eq!(paths(&pax.into_inner().unwrap()), [&long, "index.html"]);
}

fn plain_page() -> Header {
    header("index.html", EntryType::Regular, 0)
}

#[test]
fn links_and_special_files_are_refused_with_a_specific_code() {
    for (kind, expected) in [
        (EntryType::Symlink, "symlink"),
        (EntryType::Link, "hard_link"),
        (EntryType::Char, "device"),
        (EntryType::Block, "device"),
        (EntryType::Fifo, "device"),
        (EntryType::GNUSparse, "sparse_file"),
        (EntryType::new(b'V'), "special_file"),
    ] {
        let mut builder = tar::Builder::new(Vec::new());
        builder.append(&plain_page(), &b""[..]).unwrap();
        builder.append(&header("x", kind, 0), &b""[..]).unwrap();
        let upload = builder.into_inner().unwrap();
        assert_eq!(code(&upload), expected);
        assert_eq!(code(&gz(&upload)), expected);
    }
    let linked = zip_with(SITE, CompressionMethod::Stored, |writer| {
        let options = SimpleFileOptions::default();
        writer.add_symlink("x", "/etc/passwd", options).unwrap();
    });
    assert_eq!(code(&linked), "symlink");
}

#[test]
fn paths_that_leave_the_site_or_are_there_twice_are_refused_in_every_format() {
    let cases: [(Entries<'_>, &str); 4] = [
        (&[("../index.html", b"")], "path_leaves_site"),
        (&[("/index.html", b"")], "absolute_path"),
        (&[("a\\b", b"")], "bad_path"),
        (
            &[("index.html", b"1"), ("Index.HTML", b"2")],
            "duplicate_name",
        ),
    ];
    for (entries, expected) in cases {
        assert_eq!(code(&tar_of(entries)), expected, "{entries:?}");
        assert_eq!(code(&gz(&tar_of(entries))), expected, "{entries:?}");
        assert_eq!(code(&zip_of(entries)), expected, "{entries:?}");
    }
    // A zip writer refuses a repeated name, so the second name is changed into the first one afterwards.
    let twin = zip_of(&[("index.html", b"1"), ("indey.html", b"2")]);
    let twin: Vec<u8> = replace_bytes(&twin, b"indey", b"index");
    assert_eq!(code(&twin), "duplicate_name");
}

fn replace_bytes(bytes: &[u8], from: &[u8], to: &[u8]) -> Vec<u8> {
    let mut bytes = bytes.to_vec();
    let starts: Vec<usize> = (0..=bytes.len() - from.len())
        .filter(|at| bytes[*at..].starts_with(from))
        .collect();
    assert!(!starts.is_empty());
    for at in starts {
        bytes[at..at + to.len()].copy_from_slice(to);
    }
    bytes
}

#[test]
fn unknown_formats_and_empty_archives_are_refused_with_a_specific_code() {
    for junk in [&b""[..], b"hello", &[0xff; 600], &[b'a'; 2_000]] {
        assert_eq!(read(junk), Err(SiteError::UnknownFormat), "{junk:?}");
        assert!(read(&gz(junk)).is_err());
    }
    assert_eq!(code(&tar_of(&[])), "empty_archive");
    assert_eq!(code(&gz(&tar_of(&[]))), "empty_archive");
    assert_eq!(code(&zip_of(&[])), "empty_archive");
    assert_eq!(code(&tar_of(&[("page.html", b"")])), "no_front_page");
}

#[test]
fn an_archive_that_ends_too_early_is_refused_wherever_it_ends() {
    let long = [b'x'; 700];
    let tar = tar_of(&[("index.html", &long), ("b", &long)]);
    let ends_at = 512 + 1_024 + 512 + 1_024;
    for upload in [gz(&tar), zip_of(&[("index.html", &long), ("b", &long)])] {
        assert!(read(&upload).is_ok());
        for end in 0..upload.len() {
            assert!(read(&upload[..end]).is_err(), "{end} of {}", upload.len());
        }
    }
    assert!(read(&tar).is_ok());
    for end in 0..=ends_at {
        assert!(read(&tar[..end]).is_err(), "{end}");
    }
}

#[test]
fn nothing_may_follow_the_end_of_an_archive() {
    let mut tar = tar_of(SITE);
    tar.extend([0; 10_240]);
    assert!(read(&tar).is_ok(), "records are filled up with zeros");
    tar.push(1);
    assert_eq!(code(&tar), "trailing_data");
    for upload in [gz(&tar_of(SITE)), zip_of(SITE)] {
        let mut upload = upload;
        upload.push(b'!');
        assert_eq!(code(&upload), "broken_archive");
    }
}

#[test]
fn a_changed_byte_in_packed_content_is_noticed() {
    let content: Vec<u8> = (0..=255).cycle().take(4_000).collect();
    let entries: Entries<'_> = &[("index.html", &content)];
    let zip = zip_with(entries, CompressionMethod::Stored, |_| {});
    for (mut upload, at) in [(gz(&tar_of(entries)), 300), (zip, 1_000)] {
        upload[at] ^= 0x55;
        assert_eq!(code(&upload), "broken_archive");
    }
}

/// Changes one byte of the first local header and one of the first directory entry, which no zip writer would do.
fn with_header(changes: [(&[u8], usize, u8); 2]) -> Vec<u8> {
    let mut zip = zip_of(SITE);
    for (mark, offset, byte) in changes {
        let at = (0..zip.len()).find(|at| zip[*at..].starts_with(mark));
        zip[at.unwrap() + offset] = byte;
    }
    zip
}

#[test]
fn special_zip_entries_are_refused_with_a_specific_code() {
    const LOCAL: &[u8] = b"PK\x03\x04";
    const LISTED: &[u8] = b"PK\x01\x02";
    for (changes, expected) in [
        ([(LOCAL, 6, 1), (LISTED, 8, 1)], "encrypted"),
        ([(LOCAL, 8, 12), (LISTED, 10, 12)], "unknown_compression"),
        // The file type "pipe" in the upper half of the attributes.
        ([(LISTED, 5, 3), (LISTED, 41, 0x10)], "device"),
    ] {
        assert_eq!(code(&with_header(changes)), expected);
    }
}

#[tokio::test(start_paused = true)]
async fn the_permits_limit_how_many_archives_are_unpacked_at_once() {
    for (archives, most) in [
        (UnpackArchives::default(), 2),
        (UnpackArchives::default().with_permits(5), 5),
    ] {
        let others = archives.permits.acquire_many(most - 1).await.unwrap();
        let last = archives.open(Box::new(Cursor::new(tar_of(SITE))));
        assert!(last.await.is_ok());
        let all = archives.permits.acquire().await.unwrap();
        let mut waiting = archives.open(Box::new(Cursor::new(tar_of(SITE))));
        // The paused clock advances only while nothing is being unpacked.
        let waited = tokio::time::timeout(Duration::from_secs(60), &mut waiting).await;
        assert!(waited.is_err());
        drop((others, all));
        assert!(waiting.await.is_ok());
    }
}

#[test]
fn archive_bombs_are_refused_before_they_are_unpacked() {
    let zeros = vec![0_u8; 30 * 1024 * 1024];
    let entries: Entries<'_> = &[("index.html", b""), ("bomb", &zeros)];
    for upload in [gz(&tar_of(entries)), zip_of(entries)] {
        assert!(upload.len() < 100_000);
        assert!(is_too_large(&read(&upload)));
    }
    let page = |n: usize| (format!("p{n}"), n);
    let many: Vec<(String, usize)> = (0..5).map(page).collect();
    let many: Vec<(&str, &[u8])> = many.iter().map(|(p, _)| (p.as_str(), &b""[..])).collect();
    let limits = SiteLimits {
        files: 4,
        ..SiteLimits::default()
    };
    for upload in [tar_of(&many), zip_of(&many)] {
        assert!(is_too_large(&unpack(&upload, limits)));
    }
}

#[test]
fn a_file_with_an_understated_size_is_not_read_past_the_limit() {
    let large = vec![b'x'; 5_000];
    let zip = zip_of(&[("index.html", &large)]);
    // Both headers declare ten bytes.
    let zip = replace_bytes(&zip, &5_000_u32.to_le_bytes(), &10_u32.to_le_bytes());
    assert_eq!(code(&zip), "broken_archive");
    let limits = SiteLimits {
        file_bytes: 1_000,
        ..SiteLimits::default()
    };
    assert!(unpack(&zip, limits).is_err());
}

#[test]
fn an_archive_of_nothing_but_folders_is_refused() {
    let limits = SiteLimits {
        files: 10,
        ..SiteLimits::default()
    };
    let mut tar = tar::Builder::new(Vec::new());
    for n in 0..21 {
        let folder = header(&format!("f{n}/"), EntryType::Directory, 0);
        tar.append(&folder, &b""[..]).unwrap();
    }
    let zip = zip_with(&[], CompressionMethod::Stored, |writer| {
        for n in 0..21 {
            let options = SimpleFileOptions::default();
            writer.add_directory(format!("f{n}"), options).unwrap();
        }
    });
    for upload in [tar.into_inner().unwrap(), zip] {
        assert!(is_too_large(&unpack(&upload, limits)));
    }
}

#[test]
fn descriptions_of_entries_are_bounded_and_may_not_contradict_their_entry() {
    let mut huge = tar::Builder::new(Vec::new());
    let name = header("././@LongLink", EntryType::GNULongName, 2 * 1024 * 1024);
    huge.append(&name, &vec![b'a'; 2 * 1024 * 1024][..])
        .unwrap();
    huge.append(&plain_page(), &b""[..]).unwrap();
    assert!(is_too_large(&read(&gz(&huge.into_inner().unwrap()))));

    let told = |attributes: [(&str, &[u8]); 1]| {
        let mut tar = tar::Builder::new(Vec::new());
        tar.append_pax_extensions(attributes).unwrap();
        tar.append(&plain_page(), &b""[..]).unwrap();
        tar.into_inner().unwrap()
    };
    assert_eq!(code(&told([("size", b"9")])), "broken_archive");
    assert_eq!(code(&told([("size", b"many")])), "broken_archive");
    assert_eq!(code(&told([("GNU.sparse.major", b"1")])), "sparse_file");
    assert_eq!(code(&told([("path", b"\xff\xfe")])), "bad_path");
    let mut alone = tar::Builder::new(Vec::new());
    alone.append(&plain_page(), &b""[..]).unwrap();
    alone.append_pax_extensions([("path", &b"a"[..])]).unwrap();
    assert_eq!(code(&alone.into_inner().unwrap()), "broken_archive");
}

#[test]
fn padding_after_the_end_is_bounded() {
    let limits = SiteLimits {
        unpacked_bytes: 1_000,
        files: 3,
        ..SiteLimits::default()
    };
    let mut tar = tar_of(SITE);
    tar.extend(vec![0; 4 * 1024 * 1024]);
    assert!(is_too_large(&unpack(&gz(&tar), limits)));
}

proptest! {
    #[test]
    fn arbitrary_bytes_never_panic(
        mark in prop::sample::select(vec![&b""[..], b"PK\x03\x04", b"\x1f\x8b\x08\0\0\0\0\0\0\0", b"PK\x05\x06"]),
        bytes in prop::collection::vec(any::<u8>(), 0..2_000),
    ) {
        let upload = [mark, &bytes].concat();
        prop_assert!(read(&upload).is_err());
    }

    #[test]
    fn an_archive_with_changed_bytes_is_read_or_refused(
        changes in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..6),
        format in 0..3_usize,
    ) {
        let mut upload = match format {
            0 => tar_of(SITE),
            1 => gz(&tar_of(SITE)),
            _ => zip_of(SITE),
        };
        for (at, byte) in changes {
            let at = at.index(upload.len());
            upload[at] = byte;
        }
        if let Ok(files) = read(&upload) {
            prop_assert!(files.iter().any(|(path, _)| path == "index.html"));
        }
    }
}
