//! Remembered counts of lists. A count is valid as long as the counted rows do not change.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use core_domain::kernel::ListVersion;

use crate::canonical::Canonical;
use crate::filter::Filter;
use crate::table::Table;

/// The number of counts that are kept for certain. At most twice as many are kept before the oldest are dropped.
const CAPACITY: usize = 1_024;
/// The maximum length of a query whose count is remembered, in bytes.
const MAX_QUERY_BYTES: usize = 1_024;

/// A table and a filter in canonical bytes.
pub(crate) type CountKey = Vec<u8>;

/// Returns the key of the count of a query. Returns `None` if the query is too long to be remembered.
pub(crate) fn key(table: &Table, filter: &Filter) -> Option<CountKey> {
    let bytes = Canonical::filter(table.name, filter).into_bytes();
    (bytes.len() <= MAX_QUERY_BYTES).then_some(bytes)
}

/// A count that is valid while a number stays the same. The number changes whenever the counted rows may have changed.
#[derive(Clone, Copy, Debug)]
pub(crate) struct NumberedCount {
    pub(crate) number: u64,
    pub(crate) count: u64,
}

/// A count of rows of an append-only list.
#[derive(Clone, Debug)]
pub(crate) struct ListCount {
    /// The version of the list.
    pub(crate) version: ListVersion,
    pub(crate) count: u64,
    /// The part of the count that later counts can use; `None` if they start anew.
    pub(crate) settled: Option<SettledRows>,
}

/// The rows of an append-only list whose keys are smaller than a bound, which is older than the rows that are usually
/// added.
#[derive(Clone, Debug)]
pub(crate) struct SettledRows {
    /// The smallest key that is not settled.
    pub(crate) before: String,
    /// The number of these rows that were ever added to the list.
    pub(crate) added: u64,
    /// The number of these rows that match the query.
    pub(crate) matching: u64,
}

/// The remembered counts.
#[derive(Debug, Default)]
pub(crate) struct Counts {
    /// The counts of lists whose rows change.
    pub(crate) numbered: Recent<NumberedCount>,
    /// The counts of append-only lists.
    pub(crate) of_lists: Recent<ListCount>,
}

/// A bounded map of the recently used values.
#[derive(Debug)]
pub(crate) struct Recent<V>(Mutex<Generations<V>>);

/// The recently used values and the values used before those. When `recent` is full, it becomes `older`. This bounds
/// the memory without a list of uses.
#[derive(Debug)]
struct Generations<V> {
    recent: HashMap<CountKey, V>,
    older: HashMap<CountKey, V>,
}

impl<V> Default for Recent<V> {
    fn default() -> Self {
        Self(Mutex::new(Generations {
            recent: HashMap::new(),
            older: HashMap::new(),
        }))
    }
}

impl<V: Clone> Recent<V> {
    fn generations(&self) -> MutexGuard<'_, Generations<V>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the value of a query.
    pub(crate) fn get(&self, key: &CountKey) -> Option<V> {
        let mut generations = self.generations();
        if let Some(value) = generations.recent.get(key) {
            return Some(value.clone());
        }
        let (key, value) = generations.older.remove_entry(key)?;
        generations.add(key, value.clone());
        Some(value)
    }

    /// Remembers the value of a query.
    pub(crate) fn put(&self, key: CountKey, value: V) {
        self.generations().add(key, value);
    }
}

impl<V> Generations<V> {
    fn add(&mut self, key: CountKey, value: V) {
        if self.recent.len() >= CAPACITY && !self.recent.contains_key(&key) {
            self.older = std::mem::take(&mut self.recent);
        }
        self.recent.insert(key, value);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_are_bounded_and_recently_used_counts_are_kept() {
        let counts = Recent::default();
        let kept = vec![0; 9];
        counts.put(kept.clone(), 42);
        for n in 0..10 * CAPACITY as u64 {
            counts.put(n.to_le_bytes().to_vec(), n);
            assert_eq!(counts.get(&kept), Some(42));
        }
        let generations = counts.generations();
        assert!(generations.recent.len() <= CAPACITY && generations.older.len() <= CAPACITY);
    }
}
