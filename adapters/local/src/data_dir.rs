//! The one folder everything lives in. All writing to disk goes through here: something is first made in a staging
//! folder of the same file system, synced, and then renamed into place, so that readers, and the next start after a crash,
//! find the whole thing or nothing.

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

/// A folder of ours; on Unix nobody else on the machine can read what is made in it. Every method waits for the disk: call
/// it off the async threads.
#[derive(Debug)]
pub(crate) struct DataDir {
    root: PathBuf,
    next: AtomicU64,
    // Locked shared by all processes that have the folder open; one that locks it alone may clear the staging folder.
    _in_use: File,
}

/// Something being made; removed when dropped before it was put into place.
#[derive(Debug)]
pub(crate) struct Staged {
    path: PathBuf,
}

/// A lock of a part of the folder. It is released when dropped, and when the process ends.
#[derive(Debug)]
pub(crate) struct FolderLock {
    _file: File,
}

/// Held while something is put into place or removed; of all processes one at a time.
#[derive(Debug)]
pub(crate) struct Exclusive {
    _lock: File,
}

impl DataDir {
    /// Opens the folder, making it when needed, and removes what an interrupted process left half made.
    pub(crate) fn open(root: &Path) -> Result<Self> {
        create_dirs(root)?;
        let root = root.canonicalize()?;
        plain_dir(&root.join(STAGING))?;
        let in_use = lock_file(&root.join(IN_USE))?;
        if in_use.try_lock().is_ok() {
            clear(&root.join(STAGING))?;
            in_use.unlock()?;
        }
        in_use.lock_shared()?;
        Ok(Self {
            root,
            next: AtomicU64::new(0),
            _in_use: in_use,
        })
    }

    /// The path of these parts below the root. Refuses a part that is no plain name, and any part that exists as a
    /// symbolic link. It keeps mistakes and planted links out; it does not protect against a process that writes to the
    /// folder at the same time.
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

    /// The content of a file; `None` when it does not exist.
    pub(crate) fn read(&self, parts: &[&str]) -> Result<Option<Vec<u8>>> {
        match fs::read(self.path(parts)?) {
            Ok(content) => Ok(Some(content)),
            Err(error) if is_absence(&error) => Ok(None),
            Err(error) => Err(error.into()),
        }
    }

    /// Opens a file for reading; `None` when it does not exist.
    pub(crate) fn open_file(&self, parts: &[&str]) -> Result<Option<File>> {
        match File::open(self.path(parts)?) {
            Ok(file) => Ok(Some(file)),
            Err(error) if is_absence(&error) => Ok(None),
            Err(error) => Err(error.into()),
        }
    }

    /// How long ago a file was written; `None` when it does not exist. One that was written in the future, by a clock that
    /// was set back since, is new.
    pub(crate) fn age(&self, parts: &[&str]) -> Result<Option<Duration>> {
        match fs::metadata(self.path(parts)?) {
            Ok(found) => Ok(Some(found.modified()?.elapsed().unwrap_or_default())),
            Err(error) if is_absence(&error) => Ok(None),
            Err(error) => Err(error.into()),
        }
    }

    /// The names in a folder, in no order; none when it does not exist.
    pub(crate) fn list(&self, parts: &[&str]) -> Result<Vec<String>> {
        let mut names = Vec::new();
        self.visit(parts, |name| {
            names.push(name);
            Ok(())
        })?;
        Ok(names)
    }

    /// Calls `visit` with each name in a folder, in no order; with none when it does not exist.
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

    /// Makes a folder that stays, such as the one of a kind of objects.
    pub(crate) fn ensure_dir(&self, parts: &[&str]) -> Result<PathBuf> {
        let path = self.path(parts)?;
        plain_dir(&path)?;
        Ok(path)
    }

    /// Starts an object that is a folder.
    pub(crate) fn stage_dir(&self) -> Result<Staged> {
        let (staged, ()) = self.stage(create_dir)?;
        Ok(staged)
    }

    /// Starts an object that is a file, open for reading and writing.
    pub(crate) fn stage_file(&self) -> Result<(Staged, File)> {
        self.stage(create_file)
    }

