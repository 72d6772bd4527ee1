//! The data folder. All disk writes go through this module: an object is written in a staging folder of the same file
//! system, synced, and renamed into place. Readers, and the next start after a crash, find the complete object or
//! nothing.

use std::fs::{self, DirBuilder, File, OpenOptions, TryLockError};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use crate::error::{LocalError, Result};
use crate::names::is_safe_part;

const STAGING: &str = ".staging";
const LOCK: &str = ".lock";
const IN_USE: &str = ".in-use";

/// The data folder. On Unix, only the current user can read its files. Every method blocks on the disk; do not call it
/// on async threads.
#[derive(Debug)]
pub(crate) struct DataDir {
    root: PathBuf,
    next_staging_number: AtomicU64,
    // Every process that has the folder open holds a shared lock. A process that gets the exclusive lock may clear the
    // staging folder.
    _in_use: File,
}

/// An unfinished file or folder in the staging folder. It is deleted on drop unless it was published.
#[derive(Debug)]
pub(crate) struct StagingPath {
    path: PathBuf,
}

/// A lock on a part of the folder. It is released on drop, and when the process ends.
#[derive(Debug)]
pub(crate) struct FolderLock {
    file: File,
}

impl Drop for FolderLock {
    fn drop(&mut self) {
        // Closing the file is not enough: a program that is being started has a copy of it until it runs. If releasing
        // fails, closing remains.
        let _ = self.file.unlock();
    }
}

/// The lock for publishing and removing objects. Only one holder exists across all processes.
#[derive(Debug)]
pub(crate) struct PublishLock {
    _lock: FolderLock,
}

impl DataDir {
    /// Opens the folder and deletes the unfinished objects of ended processes. Creates the folder if it does not exist.
    pub(crate) fn open(root: &Path) -> Result<Self> {
        create_dirs(root)?;
        let root = root.canonicalize()?;
        ensure_plain_dir(&root.join(STAGING))?;
        let in_use = lock_file(&root.join(IN_USE))?;
        if in_use.try_lock().is_ok() {
            remove_contents(&root.join(STAGING))?;
            in_use.unlock()?;
        }
        in_use.lock_shared()?;
        Ok(Self {
            root,
            next_staging_number: AtomicU64::new(0),
            _in_use: in_use,
        })
    }

    /// Returns the path of these parts below the root. Refuses a part that is not a plain name, and any existing part
    /// that is a symbolic link. This prevents mistakes and planted links. It does not protect against a process that
    /// writes to the folder at the same time.
    pub(crate) fn path(&self, parts: &[&str]) -> Result<PathBuf> {
        let mut path = self.root.clone();
        for part in parts {
            if !is_safe_part(part) {
                return Err(LocalError::Invalid(format!("{part:?} is not a safe name")));
            }
            path.push(part);
            match fs::symlink_metadata(&path) {
                Ok(found) if found.is_symlink() => return Err(LocalError::foreign(path)),
                Ok(_) => {}
                Err(error) if is_absence(&error) => {}
                Err(error) => return Err(error.into()),
            }
        }
        Ok(path)
    }

    /// Returns the content of a file; `None` if it does not exist.
    pub(crate) fn read(&self, parts: &[&str]) -> Result<Option<Vec<u8>>> {
        match fs::read(self.path(parts)?) {
            Ok(content) => Ok(Some(content)),
            Err(error) if is_absence(&error) => Ok(None),
            Err(error) => Err(error.into()),
        }
    }

    /// Opens a file for reading. Returns `None` if it does not exist.
    pub(crate) fn open_file(&self, parts: &[&str]) -> Result<Option<File>> {
        match File::open(self.path(parts)?) {
            Ok(file) => Ok(Some(file)),
            Err(error) if is_absence(&error) => Ok(None),
            Err(error) => Err(error.into()),
        }
    }

    /// Returns the time since the last write of a file; `None` if it does not exist. Returns zero if the modification
    /// time is in the future, because the system clock was set back.
    pub(crate) fn age(&self, parts: &[&str]) -> Result<Option<Duration>> {
        match fs::metadata(self.path(parts)?) {
            Ok(found) => Ok(Some(found.modified()?.elapsed().unwrap_or_default())),
            Err(error) if is_absence(&error) => Ok(None),
            Err(error) => Err(error.into()),
        }
    }

