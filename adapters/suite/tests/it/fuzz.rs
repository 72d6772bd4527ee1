//! Structured fuzzing of the unpacker: valid archives are mutated by bits, pieces and fields, with correct checksums, and
//! must be read or refused within the limits. `tests/explore` runs it with random seeds.

use std::collections::BTreeSet;
use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

use core_domain::cli::{PlannedFile, SiteError, SiteFile, SiteManifest};
use core_domain::kernel::{Timestamp, hex};
use core_domain::port::{
    ArchiveError, BlobReader, Infrastructure, ObjectRequest, ResourceRef, Site, SiteArchives,
    SiteUpload,
};
use core_domain::registry::ResourceType;
use core_domain::testing::{ManualClock, cases};
use core_local::{LocalConfig, LocalInfrastructure};
use core_suite::{SiteLimits, UnpackArchives};
use proptest::prelude::*;
use proptest::sample::{Index, select};
use serde_json::json;
use sha2::{Digest, Sha256};

use crate::archives::gz;
use crate::raw_archives::{TAR_BLOCK, tar_header, write_checksum, zip_of};

/// Limits that mutated archives reach.
const LIMITS: SiteLimits = SiteLimits {
    upload_bytes: 64 * 1024,
    unpacked_bytes: 24 * 1024,
    ratio: 100,
    files: 6,
    file_bytes: 8 * 1024,
    path_bytes: 40,
};

/// The largest piece that the unpacker may read at a time, in bytes.
const MAX_PIECE: usize = 64 * 1024;

/// Maximum length of a part of an archive that a mutation copies, moves or removes.
const MAX_SPLICE: usize = 700;

/// An entry of a valid archive.
#[derive(Clone, Debug)]
struct Entry {
    path: String,
    content: Vec<u8>,
}

#[derive(Clone, Copy, Debug)]
enum Format {
    Tar,
    /// A compressed tar. Its mutations are applied before the compression.
    Gzip,
    /// A compressed tar in two members of gzip.
    TwoMembers,
    Zip,
}

/// A change of an archive.
#[derive(Clone, Debug)]
enum Mutation {
    Flip(Index, u8),
    Truncate(Index),
    /// Inserts a copy of a part of the archive somewhere else.
    Copy(Index, Index, usize),
    /// Replaces bytes by others of the archive.
    Overwrite(Index, Index, usize),
    Remove(Index, usize),
    /// Overwrites a field of a header, and corrects the header's checksum: the header, the field, the value.
    Field(Index, Index, Vec<u8>),
}

/// The offset of a field in its record, and its length.
type Field = (usize, usize);

/// The fields of a tar header by offset and length: name, mode, size, type, link, magic, prefix.
const TAR_FIELDS: &[Field] = &[
    (0, 100),
    (100, 8),
    (124, 12),
    (156, 1),
    (157, 100),
    (257, 8),
    (345, 155),
];

/// The signatures of zip records with their fields: versions and times are left out.
const ZIP_FIELDS: &[(&[u8], &[Field])] = &[
    (
        b"PK\x03\x04",
        &[(6, 2), (8, 2), (14, 4), (18, 4), (22, 4), (26, 2), (28, 2)],
    ),
    (
        b"PK\x01\x02",
        &[
            (4, 2),
            (8, 2),
            (10, 2),
            (16, 4),
            (20, 4),
            (24, 4),
            (28, 2),
            (30, 2),
            (32, 2),
            (38, 4),
            (42, 4),
        ],
    ),
    (
        b"PK\x05\x06",
        &[(4, 2), (6, 2), (8, 2), (10, 2), (12, 4), (16, 4), (20, 2)],
    ),
];

/// Values of fields: types of tar entries, sizes and paths.
const FIELD_VALUES: &[&[u8]] = &[
    b"\0",
    b"L",
    b"x",
    b"g",
    b"K",
    b"2",
    b"5",
    b"S",
    b"\x80\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff",
    b"77777777777",
    b"00000000001",
    b"-1",
    b"../../etc/passwd",
    b"\xff\xff\xff\xff",
    b"\xff\xff",
    b"\x01\0",
    b"\x08\0",
];

