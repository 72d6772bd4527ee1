//! The command that verifies an archive of the audit log.

use std::path::Path;

use core_suite::audit_archives::{ArchiveError, read_keys, verify};

/// Why the archive is not accepted.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Error {
    #[error("the keys cannot be read from {0}")]
    Keys(String, #[source] std::io::Error),
    #[error("the keys in {0} cannot be used")]
    InvalidKeys(String, #[source] ArchiveError),
    #[error("{0} is not a valid archive")]
    Archive(String, #[source] ArchiveError),
}

/// Verifies an archive with the keys in a file, and prints its month.
#[expect(
    clippy::print_stdout,
    reason = "the report is the output of this command"
)]
pub(crate) fn run(archive: &Path, keys: &Path) -> Result<(), Error> {
    let name = keys.display().to_string();
    let json = match std::fs::read_to_string(keys) {
        Ok(json) => json,
        Err(error) => return Err(Error::Keys(name, error)),
    };
    let keys = read_keys(&json).map_err(|error| Error::InvalidKeys(name, error))?;
    let verified = verify(archive, &keys);
    let verified =
        verified.map_err(|error| Error::Archive(archive.display().to_string(), error))?;
    println!("verified: {}, {} entries", verified.month, verified.entries);
    println!("digest {}, previous {}", verified.digest, verified.previous);
    Ok(())
}
