//! A file without a name that is written once, and read by several readers with positions of their own.

use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom};
#[cfg(unix)]
use std::os::unix::fs::FileExt;
#[cfg(windows)]
use std::os::windows::fs::FileExt;
use std::path::Path;
use std::sync::Arc;

use crate::error::S3Error;

/// A file without a name. The system deletes it when the last handle is closed, at the latest with the process.
#[derive(Clone, Debug)]
pub(crate) struct SharedFile {
    file: Arc<File>,
    length: u64,
}

impl SharedFile {
    /// Creates an empty file that only its owner can read.
    pub(crate) fn create_in(folder: &Path) -> io::Result<Self> {
        Ok(Self {
            file: Arc::new(tempfile::tempfile_in(folder)?),
            length: 0,
        })
    }

    /// Returns the number of bytes.
    pub(crate) const fn length(&self) -> u64 {
        self.length
    }

    /// Appends bytes at the end of the file.
    pub(crate) fn append(&mut self, bytes: &[u8]) -> io::Result<()> {
        let mut written = 0;
        while written < bytes.len() {
            let at = self.length + written as u64;
            match write_at(&self.file, &bytes[written..], at) {
                Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
                Ok(count) => written += count,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        self.length += bytes.len() as u64;
        Ok(())
    }

    /// Returns at most `limit` bytes from a position. Returns fewer at the end of the file.
    pub(crate) fn read_part(&self, position: u64, limit: usize) -> io::Result<Vec<u8>> {
        let mut reader = self.reader();
        reader.position = position;
        let mut part = Vec::with_capacity(limit);
        reader.take(limit as u64).read_to_end(&mut part)?;
        Ok(part)
    }

    /// Returns a reader of the bytes appended so far.
    pub(crate) fn reader(&self) -> FileReader {
        FileReader {
            file: self.clone(),
            position: 0,
        }
    }
}

/// A reader of a shared file.
#[derive(Debug)]
pub(crate) struct FileReader {
    file: SharedFile,
    position: u64,
}

impl Read for FileReader {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let left = self.file.length.saturating_sub(self.position);
        let left = usize::try_from(left).unwrap_or(usize::MAX);
        let count = buffer.len().min(left);
        let read = read_at(&self.file.file, &mut buffer[..count], self.position)?;
        self.position += read as u64;
        Ok(read)
    }
}

impl Seek for FileReader {
    fn seek(&mut self, to: SeekFrom) -> io::Result<u64> {
        let position = match to {
            SeekFrom::Start(position) => Some(position),
            SeekFrom::End(offset) => self.file.length.checked_add_signed(offset),
            SeekFrom::Current(offset) => self.position.checked_add_signed(offset),
        };
        self.position = position.ok_or(io::ErrorKind::InvalidInput)?;
        Ok(self.position)
    }
}

#[cfg(unix)]
fn read_at(file: &File, buffer: &mut [u8], position: u64) -> io::Result<usize> {
    file.read_at(buffer, position)
}

#[cfg(unix)]
fn write_at(file: &File, bytes: &[u8], position: u64) -> io::Result<usize> {
    file.write_at(bytes, position)
}

#[cfg(windows)]
fn read_at(file: &File, buffer: &mut [u8], position: u64) -> io::Result<usize> {
    file.seek_read(buffer, position)
}

#[cfg(windows)]
fn write_at(file: &File, bytes: &[u8], position: u64) -> io::Result<usize> {
    file.seek_write(bytes, position)
}

/// Runs work that blocks on local files.
pub(crate) async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> io::Result<T> + Send + 'static,
) -> Result<T, S3Error> {
    let joined = tokio::task::spawn_blocking(work).await;
    Ok(joined.map_err(io::Error::other)??)
}
