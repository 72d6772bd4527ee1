//! The copy of a platform's rows from one cell to another.
//!
//! A pass compares all rows of the platform in both cells and writes the differences. The passes run while the platform is in
//! use. The source records the rows that change. After the passes, these are compared again, the last of them while nothing
//! changes.

use std::collections::BTreeSet;

use core_domain::kernel::StoreError;
use core_domain::port::Mode;
use core_domain::provisioning::{Job, JobLease};

use super::cell_set::CellSet;
use super::hidden::{Run, lock_hidden};
use super::place::{Naming, Place, named_tables, place_of};
use super::recording::{RecordedChanges, Recording};
use crate::copy::{Changes, KeyRange, Scope, next_position, read_page, read_range};
use crate::filter::Filter;
use crate::row_store::RowTx;
use crate::table::Table;
use crate::tables;
use crate::tabular::Tabular;
use crate::value::{Row, Value};

/// Returns the rows of the platform in the tables that name platforms.
pub(super) fn scopes(platform: &str) -> Vec<Scope> {
    let scope = |(table, column, naming): (_, _, Naming)| {
        let names = naming.names(platform);
        let names = names.iter().map(|name| Value::text(name)).collect();
        let filter = Filter::In(column, names);
        Scope { table, filter }
    };
    named_tables().map(scope).collect()
}

/// Returns the rows of jobs in the tables that name jobs, except leases: they move with the switch.
fn scopes_of_jobs(jobs: &[Value]) -> Vec<Scope> {
    let scope = |table: &'static Table| match place_of(table) {
        Place::OfJob(column) if table.name != JobLease::TABLE.name => {
            let filter = Filter::In(column, jobs.to_vec());
            Some(Scope { table, filter })
        }
        _ => None,
    };
    let tables = tables::of_records().into_iter();
    tables.filter_map(scope).collect()
}

/// What a pass has done.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Pass {
    /// The number of rows that were compared.
    pub(super) rows: u64,
    /// The number of rows that differed.
    pub(super) changed: u64,
}

/// The copy of one platform.
pub(super) struct Transfer<'c> {
    cells: &'c CellSet,
    run: Run<'c>,
    source: usize,
    target: usize,
    /// The number of rows in each table, as the last pass found it.
    tables: Vec<(&'static str, u64)>,
}

impl<'c> Transfer<'c> {
    pub(super) const fn new(
        cells: &'c CellSet,
        run: Run<'c>,
        source: usize,
        target: usize,
    ) -> Self {
        Self {
            cells,
            run,
            source,
            target,
            tables: Vec::new(),
        }
    }

    /// Returns the number of rows in each table, as the last pass found it.
    pub(super) fn into_tables(self) -> Vec<(&'static str, u64)> {
        self.tables
    }

