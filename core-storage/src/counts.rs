//! Remembered counts of lists. A count is valid as long as the counted rows do not change.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use crate::canonical::Canonical;
use crate::filter::Filter;
use crate::table::Table;

/// The number of counts that are kept for certain. At most twice as many are kept before the oldest are dropped.
const CAPACITY: usize = 1_024;
/// The maximum length of a query whose count is remembered, in bytes.
const MAX_QUERY_BYTES: usize = 1_024;

/// A table and a filter in canonical bytes.
type CountKey = Vec<u8>;

/// Identifies a count by its query and by a number that changes whenever the counted rows may have changed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct CountId {
    key: CountKey,
    number: u64,
}

impl CountId {
    /// Returns the same count at another number.
    pub(crate) fn with_number(self, number: u64) -> Self {
        Self { number, ..self }
    }
}

/// Identifies a count of rows by the commit number of their table, see
/// [`RowTx::commit_number`](crate::RowTx::commit_number). Returns `None` if the query is too long to be remembered.
pub(crate) fn at_commit(table: &Table, filter: &Filter, number: u64) -> Option<CountId> {
    let key = key(table, filter)?;
    Some(CountId { key, number })
}

/// Identifies a count of rows by the version of their list that the domain supplies. Returns `None` if the query is too
/// long to be remembered.
pub(crate) fn at_version(table: &Table, filter: &Filter, version: u64) -> Option<CountId> {
    let mut key = key(table, filter)?;
    key.push(b'v');
    let number = version;
    Some(CountId { key, number })
}

/// The remembered counts. A count is valid for the same query at the same number.
#[derive(Debug, Default)]
pub(crate) struct Counts(Mutex<Generations>);

/// The recently used counts and the counts used before those. When `recent` is full, it becomes `older`. This bounds
/// the memory without a list of uses.
#[derive(Debug, Default)]
struct Generations {
    recent: HashMap<CountKey, RememberedCount>,
    older: HashMap<CountKey, RememberedCount>,
}

#[derive(Clone, Copy, Debug)]
struct RememberedCount {
    number: u64,
    count: u64,
}

fn key(table: &Table, filter: &Filter) -> Option<CountKey> {
    let bytes = Canonical::filter(table.name, filter).into_bytes();
    (bytes.len() <= MAX_QUERY_BYTES).then_some(bytes)
}

impl Counts {
    fn generations(&self) -> MutexGuard<'_, Generations> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the count if it is remembered at this number.
    pub(crate) fn get(&self, CountId { key, number }: &CountId) -> Option<u64> {
        let mut generations = self.generations();
        let counted = match generations.recent.get(key) {
            Some(counted) => *counted,
            None => {
                let (key, counted) = generations.older.remove_entry(key)?;
                generations.add(key, counted);
                counted
            }
        };
        (counted.number == *number).then_some(counted.count)
    }

    /// Returns whether a count of the same query is remembered, at any number.
    pub(crate) fn has(&self, CountId { key, .. }: &CountId) -> bool {
        let generations = self.generations();
        generations.recent.contains_key(key) || generations.older.contains_key(key)
    }

    /// Remembers a count.
    pub(crate) fn put(&self, CountId { key, number }: CountId, count: u64) {
        self.generations()
            .add(key, RememberedCount { number, count });
    }
}

impl Generations {
    fn add(&mut self, key: CountKey, counted: RememberedCount) {
        if self.recent.len() >= CAPACITY && !self.recent.contains_key(&key) {
            self.older = std::mem::take(&mut self.recent);
        }
        self.recent.insert(key, counted);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(key: u8, number: u64) -> CountId {
        let key = vec![key; 9];
        CountId { key, number }
    }

    #[test]
    fn a_count_is_valid_only_at_its_number() {
        let counts = Counts::default();
        counts.put(at(1, 7), 100);
        assert_eq!(counts.get(&at(1, 7)), Some(100));
        assert_eq!(counts.get(&at(1, 6)), None);
        assert_eq!(counts.get(&at(1, 8)), None);
        assert_eq!(counts.get(&at(2, 7)), None);
        counts.put(at(1, 8), 101);
        assert_eq!(counts.get(&at(1, 8)), Some(101));
    }

    #[test]
    fn counts_are_bounded_and_recently_used_counts_are_kept() {
        let counts = Counts::default();
        counts.put(at(0, 1), 42);
        for n in 0..10 * CAPACITY as u64 {
            let key = n.to_le_bytes().to_vec();
            counts.put(CountId { key, number: 1 }, n);
            assert_eq!(counts.get(&at(0, 1)), Some(42));
        }
        let generations = counts.generations();
        assert!(generations.recent.len() <= CAPACITY && generations.older.len() <= CAPACITY);
    }
}
