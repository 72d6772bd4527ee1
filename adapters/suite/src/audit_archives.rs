//! Verifies archives of the audit log without a database.
//!
//! ```no_run
//! # fn verify() -> Result<(), core_suite::audit_archives::ArchiveError> {
//! use core_suite::audit_archives::{read_keys, verify};
//!
//! let keys = read_keys(r#"{"keys":[{"kty":"OKP","crv":"Ed25519","x":"..."}]}"#)?;
//! let archive = verify("audit-archive-2026-11-0123456789abcdef".as_ref(), &keys)?;
//! println!("{}: {} entries", archive.month, archive.entries);
//! # Ok(()) }
//! ```
//!
//! `core-server verify-archive` does the same.

use std::fs::File;
use std::io::{self, BufRead, BufReader};
use std::path::Path;

use core_domain::kernel::Ed25519Public;
use core_domain::shared::{ArchiveFault, ArchiveVerifier};
use serde::Deserialize;

/// Why an archive is not accepted.
#[derive(Debug, thiserror::Error)]
pub enum ArchiveError {
    /// The archive cannot be read.
    #[error("the archive cannot be read")]
    Read(#[from] io::Error),
    /// The keys are not a JSON Web Key Set with an Ed25519 key.
    #[error("the keys are not a JSON object with Ed25519 keys in `keys`")]
    Keys,
    /// The archive was changed, is incomplete, or was signed with another key.
    #[error(transparent)]
    NotValid(#[from] ArchiveFault),
}

/// The public keys of an installation.
#[derive(Clone, Debug)]
pub struct ArchiveKeys(Vec<Ed25519Public>);

/// An archive that is complete and unchanged.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct VerifiedArchive {
    /// The month, such as `2026-11`.
    pub month: String,
    /// The number of entries.
    pub entries: u64,
    /// SHA-256 of the content before the last line, in hexadecimal digits.
    pub digest: String,
    /// The digest of the previous archive; 64 zeros in the first one.
    pub previous: String,
}

/// Reads the keys from a JSON Web Key Set. The response of `GET /api/v1/audit/checkpoints` has this form.
///
/// # Errors
/// [`ArchiveError::Keys`] if the text has no Ed25519 key.
pub fn read_keys(json: &str) -> Result<ArchiveKeys, ArchiveError> {
    #[derive(Deserialize)]
    struct Key {
        x: Option<String>,
    }
    #[derive(Deserialize)]
    struct KeySet {
        keys: Vec<Key>,
    }
    let set: KeySet = serde_json::from_str(json).map_err(|_| ArchiveError::Keys)?;
    let keys = set.keys.iter().filter_map(|key| key.x.as_deref());
    let keys: Vec<Ed25519Public> = keys.filter_map(Ed25519Public::read).collect();
    if keys.is_empty() {
        return Err(ArchiveError::Keys);
    }
    Ok(ArchiveKeys(keys))
}

/// Verifies an archive: its signature, all hashes, and that no line is missing. It must be signed with one of the keys.
///
/// # Errors
/// [`ArchiveError::Read`] if the file cannot be read; [`ArchiveError::NotValid`] if the archive is not valid.
pub fn verify(archive: &Path, keys: &ArchiveKeys) -> Result<VerifiedArchive, ArchiveError> {
    let mut outcome = Err(ArchiveError::Keys);
    for key in &keys.0 {
        outcome = verify_with(BufReader::new(File::open(archive)?), key);
        if outcome.is_ok() {
            break;
        }
    }
    outcome
}

fn verify_with(
    mut lines: impl BufRead,
    key: &Ed25519Public,
) -> Result<VerifiedArchive, ArchiveError> {
    let (mut verifier, mut line) = (ArchiveVerifier::new(key), Vec::new());
    while lines.read_until(b'\n', &mut line)? > 0 {
        verifier.check(&line)?;
        line.clear();
    }
    let statement = verifier.finish()?;
    Ok(VerifiedArchive {
        entries: u64::try_from(statement.position - statement.after).unwrap_or_default(),
        month: statement.month,
        digest: statement.digest,
        previous: statement.previous,
    })
}