fn entry() -> impl Strategy<Value = Entry> {
    let path = prop_oneof![
        30 => select(&["index.html", "a", "b/c.js", "b/d.css", "é", "dist/index.html"][..])
            .prop_map(str::to_owned),
        1 => select(&["../x", "/etc/passwd", "b", "INDEX.html", "a/..", "./e", "f/", "a\\b"][..])
            .prop_map(str::to_owned),
        1 => (30..60_usize).prop_map(|length| "l".repeat(length)),
    ];
    let content = prop_oneof![
        8 => prop::collection::vec(any::<u8>(), 0..600),
        1 => (0..10_000_usize).prop_map(|length| vec![b'z'; length]),
    ];
    (path, content).prop_map(|(path, content)| Entry { path, content })
}

fn mutation() -> impl Strategy<Value = Mutation> {
    let value = prop_oneof![
        select(FIELD_VALUES).prop_map(<[u8]>::to_vec),
        prop::collection::vec(any::<u8>(), 1..12),
    ];
    let (at, to) = (any::<Index>, any::<Index>);
    prop_oneof![
        2 => (at(), 0..8_u8).prop_map(|(at, bit)| Mutation::Flip(at, bit)),
        1 => at().prop_map(Mutation::Truncate),
        1 => (at(), to(), 1..MAX_SPLICE).prop_map(|(a, b, n)| Mutation::Copy(a, b, n)),
        1 => (at(), to(), 1..MAX_SPLICE).prop_map(|(a, b, n)| Mutation::Overwrite(a, b, n)),
        1 => (at(), 1..MAX_SPLICE).prop_map(|(at, n)| Mutation::Remove(at, n)),
        4 => (at(), to(), value).prop_map(|(at, field, value)| Mutation::Field(at, field, value)),
    ]
}

fn tar_of(entries: &[Entry]) -> Vec<u8> {
    let mut tar = Vec::new();
    for Entry { path, content } in entries {
        tar.extend(tar_header(path.as_bytes(), b'0', content.len() as u64));
        tar.extend(content);
        tar.resize(tar.len().next_multiple_of(TAR_BLOCK), 0);
    }
    tar.resize(tar.len() + 2 * TAR_BLOCK, 0);
    tar
}

/// Builds an archive and mutates it.
fn archive(entries: &[Entry], format: Format, mutations: &[Mutation]) -> Vec<u8> {
    let is_zip = matches!(format, Format::Zip);
    let mut bytes = match is_zip {
        true => zip_of(entries.iter().map(|entry| (&*entry.path, &*entry.content))),
        false => tar_of(entries),
    };
    for mutation in mutations {
        mutate(&mut bytes, mutation, is_zip);
    }
    let middle = bytes.len() / 2;
    match format {
        Format::Tar | Format::Zip => bytes,
        Format::Gzip => gz(&bytes),
        Format::TwoMembers => [gz(&bytes[..middle]), gz(&bytes[middle..])].concat(),
    }
}

fn mutate(bytes: &mut Vec<u8>, mutation: &Mutation, is_zip: bool) {
    if bytes.is_empty() {
        return;
    }
    let length = bytes.len();
    let part = |at: &Index, wanted: usize| {
        let at = at.index(length);
        at..length.min(at + wanted)
    };
    match mutation {
        Mutation::Flip(at, bit) => bytes[at.index(length)] ^= 1 << bit,
        Mutation::Truncate(at) => bytes.truncate(at.index(length)),
        Mutation::Copy(from, to, wanted) => {
            let copy = bytes[part(from, *wanted)].to_vec();
            let to = to.index(length);
            bytes.splice(to..to, copy);
        }
        Mutation::Overwrite(from, to, wanted) => {
            let copy = bytes[part(from, *wanted)].to_vec();
            overwrite(bytes, to.index(length), &copy);
        }
        Mutation::Remove(at, wanted) => drop(bytes.drain(part(at, *wanted))),
        Mutation::Field(at, field, value) if is_zip => overwrite_zip_field(bytes, at, field, value),
        Mutation::Field(at, field, value) => overwrite_tar_field(bytes, at, field, value),
    }
}

