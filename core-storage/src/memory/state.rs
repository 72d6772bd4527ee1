//! The tables as the writer sees them, and the last committed state that readers start with.
//!
//! Tables are persistent (structure-sharing) maps. The writer changes them in place and keeps an undo log; only the
//! nodes that a reader shares are copied. A reader that starts while a unit is open sees the state before that unit.
//! This state is made by an undo on a copy. Its cost grows with the changes of the unit, not with the size of the
//! tables.

use std::sync::Arc;

use core_domain::kernel::StoreError;

use super::index::SharedRow;
use super::rows::Rows;
use crate::table::Table;

/// One state of all tables that ever had a row.
#[derive(Clone, Debug, Default)]
pub(super) struct Tables(Vec<Arc<Rows>>);

impl Tables {
    fn position(&self, table: &'static Table) -> Option<usize> {
        // One table description may exist at several addresses; its name identifies it.
        let same_address = |rows: &Arc<Rows>| std::ptr::eq(rows.table, table);
        let same_name = |rows: &Arc<Rows>| rows.table.name == table.name;
        let found = self.0.iter().position(same_address);
        found.or_else(|| self.0.iter().position(same_name))
    }

    /// Returns the rows of the table; `None` if the table never had a row.
    pub(super) fn rows(&self, table: &'static Table) -> Option<&Arc<Rows>> {
        self.position(table).and_then(|at| self.0.get(at))
    }

    /// Returns a number that increases with every committed unit that changed the table.
    pub(super) fn commit_number(&self, table: &'static Table) -> u64 {
        self.rows(table).map_or(0, |rows| rows.commit_number)
    }

    fn undo(&mut self, change: Change) {
        let Some(rows) = self.0.get_mut(change.table) else {
            return;
        };
        let rows = Arc::make_mut(rows);
        match change.kind {
            ChangeKind::Inserted(row) => rows.remove(&row),
            ChangeKind::Replaced(old, new) => rows.replace_unchecked(&new, &old),
            ChangeKind::Removed(row) => rows.insert_unchecked(&row),
        }
    }

    fn restore_commit_number(&mut self, began: ChangedTable) {
        if let Some(rows) = self.0.get_mut(began.table) {
            Arc::make_mut(rows).commit_number = began.commit_number;
        }
    }
}

/// A change of the open unit.
#[derive(Clone, Debug)]
struct Change {
    table: usize,
    kind: ChangeKind,
}

#[derive(Clone, Debug)]
enum ChangeKind {
    Inserted(SharedRow),
    Replaced(SharedRow, SharedRow),
    Removed(SharedRow),
}

/// A table that the open unit has changed, and its commit number before the change.
#[derive(Clone, Copy, Debug)]
struct ChangedTable {
    table: usize,
    commit_number: u64,
}

/// The tables, and the changes of the open unit.
#[derive(Debug, Default)]
pub(super) struct State {
    tables: Arc<Tables>,
    changed_tables: Vec<ChangedTable>,
    /// The changes of the open unit, in order.
    changes: Vec<Change>,
    /// The tables without those changes. Created when the first reader needs it.
    committed: Option<Arc<Tables>>,
}

impl State {
    /// Creates a state with these tables and no open unit.
    pub(super) fn of(tables: Arc<Tables>) -> Self {
        Self {
            tables,
            ..Self::default()
        }
    }

    /// Returns the last committed state.
    pub(super) fn snapshot(&mut self) -> Arc<Tables> {
        if self.changed_tables.is_empty() {
            return self.tables.clone();
        }
        let committed = self.committed.get_or_insert_with(|| {
            let mut tables = Tables::clone(&self.tables);
            for change in self.changes.iter().rev() {
                tables.undo(change.clone());
            }
            for began in &self.changed_tables {
                tables.restore_commit_number(*began);
            }
            Arc::new(tables)
        });
        committed.clone()
    }

    /// Returns the rows of the table as the open unit sees them.
    pub(super) fn rows(&self, table: &'static Table) -> Option<Arc<Rows>> {
        self.tables.rows(table).cloned()
    }