    /// Returns the names in a folder in no particular order. Returns an empty list if the folder does not exist.
    pub(crate) fn list(&self, parts: &[&str]) -> Result<Vec<String>> {
        let mut names = Vec::new();
        self.visit(parts, |name| {
            names.push(name);
            Ok(())
        })?;
        Ok(names)
    }

    /// Calls `visit` for each name in a folder, in no particular order. Does nothing if the folder does not exist.
    pub(crate) fn visit(
        &self,
        parts: &[&str],
        mut visit: impl FnMut(String) -> Result<()>,
    ) -> Result<()> {
        let entries = match fs::read_dir(self.path(parts)?) {
            Ok(entries) => entries,
            Err(error) if is_absence(&error) => return Ok(()),
            Err(error) => return Err(error.into()),
        };
        for entry in entries {
            if let Ok(name) = entry?.file_name().into_string() {
                visit(name)?;
            }
        }
        Ok(())
    }

    /// Creates a permanent folder, such as the folder of a resource type, if it does not exist.
    pub(crate) fn ensure_dir(&self, parts: &[&str]) -> Result<PathBuf> {
        let path = self.path(parts)?;
        ensure_plain_dir(&path)?;
        Ok(path)
    }

    /// Creates an empty folder in the staging folder.
    pub(crate) fn stage_dir(&self) -> Result<StagingPath> {
        let (staged, ()) = self.stage(create_dir)?;
        Ok(staged)
    }

    /// Creates an empty file in the staging folder, open for reading and writing.
    pub(crate) fn stage_file(&self) -> Result<(StagingPath, File)> {
        self.stage(create_file)
    }

    fn stage<T>(&self, make: impl Fn(&Path) -> io::Result<T>) -> Result<(StagingPath, T)> {
        loop {
            let number = self.next_staging_number.fetch_add(1, Ordering::Relaxed);
            let name = format!("{}-{number}", std::process::id());
            let path = self.path(&[STAGING, &name])?;
            match make(&path) {
                // Another process with the same process id uses this name, for example in another container.
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
                made => {
                    return made
                        .map(|made| (StagingPath { path }, made))
                        .map_err(Into::into);
                }
            }
        }
    }

    /// Waits for the lock that publishing and removing require.
    pub(crate) fn lock_publish(&self) -> Result<PublishLock> {
        let file = lock_file(&self.root.join(LOCK))?;
        file.lock()?;
        let lock = FolderLock { file };
        Ok(PublishLock { _lock: lock })
    }

    /// Waits for a shared lock on the file. Returns `None` if its folder does not exist.
    pub(crate) fn lock_shared(&self, parts: &[&str]) -> Result<Option<FolderLock>> {
        let file = match lock_file(&self.path(parts)?) {
            Ok(file) => file,
            Err(error) if is_absence(&error) => return Ok(None),
            Err(error) => return Err(error.into()),
        };
        file.lock_shared()?;
        Ok(Some(FolderLock { file }))
    }

    /// Waits for an exclusive lock on the file. Returns `None` if its folder does not exist.
    pub(crate) fn lock_exclusive(&self, parts: &[&str]) -> Result<Option<FolderLock>> {
        let file = match lock_file(&self.path(parts)?) {
            Ok(file) => file,
            Err(error) if is_absence(&error) => return Ok(None),
            Err(error) => return Err(error.into()),
        };
        file.lock()?;
        Ok(Some(FolderLock { file }))
    }

    /// Opens a file for appending. Creates it if it does not exist.
    pub(crate) fn append_file(&self, parts: &[&str]) -> Result<File> {
        let path = self.path(parts)?;
        let mut options = OpenOptions::new();
        Ok(with_private_mode(options.create(true).append(true)).open(path)?)
    }

    /// Tries to get an exclusive lock on the file. Returns `None` if the lock is held by another holder, or if the
    /// folder does not exist.
    pub(crate) fn try_lock(&self, parts: &[&str]) -> Result<Option<FolderLock>> {
        let file = match lock_file(&self.path(parts)?) {
            Ok(file) => file,
            Err(error) if is_absence(&error) => return Ok(None),
            Err(error) => return Err(error.into()),
        };
        match file.try_lock() {
            Ok(()) => Ok(Some(FolderLock { file })),
            Err(TryLockError::WouldBlock) => Ok(None),
            Err(TryLockError::Error(error)) => Err(error.into()),
        }
    }