fn overwrite(bytes: &mut [u8], at: usize, value: &[u8]) {
    let length = value.len().min(bytes.len() - at);
    bytes[at..at + length].copy_from_slice(&value[..length]);
}

fn overwrite_tar_field(bytes: &mut [u8], at: &Index, field: &Index, value: &[u8]) {
    let is_header = |at: &usize| bytes[at + 257..].starts_with(b"ustar");
    let headers = (0..bytes.len() / TAR_BLOCK).map(|block| block * TAR_BLOCK);
    let headers: Vec<usize> = headers.filter(is_header).collect();
    if headers.is_empty() {
        return;
    }
    let start = *at.get(&headers);
    let header = &mut bytes[start..start + TAR_BLOCK];
    let (offset, length) = *field.get(TAR_FIELDS);
    header[offset..offset + length].fill(0);
    overwrite(&mut header[..offset + length], offset, value);
    write_checksum(header);
}

fn overwrite_zip_field(bytes: &mut [u8], at: &Index, field: &Index, value: &[u8]) {
    let fields_at = |at: usize| {
        let mut records = ZIP_FIELDS.iter();
        records.find(|(signature, _)| bytes[at..].starts_with(signature))
    };
    let records = (0..bytes.len()).filter_map(|at| Some((at, fields_at(at)?.1)));
    let records: Vec<_> = records.collect();
    if records.is_empty() {
        return;
    }
    let (start, fields) = *at.get(&records);
    let (offset, length) = *field.get(fields);
    let end = bytes.len().min(start + offset + length);
    if start + offset < end {
        overwrite(&mut bytes[..end], start + offset, value);
    }
}

/// An upload in a file that counts the bytes that are read from it.
struct CountedFile {
    file: File,
    bytes: Arc<AtomicU64>,
}

impl Read for CountedFile {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        assert!(buffer.len() <= MAX_PIECE, "a piece of {}", buffer.len());
        let read = self.file.read(buffer)?;
        self.bytes.fetch_add(read as u64, Ordering::Relaxed);
        Ok(read)
    }
}

impl Seek for CountedFile {
    fn seek(&mut self, to: SeekFrom) -> io::Result<u64> {
        self.file.seek(to)
    }
}

fn in_file(bytes: &[u8], count: &Arc<AtomicU64>) -> Box<dyn BlobReader> {
    let mut file = tempfile::tempfile().unwrap();
    file.write_all(bytes).unwrap();
    let bytes = Arc::clone(count);
    Box::new(CountedFile { file, bytes })
}

type Refusable = Result<Arc<dyn Site>, SiteError>;

/// Returns the site, or the reason for its refusal. Panics if the unpacker reports that the file is unreadable.
fn refusal(opened: Result<Arc<dyn Site>, ArchiveError>) -> Refusable {
    opened.map_err(|error| match error {
        ArchiveError::Refused(error) => error,
        other => panic!("a damaged archive is not an unreadable file: {other:?}"),
    })
}

async fn open(bytes: &[u8]) -> Refusable {
    let count = Arc::default();
    let archives = UnpackArchives::new(LIMITS);
    let opened = refusal(archives.open(in_file(bytes, &count)).await);
    // The directory of a zip is a separate pass that may read a piece again for each entry.
    let passes = 2 * (2 * LIMITS.files as u64 + 2) + 4;
    assert!(count.load(Ordering::Relaxed) <= passes * bytes.len() as u64);
    opened
}

/// Reads all files, and checks that they are those of the list, within the limits.
fn assert_consistent(site: &dyn Site) {
    let mut expected = site.uploaded_files().iter();
    site.read(&mut |file, content| {
        let mut bytes = Vec::new();
        content.read_to_end(&mut bytes)?;
        assert_eq!(Some(file), expected.next());
        assert_eq!(file.size, bytes.len() as u64);
        assert_eq!(file.digest, <[u8; 32]>::from(Sha256::digest(&bytes)));
        Ok(())
    })
    .unwrap();
    assert_eq!(expected.next(), None);
    assert_within_limits(site.files());
}

