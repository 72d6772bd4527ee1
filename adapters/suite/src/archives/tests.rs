//! Real archives, made here, and everything that is wrong with some.

use std::io::{Cursor, Write};

use flate2::Compression;
use flate2::write::GzEncoder;
use proptest::prelude::*;
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

/// One entry with a path as it is, whatever it is.
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

fn read(upload: &[u8]) -> Result<Vec<SiteFile>, SiteError> {
    unpacked(upload, Limits::default())
}

fn paths(upload: &[u8]) -> Vec<String> {
    let files = read(upload).unwrap();
    files.into_iter().map(|file| file.path).collect()
}

fn code(upload: &[u8]) -> &'static str {
    match read(upload) {
        Err(SiteError::Unfit(code, _)) => code,
        other => panic!("{other:?}"),
    }
}

fn is_too_large(outcome: &Result<Vec<SiteFile>, SiteError>) -> bool {
    matches!(outcome, Err(SiteError::TooLarge(_)))
}

#[tokio::test]
async fn the_three_formats_give_the_same_site() {
    let archives = UnpackArchives::default();
    let expected = archives.unpack(tar_of(SITE)).await.unwrap();
    assert_eq!(expected.len(), 3);
    assert_eq!(expected[2].path, "index.html");
    assert_eq!(expected[2].content, b"<h1>Hello</h1>");
    let stored = zip_with(SITE, CompressionMethod::Stored, |_| {});
    for upload in [gz(&tar_of(SITE)), zip_of(SITE), stored] {
        assert_eq!(archives.unpack(upload).await.unwrap(), expected);
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
fn long_names_are_read_in_both_ways_a_tar_tells_them() {
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
fn what_is_no_ordinary_file_is_refused_by_name() {
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
    // A writer does not make the very same name twice, so it is made of another one afterwards.
    let twin = zip_of(&[("index.html", b"1"), ("indey.html", b"2")]);
    let twin: Vec<u8> = replaced(&twin, b"indey", b"index");
    assert_eq!(code(&twin), "duplicate_name");
}

fn replaced(bytes: &[u8], from: &[u8], to: &[u8]) -> Vec<u8> {
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
fn what_is_no_archive_and_what_holds_nothing_is_refused_by_name() {
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

#[test]
fn an_encrypted_zip_is_refused() {
    // The flag alone, in the local header and in the directory.
    let mut zip = zip_of(SITE);
    for (mark, flags) in [(b"PK\x03\x04", 6), (b"PK\x01\x02", 8)] {
        let at = (0..zip.len()).find(|at| zip[*at..].starts_with(mark));
        zip[at.unwrap() + flags] |= 1;
    }
    assert_eq!(code(&zip), "encrypted");
}

#[test]
fn bombs_are_refused_before_they_are_large() {
    let zeros = vec![0_u8; 30 * 1024 * 1024];
    let entries: Entries<'_> = &[("index.html", b""), ("bomb", &zeros)];
    for upload in [gz(&tar_of(entries)), zip_of(entries)] {
        assert!(upload.len() < 100_000);
        assert!(is_too_large(&read(&upload)));
    }
    let page = |n: usize| (format!("p{n}"), n);
    let many: Vec<(String, usize)> = (0..5).map(page).collect();
    let many: Vec<(&str, &[u8])> = many.iter().map(|(p, _)| (p.as_str(), &b""[..])).collect();
    let limits = Limits {
        files: 4,
        ..Limits::default()
    };
    for upload in [tar_of(&many), zip_of(&many)] {
        assert!(is_too_large(&unpacked(&upload, limits)));
    }
}

#[test]
fn a_file_that_claims_to_be_small_is_not_read_past_what_there_is_room_for() {
    let large = vec![b'x'; 5_000];
    let zip = zip_of(&[("index.html", &large)]);
    // Both headers say ten bytes.
    let zip = replaced(&zip, &5_000_u32.to_le_bytes(), &10_u32.to_le_bytes());
    assert_eq!(code(&zip), "broken_archive");
    let limits = Limits {
        file_bytes: 1_000,
        ..Limits::default()
    };
    assert!(unpacked(&zip, limits).is_err());
}

#[test]
fn folders_end_too() {
    let limits = Limits {
        files: 10,
        ..Limits::default()
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
        assert!(is_too_large(&unpacked(&upload, limits)));
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
fn a_stream_of_zeros_after_the_end_is_cut() {
    let limits = Limits {
        unpacked_bytes: 1_000,
        files: 3,
        ..Limits::default()
    };
    let mut tar = tar_of(SITE);
    tar.extend(vec![0; 4 * 1024 * 1024]);
    assert!(is_too_large(&unpacked(&gz(&tar), limits)));
}

proptest! {
    #[test]
    fn no_bytes_whatever_make_it_panic(
        mark in prop::sample::select(vec![&b""[..], b"PK\x03\x04", b"\x1f\x8b\x08\0\0\0\0\0\0\0", b"PK\x05\x06"]),
        bytes in prop::collection::vec(any::<u8>(), 0..2_000),
    ) {
        let upload = [mark, &bytes].concat();
        prop_assert!(read(&upload).is_err());
    }

    #[test]
    fn a_real_archive_with_bytes_changed_gives_a_site_or_a_refusal(
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
            prop_assert!(files.iter().any(|file| file.path == "index.html"));
        }
    }
}
