//! Packs files into a gzipped tar archive while it is sent.

use std::fs::File;
use std::io::{self, Read, Write};
use std::sync::Arc;

use core_client::Upload;
use flate2::Compression;
use flate2::write::GzEncoder;
use tar::{Builder, EntryType, Header};

use super::walk::LocalFile;

/// The format of the archive.
const CONTENT_TYPE: &str = "application/gzip";

/// Creates an upload of files. `on_progress` is called with the number of bytes that were read since its last call. Two
/// archives of the same files are equal, so that an upload can be repeated.
pub(crate) fn pack(files: Vec<LocalFile>, on_progress: Arc<dyn Fn(u64) + Send + Sync>) -> Upload {
    let files = Arc::new(files);
    Upload::from_writer(CONTENT_TYPE, move |body| write(&files, &*on_progress, body))
}

fn write(files: &[LocalFile], on_progress: &dyn Fn(u64), body: &mut dyn Write) -> io::Result<()> {
    let mut archive = Builder::new(GzEncoder::new(body, Compression::fast()));
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
    archive.into_inner()?.finish()?;
    Ok(())
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

    use super::*;
    use crate::site::walk::find_files;

    fn archive_of(files: &[LocalFile]) -> io::Result<Vec<u8>> {
        let mut bytes = Vec::new();
        write(files, &|_| {}, &mut bytes)?;
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