    /// Moves a staged folder to its final path. Returns `false` and keeps the existing object if the path exists.
    pub(crate) fn publish(
        &self,
        staged: StagingPath,
        parts: &[&str],
        _: &PublishLock,
    ) -> Result<bool> {
        sync_tree(&staged.path)?;
        let target = self.path(parts)?;
        if target.try_exists()? {
            return Ok(false);
        }
        fs::rename(&staged.path, &target)?;
        sync_parent(&target)?;
        Ok(true)
    }

    /// Writes a file and replaces any existing one atomically. Readers see the old content or the new.
    pub(crate) fn replace_file(&self, parts: &[&str], chunks: &[&[u8]]) -> Result<()> {
        let (staged, mut file) = self.stage_file()?;
        for chunk in chunks {
            file.write_all(chunk)?;
        }
        self.commit_file(staged, &file, parts)
    }

    /// Moves a staged file to its final path and replaces any existing file atomically. Readers see the old content or
    /// the new.
    pub(crate) fn commit_file(
        &self,
        staged: StagingPath,
        file: &File,
        parts: &[&str],
    ) -> Result<()> {
        file.sync_all()?;
        let target = self.path(parts)?;
        fs::rename(&staged.path, &target)?;
        sync_parent(&target)?;
        Ok(())
    }

    /// Deletes a file. Returns `false` if it does not exist.
    pub(crate) fn remove_file(&self, parts: &[&str]) -> Result<bool> {
        let target = self.path(parts)?;
        match fs::remove_file(&target) {
            Ok(()) => {}
            Err(error) if is_absence(&error) => return Ok(false),
            Err(error) => return Err(error.into()),
        }
        sync_parent(&target)?;
        Ok(true)
    }

    /// Deletes files of a folder. Missing files are ignored.
    pub(crate) fn remove_files(&self, folder: &[&str], names: &[String]) -> Result<()> {
        if names.is_empty() {
            return Ok(());
        }
        let folder_path = self.path(folder)?;
        for name in names.iter().filter(|name| is_safe_part(name)) {
            remove_any(&folder_path.join(name))?;
        }
        Ok(sync_dir(&folder_path)?)
    }

    /// Makes the directory entries of a folder durable.
    pub(crate) fn sync(&self, parts: &[&str]) -> Result<()> {
        Ok(sync_dir(&self.path(parts)?)?)
    }

    /// Returns the sizes of the files in a folder, in bytes and in no particular order. Returns an empty list if the
    /// folder does not exist.
    pub(crate) fn sizes(&self, parts: &[&str]) -> Result<Vec<u64>> {
        let entries = match fs::read_dir(self.path(parts)?) {
            Ok(entries) => entries,
            Err(error) if is_absence(&error) => return Ok(Vec::new()),
            Err(error) => return Err(error.into()),
        };
        let mut sizes = Vec::new();
        for entry in entries {
            match entry?.metadata() {
                Ok(found) if found.is_file() => sizes.push(found.len()),
                Err(error) if !is_absence(&error) => return Err(error.into()),
                _ => {}
            }
        }
        Ok(sizes)
    }

    /// Returns the sizes of all files in a folder and the folders in it, in bytes. Returns `None` if the folder does not
    /// exist. A file that is removed in the meantime does not count.
    pub(crate) fn total_size(&self, parts: &[&str]) -> Result<Option<u64>> {
        let folder = self.path(parts)?;
        if !folder.is_dir() {
            return Ok(None);
        }
        let (mut folders, mut total) = (vec![folder], 0_u64);
        while let Some(folder) = folders.pop() {
            let entries = match fs::read_dir(&folder) {
                Ok(entries) => entries,
                Err(error) if is_absence(&error) => continue,
                Err(error) => return Err(error.into()),
            };
            for entry in entries {
                let entry = entry?;
                // Does not follow symbolic links.
                match entry.metadata() {
                    Ok(found) if found.is_dir() => folders.push(entry.path()),
                    Ok(found) if found.is_file() => total = total.saturating_add(found.len()),
                    Err(error) if !is_absence(&error) => return Err(error.into()),
                    _ => {}
                }
            }
        }
        Ok(Some(total))
    }

