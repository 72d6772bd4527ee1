//! The manifest of a backup.

use std::io::Write;
use std::path::Path;

use core_domain::kernel::Timestamp;
use core_storage::copy::TableDigest;
use core_storage::tables;
use serde::{Deserialize, Serialize};

use super::error::BackupError;
use super::files::FileDigest;

/// The name of the manifest in a backup.
const FILE: &str = "manifest.json";

/// The form of backups that this version writes and reads.
const FORM: u32 = 1;

/// The counts of a backup or restore.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BackupSummary {
    /// The count and the digest of each table.
    pub tables: Vec<TableDigest>,
    /// The number of files of the data folder.
    pub files: usize,
    /// The size of these files together, in bytes.
    pub bytes: u64,
    /// The number of blobs that are not files of the data folder.
    pub blobs: usize,
    /// The size of these blobs together, in bytes.
    pub blob_bytes: u64,
}

impl BackupSummary {
    /// Returns the number of records in all tables.
    #[must_use]
    pub fn records(&self) -> u64 {
        self.tables.iter().map(|table| table.rows).sum()
    }
}

/// The content of a backup, for its verification.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Manifest {
    /// The form of the backup.
    form: u32,
    /// The version of the program that wrote the backup.
    version: String,
    /// The time at which the backup was complete.
    created_at: Timestamp,
    tables: Vec<TableEntry>,
    /// The files of the data folder, sorted by path.
    pub(super) files: Vec<FileDigest>,
    /// The blobs that are not files of the data folder, sorted by key.
    #[serde(default)]
    pub(super) blobs: Vec<FileDigest>,
}

/// A table of a backup.
#[derive(Debug, Serialize, Deserialize)]
struct TableEntry {
    table: String,
    rows: u64,
    sha256: String,
}

impl Manifest {
    pub(super) fn new(
        created_at: Timestamp,
        tables: Vec<TableDigest>,
        files: Vec<FileDigest>,
        blobs: Vec<FileDigest>,
    ) -> Self {
        let tables = tables.into_iter().map(|table| TableEntry {
            table: table.table.to_owned(),
            rows: table.rows,
            sha256: table.sha256,
        });
        Self {
            form: FORM,
            version: env!("CARGO_PKG_VERSION").to_owned(),
            created_at,
            tables: tables.collect(),
            files,
            blobs,
        }
    }

    /// Returns the digests of the tables that this version has. A table that it does not know is left out, so that it is
    /// seen as a difference.
    pub(super) fn tables(&self) -> Vec<TableDigest> {
        let all = tables::of_records();
        let known = self.tables.iter().filter_map(|entry| {
            let table = all.iter().find(|table| table.name == entry.table)?;
            Some(TableDigest {
                table: table.name,
                rows: entry.rows,
                sha256: entry.sha256.clone(),
            })
        });
        known.collect()
    }

    pub(super) fn summary(&self) -> BackupSummary {
        BackupSummary {
            tables: self.tables(),
            files: self.files.len(),
            bytes: self.files.iter().map(|file| file.bytes).sum(),
            blobs: self.blobs.len(),
            blob_bytes: self.blobs.iter().map(|blob| blob.bytes).sum(),
        }
    }

    /// Reads the manifest of a backup.
    pub(super) fn read(folder: &Path) -> Result<Self, BackupError> {
        let missing = || BackupError::NoManifest(folder.display().to_string());
        let text = std::fs::read(folder.join(FILE)).map_err(|_| missing())?;
        let manifest: Self = serde_json::from_slice(&text).map_err(|_| missing())?;
        if manifest.form != FORM {
            return Err(BackupError::UnknownForm(manifest.form));
        }
        Ok(manifest)
    }

    /// Writes the manifest, which completes the backup.
    pub(super) fn write(&self, folder: &Path) -> Result<(), BackupError> {
        let file = folder.join(FILE);
        let write = || {
            let mut temporary = tempfile::NamedTempFile::new_in(folder)?;
            let text = serde_json::to_vec_pretty(self)?;
            temporary.write_all(&text)?;
            temporary.as_file().sync_all()?;
            temporary.persist(&file).map_err(|error| error.error)?;
            std::io::Result::Ok(())
        };
        write().map_err(|error| BackupError::file(&file, error))
    }
}
