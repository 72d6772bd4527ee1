//! The rows of one table, with an ordered in-memory index for each unique index and each other index.

use std::ops::Bound;
use std::sync::Arc;

use core_domain::kernel::StoreError;
use imbl::{OrdMap, OrdSet};

use crate::filter::Filter;
use crate::table::{Table, Unique};
use crate::value::{Row, Value};

/// A part of an index entry. `Top` is greater than every value: it is the end of ranges and never stored.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Slot {
    Value(Value),
    Top,
}

/// An index entry: the index's columns, then the key.
pub(super) type Entry = Vec<Slot>;

/// An ordered index over some columns.
#[derive(Clone, Debug)]
pub(super) struct Index {
    pub(super) columns: &'static [&'static str],
    /// The unique index it implements, if it does; a partial one has entries only for the rows it covers.
    pub(super) unique: Option<&'static Unique>,
    entries: OrdSet<Entry>,
}

/// The rows of a table. A clone shares everything with the original until one of them changes.
#[derive(Clone, Debug)]
pub(super) struct Rows {
    pub(super) table: &'static Table,
    by_key: OrdMap<Arc<str>, Arc<Row>>,
    pub(super) indexes: Vec<Index>,
}

fn key_of(row: &Row) -> Arc<str> {
    match row.first() {
        Some(Value::Text(key)) => key.clone(),
        _ => Arc::from(""),
    }
}

impl Index {
    fn covers(&self, table: &Table, row: &Row) -> bool {
        self.unique.is_none_or(|unique| {
            unique.predicates.is_empty() || Filter::covered_by(unique).matches(table, row)
        })
    }

    /// Tells whether it has an entry for every row of the table.
    pub(super) fn is_full(&self) -> bool {
        self.unique
            .is_none_or(|unique| unique.predicates.is_empty())
    }

    fn entry(&self, table: &Table, row: &Row) -> Entry {
        let mut entry: Entry = self
            .columns
            .iter()
            .map(|column| Slot::Value(table.value(row, column).clone()))
            .collect();
        entry.push(Slot::Value(Value::Text(key_of(row))));
        entry
    }

    /// The name of the unique index, if another row has the same values in it.
    fn conflict_with_another(&self, table: &Table, row: &Row) -> Option<&'static str> {
        let unique = self.unique?;
        let is_null = |column: &&str| table.value(row, column).is_null();
        if unique.columns.iter().any(is_null) || !self.covers(table, row) {
            return None;
        }
        let own = self.entry(table, row);
        let mut from = own.clone();
        from.pop();
        let mut to = from.clone();
        to.push(Slot::Top);
        self.range(Bound::Included(from), Bound::Excluded(to))
            .any(|entry| *entry != own)
            .then_some(unique.name)
    }

    /// The entries between the bounds, in order.
    pub(super) fn range(
        &self,
        from: Bound<Entry>,
        to: Bound<Entry>,
    ) -> impl DoubleEndedIterator<Item = &Entry> {
        self.entries.range((from, to))
    }
}

impl Rows {
    pub(super) fn new(table: &'static Table) -> Self {
        let index = |columns, unique| Index {
            columns,
            unique,
            entries: OrdSet::new(),
        };
        let uniques = table.uniques.iter().map(|u| index(u.columns, Some(u)));
        let parent = table.columns.iter().find(|c| Some(c.name) == table.parent);
        let parent = parent.map(|column| index(std::slice::from_ref(&column.name), None));
        let declared = table.indexes.iter().map(|columns| index(columns, None));
        Self {
            table,
            by_key: OrdMap::new(),
            indexes: uniques.chain(parent).chain(declared).collect(),
        }
    }

    pub(super) fn get(&self, key: &str) -> Option<&Arc<Row>> {
        self.by_key.get(key)
    }

    /// The row of an index entry.
    pub(super) fn row(&self, entry: &Entry) -> Option<&Arc<Row>> {
        match entry.last() {
            Some(Slot::Value(Value::Text(key))) => self.by_key.get(key),
            _ => None,
        }
    }

    /// Every row whose key lies between the bounds, by key.
    pub(super) fn by_key(
        &self,
        from: Bound<&str>,
        to: Bound<&str>,
    ) -> impl DoubleEndedIterator<Item = &Arc<Row>> {
        self.by_key.range::<_, str>((from, to)).map(|(_, row)| row)
    }

    fn conflict(&self, index: &'static str) -> StoreError {
        StoreError::Conflict {
            table: self.table.name,
            index,
        }
    }

    pub(super) fn insert(&mut self, row: Arc<Row>) -> Result<(), StoreError> {
        if self.by_key.contains_key(&key_of(&row)) {
            return Err(self.conflict("key"));
        }
        for index in &self.indexes {
            if let Some(name) = index.conflict_with_another(self.table, &row) {
                return Err(self.conflict(name));
            }
        }
        for index in &mut self.indexes {
            if index.covers(self.table, &row) {
                let entry = index.entry(self.table, &row);
                index.entries.insert(entry);
            }
        }
        self.by_key.insert(key_of(&row), row);
        Ok(())
    }

    /// Replaces a row by one with the same key. After an error the rows are in no usable state.
    pub(super) fn replace(&mut self, old: &Row, new: Arc<Row>) -> Result<(), StoreError> {
        let table = self.table;
        for index in &mut self.indexes {
            let (before, after) = (index.entry(table, old), index.entry(table, &new));
            let (was, is) = (index.covers(table, old), index.covers(table, &new));
            if before == after && was == is {
                continue;
            }
            if let Some(index) = index.conflict_with_another(table, &new) {
                let table = table.name;
                return Err(StoreError::Conflict { table, index });
            }
            if was {
                index.entries.remove(&before);
            }
            if is {
                index.entries.insert(after);
            }
        }
        self.by_key.insert(key_of(&new), new);
        Ok(())
    }

    pub(super) fn remove(&mut self, row: &Row) {
        for index in &mut self.indexes {
            let entry = index.entry(self.table, row);
            index.entries.remove(&entry);
        }
        self.by_key.remove(&key_of(row));
    }
}
