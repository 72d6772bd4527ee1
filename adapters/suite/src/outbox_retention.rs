//! Which mails of an outbox folder are kept.

use std::fs::DirEntry;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant, SystemTime};

/// What the name of a mail begins with that is not whole yet.
pub(crate) const TEMPORARY: &str = ".mail-";

/// How many mails are written at most before the folder is pruned again.
const PRUNE_EVERY: u64 = 64;

/// How long mails are written before the folder is pruned again, however few they are.
const PRUNE_INTERVAL: Duration = Duration::from_secs(60 * 60);

/// How many files a folder keeps, and how long.
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

    /// Removes what is too old at the instant, and the oldest of what is too many, so that there never are more before the
    /// folder is pruned again. Tells how many went.
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

/// When a folder was pruned.
#[derive(Debug, Default)]
pub(crate) struct PruneSchedule {
    pruned_at: Option<Instant>,
    written_since: u64,
}

impl PruneSchedule {
    /// Counts a mail, and tells whether the folder is to be pruned with it: with the first one of a process, too.
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

/// When a mail was written, whole or not; `None` for what is no mail of ours, or is gone already.
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

/// Tells whether it was there: another process may look at the folder as well.
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
    fn what_is_too_old_and_the_oldest_of_too_many_go_and_nothing_else() {
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
