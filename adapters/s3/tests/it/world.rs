//! Servers, stores and readers.

use std::sync::Arc;

use core_domain::kernel::Timestamp;
use core_domain::port::BlobError;
use core_domain::testing::ManualClock;
use core_s3::testing::S3Server;
use core_s3::{S3Blobs, S3Config};
use tempfile::TempDir;

/// A server, and a client of its bucket.
pub(crate) struct World {
    pub(crate) server: S3Server,
    pub(crate) blobs: S3Blobs,
    /// The clock of the client. It is far ahead of the server's.
    pub(crate) clock: Arc<ManualClock>,
    /// The folder of local files.
    pub(crate) folder: TempDir,
}

impl World {
    pub(crate) async fn new() -> Self {
        Self::with(S3Server::start().await.unwrap())
    }

    pub(crate) fn with(server: S3Server) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let clock = Arc::new(ManualClock::at(Timestamp::from_seconds(4_000_000_000)));
        let config = server.config("uploads/core");
        let blobs = S3Blobs::open(&config, folder.path(), clock.clone()).unwrap();
        Self {
            server,
            blobs,
            clock,
            folder,
        }
    }

    /// Returns a client with another configuration.
    pub(crate) fn client(&self, config: &S3Config) -> S3Blobs {
        S3Blobs::open(config, self.folder.path(), self.clock.clone()).unwrap()
    }

    /// Returns the number of local files that have a name.
    pub(crate) fn local_files(&self) -> usize {
        std::fs::read_dir(self.folder.path()).unwrap().count()
    }
}

/// Returns the text of a failure. Panics if the operation succeeded, or the blob is only missing.
pub(crate) fn failure<T>(outcome: Result<T, BlobError>) -> String {
    match outcome.map(drop) {
        Err(BlobError::Failed(cause)) => cause.to_string(),
        other => panic!("{other:?}"),
    }
}
