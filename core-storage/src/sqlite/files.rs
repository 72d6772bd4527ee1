//! The database files. Only their owner can access them, and only one process can open them.

use std::fs::{File, TryLockError};
use std::path::{Path, PathBuf};

use core_domain::kernel::StoreError;

/// Locks the database against other processes until the file handle is closed, however this process ends.
pub(super) fn acquire_lock(path: &Path) -> Result<File, StoreError> {
    let mut lock_path = path.as_os_str().to_owned();
    lock_path.push(".lock");
    let lock = create_private(Path::new(&lock_path))?;
    match lock.try_lock() {
        Ok(()) => Ok(lock),
        Err(TryLockError::WouldBlock) => Err(StoreError::unavailable(format!(
            "{} is in use by another process",
            path.display()
        ))),
        Err(TryLockError::Error(error)) => Err(StoreError::unavailable(error)),
    }
}

/// Opens the file. Creates it with access only for its owner, whatever the umask. SQLite gives the other files of a
/// database the same permissions.
pub(super) fn create_private(path: &Path) -> Result<File, StoreError> {
    let mut options = File::options();
    options.create(true).truncate(false).write(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    options.open(path).map_err(|source| {
        let path = path.to_owned();
        StoreError::unavailable(FileError { path, source })
    })
}

/// The error for a file that cannot be opened.
#[derive(Debug, thiserror::Error)]
#[error("{}: {source}", path.display())]
struct FileError {
    path: PathBuf,
    source: std::io::Error,
}
