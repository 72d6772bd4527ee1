//! Packs files into a tar archive while it is sent. The archive is compressed if that makes it smaller.

use std::fs::File;
use std::io::{self, Read, Write};
use std::sync::Arc;

use core_client::Upload;
use flate2::Compression;
use flate2::write::GzEncoder;
use tar::{Builder, EntryType, Header};

use super::walk::LocalFile;

/// Maximum number of files whose beginnings decide whether the archive is compressed.
const SAMPLE_FILES: usize = 64;

/// Maximum number of bytes of each of these files.
const SAMPLE_BYTES: u64 = 16 * 1024;

/// Size of a block of a tar archive in bytes. Headers have one block, and contents are filled up to whole blocks.
const TAR_BLOCK: u64 = 512;

/// Size of the path in a header of a tar archive in bytes. A longer path has blocks of its own.
const TAR_PATH: u64 = 100;

/// The format of an archive.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ArchiveFormat {
    Tar,
    GzippedTar,
}

impl ArchiveFormat {
    /// Returns the better format for these files. Compression must save at least a tenth, because it takes longer than
    /// a fast network. A small site is always compressed, and so is an archive that would exceed `max_bytes`. A file that
    /// cannot be read is reported when it is sent.
    fn for_files(files: &[LocalFile], max_bytes: u64) -> Self {
        if tar_bytes(files) > max_bytes {
            return Self::GzippedTar;
        }
        Self::for_samples(files).unwrap_or(Self::GzippedTar)
    }

    fn for_samples(files: &[LocalFile]) -> io::Result<Self> {
        let step = files.len().div_ceil(SAMPLE_FILES).max(1);
        let mut sample = GzEncoder::new(Vec::new(), Compression::fast());
        let mut bytes = 0;
        for file in files.iter().step_by(step) {
            let content = File::open(&file.source)?;
            bytes += io::copy(&mut content.take(SAMPLE_BYTES), &mut sample)?;
        }
        let compressed_bytes = sample.finish()?.len() as u64;
        let is_compressed_already = compressed_bytes > bytes / 10 * 9;
        if is_compressed_already && bytes > SAMPLE_BYTES {
            return Ok(Self::Tar);
        }
        Ok(Self::GzippedTar)
    }

    const fn content_type(self) -> &'static str {
        match self {
            Self::Tar => "application/x-tar",
            Self::GzippedTar => "application/gzip",
        }
    }
}

/// Returns the size of a tar archive of files.
fn tar_bytes(files: &[LocalFile]) -> u64 {
    let blocks = |bytes: u64| bytes.div_ceil(TAR_BLOCK);
    let blocks_of = |file: &LocalFile| {
        let path = match file.path.len() as u64 {
            0..=TAR_PATH => 0,
            long => 1 + blocks(long + 1),
        };
        path + 1 + blocks(file.size)
    };
    let end = 2;
    (files.iter().map(blocks_of).sum::<u64>() + end) * TAR_BLOCK
}

/// Creates an upload of files, which the server refuses if it is larger than `max_bytes`. `on_progress` is called with the number of bytes that were read since its last call. Two
/// archives of the same files are equal, so that an upload can be repeated.
pub(crate) fn pack(
    files: Vec<LocalFile>,
    max_bytes: u64,
    on_progress: Arc<dyn Fn(u64) + Send + Sync>,
) -> Upload {
    let format = ArchiveFormat::for_files(&files, max_bytes);
    let files = Arc::new(files);
    let write = move |body: &mut dyn Write| write(&files, format, &*on_progress, body);
    Upload::from_writer(format.content_type(), write)
}

fn write(
    files: &[LocalFile],
    format: ArchiveFormat,
    on_progress: &dyn Fn(u64),
    body: &mut dyn Write,
) -> io::Result<()> {
    match format {
        ArchiveFormat::Tar => write_tar(files, on_progress, body).map(drop),
        ArchiveFormat::GzippedTar => {
            let body = GzEncoder::new(body, Compression::fast());
            write_tar(files, on_progress, body)?.finish().map(drop)
        }
    }
}

fn write_tar<W: Write>(files: &[LocalFile], on_progress: &dyn Fn(u64), body: W) -> io::Result<W> {
    let mut archive = Builder::new(body);
    for file in files {
        let mut header = Header::new_gnu();
        header.set_entry_type(EntryType::Regular);
        header.set_mode(0o644);
        header.set_size(file.size);
        header.set_mtime(0);
        let content = Content {
            content: File::open(&file.source)
                .map_err(|error| name_error(file, &error.to_string()))?,
            file,
            remaining: file.size,
            on_progress,
        };
        archive.append_data(&mut header, &file.path, content)?;
    }
    archive.into_inner()
}

fn name_error(file: &LocalFile, problem: &str) -> io::Error {
    io::Error::other(format!("{}: {problem}", file.source.display()))
}

/// The content of a file, which must have the size that the archive states.
struct Content<'a> {
    content: File,
    file: &'a LocalFile,
    remaining: u64,
    on_progress: &'a dyn Fn(u64),
}

