//! Counts of lists that are remembered as long as their table does not change.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use crate::canonical::Canonical;
use crate::filter::Filter;
use crate::table::Table;

/// So many counts are kept for sure; up to twice as many until the oldest are dropped.
const CAPACITY: usize = 1_024;
/// The longest query a count is remembered for, in bytes.
const MAX_QUERY: usize = 1_024;

/// A filter on a table, as a key.
pub(crate) type CountKey = Vec<u8>;

/// Counts with the commit number of the table they were made at. A count is right for every unit that sees that number,
/// see [`RowTx::commit_number`](crate::RowTx::commit_number). An engine that knows no commit numbers (Postgres: other
/// processes commit as well) counts each time.
#[derive(Debug, Default)]
pub(crate) struct Counts(Mutex<Generations>);

/// Counts used lately, and those used before that. When the first are too many they take the place of the second: the
/// bound costs no list of uses.
#[derive(Debug, Default)]
struct Generations {
    recent: HashMap<CountKey, Counted>,
    older: HashMap<CountKey, Counted>,
}

#[derive(Clone, Copy, Debug)]
struct Counted {
    commit_number: u64,
    count: u64,
}

/// The key of a query; `None` for one that is too long to be kept.
pub(crate) fn key(table: &Table, filter: &Filter) -> Option<CountKey> {
    let bytes = Canonical::filter(table.name, filter).into_bytes();
    (bytes.len() <= MAX_QUERY).then_some(bytes)
}

impl Counts {
    fn generations(&self) -> MutexGuard<'_, Generations> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The count of the query at this commit number of its table, if it is known.
    pub(crate) fn get(&self, key: &[u8], commit_number: u64) -> Option<u64> {
        let mut generations = self.generations();
        let counted = match generations.recent.get(key) {
            Some(counted) => *counted,
            None => {
                let (key, counted) = generations.older.remove_entry(key)?;
                generations.add(key, counted);
                counted
            }
        };
        (counted.commit_number == commit_number).then_some(counted.count)
    }

    /// Remembers a count that a unit made which sees this commit number.
    pub(crate) fn put(&self, key: CountKey, commit_number: u64, count: u64) {
        let counted = Counted {
            commit_number,
            count,
        };
        self.generations().add(key, counted);
    }
}

impl Generations {
    fn add(&mut self, key: CountKey, counted: Counted) {
        if self.recent.len() >= CAPACITY && !self.recent.contains_key(&key) {
            self.older = std::mem::take(&mut self.recent);
        }
        self.recent.insert(key, counted);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_count_is_known_at_its_commit_number_alone() {
        let counts = Counts::default();
        counts.put(vec![1], 7, 100);
        assert_eq!(counts.get(&[1], 7), Some(100));
        assert_eq!(counts.get(&[1], 6), None);
        assert_eq!(counts.get(&[1], 8), None);
        assert_eq!(counts.get(&[2], 7), None);
        counts.put(vec![1], 8, 101);
        assert_eq!(counts.get(&[1], 8), Some(101));
    }

    #[test]
    fn counts_are_bounded_and_those_in_use_stay() {
        let counts = Counts::default();
        counts.put(vec![0; 9], 1, 42);
        for n in 0..10 * CAPACITY as u64 {
            counts.put(n.to_le_bytes().to_vec(), 1, n);
            assert_eq!(counts.get(&[0; 9], 1), Some(42));
        }
        let generations = counts.generations();
        assert!(generations.recent.len() <= CAPACITY && generations.older.len() <= CAPACITY);
    }
}
