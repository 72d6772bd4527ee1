//! The contents of a pages project: content-addressed, one file per digest. The indexes of deployments refer to
//! contents by digest.
//!
//! ```text
//! pages/{project}/content/{digest}
//! pages/{project}/.content-lock
//! ```
//! A deployment holds the lock shared, from the first check for existing contents until the deployment is in place.
//! [`sweep`] holds the lock exclusively and deletes the contents that no deployment refers to, so it never sees an
//! unfinished deployment. It does not wait for the lock: if a deployment is in progress, a later sweep does the work.
//! The operating system releases a lock when its process ends. If a process ends before its deployment is in place, the
//! next sweep deletes the contents that it added.

use std::collections::{BTreeSet, HashMap, HashSet};
use std::fs;
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};
use std::sync::mpsc::{self, Receiver, SyncSender};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{self, Scope, ScopedJoinHandle};

use core_domain::cli::SiteFile;
use core_domain::kernel::{hex, parse_hex};
use core_domain::port::{Cause, ResourceRef, Site, SiteStorage};
use core_domain::registry::ResourceType;
use sha2::{Digest, Sha256};

use crate::data_dir::{DataDir, FolderLock, StagingPath, is_absence};
use crate::error::{LocalError, Result};
use crate::manifest::Manifest;
use crate::names::check_name;
use crate::site::{BRANCHES, CONTENT, DEPLOYMENTS, SiteIndex, SiteIndexEntry, index, pointer};

const KIND: &str = ResourceType::Pages.as_str();
const LOCK: &str = ".content-lock";

/// The file that marks a data folder in which all projects have the current layout.
const LAYOUT_FILE: &str = ".site-layout";
const LAYOUT: &[u8] = b"2";

/// Size of the copy buffer, in bytes.
const BUFFER: usize = 64 * 1024;

/// Maximum number of threads that write the contents of one deployment.
const MAX_THREADS: usize = 4;

/// Maximum size of a content that is written by another thread than the reading one, in bytes.
const MAX_QUEUED_BYTES: u64 = 64 * 1024;

/// Maximum number of contents in memory that wait for a thread.
const MAX_QUEUED_CONTENTS: usize = 16;

/// Maximum number of files that are synced one by one. The sync of a file takes about 0.2 ms on a fast disk; the sync of
/// a file system with ten thousand new files takes 0.1 s.
#[cfg(target_os = "linux")]
const MAX_SEPARATE_SYNCS: usize = 32;

/// Size of a disk block, in bytes. A file takes whole blocks.
const BLOCK: u64 = 4_096;

/// The contents of a project. No sweep changes them while this value exists.
#[derive(Debug)]
pub(crate) struct SiteContents<'a> {
    data: &'a DataDir,
    project: &'a str,
    folder: PathBuf,
    _lock: FolderLock,
}

impl<'a> SiteContents<'a> {
    /// Waits until no sweep is running.
    ///
    /// # Errors
    /// [`LocalError::Missing`] if the project does not exist.
    pub(crate) fn open(data: &'a DataDir, project: &'a str) -> Result<Self> {
        let lock = data.lock_shared(&[KIND, project, LOCK])?;
        let lock = lock.ok_or_else(|| LocalError::Missing(format!("pages {project}")))?;
        let folder = data.ensure_dir(&[KIND, project, CONTENT])?;
        Ok(Self {
            data,
            project,
            folder,
            _lock: lock,
        })
    }

    /// Returns whether the content of a file is stored completely.
    pub(crate) fn has(&self, entry: &SiteIndexEntry) -> bool {
        is_whole(&self.folder, &entry.digest, entry.size)
    }

    /// Moves written contents to their final paths, and makes these durable.
    pub(crate) fn add(&self, written: WrittenContents) -> Result<()> {
        let staged = written.folder.path();
        // The contents of the first deployment are moved at once. A folder cannot replace one that is not empty.
        if fs::rename(staged, &self.folder).is_ok() {
            self.data.sync(&[KIND, self.project])?;
        } else {
            for digest in written.digests {
                fs::rename(staged.join(&digest), self.folder.join(&digest))?;
            }
        }
        self.data.sync(&[KIND, self.project, CONTENT])
    }
}

/// Contents in the staging folder; deleted on drop.
#[derive(Debug)]
pub(crate) struct WrittenContents {
    folder: StagingPath,
    digests: Vec<String>,
}