fn assert_within_limits(files: &[SiteFile]) {
    assert!(files.len() <= LIMITS.files);
    let bytes: u64 = files.iter().map(|file| file.size).sum();
    assert!(bytes <= LIMITS.unpacked_bytes);
    let mut names = BTreeSet::new();
    for SiteFile { path, size, .. } in files {
        assert!(*size <= LIMITS.file_bytes && path.len() <= LIMITS.path_bytes);
        let is_safe = |part: &str| !matches!(part, "" | "." | "..") && !part.contains('\\');
        assert!(path.split('/').all(is_safe), "{path}");
        assert!(!path.chars().any(char::is_control), "{path:?}");
        assert!(names.insert(path.to_lowercase()), "{path} occurs twice");
    }
}

fn format() -> impl Strategy<Value = Format> {
    select(
        &[
            Format::Tar,
            Format::Gzip,
            Format::TwoMembers,
            Format::Zip,
            Format::Zip,
        ][..],
    )
}

/// Returns a front page and the entries, without those of repeated paths.
fn front_and(entries: Vec<Entry>) -> Vec<Entry> {
    let front = Entry {
        path: "index.html".to_owned(),
        content: b"<h1>front</h1>".to_vec(),
    };
    let others = entries.into_iter();
    let mut paths = BTreeSet::from([front.path.clone()]);
    let others = others.filter(|entry| paths.insert(entry.path.clone()));
    std::iter::once(front).chain(others).collect()
}

/// The names of everything below a folder, except below `skipped`.
fn names_below(folder: &Path, skipped: &Path, names: &mut BTreeSet<String>) {
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        names.insert(path.display().to_string());
        if path.is_dir() && path != skipped {
            names_below(&path, skipped, names);
        }
    }
}

/// A provider in a folder in which nothing else may appear.
struct Target {
    folder: tempfile::TempDir,
    provider: LocalInfrastructure,
}

impl Target {
    async fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let clock = Arc::new(ManualClock::at(Timestamp::EPOCH));
        let config = LocalConfig::new(folder.path().join("a/b/infra"), 8090, clock);
        let provider = LocalInfrastructure::open(config).await.unwrap();
        let project = ObjectRequest {
            resource: ResourceRef {
                resource_type: ResourceType::Pages,
                name: "site".to_owned(),
            },
            owner: "owner".to_owned(),
            effect_key: "create".to_owned(),
            config: json!({}),
        };
        provider.create(&project).await.unwrap();
        Self { folder, provider }
    }

    fn infra(&self) -> std::path::PathBuf {
        self.folder.path().join("a/b/infra")
    }

    /// Deploys the site, and checks that its files have the names of their digests, and that no others were written.
    async fn deploy(&self, key: &str, site: Arc<dyn Site>) {
        let digests: BTreeSet<String> = site.files().iter().map(|file| hex(&file.digest)).collect();
        let upload = SiteUpload {
            project: "site".to_owned(),
            branch: "production".to_owned(),
            deployment_key: key.to_owned(),
            site,
        };
        self.provider.deploy_site(upload).await.unwrap();
        let names = |below: &str| -> BTreeSet<String> {
            let entries = std::fs::read_dir(self.infra().join(below)).unwrap();
            let names = entries.map(|entry| entry.unwrap().file_name().into_string().unwrap());
            names.collect()
        };
        let contents = names("pages/site/content");
        assert!(digests.is_subset(&contents));
        assert!(contents.iter().all(|name| name.len() == 64));
        assert_eq!(names(".staging"), BTreeSet::new());
        let mut outside = BTreeSet::new();
        names_below(self.folder.path(), &self.infra(), &mut outside);
        assert_eq!(outside.len(), 3, "{outside:?}");
    }
}

