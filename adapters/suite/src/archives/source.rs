//! Reads an upload and records I/O failures, so that a failing disk is not mistaken for a damaged archive.

use std::io::{self, Read, Seek, SeekFrom};

use core_domain::port::BlobReader;

/// A reader that stores the first I/O failure. The decoders that read from it would report that failure as a damaged
/// archive.
pub(super) struct Source<'a> {
    upload: &'a mut dyn BlobReader,
    failure: Option<io::Error>,
}

impl<'a> Source<'a> {
    pub(super) fn new(upload: &'a mut dyn BlobReader) -> Self {
        Self {
            upload,
            failure: None,
        }
    }

    /// Returns the I/O error if the upload itself could not be read.
    pub(super) fn failure(self) -> Option<io::Error> {
        self.failure
    }

    fn record_failure<T>(&mut self, outcome: io::Result<T>) -> io::Result<T> {
        outcome.inspect_err(|error| {
            if error.kind() != io::ErrorKind::Interrupted {
                let seen = io::Error::new(error.kind(), error.to_string());
                self.failure.get_or_insert(seen);
            }
        })
    }
}

impl Read for Source<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let outcome = self.upload.read(buffer);
        self.record_failure(outcome)
    }
}

impl Seek for Source<'_> {
    fn seek(&mut self, to: SeekFrom) -> io::Result<u64> {
        // An offset before the start is an error in the archive.
        match self.upload.seek(to) {
            Err(error) if error.kind() == io::ErrorKind::InvalidInput => Err(error),
            outcome => self.record_failure(outcome),
        }
    }
}