    fn stage<T>(&self, make: impl Fn(&Path) -> io::Result<T>) -> Result<(Staged, T)> {
        loop {
            let number = self.next.fetch_add(1, Ordering::Relaxed);
            let name = format!("{}-{number}", std::process::id());
            let path = self.path(&[STAGING, &name])?;
            match make(&path) {
                // Another instance of the same process number has this one.
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
                made => return made.map(|made| (Staged { path }, made)).map_err(Into::into),
            }
        }
    }

    /// Waits until nobody else puts something into place or removes it.
    pub(crate) fn exclusive(&self) -> Result<Exclusive> {
        let lock = lock_file(&self.root.join(LOCK))?;
        lock.lock()?;
        Ok(Exclusive { _lock: lock })
    }

    /// Waits until the lock can be shared; `None` if its folder does not exist.
    pub(crate) fn lock_shared(&self, parts: &[&str]) -> Result<Option<FolderLock>> {
        let file = match lock_file(&self.path(parts)?) {
            Ok(file) => file,
            Err(error) if is_absence(&error) => return Ok(None),
            Err(error) => return Err(error.into()),
        };
        file.lock_shared()?;
        Ok(Some(FolderLock { _file: file }))
    }

    /// Takes the lock exclusively; `None` if it is taken, or its folder does not exist.
    pub(crate) fn try_lock(&self, parts: &[&str]) -> Result<Option<FolderLock>> {
        let file = match lock_file(&self.path(parts)?) {
            Ok(file) => file,
            Err(error) if is_absence(&error) => return Ok(None),
            Err(error) => return Err(error.into()),
        };
        match file.try_lock() {
            Ok(()) => Ok(Some(FolderLock { _file: file })),
            Err(TryLockError::WouldBlock) => Ok(None),
            Err(TryLockError::Error(error)) => Err(error.into()),
        }
    }

    /// Puts a staged folder into place. `false` when there is something already: that stays.
    pub(crate) fn publish(&self, staged: Staged, parts: &[&str], _: &Exclusive) -> Result<bool> {
        sync_tree(&staged.path)?;
        let target = self.path(parts)?;
        if target.try_exists()? {
            return Ok(false);
        }
        fs::rename(&staged.path, &target)?;
        sync_parent(&target)?;
        Ok(true)
    }

    /// Puts a file into place, replacing what is there. Readers see the old content or the new.
    pub(crate) fn replace_file(&self, parts: &[&str], chunks: &[&[u8]]) -> Result<()> {
        let (staged, mut file) = self.stage_file()?;
        for chunk in chunks {
            file.write_all(chunk)?;
        }
        self.commit_file(staged, &file, parts)
    }

    /// Puts a staged file into place, replacing what is there. Readers see the old content or the new.
    pub(crate) fn commit_file(&self, staged: Staged, file: &File, parts: &[&str]) -> Result<()> {
        file.sync_all()?;
        let target = self.path(parts)?;
        fs::rename(&staged.path, &target)?;
        sync_parent(&target)?;
        Ok(())
    }

    /// Removes a file; `false` when it does not exist.
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

    /// Removes files of a folder; those that do not exist are left out.
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

    /// Makes the names in a folder durable.
    pub(crate) fn sync(&self, parts: &[&str]) -> Result<()> {
        Ok(sync_dir(&self.path(parts)?)?)
    }

    /// The lengths of the files in a folder, in no order; none when it does not exist.
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

    /// Moves a folder out of its place at once; its content is removed when the answer is dropped.
    pub(crate) fn detach(&self, parts: &[&str], _: &Exclusive) -> Result<Staged> {
        let target = self.path(parts)?;
        // An empty folder may be replaced by a rename.
        let staged = self.stage_dir()?;
        fs::rename(&target, &staged.path)?;
        sync_parent(&target)?;
        Ok(staged)
    }
}

impl Staged {
    /// Where it is made.
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// Makes a folder inside a staged folder.
    pub(crate) fn create_dir(&self, relative: &str) -> io::Result<()> {
        create_dir(&self.path.join(relative))
    }

    /// Begins a file inside a staged folder, with the folders it needs. Sync it once it is written.
    pub(crate) fn create_file(&self, relative: &str) -> io::Result<File> {
        let path = self.path.join(relative);
        if let Some(folder) = path.parent() {
            create_dirs(folder)?;
        }
        create_file(&path)
    }