#[test]
fn a_mutated_archive_is_read_within_the_limits_or_refused_and_equal_archives_are_equal_sites() {
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let target = runtime.block_on(Target::new());
    let (tried, accepted) = (AtomicU32::new(0), AtomicU32::new(0));
    let config = ProptestConfig::with_cases(cases(1_500));
    proptest!(config, |(
        entries in prop::collection::vec(entry(), 0..5).prop_map(front_and),
        format in format(),
        mutations in prop::collection::vec(mutation(), 0..3),
    )| {
        let bytes = archive(&entries, format, &mutations);
        tried.fetch_add(1, Ordering::Relaxed);
        let opened = runtime.block_on(open(&bytes));
        let again = runtime.block_on(open(&bytes));
        let list = |opened: &Refusable| opened.as_ref().map(|site| site.files().to_vec()).map_err(Clone::clone);
        prop_assert_eq!(list(&opened), list(&again));
        if let Ok(site) = opened {
            assert_consistent(site.as_ref());
            let number = accepted.fetch_add(1, Ordering::Relaxed);
            if number.is_multiple_of(8) {
                runtime.block_on(target.deploy(&format!("d-{number}"), site));
            }
        }
    });
    // The mutations keep many archives valid, so both outcomes are tested.
    let accepted = f64::from(accepted.into_inner()) / f64::from(tried.into_inner());
    assert!((0.1..0.9).contains(&accepted), "{accepted}");
}

#[test]
fn a_mutated_tar_is_the_same_site_with_and_without_compression() {
    let runtime = tokio::runtime::Runtime::new().unwrap();
    proptest!(ProptestConfig::with_cases(cases(500)), |(
        entries in prop::collection::vec(entry(), 0..4).prop_map(front_and),
        mutations in prop::collection::vec(mutation(), 0..3),
    )| {
        let tar = archive(&entries, Format::Tar, &mutations);
        if tar.len() < TAR_BLOCK || tar.starts_with(b"PK") || tar.starts_with(b"\x1f\x8b") {
            return Ok(());
        }
        let files = |opened: Refusable| opened.map(|site| site.files().to_vec());
        let plain = files(runtime.block_on(open(&tar)));
        for format in [Format::Gzip, Format::TwoMembers] {
            let packed = archive(&entries, format, &mutations);
            prop_assert_eq!(&plain, &files(runtime.block_on(open(&packed))), "{:?}", format);
        }
    });
}

#[test]
fn a_mutated_upload_of_a_plan_has_only_planned_files_with_planned_contents() {
    let runtime = tokio::runtime::Runtime::new().unwrap();
    proptest!(ProptestConfig::with_cases(cases(500)), |(
        uploaded in prop::collection::vec(entry(), 0..4),
        format in format(),
        mutations in prop::collection::vec(mutation(), 0..3),
    )| {
        let plan = ["index.html", "a", "b/c.js", "b/d.css"].map(|path| PlannedFile {
            path: path.to_owned(),
            size: 3,
            digest: hex(&Sha256::digest(b"abc")),
        });
        let uploaded: Vec<Entry> = uploaded
            .into_iter()
            .map(|entry| Entry { content: b"abc".to_vec(), ..entry })
            .collect();
        let bytes = archive(&uploaded, format, &mutations);
        let manifest = SiteManifest::new(&plan, LIMITS).unwrap();
        let count = Arc::default();
        let archives = UnpackArchives::new(LIMITS);
        let json = Box::new(io::Cursor::new(manifest.to_json()));
        let opened = archives.open_part(in_file(&bytes, &count), json);
        let Ok(site) = refusal(runtime.block_on(opened)) else { return Ok(()) };
        prop_assert_eq!(site.files(), manifest.files());
        for file in site.uploaded_files() {
            prop_assert!(manifest.files().contains(file), "{:?}", file);
        }
        let mut read = 0;
        site.read(&mut |_, content| {
            read += io::copy(&mut &mut *content, &mut io::sink())?;
            Ok(())
        })
        .unwrap();
        prop_assert_eq!(read, 3 * site.uploaded_files().len() as u64);
    });
}
