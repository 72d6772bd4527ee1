//! Copies blobs that are not in the data folder, for example those in a bucket.

use std::collections::BTreeSet;
use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::time::Duration;

use core_domain::port::{BlobError, BlobReader, Blobs, is_blob_key};

use super::error::BackupError;
use super::files::{FileDigest, create_private, in_background};
use crate::blobs::UPLOADS;

/// The difference of the clocks of this machine and of the store that cannot hide a change.
const CLOCK_MARGIN: Duration = Duration::from_secs(60);

/// The number of bytes that are read from a file at once.
const CHUNK_BYTES: usize = 1024 * 1024;

/// Copies all blobs into a folder, one file per key.
pub(super) async fn back_up_all(blobs: &dyn Blobs, folder: &Path) -> Result<(), BackupError> {
    let keys = blobs.keys().await.map_err(BackupError::Blobs)?;
    copy_keys(blobs, folder, keys).await
}

/// Copies the blobs that are new or have changed since an earlier copy, which began this long ago. A blob that was removed
/// since then stays in the backup, because its records may be in it.
pub(super) async fn back_up_changes(
    blobs: &dyn Blobs,
    folder: &Path,
    since: Duration,
) -> Result<Vec<PathBuf>, BackupError> {
    let copied = names_in(folder)?;
    let unchanged = blobs.older_than(since + CLOCK_MARGIN).await;
    let unchanged: BTreeSet<String> = unchanged
        .map_err(BackupError::Blobs)?
        .into_iter()
        .filter(|key| copied.contains(Path::new(key)))
        .collect();
    let mut keys = blobs.keys().await.map_err(BackupError::Blobs)?;
    keys.retain(|key| !unchanged.contains(key));
    copy_keys(blobs, folder, keys).await?;
    Ok(names_in(folder)?.into_iter().collect())
}

/// Copies blobs. A blob that is removed in the meantime is left out.
async fn copy_keys(blobs: &dyn Blobs, folder: &Path, keys: Vec<String>) -> Result<(), BackupError> {
    create_private(folder)?;
    for key in keys {
        let reader = match blobs.open(&key).await {
            Ok(reader) => reader,
            Err(BlobError::Missing) => continue,
            Err(error) => return Err(BackupError::Blobs(error)),
        };
        let copy = folder.join(&key);
        in_background(move || write(reader, &copy)).await?;
    }
    Ok(())
}

fn write(mut reader: Box<dyn BlobReader>, copy: &Path) -> Result<(), BackupError> {
    let copied = File::create(copy).and_then(|mut file| {
        std::io::copy(&mut reader, &mut file)?;
        file.sync_all()
    });
    copied.map_err(|error| BackupError::file(copy, error))
}

/// Returns the names of the files in a folder; none if there is no folder.
fn names_in(folder: &Path) -> Result<BTreeSet<PathBuf>, BackupError> {
    if !folder.exists() {
        return Ok(BTreeSet::new());
    }
    let failed = |error| BackupError::file(folder, error);
    let entries = std::fs::read_dir(folder).map_err(failed)?;
    let names = entries.map(|entry| Ok(PathBuf::from(entry?.file_name())));
    names
        .collect::<std::io::Result<BTreeSet<_>>>()
        .map_err(failed)
}

/// Stores the blobs of a backup, whose files are in the folder.
pub(super) async fn restore(
    blobs: &dyn Blobs,
    folder: &Path,
    files: &[FileDigest],
) -> Result<(), BackupError> {
    for file in files {
        if let Some(key) = file.path.to_str() {
            store(blobs, folder.join(&file.path), key).await?;
        }
    }
    Ok(())
}

/// Stores the uploads that the backup has as files of a data folder.
pub(super) async fn restore_uploads(
    blobs: &dyn Blobs,
    data: &Path,
    files: &[FileDigest],
) -> Result<(), BackupError> {
    for file in files {
        let key = file.path.strip_prefix(UPLOADS).ok();
        if let Some(key) = key.and_then(Path::to_str).filter(|key| is_blob_key(key)) {
            store(blobs, data.join(&file.path), key).await?;
        }
    }
    Ok(())
}

async fn store(blobs: &dyn Blobs, path: PathBuf, key: &str) -> Result<(), BackupError> {
    let mut staged = blobs.stage().await.map_err(BackupError::Blobs)?;
    let opened = path.clone();
    let file = in_background(move || {
        File::open(&opened).map_err(|error| BackupError::file(&opened, error))
    });
    let mut file = file.await?;
    loop {
        let path = path.clone();
        let (rest, chunk) = in_background(move || {
            let mut chunk = Vec::with_capacity(CHUNK_BYTES);
            let read = (&mut file).take(CHUNK_BYTES as u64).read_to_end(&mut chunk);
            read.map_err(|error| BackupError::file(&path, error))?;
            Ok((file, chunk))
        })
        .await?;
        if chunk.is_empty() {
            break;
        }
        file = rest;
        staged.append(chunk).await.map_err(BackupError::Blobs)?;
    }
    staged.commit(key).await.map_err(BackupError::Blobs)
}