impl Read for Content<'_> {
    fn read(&mut self, piece: &mut [u8]) -> io::Result<usize> {
        let length = self.content.read(piece)?;
        let is_end = length == 0 && !piece.is_empty();
        if length as u64 > self.remaining || (is_end && self.remaining > 0) {
            return Err(name_error(
                self.file,
                "the file was changed while it was sent",
            ));
        }
        self.remaining -= length as u64;
        (self.on_progress)(length as u64);
        Ok(length)
    }
}

#[cfg(test)]
mod tests {
    use flate2::read::GzDecoder;
    use sha2::{Digest, Sha256};

    use super::*;
    use crate::site::walk::find_files;

    const MAX_BYTES: u64 = 1024 * 1024;

    fn archive_of(files: &[LocalFile]) -> io::Result<Vec<u8>> {
        let mut bytes = Vec::new();
        write(files, ArchiveFormat::GzippedTar, &|_| {}, &mut bytes)?;
        Ok(bytes)
    }

    #[test]
    fn the_archive_has_every_file_and_is_the_same_each_time() {
        let folder = tempfile::tempdir().unwrap();
        let long = format!("{}/x.html", ["long-folder-name"; 12].join("/"));
        for path in ["index.html", long.as_str()] {
            let path = folder.path().join(path);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, "<h1>Hello</h1>").unwrap();
        }
        let files = find_files(folder.path()).unwrap();
        let bytes = archive_of(&files).unwrap();
        assert_eq!(bytes, archive_of(&files).unwrap());
        let mut archive = tar::Archive::new(GzDecoder::new(&*bytes));
        let mut found = Vec::new();
        for entry in archive.entries().unwrap() {
            let mut entry = entry.unwrap();
            let mut content = String::new();
            entry.read_to_string(&mut content).unwrap();
            assert_eq!(content, "<h1>Hello</h1>");
            found.push(entry.path().unwrap().to_str().unwrap().to_owned());
        }
        assert_eq!(found, ["index.html", long.as_str()]);
    }

    /// Returns a content that compression does not make smaller, different for every seed.
    fn incompressible(seed: &str) -> Vec<u8> {
        (0..1_000_u32)
            .flat_map(|n| Sha256::digest(format!("{seed}{n}")))
            .collect()
    }

    #[test]
    fn an_archive_is_compressed_unless_its_files_are_compressed_already() {
        let incompressible = incompressible("a");
        for (content, expected) in [
            (&b""[..], ArchiveFormat::GzippedTar),
            (b"<h1>Hello</h1>", ArchiveFormat::GzippedTar),
            (&[b'x'; 40_000], ArchiveFormat::GzippedTar),
            (&incompressible, ArchiveFormat::Tar),
        ] {
            let folder = tempfile::tempdir().unwrap();
            let reversed: Vec<u8> = content.iter().rev().copied().collect();
            std::fs::write(folder.path().join("index.html"), content).unwrap();
            std::fs::write(folder.path().join("b"), reversed).unwrap();
            let files = find_files(folder.path()).unwrap();
            assert_eq!(ArchiveFormat::for_files(&files, MAX_BYTES), expected);
            let mut bytes = Vec::new();
            write(&files, expected, &|_| {}, &mut bytes).unwrap();
            let body: Box<dyn Read> = match expected {
                ArchiveFormat::Tar => Box::new(&*bytes),
                ArchiveFormat::GzippedTar => Box::new(GzDecoder::new(&*bytes)),
            };
            let mut archive = tar::Archive::new(body);
            assert_eq!(archive.entries().unwrap().count(), 2);
        }
    }

    #[test]
    fn an_archive_that_would_be_too_large_is_compressed() {
        let folder = tempfile::tempdir().unwrap();
        for path in ["index.html".to_owned(), "b".repeat(100), "c".repeat(101)] {
            let content = incompressible(&path);
            std::fs::write(folder.path().join(path), content).unwrap();
        }
        let files = find_files(folder.path()).unwrap();
        let mut bytes = Vec::new();
        write(&files, ArchiveFormat::Tar, &|_| {}, &mut bytes).unwrap();
        let size = bytes.len() as u64;
        assert_eq!(ArchiveFormat::for_files(&files, size), ArchiveFormat::Tar);
        assert_eq!(
            ArchiveFormat::for_files(&files, size - 1),
            ArchiveFormat::GzippedTar
        );
    }

    #[test]
    fn an_archive_without_files_is_valid() {
        let bytes = archive_of(&[]).unwrap();
        assert_eq!(
            tar::Archive::new(GzDecoder::new(&*bytes))
                .entries()
                .unwrap()
                .count(),
            0
        );
    }

    #[test]
    fn a_file_that_grew_or_shrank_breaks_the_archive() {
        for content in ["", "much longer than before"] {
            let folder = tempfile::tempdir().unwrap();
            let path = folder.path().join("index.html");
            std::fs::write(&path, "before").unwrap();
            let files = find_files(folder.path()).unwrap();
            std::fs::write(&path, content).unwrap();
            let error = archive_of(&files).unwrap_err();
            assert!(error.to_string().contains("changed"), "{error}");
        }
    }
}