    /// Makes all rows in the target equal to those in the source. Each table is read in one state.
    pub(super) async fn copy_all(
        &mut self,
        on_table: &mut (dyn FnMut(&'static str, u64) + Send),
    ) -> Result<Pass, StoreError> {
        self.tables.clear();
        let mut pass = Pass::default();
        for scope in scopes(self.run.platform) {
            let mut reading = self.read(self.source).await?;
            let rows = self.copy_scope(reading.as_mut(), &scope, &mut pass).await?;
            reading.rollback().await;
            self.tables.push((scope.table.name, rows));
            on_table(scope.table.name, pass.rows);
        }
        Ok(pass)
    }

    /// Makes rows equal that the source has recorded as changed. Returns the number of these changes, and whether they were the
    /// last ones.
    pub(super) async fn copy_changes(
        &self,
        recording: &Recording<'_>,
    ) -> Result<(u64, bool), StoreError> {
        // The rows are read in the state that the recorded changes belong to.
        let mut reading = self.read(self.source).await?;
        let changes = RecordedChanges::read(reading.as_mut(), self.run.platform).await?;
        for (name, keys) in &changes.keys {
            self.copy_rows(reading.as_mut(), name, keys).await?;
        }
        reading.rollback().await;
        let (count, is_last) = (changes.ids.len() as u64, changes.is_last());
        recording.forget(changes).await?;
        Ok((count, is_last))
    }

    /// Makes the rows of a table with these keys equal.
    async fn copy_rows(
        &self,
        reading: &mut dyn RowTx,
        table: &str,
        keys: &BTreeSet<String>,
    ) -> Result<(), StoreError> {
        let scopes = scopes(self.run.platform).into_iter();
        let keys: Vec<Value> = keys.iter().map(|key| Value::text(key)).collect();
        for mut scope in scopes.filter(|scope| scope.table.name == table) {
            let of_keys = Filter::In(scope.table.key(), keys.clone());
            scope.filter = scope.filter.and(of_keys);
            let mut pass = Pass::default();
            self.copy_scope(reading, &scope, &mut pass).await?;
        }
        Ok(())
    }

    async fn read(&self, cell: usize) -> Result<Box<dyn RowTx>, StoreError> {
        self.cells.rows(cell).begin(Mode::Read).await
    }

    /// Makes rows of a table equal, and those of their jobs if they are jobs. Returns the number of rows.
    async fn copy_scope(
        &self,
        reading: &mut dyn RowTx,
        scope: &Scope,
        pass: &mut Pass,
    ) -> Result<u64, StoreError> {
        let (mut rows, mut after) = (0, None);
        loop {
            let page = read_page(reading, scope, after.clone(), None).await?;
            let next = next_position(&page);
            rows += page.len() as u64;
            pass.rows += page.len() as u64;
            let range = KeyRange {
                after: after.take(),
                last: next.as_ref(),
            };
            let jobs = keys(&page);
            let changed = match self.equalize(scope, &range, page.clone()).await {
                Err(StoreError::Conflict { .. }) => {
                    // A value moved from a row of a later page to one of this page.
                    self.delete_differences(reading, scope.table).await?;
                    self.equalize(scope, &range, page).await?
                }
                outcome => outcome?,
            };
            pass.changed += changed;
            if scope.table.name == Job::TABLE.name {
                self.copy_rows_of_jobs(reading, &jobs, pass).await?;
            }
            match next {
                Some(next) => after = Some(next),
                None => return Ok(rows),
            }
        }
    }

    /// Makes the rows of jobs equal in the tables that name jobs.
    async fn copy_rows_of_jobs(
        &self,
        reading: &mut dyn RowTx,
        jobs: &[Value],
        pass: &mut Pass,
    ) -> Result<(), StoreError> {
        if jobs.is_empty() {
            return Ok(());
        }
        let all = || KeyRange {
            after: None,
            last: None,
        };
        for scope in scopes_of_jobs(jobs) {
            let rows = read_range(reading, &scope, &all()).await?;
            pass.rows += rows.len() as u64;
            pass.changed += self.equalize(&scope, &all(), rows).await?;
        }
        Ok(())
    }

    /// Makes the rows of a range of keys in the target equal to those of the source. Returns the number of those that differed.
    async fn equalize(
        &self,
        scope: &Scope,
        range: &KeyRange<'_>,
        source: Vec<Row>,
    ) -> Result<u64, StoreError> {
        let mut unit = self.begin_in_target().await?;
        let stored = read_range(unit.as_mut(), scope, range).await?;
        let Changes { delete, insert } = Changes::between(stored, source);
        let mut changed: BTreeSet<Value> = keys(&insert).into_iter().collect();
        changed.extend(delete.iter().cloned());
        if changed.is_empty() {
            unit.rollback().await;
            return Ok(0);
        }
        delete_rows(unit.as_mut(), scope.table, delete, &insert).await?;
        if !insert.is_empty() {
            unit.insert_many(scope.table, insert).await?;
        }
        unit.commit().await?;
        Ok(changed.len() as u64)
    }

    /// Opens a unit that reads and changes rows in the target. It waits for such a unit of an interrupted attempt. After the
    /// switch, and after a takeover by another run, it fails.
    async fn begin_in_target(&self) -> Result<Box<dyn RowTx>, StoreError> {
        let rows = self.cells.rows(self.target);
        let mut unit = rows.begin(Mode::ReadCommitted).await?;
        lock_hidden(unit.as_mut(), self.run).await?;
        Ok(unit)
    }

    /// Deletes all rows of the platform in a table of the target that differ from those of the source.
    async fn delete_differences(
        &self,
        reading: &mut dyn RowTx,
        table: &'static Table,
    ) -> Result<(), StoreError> {
        let scopes = scopes(self.run.platform).into_iter();
        for scope in scopes.filter(|scope| scope.table.name == table.name) {
            let mut after = None;
            loop {
                let page = read_page(reading, &scope, after.clone(), None).await?;
                let next = next_position(&page);
                let range = KeyRange {
                    after: after.take(),
                    last: next.as_ref(),
                };
                let mut unit = self.begin_in_target().await?;
                let stored = read_range(unit.as_mut(), &scope, &range).await?;
                let delete = Changes::between(stored, page).delete;
                delete_rows(unit.as_mut(), table, delete, &[]).await?;
                unit.commit().await?;
                match next {
                    Some(next) => after = Some(next),
                    None => break,
                }
            }
        }
        Ok(())
    }
}

/// Returns the keys of the rows.
fn keys(rows: &[Row]) -> Vec<Value> {
    rows.iter().filter_map(|row| row.first().cloned()).collect()
}

/// Deletes the rows with these keys. The rows of deleted jobs are deleted with them, unless the jobs are `replaced`.
async fn delete_rows(
    unit: &mut dyn RowTx,
    table: &'static Table,
    keys: Vec<Value>,
    replaced: &[Row],
) -> Result<(), StoreError> {
    if keys.is_empty() {
        return Ok(());
    }
    if table.append_only {
        unit.remove_moved(table, &keys).await?;
        return Ok(());
    }
    if table.name == Job::TABLE.name {
        let is_gone = |key: &&Value| !replaced.iter().any(|row| row.first() == Some(*key));
        let gone: Vec<Value> = keys.iter().filter(is_gone).cloned().collect();
        for scope in scopes_of_jobs(&gone) {
            unit.delete(scope.table, &scope.filter).await?;
        }
    }
    unit.delete(table, &Filter::In(table.key(), keys)).await?;
    Ok(())
}

/// Removes the rows of a platform from a cell that does not serve it. Returns their number.
pub(super) async fn remove_rows(
    cells: &CellSet,
    cell: usize,
    run: Run<'_>,
) -> Result<u64, StoreError> {
    let rows = cells.rows(cell);
    let mut removed = 0;
    for scope in scopes(run.platform) {
        loop {
            let mut reading = rows.begin(Mode::Read).await?;
            let page = read_page(reading.as_mut(), &scope, None, None).await?;
            reading.rollback().await;
            let keys = keys(&page);
            if keys.is_empty() {
                break;
            }
            removed += keys.len() as u64;
            let mut unit = rows.begin(Mode::ReadCommitted).await?;
            lock_hidden(unit.as_mut(), run).await?;
            delete_rows(unit.as_mut(), scope.table, keys, &[]).await?;
            unit.commit().await?;
        }
    }
    Ok(removed)
}
