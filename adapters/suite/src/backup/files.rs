//! Copies and verifies the files of a data folder.

use std::fs::{self, File};
use std::io::{ErrorKind, Read};
use std::path::{Path, PathBuf};

use core_domain::kernel::hex;
use core_storage::sqlite;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use super::error::BackupError;
use crate::SuiteError;

/// The first bytes of a SQLite database.
const SQLITE_HEADER: &[u8] = b"SQLite format 3\0";

/// The endings of the files that SQLite keeps beside a database. Their content is in its copy.
const SQLITE_COMPANIONS: [&str; 3] = ["-wal", "-shm", "-journal"];

/// A file of a backup.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct FileDigest {
    /// The path below the data folder.
    pub(super) path: PathBuf,
    /// The size in bytes.
    pub(super) bytes: u64,
    /// The SHA-256, as hexadecimal digits.
    pub(super) sha256: String,
}

/// Copies the files of a data folder into a backup, and returns their paths, sorted. Files that an earlier call has copied,
/// and that have not changed since, are not copied again; files that no longer exist are removed from the backup. The
/// database of the records is left out. Files that are deleted in the meantime are left out, too.
pub(super) fn back_up_folder(
    from: &Path,
    to: &Path,
    database: Option<&Path>,
) -> Result<Vec<PathBuf>, BackupError> {
    create_private(to)?;
    let mut copied = Vec::new();
    for path in files_below(from, Path::new(""))? {
        let source = from.join(&path);
        if is_of_database(&source, database) || is_companion(&source) {
            continue;
        }
        if copy_file(&source, &to.join(&path))? {
            copied.push(path);
        }
    }
    for path in files_below(to, Path::new(""))? {
        if copied.binary_search(&path).is_err() {
            let gone = to.join(&path);
            fs::remove_file(&gone).map_err(|error| BackupError::file(&gone, error))?;
        }
    }
    Ok(copied)
}

/// Returns the digests of files below a folder.
pub(super) fn digest_files(
    folder: &Path,
    paths: Vec<PathBuf>,
) -> Result<Vec<FileDigest>, BackupError> {
    let digests = paths.into_iter().map(|path| digest(folder, path));
    digests.collect()
}

/// Copies the files of a backup into a data folder. The folder may have only files that are in the backup, that belong to the
/// database of the records, or that are below the folder `stored`.
pub(super) fn restore_folder(
    from: &Path,
    to: &Path,
    database: Option<&Path>,
    files: &[FileDigest],
    stored: Option<&Path>,
) -> Result<(), BackupError> {
    create_private(to)?;
    let is_expected = |path: &PathBuf| {
        is_of_database(&to.join(path), database)
            || stored.is_some_and(|stored| path.starts_with(stored))
            || files.binary_search_by(|file| file.path.cmp(path)).is_ok()
    };
    if let Some(other) = files_below(to, Path::new(""))?
        .iter()
        .find(|path| !is_expected(path))
    {
        return Err(BackupError::FolderNotEmpty(
            to.join(other).display().to_string(),
        ));
    }
    for file in files {
        copy_plain(&from.join(&file.path), &to.join(&file.path))?;
    }
    Ok(())
}

/// Checks that the files have the expected digests.
pub(super) fn verify_folder(folder: &Path, expected: &[FileDigest]) -> Result<(), BackupError> {
    for file in expected {
        let damaged = || BackupError::Damaged(file.path.display().to_string());
        let found = digest(folder, file.path.clone()).map_err(|_| damaged())?;
        if found != *file {
            return Err(damaged());
        }
    }
    Ok(())
}

/// Creates a folder that only its owner can read. An existing folder keeps its permissions.
pub(super) fn create_private(folder: &Path) -> Result<(), BackupError> {
    let mut builder = fs::DirBuilder::new();
    builder.recursive(true);
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    let created = builder.create(folder);
    created.map_err(|error| BackupError::file(folder, error))
}