    /// Like [`Tables::commit_number`]; `None` once the open unit has changed the table.
    pub(super) fn commit_number(&self, table: &'static Table) -> Option<u64> {
        (!self.has_changed(table)).then(|| self.tables.commit_number(table))
    }

    fn has_changed(&self, table: &'static Table) -> bool {
        let at = self.tables.position(table);
        self.changed_tables
            .iter()
            .any(|began| Some(began.table) == at)
    }

    /// Prepares the table for a change of the open unit.
    fn writer_of(&mut self, table: &'static Table) -> TableWriter<'_> {
        let has_changed = self.has_changed(table);
        let tables = Arc::make_mut(&mut self.tables);
        let at = tables.position(table).unwrap_or_else(|| {
            tables.0.push(Arc::new(Rows::new(table)));
            tables.0.len() - 1
        });
        let rows = Arc::make_mut(&mut tables.0[at]);
        if !has_changed {
            self.changed_tables.push(ChangedTable {
                table: at,
                commit_number: rows.commit_number,
            });
            rows.commit_number += 1;
        }
        TableWriter {
            table: at,
            rows,
            changes: &mut self.changes,
        }
    }

    /// Adds all of the rows, or none after an error.
    pub(super) fn insert(
        &mut self,
        table: &'static Table,
        rows: impl IntoIterator<Item = SharedRow>,
    ) -> Result<(), StoreError> {
        let before = self.changes.len();
        let mut changing = self.writer_of(table);
        let inserted = rows.into_iter().try_for_each(|row| changing.insert(row));
        self.undo_after_error(inserted, before)
    }

    /// Replaces rows by others with the same keys: all of them, or none after an error.
    pub(super) fn replace(
        &mut self,
        table: &'static Table,
        rows: impl IntoIterator<Item = (SharedRow, SharedRow)>,
    ) -> Result<(), StoreError> {
        let before = self.changes.len();
        let mut changing = self.writer_of(table);
        let replaced = rows
            .into_iter()
            .try_for_each(|(old, new)| changing.replace(old, new));
        self.undo_after_error(replaced, before)
    }

    /// Removes the rows.
    pub(super) fn remove(&mut self, table: &'static Table, rows: Vec<SharedRow>) {
        let mut changing = self.writer_of(table);
        for row in rows {
            changing.rows.remove(&row);
            changing.log(ChangeKind::Removed(row));
        }
    }

    fn undo_after_error(
        &mut self,
        outcome: Result<(), StoreError>,
        before: usize,
    ) -> Result<(), StoreError> {
        if outcome.is_err() {
            self.undo_to(before);
        }
        outcome
    }

    fn undo_to(&mut self, before: usize) {
        if self.changes.len() == before {
            return;
        }
        let tables = Arc::make_mut(&mut self.tables);
        for change in self.changes.drain(before..).rev() {
            tables.undo(change);
        }
    }

    /// Makes the changes of the open unit permanent.
    pub(super) fn commit(&mut self) {
        self.changed_tables.clear();
        self.changes.clear();
        self.committed = None;
    }

    /// Undoes the changes of the open unit.
    pub(super) fn rollback(&mut self) {
        if let Some(committed) = self.committed.take() {
            self.tables = committed;
            self.changes.clear();
            self.changed_tables.clear();
            return;
        }
        self.undo_to(0);
        for began in std::mem::take(&mut self.changed_tables) {
            Arc::make_mut(&mut self.tables).restore_commit_number(began);
        }
    }
}

struct TableWriter<'s> {
    table: usize,
    rows: &'s mut Rows,
    changes: &'s mut Vec<Change>,
}

impl TableWriter<'_> {
    fn log(&mut self, what: ChangeKind) {
        let table = self.table;
        self.changes.push(Change { table, kind: what });
    }

    fn insert(&mut self, row: SharedRow) -> Result<(), StoreError> {
        self.rows.insert(&row)?;
        self.log(ChangeKind::Inserted(row));
        Ok(())
    }

    fn replace(&mut self, old: SharedRow, new: SharedRow) -> Result<(), StoreError> {
        self.rows.replace(&old, &new)?;
        self.log(ChangeKind::Replaced(old, new));
        Ok(())
    }
}
