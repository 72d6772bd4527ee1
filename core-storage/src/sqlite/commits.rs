//! Commit numbers. A remembered count is valid as long as no commit has changed the counted rows.

use std::collections::HashMap;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use crate::sql::Change;

/// The number of slots per table. Platforms share the slots by their hashes. If two platforms share a slot, changes of
/// one also invalidate the counts of the other.
const SLOTS: usize = 1_024;

/// A set of rows of a table: the rows of the platforms in one slot, or all rows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct RowSet {
    table: &'static str,
    slot: Option<usize>,
}

impl RowSet {
    pub(super) fn new(table: &'static str, platform: Option<&str>) -> Self {
        let slot = platform.map(|platform| {
            let mut hasher = DefaultHasher::new();
            platform.hash(&mut hasher);
            usize::try_from(hasher.finish() % SLOTS as u64).unwrap_or(0)
        });
        Self { table, slot }
    }

    pub(super) fn changed_by(change: &Change<'_>) -> Self {
        Self::new(change.table.name, change.platform)
    }

    fn meets(&self, other: &Self) -> bool {
        let same_slot = self.slot.is_none() || other.slot.is_none() || self.slot == other.slot;
        self.table == other.table && same_slot
    }
}

/// The numbers of the last commits that changed rows of a table.
#[derive(Debug, Default)]
struct Numbers {
    /// The last commit that changed any row.
    any: u64,
    /// The last commit that changed rows of an unknown platform.
    unknown: u64,
    /// The last commit for each slot; empty until a commit has changed rows of a known platform.
    slots: Vec<u64>,
}

impl Numbers {
    fn note(&mut self, slot: Option<usize>, number: u64) {
        self.any = number;
        let Some(slot) = slot else {
            self.unknown = number;
            return;
        };
        self.slots.resize(SLOTS, 0);
        if let Some(last) = self.slots.get_mut(slot) {
            *last = number;
        }
    }

    fn last(&self, slot: Option<usize>) -> u64 {
        let Some(slot) = slot else {
            return self.any;
        };
        let last = self.slots.get(slot).copied().unwrap_or(0);
        last.max(self.unknown)
    }
}

#[derive(Debug, Default)]
struct CommitLog {
    /// The rows that the commit in progress changes.
    in_progress: Vec<RowSet>,
    tables: HashMap<&'static str, Numbers>,
}

/// Assigns numbers to the commits, from 1.
#[derive(Debug, Default)]
pub(super) struct Commits {
    /// The number of the last commit that is recorded in `changed`.
    last_finished: AtomicU64,
    changed: Mutex<CommitLog>,
}

impl Commits {
    fn lock(&self) -> MutexGuard<'_, CommitLog> {
        self.changed.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the number of the last commit. A snapshot that is taken afterwards contains all commits up to it.
    pub(super) fn last_commit(&self) -> u64 {
        self.last_finished.load(Ordering::SeqCst)
    }

    /// Returns the number of the last commit that changed rows of the set, for a snapshot that was taken after the
    /// commit `finished`. Returns `None` if a later commit may have changed them, because the snapshot may or may not
    /// contain it.
    pub(super) fn last_change(&self, rows: &RowSet, finished: u64) -> Option<u64> {
        let changed = self.lock();
        if changed.in_progress.iter().any(|other| other.meets(rows)) {
            return None;
        }
        let numbers = changed.tables.get(rows.table);
        let last = numbers.map_or(0, |numbers| numbers.last(rows.slot));
        (last <= finished).then_some(last)
    }

    /// Runs a commit that changes these rows.
    pub(super) fn commit<T>(
        &self,
        rows: impl Iterator<Item = RowSet>,
        commit: impl FnOnce() -> T,
    ) -> T {
        self.lock().in_progress.extend(rows);
        let outcome = commit();
        let mut changed = self.lock();
        let number = self.last_commit() + 1;
        // A commit that failed may still have taken effect, so readers must assume that it did.
        for rows in std::mem::take(&mut changed.in_progress) {
            let numbers = changed.tables.entry(rows.table).or_default();
            numbers.note(rows.slot, number);
        }
        self.last_finished.store(number, Ordering::SeqCst);
        outcome
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ALL: RowSet = RowSet {
        table: "a",
        slot: None,
    };

    fn of(platform: &str) -> RowSet {
        RowSet::new("a", Some(platform))
    }

    /// Returns the commit number for a snapshot that is taken now.
    fn now(commits: &Commits, rows: RowSet) -> Option<u64> {
        commits.last_change(&rows, commits.last_commit())
    }

    #[test]
    fn rows_have_the_number_of_the_last_commit_that_changed_them() {
        let commits = Commits::default();
        commits.commit([ALL].into_iter(), || ());
        commits.commit([RowSet::new("b", None)].into_iter(), || ());
        assert_eq!(now(&commits, ALL), Some(1));
        assert_eq!(now(&commits, RowSet::new("b", None)), Some(2));
        assert_eq!(now(&commits, RowSet::new("c", None)), Some(0));
    }

    #[test]
    fn a_change_of_one_platform_does_not_change_the_number_of_another() {
        assert_ne!(of("p"), of("q"), "they have different slots");
        let commits = Commits::default();
        commits.commit([of("p")].into_iter(), || ());
        commits.commit([of("q")].into_iter(), || ());
        assert_eq!(now(&commits, of("p")), Some(1));
        assert_eq!(now(&commits, of("q")), Some(2));
        assert_eq!(now(&commits, ALL), Some(2));
        commits.commit([ALL].into_iter(), || ());
        assert_eq!(
            now(&commits, of("p")),
            Some(3),
            "the commit may have changed their rows"
        );
    }

    #[test]
    fn a_snapshot_from_before_a_change_has_no_number_for_the_changed_rows() {
        let commits = Commits::default();
        let before = commits.last_commit();
        commits.commit([of("p")].into_iter(), || {
            assert_eq!(now(&commits, of("p")), None, "the commit is in progress");
            assert_eq!(now(&commits, ALL), None, "the commit is in progress");
            assert_eq!(now(&commits, of("q")), Some(0));
        });
        assert_eq!(commits.last_change(&of("p"), before), None);
        assert_eq!(commits.last_change(&ALL, before), None);
        assert_eq!(commits.last_change(&of("q"), before), Some(0));
    }
}