/// Returns the paths of all regular files below a folder, relative to it and sorted. Symbolic links are left out.
fn files_below(root: &Path, below: &Path) -> Result<Vec<PathBuf>, BackupError> {
    let folder = root.join(below);
    let failed = |error| BackupError::file(&folder, error);
    let entries = match fs::read_dir(&folder) {
        Ok(entries) => entries,
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => return Err(failed(error)),
    };
    let mut files = Vec::new();
    for entry in entries {
        let entry = entry.map_err(failed)?;
        let path = below.join(entry.file_name());
        match entry.file_type() {
            Ok(kind) if kind.is_dir() => files.extend(files_below(root, &path)?),
            Ok(kind) if kind.is_file() => files.push(path),
            Ok(_) => {}
            Err(error) if error.kind() == ErrorKind::NotFound => {}
            Err(error) => return Err(failed(error)),
        }
    }
    files.sort();
    Ok(files)
}

/// Returns whether a file is the database of the records, or lies beside it with a longer name.
fn is_of_database(file: &Path, database: Option<&Path>) -> bool {
    let Some(database) = database else {
        return false;
    };
    let names = [file, database].map(|path| path.file_name().unwrap_or_default());
    let [name, base] = names.map(|name| name.as_encoded_bytes());
    file.parent() == database.parent() && name.starts_with(base)
}

/// Returns whether SQLite keeps this file beside a database.
fn is_companion(file: &Path) -> bool {
    let text = file.to_string_lossy();
    let bases = SQLITE_COMPANIONS.iter();
    let mut bases = bases.filter_map(|ending| text.strip_suffix(ending));
    bases.any(|base| is_sqlite(Path::new(base)).unwrap_or(false))
}

fn is_sqlite(file: &Path) -> std::io::Result<bool> {
    let mut head = Vec::with_capacity(SQLITE_HEADER.len());
    let mut file = File::open(file)?.take(SQLITE_HEADER.len() as u64);
    file.read_to_end(&mut head)?;
    Ok(head == SQLITE_HEADER)
}

/// Copies a file that may be in use. Returns `false` if the file no longer exists.
fn copy_file(source: &Path, copy: &Path) -> Result<bool, BackupError> {
    match is_sqlite(source) {
        Ok(true) => {
            create_parent(copy)?;
            sqlite::back_up(source, copy)?;
            Ok(true)
        }
        Ok(false) => copy_plain(source, copy),
        Err(error) => missing(source, error),
    }
}

/// Returns `false` if the error is that a file does not exist.
fn missing(file: &Path, error: std::io::Error) -> Result<bool, BackupError> {
    match error.kind() {
        ErrorKind::NotFound => Ok(false),
        _ => Err(BackupError::file(file, error)),
    }
}

fn create_parent(file: &Path) -> Result<(), BackupError> {
    file.parent().map_or(Ok(()), create_private)
}

/// Copies a file unless the copy is as long and as new. Returns `false` if the file no longer exists.
fn copy_plain(source: &Path, copy: &Path) -> Result<bool, BackupError> {
    let of_source = match fs::metadata(source) {
        Ok(found) => found,
        Err(error) => return missing(source, error),
    };
    create_parent(copy)?;
    let modified = of_source.modified().ok();
    let is_current = fs::metadata(copy).is_ok_and(|known| {
        known.len() == of_source.len() && known.modified().ok() == modified && modified.is_some()
    });
    if is_current {
        return Ok(true);
    }
    if let Err(error) = fs::copy(source, copy) {
        return missing(source, error);
    }
    let file = File::options().write(true).open(copy);
    let written = file.and_then(|file| {
        if let Some(modified) = modified {
            file.set_modified(modified)?;
        }
        file.sync_all()
    });
    written.map_err(|error| BackupError::file(copy, error))?;
    Ok(true)
}

fn digest(folder: &Path, path: PathBuf) -> Result<FileDigest, BackupError> {
    let full = folder.join(&path);
    let (mut hash, mut bytes) = (Sha256::new(), 0);
    let mut read = || {
        let (mut file, mut buffer) = (File::open(&full)?, vec![0; 64 * 1024]);
        loop {
            let length = file.read(&mut buffer)?;
            if length == 0 {
                return std::io::Result::Ok(());
            }
            hash.update(&buffer[..length]);
            bytes += length as u64;
        }
    };
    read().map_err(|error| BackupError::file(&full, error))?;
    Ok(FileDigest {
        path,
        bytes,
        sha256: hex(&hash.finalize()),
    })
}

/// Runs work that blocks on files.
pub(super) async fn in_background<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, BackupError> + Send + 'static,
) -> Result<T, BackupError> {
    let done = tokio::task::spawn_blocking(work).await;
    done.map_err(|error| BackupError::Suite(SuiteError::Folder(std::io::Error::other(error))))?
}
