//! Backups: all records and files of an installation in a folder, and copies of all records between databases.
//!
//! A backup is a folder with these parts:
//!
//! | name | content |
//! |---|---|
//! | `records.sqlite` | every record, as a SQLite database, whatever the database of the installation |
//! | `data` | the data folder: the secret, uploads, mails, and the infrastructure of the local provider |
//! | `blobs` | the uploads that are not in the data folder but in a bucket |
//! | `manifest.json` | counts and SHA-256 digests of all tables, and of every file; written last |
//!
//! A server may be running. The records are those of one moment. Files are copied before the records and, if they have
//! changed, again after them, so the files that the records refer to are in the backup. SQLite databases among the files
//! are copied with SQLite's online backup.
//!
//! A restore stores the uploads of a backup where the builder stores uploads, whether that is a bucket or the data folder.

mod blobs;
mod error;
mod files;
mod manifest;

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Instant;

use core_domain::port::Blobs;
use core_storage::RowStore;
pub use core_storage::copy::{CopyError, CopyProgress, CopyStart, TableDigest};
use core_storage::copy::{copy_rows, digest_rows, ensure_empty};

pub use self::error::BackupError;
use self::files::{back_up_folder, digest_files, in_background, restore_folder, verify_folder};
pub use self::manifest::BackupSummary;
use self::manifest::Manifest;
use crate::assemble::open_options;
use crate::blobs::{UPLOADS, shared_blobs};
use crate::cells::Cells;
use crate::open::{Access, StoreChoice};
use crate::secret::InstallationSecret;
use crate::{SuiteBuilder, SuiteError};

/// The name of the database in a backup.
const RECORDS: &str = "records.sqlite";

/// The name of the copied data folder in a backup.
const DATA: &str = "data";

/// The name of the folder for blobs in a backup.
const BLOBS: &str = "blobs";

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
        let source = self.rows(Access::ReadOnly).await?;
        let destination = destination.rows(Access::Direct).await?;
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
        let source = self.rows(Access::ReadOnly).await?;
        let (data, database) = (self.data_folder.clone(), self.database_file());
        let blobs = shared_blobs(&self, folder).map_err(SuiteError::from)?;
        let (copied, copied_blobs) = (folder.join(DATA), folder.join(BLOBS));
        let copy_files = |into: PathBuf| {
            let (data, database) = (data.clone(), database.clone());
            in_background(move || match data {
                Some(data) => back_up_folder(&data, &into, database.as_deref()),
                None => Ok(Vec::new()),
            })
        };
        copy_files(copied.clone()).await?;
        let began = Instant::now();
        if let Some(blobs) = &blobs {
            blobs::back_up_all(blobs.as_ref(), &copied_blobs).await?;
        }
        let records = self.records_at(folder).rows(Access::Direct).await?;
        let start = CopyStart::Empty;
        let tables = copy_rows(source.as_ref(), records.as_ref(), start, on_progress).await?;
        drop(records);
        // Without this file the folder has nothing but the backup. It is not an error if it stays.
        let _ = std::fs::remove_file(folder.join(format!("{RECORDS}.lock")));
        let files = copy_files(copied.clone()).await?;
        let files = in_background(move || digest_files(&copied, files)).await?;
        let blobs = match &blobs {
            Some(blobs) => {
                blobs::back_up_changes(blobs.as_ref(), &copied_blobs, began.elapsed()).await?
            }
            None => Vec::new(),
        };
        let blobs = in_background(move || digest_files(&copied_blobs, blobs)).await?;
        let manifest = Manifest::new(self.clock_or_system().now(), tables, files, blobs);
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
        let source = self.records_at(folder).rows(Access::ReadOnly).await?;
        if digest_rows(source.as_ref()).await? != manifest.tables() {
            return Err(BackupError::Damaged(RECORDS.to_owned()));
        }
        // The database may be in the data folder.
        if let Some(data) = &self.data_folder {
            files::create_private(data)?;
        }
        let destination = self.rows(Access::Direct).await?;
        if start == CopyStart::Empty {
            ensure_empty(destination.as_ref()).await?;
        }
        let (files, copied) = (manifest.files.clone(), folder.join(DATA));
        let (data, database) = (self.data_folder.clone(), self.database_file());
        let (blobs, copied_blobs) = (manifest.blobs.clone(), folder.join(BLOBS));
        in_background(move || {
            verify_folder(&copied, &files)?;
            verify_folder(&copied_blobs, &blobs)?;
            let Some(data) = data else {
                return Ok(());
            };
            let is_resumed = start == CopyStart::Resumed && !blobs.is_empty();
            // An earlier restore may have stored blobs in the data folder.
            let stored = is_resumed.then_some(Path::new(UPLOADS));
            restore_folder(&copied, &data, database.as_deref(), &files, stored)?;
            verify_folder(&data, &files)
        })
        .await?;
        self.restore_blobs(folder, &manifest).await?;
        copy_rows(source.as_ref(), destination.as_ref(), start, on_progress).await?;
        Ok(manifest.summary())
    }

    /// Stores the uploads of a backup. Those of a data folder are restored with its files, and need nothing more unless
    /// this builder stores uploads elsewhere.
    async fn restore_blobs(&self, folder: &Path, manifest: &Manifest) -> Result<(), BackupError> {
        let staging = self.data_folder.as_deref().unwrap_or(folder);
        let shared = shared_blobs(self, staging).map_err(SuiteError::from)?;
        if let Some(shared) = &shared {
            let data = folder.join(DATA);
            blobs::restore_uploads(shared.as_ref(), &data, &manifest.files).await?;
        }
        if manifest.blobs.is_empty() {
            return Ok(());
        }
        let blobs = match shared {
            Some(shared) => shared,
            None => self.folder_blobs().await?,
        };
        blobs::restore(blobs.as_ref(), &folder.join(BLOBS), &manifest.blobs).await
    }

    /// Returns the store for blobs in the data folder.
    #[cfg(feature = "local")]
    async fn folder_blobs(&self) -> Result<Arc<dyn Blobs>, BackupError> {
        let data = self.data_folder.as_ref().ok_or(BackupError::NoBlobs)?;
        let opened = core_local::FileBlobs::open(data.join(UPLOADS)).await;
        Ok(Arc::new(opened.map_err(SuiteError::from)?))
    }

    /// Fails, because a store for blobs requires a feature.
    #[cfg(not(feature = "local"))]
    #[expect(clippy::unused_async, reason = "with the feature it opens a folder")]
    async fn folder_blobs(&self) -> Result<Arc<dyn Blobs>, BackupError> {
        Err(BackupError::NoBlobs)
    }

    /// Returns a builder with the same settings for the database in a backup.
    fn records_at(&self, folder: &Path) -> Self {
        Self {
            store: StoreChoice::Sqlite(folder.join(RECORDS)),
            // A backup of an installation with cells has all records in one file.
            cells: Cells::default(),
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
        let rows = self.store.clone().open_rows(options, access).await?;
        rows.ok_or(BackupError::CustomStore)
    }
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
