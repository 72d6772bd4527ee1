//! Decides which mails of an outbox folder are kept.

use std::fs::DirEntry;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant, SystemTime};

/// The prefix of the name of a mail that is not completely written yet.
pub(crate) const TEMPORARY: &str = ".mail-";

/// Maximum number of mails between two prunings of the folder.
const PRUNE_EVERY: u64 = 64;

/// Maximum time between two prunings of the folder while mails are written.
const PRUNE_INTERVAL: Duration = Duration::from_secs(60 * 60);

/// The maximum number and age of the files in a folder.
#[derive(Clone, Copy, Debug)]
pub(crate) struct OutboxRetention {
    pub(crate) files: usize,
    pub(crate) age: Duration,
}

impl OutboxRetention {
    /// 10,000 files of the last 7 days.
    pub(crate) const DEFAULT: Self = Self {
        files: 10_000,
        age: Duration::from_secs(7 * 24 * 60 * 60),
    };

    fn interval(self) -> u64 {
        let files = u64::try_from(self.files).unwrap_or(u64::MAX);
        PRUNE_EVERY.min(files / 4 + 1)
    }

    /// Deletes files that are too old at `now`, and the oldest ones above the maximum number. It leaves room for the
    /// mails until the next pruning. Returns the number of deleted files.
    pub(crate) fn prune(self, folder: &Path, now: SystemTime) -> std::io::Result<u64> {
        let mut mails = Vec::new();
        for entry in std::fs::read_dir(folder)? {
            mails.extend(mail(&entry?)?);
        }
        mails.sort_unstable();
        let room = usize::try_from(self.interval()).unwrap_or(usize::MAX) - 1;
        let kept = self.files.saturating_sub(room).max(1);
        let too_many = mails.len().saturating_sub(kept);
        let mut removed = 0;
        for (position, (written_at, file)) in mails.into_iter().enumerate() {
            let age = now.duration_since(written_at).unwrap_or_default();
            if position < too_many || age > self.age {
                removed += u64::from(remove(&file)?);
            }
        }
        Ok(removed)
    }
}

/// Decides when a folder is pruned.
#[derive(Debug, Default)]
pub(crate) struct PruneSchedule {
    pruned_at: Option<Instant>,
    written_since: u64,
}

impl PruneSchedule {
    /// Counts a mail, and returns whether the folder must be pruned now. The first mail of a process always prunes.
    pub(crate) fn is_due(&mut self, retention: OutboxRetention, now: Instant) -> bool {
        self.written_since += 1;
        let recently = self
            .pruned_at
            .is_some_and(|at| now.duration_since(at) < PRUNE_INTERVAL);
        if recently && self.written_since < retention.interval() {
            return false;
        }
        *self = Self {
            pruned_at: Some(now),
            written_since: 0,
        };
        true
    }
}

/// Returns the time and path of a mail file, complete or not; `None` if the entry is no mail or has been deleted.
fn mail(entry: &DirEntry) -> std::io::Result<Option<(SystemTime, PathBuf)>> {
    let name = entry.file_name();
    let name = name.to_string_lossy();
    if !name.ends_with(".eml") && !name.starts_with(TEMPORARY) {
        return Ok(None);
    }
    let about = match entry.metadata() {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(None),
        about => about?,
    };
    if !about.is_file() {
        return Ok(None);
    }
    Ok(Some((about.modified()?, entry.path())))
}

/// Deletes a file. Returns whether it still existed, since another process may prune the same folder.
fn remove(file: &Path) -> std::io::Result<bool> {
    match std::fs::remove_file(file) {
        Ok(()) => Ok(true),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(false),
        Err(error) => Err(error),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(folder: &Path) -> Vec<String> {
        let entries = std::fs::read_dir(folder).unwrap();
        let names = entries.map(|entry| entry.unwrap().file_name().into_string().unwrap());
        let mut names: Vec<String> = names.collect();
        names.sort();
        names
    }

    #[test]
    fn a_folder_is_pruned_at_first_and_after_many_mails_or_an_hour() {
        let (retention, mut schedule) = (OutboxRetention::DEFAULT, PruneSchedule::default());
        let begun = Instant::now();
        let mut written_at = |minutes: u64| {
            let now = begun + Duration::from_secs(60 * minutes);
            schedule.is_due(retention, now)
        };
        assert!(written_at(0));
        assert!((0..63).all(|_| !written_at(1)));
        assert!(written_at(1));
        assert!(!written_at(60));
        assert!(written_at(61));
    }

    #[test]
    fn pruning_deletes_mails_that_are_too_old_or_too_many_and_no_other_files() {
        let folder = tempfile::tempdir().unwrap();
        let now = SystemTime::UNIX_EPOCH + Duration::from_secs(1_800_000_000);
        for (name, seconds) in [
            ("a.eml", 30),
            ("b.eml", 20),
            ("c.eml", 10),
            ("d.eml", 0),
            ("old.eml", 101),
            (".mail-lost", 101),
            ("of-somebody-else.txt", 101),
        ] {
            let file = std::fs::File::create(folder.path().join(name)).unwrap();
            file.set_modified(now - Duration::from_secs(seconds))
                .unwrap();
        }
        let retention = OutboxRetention {
            files: 3,
            age: Duration::from_secs(100),
        };
        assert_eq!(retention.prune(folder.path(), now).unwrap(), 3);
        let left = ["b.eml", "c.eml", "d.eml", "of-somebody-else.txt"];
        assert_eq!(names(folder.path()), left);
        assert_eq!(retention.prune(folder.path(), now).unwrap(), 0);
    }
}