    /// Moves a folder to the staging folder. Its content is deleted when the returned value is dropped.
    pub(crate) fn detach(&self, parts: &[&str], _: &PublishLock) -> Result<StagingPath> {
        let target = self.path(parts)?;
        // A rename can replace an empty folder.
        let staged = self.stage_dir()?;
        fs::rename(&target, &staged.path)?;
        sync_parent(&target)?;
        Ok(staged)
    }
}

impl StagingPath {
    /// Returns the path in the staging folder.
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// Creates a subfolder of a staged folder.
    pub(crate) fn create_dir(&self, relative: &str) -> io::Result<()> {
        create_dir(&self.path.join(relative))
    }

    /// Creates a file in a staged folder, with its parent folders. The caller must sync it after writing.
    pub(crate) fn create_file(&self, relative: &str) -> io::Result<File> {
        let path = self.path.join(relative);
        match (create_file(&path), path.parent()) {
            (Err(error), Some(folder)) if error.kind() == io::ErrorKind::NotFound => {
                create_dirs(folder)?;
                create_file(&path)
            }
            (created, _) => created,
        }
    }

    /// Writes and syncs a file in a staged folder, with its parent folders.
    pub(crate) fn write(&self, relative: &str, content: &[u8]) -> Result<()> {
        let mut file = self.create_file(relative)?;
        file.write_all(content)?;
        file.sync_all()?;
        Ok(())
    }
}

impl Drop for StagingPath {
    fn drop(&mut self) {
        // After publishing, nothing exists at this path. If a removal fails here, the next opening of the folder
        // deletes the rest.
        let _ = remove_any(&self.path);
    }
}

/// Returns whether the error means that the path does not exist.
pub(crate) fn is_absence(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::NotFound | io::ErrorKind::NotADirectory
    )
}

/// Creates a file that only the current user can read and write.
pub(crate) fn create_file(path: &Path) -> io::Result<File> {
    with_private_mode(OpenOptions::new().read(true).write(true).create_new(true)).open(path)
}

fn lock_file(path: &Path) -> io::Result<File> {
    with_private_mode(OpenOptions::new().create(true).truncate(false).write(true)).open(path)
}

#[cfg(unix)]
fn with_private_mode(options: &mut OpenOptions) -> &mut OpenOptions {
    use std::os::unix::fs::OpenOptionsExt;
    options.mode(0o600)
}

#[cfg(not(unix))]
fn with_private_mode(options: &mut OpenOptions) -> &mut OpenOptions {
    options
}

/// Creates a folder that only the current user can access.
fn create_dir(path: &Path) -> io::Result<()> {
    private_dir_builder().create(path)
}

/// Creates a folder and its parent folders. Succeeds if it exists.
fn create_dirs(path: &Path) -> io::Result<()> {
    private_dir_builder().recursive(true).create(path)
}

#[cfg(unix)]
fn private_dir_builder() -> DirBuilder {
    use std::os::unix::fs::DirBuilderExt;
    let mut builder = DirBuilder::new();
    builder.mode(0o700);
    builder
}

#[cfg(not(unix))]
fn private_dir_builder() -> DirBuilder {
    DirBuilder::new()
}

fn ensure_plain_dir(path: &Path) -> Result<()> {
    match create_dir(path) {
        Ok(()) => Ok(sync_parent(path)?),
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
            if fs::symlink_metadata(path)?.is_dir() {
                Ok(())
            } else {
                Err(LocalError::foreign(path))
            }
        }
        Err(error) => Err(error.into()),
    }
}

fn remove_contents(folder: &Path) -> io::Result<()> {
    for entry in fs::read_dir(folder)? {
        remove_any(&entry?.path())?;
    }
    Ok(())
}