    /// Writes a file inside a staged folder, with the folders it needs.
    pub(crate) fn write(&self, relative: &str, content: &[u8]) -> Result<()> {
        let mut file = self.create_file(relative)?;
        file.write_all(content)?;
        file.sync_all()?;
        Ok(())
    }
}

impl Drop for Staged {
    fn drop(&mut self) {
        // Put into place: nothing is here any more. Otherwise what cannot be removed now is when the folder is opened again.
        let _ = remove_any(&self.path);
    }
}

/// Tells whether an error says that there is nothing at the path.
pub(crate) fn is_absence(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::NotFound | io::ErrorKind::NotADirectory
    )
}

/// Makes a file that nobody but this user can read or write.
pub(crate) fn create_file(path: &Path) -> io::Result<File> {
    private(OpenOptions::new().read(true).write(true).create_new(true)).open(path)
}

fn lock_file(path: &Path) -> io::Result<File> {
    private(OpenOptions::new().create(true).truncate(false).write(true)).open(path)
}

#[cfg(unix)]
fn private(options: &mut OpenOptions) -> &mut OpenOptions {
    use std::os::unix::fs::OpenOptionsExt;
    options.mode(0o600)
}

#[cfg(not(unix))]
fn private(options: &mut OpenOptions) -> &mut OpenOptions {
    options
}

/// Makes a folder that nobody but this user can look into.
fn create_dir(path: &Path) -> io::Result<()> {
    private_dirs().create(path)
}

/// As [`create_dir`], with the folders above it; fine when it exists.
fn create_dirs(path: &Path) -> io::Result<()> {
    private_dirs().recursive(true).create(path)
}

#[cfg(unix)]
fn private_dirs() -> DirBuilder {
    use std::os::unix::fs::DirBuilderExt;
    let mut builder = DirBuilder::new();
    builder.mode(0o700);
    builder
}

#[cfg(not(unix))]
fn private_dirs() -> DirBuilder {
    DirBuilder::new()
}

fn plain_dir(path: &Path) -> Result<()> {
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

fn clear(folder: &Path) -> io::Result<()> {
    for entry in fs::read_dir(folder)? {
        remove_any(&entry?.path())?;
    }
    Ok(())
}

/// Removes a file or a folder; never follows a symbolic link.
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

/// Makes the names in a folder and below durable; the files themselves were synced when they were written.
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
    fn a_staged_folder_that_is_dropped_leaves_nothing() {
        let (_folder, data) = data_dir();
        let staged = data.stage_dir().unwrap();
        staged.write("a/b.txt", b"text").unwrap();
        drop(staged);
        assert!(data.list(&[STAGING]).unwrap().is_empty());
    }

    #[test]
    fn what_is_published_first_stays() {
        let (_folder, data) = data_dir();
        let lock = data.exclusive().unwrap();
        for (content, won) in [("first", true), ("second", false)] {
            let staged = data.stage_dir().unwrap();
            staged.write("x", content.as_bytes()).unwrap();
            assert_eq!(data.publish(staged, &["thing"], &lock).unwrap(), won);
        }
        assert_eq!(data.read(&["thing", "x"]).unwrap().unwrap(), b"first");
    }

    #[test]
    fn opening_clears_the_leftovers_of_a_dead_process_but_not_of_a_living_one() {
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
    fn a_symbolic_link_on_the_way_is_refused() {
        let (folder, data) = data_dir();
        let outside = tempfile::tempdir().unwrap();
        fs::write(outside.path().join("secret"), "secret").unwrap();
        std::os::unix::fs::symlink(outside.path(), folder.path().join("link")).unwrap();
        for parts in [&["link"][..], &["link", "secret"]] {
            assert!(matches!(data.path(parts), Err(LocalError::Foreign(_))));
            assert!(data.read(parts).is_err());
        }
        assert!(data.ensure_dir(&["link"]).is_err());
        assert!(data.replace_file(&["link", "new"], &[b"x"]).is_err());
        assert!(data.remove_file(&["link", "secret"]).is_err());
        assert!(outside.path().join("secret").exists());
        assert!(!outside.path().join("new").exists());
    }

    #[test]
    fn parts_that_are_no_plain_names_are_refused() {
        let (_folder, data) = data_dir();
        for part in ["", ".", "..", "a/b", "/etc", "a\0"] {
            assert!(data.path(&["x", part]).is_err(), "{part:?}");
        }
    }
}
