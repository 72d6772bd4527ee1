//! Backups: all records and files of an installation in a folder, and copies of all records between databases.
//!
//! A backup is a folder with three parts:
//!
//! | name | content |
//! |---|---|
//! | `records.sqlite` | every record, as a SQLite database, whatever the database of the installation |
//! | `data` | the data folder: the secret, uploads, mails, and the infrastructure of the local provider |
//! | `manifest.json` | counts and SHA-256 digests of all tables, and of every file; written last |
//!
//! A server may be running. The records are those of one moment. Files are copied before the records and, if they have
//! changed, again after them, so the files that the records refer to are in the backup. SQLite databases among the files
//! are copied with SQLite's online backup.

mod error;
mod files;
mod manifest;

use std::path::{Path, PathBuf};
use std::sync::Arc;

use core_storage::RowStore;
pub use core_storage::copy::{CopyError, CopyProgress, CopyStart, TableDigest};
use core_storage::copy::{copy_rows, digest_rows, ensure_empty};

pub use self::error::BackupError;
use self::files::{back_up_folder, digest_files, restore_folder, verify_folder};
pub use self::manifest::BackupSummary;
use self::manifest::Manifest;
use crate::assemble::open_options;
use crate::open::StoreChoice;
use crate::secret::InstallationSecret;
use crate::{SuiteBuilder, SuiteError};

/// The name of the database in a backup.
const RECORDS: &str = "records.sqlite";

/// The name of the copied data folder in a backup.
const DATA: &str = "data";

impl SuiteBuilder {
    /// Copies all records of this builder's database to the database of another builder, and compares both. Other processes
    /// may use the source, but not the destination.
    ///
    /// # Errors
    /// [`BackupError`] if a database cannot be opened, or the copy fails.
    pub async fn copy_records(
        self,
        destination: Self,
        start: CopyStart,
        on_progress: &mut (dyn FnMut(CopyProgress) + Send),
    ) -> Result<Vec<TableDigest>, BackupError> {
        let source = self.rows(Access::Read).await?;
        let destination = destination.rows(Access::Write).await?;
        let copied = copy_rows(source.as_ref(), destination.as_ref(), start, on_progress);
        Ok(copied.await?)
    }

    /// Writes a backup of the records and the data folder to a new or empty folder. A server may be running.
    ///
    /// # Errors
    /// [`BackupError`] if the folder is not empty, or something cannot be read or written.
    pub async fn back_up(
        self,
        folder: &Path,
        on_progress: &mut (dyn FnMut(CopyProgress) + Send),
    ) -> Result<BackupSummary, BackupError> {
        create_empty(folder)?;
        if let Some(data) = &self.data_folder {
            ensure_outside(folder, data)?;
        }
        let source = self.rows(Access::Read).await?;
        let (data, database) = (self.data_folder.clone(), self.database_file());
        let copied = folder.join(DATA);
        let copy_files = |into: PathBuf| {
            let (data, database) = (data.clone(), database.clone());
            in_background(move || match data {
                Some(data) => back_up_folder(&data, &into, database.as_deref()),
                None => Ok(Vec::new()),
            })
        };
        copy_files(copied.clone()).await?;
        let records = self.records_at(folder).rows(Access::Write).await?;
        let start = CopyStart::Empty;
        let tables = copy_rows(source.as_ref(), records.as_ref(), start, on_progress).await?;
        drop(records);
        // Without this file the folder has nothing but the backup. It is not an error if it stays.
        let _ = std::fs::remove_file(folder.join(format!("{RECORDS}.lock")));
        let files = copy_files(copied.clone()).await?;
        let files = in_background(move || digest_files(&copied, files)).await?;
        let manifest = Manifest::new(self.clock_or_system().now(), tables, files);
        manifest.write(folder)?;
        Ok(manifest.summary())
    }

    /// Restores a backup into the database and the data folder of this builder, which must be new or empty, and compares
    /// them with the manifest. A restore that ended early can be resumed.
    ///
    /// # Errors
    /// [`BackupError`] if the backup is damaged or incomplete, or something cannot be read or written.
    pub async fn restore(
        self,
        folder: &Path,
        start: CopyStart,
        on_progress: &mut (dyn FnMut(CopyProgress) + Send),
    ) -> Result<BackupSummary, BackupError> {
        let manifest = Manifest::read(folder)?;
        let source = self.records_at(folder).rows(Access::Read).await?;
        if digest_rows(source.as_ref()).await? != manifest.tables() {
            return Err(BackupError::Damaged(RECORDS.to_owned()));
        }
        // The database may be in the data folder.
        if let Some(data) = &self.data_folder {
            files::create_private(data)?;
        }
        let destination = self.rows(Access::Write).await?;
        if start == CopyStart::Empty {
            ensure_empty(destination.as_ref()).await?;
        }
        let (files, copied) = (manifest.files.clone(), folder.join(DATA));
        let (data, database) = (self.data_folder.clone(), self.database_file());
        in_background(move || {
            verify_folder(&copied, &files)?;
            let Some(data) = data else {
                return Ok(());
            };
            restore_folder(&copied, &data, database.as_deref(), &files)?;
            verify_folder(&data, &files)
        })
        .await?;
        copy_rows(source.as_ref(), destination.as_ref(), start, on_progress).await?;
        Ok(manifest.summary())
    }

    /// Returns a builder with the same settings for the database in a backup.
    fn records_at(&self, folder: &Path) -> Self {
        Self {
            store: StoreChoice::Sqlite(folder.join(RECORDS)),
            ..self.clone()
        }
    }

    /// Returns the file of the database; `None` if the records are not in a SQLite file.
    fn database_file(&self) -> Option<PathBuf> {
        match &self.store {
            StoreChoice::Sqlite(file) => Some(file.clone()),
            _ => None,
        }
    }

    async fn rows(&self, access: Access) -> Result<Arc<dyn RowStore>, BackupError> {
        // Cursors do not leave this process, so any key will do.
        let secret = InstallationSecret::generate(self.entropy.as_ref());
        let options = open_options(self, &secret);
        let rows = match access {
            Access::Read => self.store.clone().open_rows_read_only(options).await?,
            Access::Write => self.store.clone().open_rows(options).await?,
        };
        rows.ok_or(BackupError::CustomStore)
    }
}

/// What a database is opened for.
#[derive(Clone, Copy, Debug)]
enum Access {
    /// Other processes may use the database at the same time.
    Read,
    Write,
}

/// Creates a folder that only its owner can read, or checks that it is empty.
fn create_empty(folder: &Path) -> Result<(), BackupError> {
    files::create_private(folder)?;
    let mut entries =
        std::fs::read_dir(folder).map_err(|error| BackupError::file(folder, error))?;
    match entries.next() {
        None => Ok(()),
        Some(_) => Err(BackupError::FolderNotEmpty(folder.display().to_string())),
    }
}

/// Checks that a backup is not in the data folder, where it would be a part of itself.
fn ensure_outside(backup: &Path, data: &Path) -> Result<(), BackupError> {
    let real = |path: &Path| {
        path.canonicalize()
            .map_err(|error| BackupError::file(path, error))
    };
    if data.exists() && real(backup)?.starts_with(real(data)?) {
        return Err(BackupError::InsideData(backup.display().to_string()));
    }
    Ok(())
}

/// Runs work that blocks on files.
async fn in_background<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, BackupError> + Send + 'static,
) -> Result<T, BackupError> {
    let done = tokio::task::spawn_blocking(work).await;
    done.map_err(|error| BackupError::Suite(SuiteError::Folder(std::io::Error::other(error))))?
}