/// Deletes a file or folder, if it exists. Never follows a symbolic link.
fn remove_any(path: &Path) -> io::Result<()> {
    let removed = match fs::symlink_metadata(path) {
        Ok(found) if found.is_dir() => fs::remove_dir_all(path),
        Ok(_) => fs::remove_file(path),
        Err(error) => Err(error),
    };
    match removed {
        Err(error) if !is_absence(&error) => Err(error),
        _ => Ok(()),
    }
}

/// Makes the directory entries of a folder and its subfolders durable. The files were synced when they were written.
fn sync_tree(folder: &Path) -> io::Result<()> {
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        if entry.file_type()?.is_dir() {
            sync_tree(&entry.path())?;
        }
    }
    sync_dir(folder)
}

fn sync_parent(path: &Path) -> io::Result<()> {
    path.parent().map_or(Ok(()), sync_dir)
}

#[cfg(unix)]
fn sync_dir(folder: &Path) -> io::Result<()> {
    File::open(folder)?.sync_all()
}

/// Only Unix can open a folder to sync it.
#[cfg(not(unix))]
fn sync_dir(_: &Path) -> io::Result<()> {
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn data_dir() -> (tempfile::TempDir, DataDir) {
        let folder = tempfile::tempdir().unwrap();
        let data = DataDir::open(folder.path()).unwrap();
        (folder, data)
    }

    #[test]
    fn dropping_a_staged_folder_deletes_it() {
        let (_folder, data) = data_dir();
        let staged = data.stage_dir().unwrap();
        staged.write("a/b.txt", b"text").unwrap();
        drop(staged);
        assert!(data.list(&[STAGING]).unwrap().is_empty());
    }

    #[test]
    fn publish_keeps_an_existing_object() {
        let (_folder, data) = data_dir();
        let lock = data.lock_publish().unwrap();
        for (content, won) in [("first", true), ("second", false)] {
            let staged = data.stage_dir().unwrap();
            staged.write("x", content.as_bytes()).unwrap();
            assert_eq!(data.publish(staged, &["thing"], &lock).unwrap(), won);
        }
        assert_eq!(data.read(&["thing", "x"]).unwrap().unwrap(), b"first");
    }

    #[test]
    fn a_released_lock_is_free_although_a_starting_program_has_a_copy_of_its_file() {
        let (_folder, data) = data_dir();
        let lock = data.try_lock(&["part"]).unwrap().unwrap();
        let copy = lock.file.try_clone().unwrap();
        assert!(data.try_lock(&["part"]).unwrap().is_none());
        drop(lock);
        assert!(data.try_lock(&["part"]).unwrap().is_some());
        drop(copy);
    }

    #[test]
    fn opening_clears_staged_files_of_ended_processes_only() {
        let (folder, data) = data_dir();
        let staged = data.stage_dir().unwrap();
        staged.write("x", b"").unwrap();
        let second = DataDir::open(folder.path()).unwrap();
        assert_eq!(second.list(&[STAGING]).unwrap().len(), 1);
        std::mem::forget(staged);
        drop((data, second));
        let third = DataDir::open(folder.path()).unwrap();
        assert!(third.list(&[STAGING]).unwrap().is_empty());
    }

    #[cfg(unix)]
    #[test]
    fn paths_through_symbolic_links_are_refused() {
        let (folder, data) = data_dir();
        let outside = tempfile::tempdir().unwrap();
        fs::write(outside.path().join("secret"), "secret").unwrap();
        std::os::unix::fs::symlink(outside.path(), folder.path().join("link")).unwrap();
        for parts in [&["link"][..], &["link", "secret"]] {
            assert!(matches!(
                data.path(parts),
                Err(LocalError::UnexpectedFile(_))
            ));
            assert!(data.read(parts).is_err());
        }
        assert!(data.ensure_dir(&["link"]).is_err());
        assert!(data.replace_file(&["link", "new"], &[b"x"]).is_err());
        assert!(data.remove_file(&["link", "secret"]).is_err());
        assert!(outside.path().join("secret").exists());
        assert!(!outside.path().join("new").exists());
    }

    #[test]
    fn path_parts_must_be_plain_names() {
        let (_folder, data) = data_dir();
        for part in ["", ".", "..", "a/b", "/etc", "a\0"] {
            assert!(data.path(&["x", part]).is_err(), "{part:?}");
        }
    }
}
