//! Which commit changed which table: a count that was made before is good as long as its table has not changed.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};

/// Numbers the commits. Even between commits; odd from before the database commits until the tables it changed are noted.
#[derive(Debug, Default)]
pub(super) struct Commits {
    number: AtomicU64,
    /// The number after the last commit that changed the table.
    changed: Mutex<HashMap<&'static str, u64>>,
}

impl Commits {
    /// The number, unless a commit is under way. Whoever takes it before and after a snapshot is taken, and finds the
    /// same, knows that the snapshot has all commits up to it and none after.
    pub(super) fn settled(&self) -> Option<u64> {
        let number = self.number.load(Ordering::SeqCst);
        number.is_multiple_of(2).then_some(number)
    }

    /// The number of the last commit that changed the table; `None` when that was after this number.
    pub(super) fn of_table(&self, table: &'static str, settled: u64) -> Option<u64> {
        let changed = self.changed.lock().unwrap_or_else(PoisonError::into_inner);
        let last = changed.get(table).copied().unwrap_or(0);
        (last <= settled).then_some(last)
    }

    /// Runs a commit that changes these tables.
    pub(super) fn commit<T>(
        &self,
        tables: impl Iterator<Item = &'static str>,
        commit: impl FnOnce() -> T,
    ) -> T {
        let next = self.number.fetch_add(1, Ordering::SeqCst) + 2;
        let outcome = commit();
        let mut changed = self.changed.lock().unwrap_or_else(PoisonError::into_inner);
        // A commit that failed may have happened, as far as readers know.
        changed.extend(tables.map(|table| (table, next)));
        drop(changed);
        self.number.store(next, Ordering::SeqCst);
        outcome
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_table_has_the_number_of_the_last_commit_that_changed_it() {
        let commits = Commits::default();
        let before = commits.settled().unwrap();
        commits.commit(["a"].into_iter(), || ());
        let between = commits.settled().unwrap();
        commits.commit(["b"].into_iter(), || ());
        let after = commits.settled().unwrap();
        assert_eq!(commits.of_table("a", after), commits.of_table("a", between));
        assert_ne!(commits.of_table("b", after), commits.of_table("a", after));
        assert_eq!(commits.of_table("c", after), Some(before));
    }

    #[test]
    fn a_snapshot_from_before_a_change_has_no_number_for_the_table() {
        let commits = Commits::default();
        let before = commits.settled().unwrap();
        commits.commit(["a"].into_iter(), || {
            assert_eq!(commits.settled(), None, "a commit is under way");
        });
        assert_eq!(commits.of_table("a", before), None);
        assert_eq!(commits.of_table("b", before), Some(0));
    }
}
