//! The rows of one table in its indexes.

use std::sync::Arc;

use core_domain::kernel::StoreError;

use super::index::{Edge, Index, KEY, SharedRow};
use super::predicate::value;
use crate::table::Table;
use crate::value::Value;

/// The rows of a table. A clone shares all data with the original until one of them changes.
#[derive(Clone, Debug)]
pub(super) struct Rows {
    pub(super) table: &'static Table,
    /// A number that increases with every committed unit that changed the table.
    pub(super) commit_number: u64,
    /// The indexes. The first is the index of the key.
    indexes: Vec<Index>,
}

impl Rows {
    pub(super) fn new(table: &'static Table) -> Self {
        let uniques = table.uniques.iter();
        let uniques = uniques.map(|unique| Index::of_unique(table, unique));
        let parent = table.parent.map(|parent| Index::new(table, &[parent]));
        let declared = table.indexes.iter();
        let declared = declared.map(|one| Index::from_definition(table, one));
        let indexes = uniques.chain(parent).chain(declared);
        Self {
            table,
            commit_number: 0,
            indexes: [Index::new(table, &[])]
                .into_iter()
                .chain(indexes)
                .collect(),
        }
    }

    /// Returns all indexes. The first is the index of the key.
    pub(super) fn indexes(&self) -> impl Iterator<Item = &Index> {
        self.indexes.iter()
    }

    /// Returns the index of the key.
    pub(super) fn by_key(&self) -> Option<&Index> {
        self.indexes.first()
    }

    /// Returns the row with this key.
    pub(super) fn get(&self, key: &Value) -> Option<&SharedRow> {
        self.by_key()?.get(&Edge::start().with(key))
    }

    fn conflict(&self, index: &'static str) -> StoreError {
        StoreError::Conflict {
            table: self.table.name,
            index,
        }
    }

    /// Adds a row.
    ///
    /// # Errors
    /// [`StoreError::Conflict`] if a unique value is taken; nothing was changed.
    pub(super) fn insert(&mut self, row: &SharedRow) -> Result<(), StoreError> {
        if self.get(value(row, KEY)).is_some() {
            return Err(self.conflict("key"));
        }
        if let Some(name) = self.indexes.iter().find_map(|index| index.conflict(row)) {
            return Err(self.conflict(name));
        }
        self.insert_unchecked(row);
        Ok(())
    }

    /// Replaces a row by one with the same key.
    ///
    /// # Errors
    /// [`StoreError::Conflict`] if a unique value is taken; nothing was changed.
    pub(super) fn replace(&mut self, old: &SharedRow, new: &SharedRow) -> Result<(), StoreError> {
        let changed = |index: &&Index| !index.is_same_for(old, new);
        let mut changed = self.indexes.iter().filter(changed);
        if let Some(name) = changed.find_map(|index| index.conflict(new)) {
            return Err(self.conflict(name));
        }
        self.replace_unchecked(old, new);
        Ok(())
    }

    /// Like [`Rows::insert`], without the check for conflicts.
    pub(super) fn insert_unchecked(&mut self, row: &SharedRow) {
        for index in &mut self.indexes {
            index.insert(row);
        }
    }

    /// Like [`Rows::replace`], without the check for conflicts.
    pub(super) fn replace_unchecked(&mut self, old: &SharedRow, new: &SharedRow) {
        for index in &mut self.indexes {
            // An entry that stays at its position is overwritten.
            if !index.is_same_for(old, new) {
                index.remove(old);
            }
            index.insert(new);
        }
    }

    pub(super) fn remove(&mut self, row: &SharedRow) {
        for index in &mut self.indexes {
            index.remove(row);
        }
    }
}

/// Returns a changed copy of a row.
pub(super) fn with_values(row: &SharedRow, set: &[(usize, Value)]) -> SharedRow {
    let mut next = row.to_vec();
    for (at, value) in set {
        if let Some(stored) = next.get_mut(*at) {
            *stored = value.clone();
        }
    }
    Arc::from(next)
}