impl WrittenContents {
    /// Writes the uploaded contents of a site that are in `missing`, and removes them from it. Afterwards they are durable.
    ///
    /// This thread reads the site and creates the files, because threads that create files in one folder wait for each
    /// other. Other threads hash and write the small contents.
    ///
    /// # Errors
    /// [`io::ErrorKind::InvalidData`] if a content does not match the digest of its file.
    pub(crate) fn write(
        data: &DataDir,
        site: &dyn Site,
        missing: &mut BTreeSet<[u8; 32]>,
    ) -> Result<Self> {
        let folder = data.stage_dir()?;
        let sync = ContentSync::of(&folder, missing.len())?;
        let threads = thread::available_parallelism().map_or(1, usize::from);
        let threads = threads.min(MAX_THREADS).min(missing.len());
        let writer = ContentWriter {
            folder: &folder,
            sync: &sync,
        };
        let mut digests = Vec::with_capacity(missing.len());
        thread::scope(|scope| {
            let queue = WriteQueue::start(scope, &writer, threads);
            let read = site.read(&mut |file, content| {
                if !missing.remove(&file.digest) {
                    return Ok(());
                }
                digests.push(hex(&file.digest));
                if file.size > MAX_QUEUED_BYTES {
                    return writer.write(&file.digest, content);
                }
                queue.add(writer.create(&file.digest)?, file, content)
            });
            // An error of a writer is the cause of the reader's.
            queue.finish().and(read)
        })?;
        sync.finish()?;
        Ok(Self { folder, digests })
    }
}

/// A small content that is written by another thread.
struct QueuedContent {
    target: fs::File,
    digest: [u8; 32],
    bytes: Vec<u8>,
}

/// The threads that write small contents.
struct WriteQueue<'scope> {
    queue: SyncSender<QueuedContent>,
    writers: Vec<ScopedJoinHandle<'scope, io::Result<()>>>,
}

impl<'scope> WriteQueue<'scope> {
    fn start(
        scope: &'scope Scope<'scope, '_>,
        writer: &'scope ContentWriter<'_>,
        threads: usize,
    ) -> Self {
        let (queue, queued) = mpsc::sync_channel(MAX_QUEUED_CONTENTS);
        // The channel is closed when the last writer has ended.
        let queued = Arc::new(Mutex::new(queued));
        let start = |_| {
            let queued = Arc::clone(&queued);
            scope.spawn(move || writer.write_queued(&queued))
        };
        Self {
            writers: (0..threads).map(start).collect(),
            queue,
        }
    }

    /// Reads a content and adds it to the queue, with the new file that it is written to.
    fn add(&self, target: fs::File, file: &SiteFile, content: &mut dyn Read) -> io::Result<()> {
        let mut bytes = Vec::with_capacity(usize::try_from(file.size).unwrap_or_default());
        content.take(MAX_QUEUED_BYTES + 1).read_to_end(&mut bytes)?;
        let content = QueuedContent {
            target,
            digest: file.digest,
            bytes,
        };
        let sent = self.queue.send(content);
        sent.map_err(|_| io::Error::other("the threads that write contents have ended"))
    }

    /// Waits until all contents are written. Returns the first error of a writer.
    fn finish(self) -> io::Result<()> {
        drop(self.queue);
        let mut outcome = Ok(());
        for writer in self.writers {
            let written = writer.join();
            let written =
                written.unwrap_or_else(|_| Err(io::Error::other("writing a content panicked")));
            outcome = outcome.and(written);
        }
        outcome
    }
}

/// Writes contents to the files of a staged folder.
#[derive(Debug)]
struct ContentWriter<'a> {
    folder: &'a StagingPath,
    sync: &'a ContentSync,
}

impl ContentWriter<'_> {
    /// Writes contents until the queue is closed and empty.
    fn write_queued(&self, queued: &Mutex<Receiver<QueuedContent>>) -> io::Result<()> {
        loop {
            let next = queued.lock().unwrap_or_else(PoisonError::into_inner).recv();
            let Ok(mut queued) = next else {
                return Ok(());
            };
            ensure_unchanged(&queued.digest, Sha256::digest(&queued.bytes).into())?;
            queued.target.write_all(&queued.bytes)?;
            self.sync.on_written(&queued.target)?;
        }
    }

    fn create(&self, digest: &[u8; 32]) -> io::Result<fs::File> {
        self.folder.create_file(&hex(digest))
    }

    fn write(&self, expected: &[u8; 32], content: &mut dyn Read) -> io::Result<()> {
        let mut target = self.create(expected)?;
        let mut hash = Sha256::new();
        let mut buffer = vec![0; BUFFER];
        loop {
            match content.read(&mut buffer) {
                Ok(0) => break,
                Ok(read) => {
                    hash.update(&buffer[..read]);
                    target.write_all(&buffer[..read])?;
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        ensure_unchanged(expected, hash.finalize().into())?;
        self.sync.on_written(&target)
    }
}

fn ensure_unchanged(expected: &[u8; 32], digest: [u8; 32]) -> io::Result<()> {
    if digest == *expected {
        return Ok(());
    }
    let what = "a file of the site changed after it was checked";
    Err(io::Error::new(io::ErrorKind::InvalidData, what))
}

/// The way in which written contents become durable.
#[derive(Debug)]
enum ContentSync {
    /// Each file is synced when it is written.
    EachFile,
    /// The whole file system is synced once, after all files are written. The folder is opened before, so that the sync
    /// also reports the failure of an earlier write.
    #[cfg(target_os = "linux")]
    FileSystem(fs::File),
}

impl ContentSync {
    /// Returns the faster way for this number of files.
    #[cfg(target_os = "linux")]
    fn of(folder: &StagingPath, count: usize) -> io::Result<Self> {
        if count <= MAX_SEPARATE_SYNCS {
            return Ok(Self::EachFile);
        }
        fs::File::open(folder.path()).map(Self::FileSystem)
    }

    #[cfg(not(target_os = "linux"))]
    fn of(_: &StagingPath, _: usize) -> io::Result<Self> {
        Ok(Self::EachFile)
    }

    fn on_written(&self, file: &fs::File) -> io::Result<()> {
        match self {
            Self::EachFile => file.sync_all(),
            #[cfg(target_os = "linux")]
            Self::FileSystem(_) => Ok(()),
        }
    }

    fn finish(self) -> io::Result<()> {
        match self {
            Self::EachFile => Ok(()),
            #[cfg(target_os = "linux")]
            Self::FileSystem(folder) => Ok(rustix::fs::syncfs(folder)?),
        }
    }
}

/// Returns whether a folder contains a regular file with this name and length.
fn is_whole(folder: &Path, digest: &str, size: u64) -> bool {
    let found = fs::symlink_metadata(folder.join(digest));
    found.is_ok_and(|found| found.is_file() && found.len() == size)
}

/// Deletes the contents of a project that no deployment refers to, and returns their number. Does nothing while a
/// deployment is in progress.
pub(crate) fn sweep(data: &DataDir, project: &str) -> Result<u64> {
    let Some(_lock) = data.try_lock(&[KIND, project, LOCK])? else {
        return Ok(0);
    };
    let mut named = HashSet::new();
    for id in data.list(&[KIND, project, DEPLOYMENTS])? {
        // A deployment that is deleted at this moment refers to no contents.
        let SiteIndex(files) = index(data, project, &id)?.unwrap_or_default();
        named.extend(files.values().filter_map(|entry| parse_hex(&entry.digest)));
    }
    let mut unnamed = data.list(&[KIND, project, CONTENT])?;
    unnamed.retain(|digest| parse_hex(digest).is_none_or(|digest| !named.contains(&digest)));
    data.remove_files(&[KIND, project, CONTENT], &unnamed)?;
    Ok(unnamed.len() as u64)
}

/// The digest of a content and its length in bytes.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ContentSize {
    digest: [u8; 32],
    size: u64,
}

impl From<&SiteFile> for ContentSize {
    fn from(file: &SiteFile) -> Self {
        Self {
            digest: file.digest,
            size: file.size,
        }
    }
}

/// Returns the digests of those contents that a project of this owner has completely.
pub(crate) fn find_stored(
    data: &DataDir,
    project: &str,
    owner: &str,
    files: &[ContentSize],
) -> Result<BTreeSet<[u8; 32]>> {
    let resource = ResourceRef {
        resource_type: ResourceType::Pages,
        name: project.to_owned(),
    };
    if Manifest::read_owned(data, &resource, owner)?.is_none() {
        return Ok(BTreeSet::new());
    }
    let folder = data.path(&[KIND, project, CONTENT])?;
    let is_stored = |file: &&ContentSize| is_whole(&folder, &hex(&file.digest), file.size);
    Ok(files
        .iter()
        .filter(is_stored)
        .map(|file| file.digest)
        .collect())
}

/// Measures the disk space of the sites of an owner, and the additional space of these files as a deployment of the
/// branch.
///
/// Contents that only replaced deployments use do not count, because pruning deletes such deployments if space is
/// short. Contents that only the current deployment of the branch uses do not count either.
pub(crate) fn storage(
    data: &DataDir,
    project: &str,
    label: &str,
    owner: &str,
    files: &[ContentSize],
) -> Result<SiteStorage> {
    let mut stored_bytes = 0_u64;
    let mut named_here = HashMap::new();
    for other in projects_of(data, owner)? {
        let replaced = (other == project).then_some(label);
        let named = named_by_current(data, &other, replaced)?;
        stored_bytes = named
            .values()
            .copied()
            .fold(stored_bytes, u64::saturating_add);
        if other == project {
            named_here = named;
        }
    }
    let mut new_bytes = 0_u64;
    let mut seen = BTreeSet::new();
    for file in files {
        if seen.insert(file.digest) && !named_here.contains_key(&file.digest) {
            new_bytes = new_bytes.saturating_add(disk_size(file.size));
        }
    }
    Ok(SiteStorage {
        stored_bytes,
        new_bytes,
    })
}

/// Returns the disk space of all contents of an owner in bytes, including replaced deployments.
pub(crate) fn bytes_on_disk(data: &DataDir, owner: &str) -> Result<u64> {
    let mut bytes = 0_u64;
    for project in projects_of(data, owner)? {
        let sizes = data.sizes(&[KIND, &project, CONTENT])?.into_iter();
        bytes = sizes.map(disk_size).fold(bytes, u64::saturating_add);
    }
    Ok(bytes)
}

fn projects_of(data: &DataDir, owner: &str) -> Result<Vec<String>> {
    let mut projects = Vec::new();
    for name in data.list(&[KIND])? {
        if check_name(&name).is_err() {
            continue;
        }
        let project = ResourceRef {
            resource_type: ResourceType::Pages,
            name,
        };
        let manifest = Manifest::read(data, &project)?;
        if manifest.is_some_and(|manifest| manifest.owner == owner) {
            projects.push(project.name);
        }
    }
    Ok(projects)
}

/// Returns the contents of the live deployments of all branches except `without`, with the disk space of each in bytes.
fn named_by_current(
    data: &DataDir,
    project: &str,
    without: Option<&str>,
) -> Result<HashMap<[u8; 32], u64>> {
    let mut named = HashMap::new();
    let mut labels = data.list(&[KIND, project, BRANCHES])?;
    labels.retain(|label| Some(label.as_str()) != without);
    for label in labels {
        let Some(shown) = pointer(data, project, &label)? else {
            continue;
        };
        let SiteIndex(files) = index(data, project, &shown.deployment)?.unwrap_or_default();
        let entries = files.values();
        named.extend(
            entries.filter_map(|entry| Some((parse_hex(&entry.digest)?, disk_size(entry.size)))),
        );
    }
    Ok(named)
}

const fn disk_size(size: u64) -> u64 {
    size.div_ceil(BLOCK).saturating_mul(BLOCK)
}

/// Migrates a data folder in which each deployment has its own folder of contents. If the migration is interrupted, the
/// next start continues it.
pub(crate) fn migrate_layout(data: &DataDir) -> Result<()> {
    if data.read(&[LAYOUT_FILE])?.as_deref() == Some(LAYOUT) {
        return Ok(());
    }
    let _lock = data.lock_publish()?;
    let mut is_complete = true;
    for project in data.list(&[KIND])? {
        if let Err(error) = unite_contents_of(data, &project) {
            is_complete = false;
            let cause = Cause::new(error);
            tracing::warn!(%cause, project, "failed to migrate the contents of a site");
        }
    }
    if is_complete {
        data.replace_file(&[LAYOUT_FILE], &[LAYOUT])?;
    }
    Ok(())
}

fn unite_contents_of(data: &DataDir, project: &str) -> Result<()> {
    if !Manifest::exists(data, ResourceType::Pages, project)? {
        return Ok(());
    }
    let target = data.ensure_dir(&[KIND, project, CONTENT])?;
    for id in data.list(&[KIND, project, DEPLOYMENTS])? {
        let old = data.path(&[KIND, project, DEPLOYMENTS, &id, CONTENT])?;
        for digest in data.list(&[KIND, project, DEPLOYMENTS, &id, CONTENT])? {
            let from = data.path(&[KIND, project, DEPLOYMENTS, &id, CONTENT, &digest])?;
            let size = fs::metadata(&from)?.len();
            // POSIX rename does nothing if both names are links to the same file.
            if !is_whole(&target, &digest, size) {
                fs::rename(&from, target.join(&digest))?;
            }
        }
        data.sync(&[KIND, project, CONTENT])?;
        match fs::remove_dir_all(&old) {
            Err(error) if !is_absence(&error) => return Err(error.into()),
            _ => {}
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn disk_space_is_rounded_up_to_blocks() {
        assert_eq!(
            (disk_size(0), disk_size(1), disk_size(4_096)),
            (0, 4_096, 4_096)
        );
        assert_eq!(disk_size(u64::MAX), u64::MAX);
    }
}
