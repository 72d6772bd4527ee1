//! The copy of a platform's rows from one cell to another.
//!
//! A pass compares all rows of the platform in both cells and writes the differences. The first passes run while the platform
//! is in use. They record the number of rows and the sum of their versions for each part of a large table. The last pass runs
//! while nothing changes. It compares small tables, the parts of large ones whose sums differ, and the end of each table, where
//! new rows are.

use std::collections::BTreeSet;

use core_domain::kernel::StoreError;
use core_domain::port::Mode;
use core_domain::provisioning::{Job, JobLease};

use super::cell_set::CellSet;
use super::hidden::{Run, lock_hidden};
use super::place::{Place, place_of};
use crate::copy::{Changes, KeyRange, Scope, next_position, read_page, read_range};
use crate::filter::Filter;
use crate::row_store::{GroupSum, RowTx};
use crate::table::{Table, VERSION};
use crate::tables;
use crate::tabular::Tabular;
use crate::value::{Row, Value};

/// The number of pages of a part.
const PART_PAGES: usize = 10;

/// Returns the rows of the platform in the tables that name platforms.
pub(super) fn scopes(platform: &str) -> Vec<Scope> {
    let scope = |table| match place_of(table) {
        Place::Named(column, naming) => {
            let names = naming.names(platform);
            let names = names.iter().map(|name| Value::text(name)).collect();
            let filter = Filter::In(column, names);
            Some(Scope { table, filter })
        }
        _ => None,
    };
    let tables = tables::of_records().into_iter();
    tables.filter_map(scope).collect()
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

/// A number of rows and the sum of their versions.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct VersionSum {
    rows: u64,
    versions: i64,
}

impl VersionSum {
    fn of(rows: &[Row]) -> Self {
        let versions = rows.iter().filter_map(|row| row.last()?.as_int());
        Self {
            rows: rows.len() as u64,
            versions: versions.sum(),
        }
    }

    fn plus(self, other: Self) -> Self {
        Self {
            rows: self.rows + other.rows,
            versions: self.versions + other.versions,
        }
    }

    async fn read(unit: &mut dyn RowTx, scope: &Scope) -> Result<Self, StoreError> {
        let sums = unit.sum(scope.table, VERSION, &[], &scope.filter).await?;
        let sum = |GroupSum { count, sum, .. }: &GroupSum| Self {
            rows: *count,
            versions: *sum,
        };
        Ok(sums.first().map(sum).unwrap_or_default())
    }
}

/// A table with rows of the platform, as a pass left it: equal in both cells.
struct CopiedTable {
    /// The rows of the platform.
    scope: Scope,
    sum: VersionSum,
    /// The ranges of keys of these rows. New rows are in the last one.
    parts: Vec<Part>,
}

/// A range of keys of a table.
struct Part {
    scope: Scope,
    sum: VersionSum,
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
    tables: Vec<CopiedTable>,
    /// `true` after a whole pass, which compares the rows of all jobs. The last pass compares only those of changed jobs,
    /// because they change with their job.
    has_all_jobs: bool,
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
            has_all_jobs: false,
        }
    }

    /// Makes all rows in the target equal to those in the source. Each table is read in one state.
    pub(super) async fn copy_all(
        &mut self,
        on_table: &mut (dyn FnMut(&'static str, u64) + Send),
    ) -> Result<Pass, StoreError> {
        self.tables.clear();
        // The last pass may have ended between a job and its rows.
        self.has_all_jobs = false;
        let mut pass = Pass::default();
        for scope in scopes(self.run.platform) {
            let name = scope.table.name;
            let copied = self.copy_table(scope, &mut pass).await?;
            self.tables.push(copied);
            on_table(name, pass.rows);
        }
        self.has_all_jobs = true;
        Ok(pass)
    }

    async fn copy_table(&self, scope: Scope, pass: &mut Pass) -> Result<CopiedTable, StoreError> {
        let key = scope.table.key();
        let mut reading = self.read(self.source).await?;
        let mut copied = CopiedTable {
            scope,
            sum: VersionSum::default(),
            parts: Vec::new(),
        };
        let mut after: Option<Value> = None;
        loop {
            let behind = after.take().map(|after| Filter::gt(key, after));
            let mut part = copied.scope.clone();
            part.filter = part.filter.and(behind.unwrap_or_else(Filter::all));
            let (sum, next) = self
                .copy_part(reading.as_mut(), &part, PART_PAGES, pass)
                .await?;
            let up_to = next.clone().map(|last| Filter::le(key, last));
            part.filter = part.filter.and(up_to.unwrap_or_else(Filter::all));
            copied.sum = copied.sum.plus(sum);
            copied.parts.push(Part { scope: part, sum });
            match next {
                Some(next) => after = Some(next),
                None => break,
            }
        }
        reading.rollback().await;
        Ok(copied)
    }

    /// Makes the rows that may have changed since the last pass equal. Nothing changes in the source in the meantime.
    pub(super) async fn copy_changes(&mut self) -> Result<Pass, StoreError> {
        let mut reading = self.read(self.source).await?;
        let mut pass = Pass::default();
        let tables = std::mem::take(&mut self.tables);
        for table in &tables {
            self.copy_changes_of(reading.as_mut(), table, &mut pass)
                .await?;
        }
        reading.rollback().await;
        Ok(pass)
    }

    async fn copy_changes_of(
        &self,
        reading: &mut dyn RowTx,
        table: &CopiedTable,
        pass: &mut Pass,
    ) -> Result<(), StoreError> {
        let Some((last, closed)) = table.parts.split_last() else {
            return Ok(());
        };
        // Rows of an append-only table do not change, and the count shows whether one was added elsewhere.
        let may_change = !closed.is_empty() && !table.scope.table.append_only;
        if may_change {
            if VersionSum::read(reading, &table.scope).await? == table.sum {
                return Ok(());
            }
            for part in closed {
                if VersionSum::read(reading, &part.scope).await? != part.sum {
                    self.copy_part(reading, &part.scope, usize::MAX, pass)
                        .await?;
                }
            }
        }
        self.copy_part(reading, &last.scope, usize::MAX, pass)
            .await?;
        Ok(())
    }

    /// Compares the numbers of rows and the sums of versions of the tables that name platforms. Returns the number of rows of
    /// each table; `None` if a table differs.
    pub(super) async fn verify(&self) -> Result<Option<Vec<(&'static str, u64)>>, StoreError> {
        let (source, target) = tokio::join!(self.sums(self.source), self.sums(self.target));
        let (source, target) = (source?, target?);
        let counts = source.iter().map(|(table, sum)| (*table, sum.rows));
        Ok((source == target).then(|| counts.collect()))
    }

    async fn sums(&self, cell: usize) -> Result<Vec<(&'static str, VersionSum)>, StoreError> {
        let mut unit = self.read(cell).await?;
        let mut sums = Vec::new();
        for scope in scopes(self.run.platform) {
            let sum = match scope.table.append_only {
                true => VersionSum {
                    rows: unit.count(scope.table, &scope.filter).await?,
                    versions: 0,
                },
                false => VersionSum::read(unit.as_mut(), &scope).await?,
            };
            sums.push((scope.table.name, sum));
        }
        unit.rollback().await;
        Ok(sums)
    }

    async fn read(&self, cell: usize) -> Result<Box<dyn RowTx>, StoreError> {
        self.cells.rows(cell).begin(Mode::Read).await
    }

    /// Makes up to a number of pages of a part equal. Returns the sum of their rows, and the last key if there may be more
    /// rows.
    async fn copy_part(
        &self,
        reading: &mut dyn RowTx,
        scope: &Scope,
        max_pages: usize,
        pass: &mut Pass,
    ) -> Result<(VersionSum, Option<Value>), StoreError> {
        let (mut sum, mut after) = (VersionSum::default(), None);
        for _ in 0..max_pages {
            let page = read_page(reading, scope, after.clone(), None).await?;
            let next = next_position(&page);
            let of_page = VersionSum::of(&page);
            sum = sum.plus(of_page);
            pass.rows += of_page.rows;
            let range = KeyRange {
                after: after.take(),
                last: next.as_ref(),
            };
            let all = keys(&page);
            let changed = match self.equalize(scope, &range, page.clone()).await {
                Err(StoreError::Conflict { .. }) => {
                    // A value moved from a row of a later page to one of this page.
                    self.delete_differences(reading, scope.table).await?;
                    self.equalize(scope, &range, page).await?
                }
                outcome => outcome?,
            };
            pass.changed += changed.len() as u64;
            if scope.table.name == Job::TABLE.name {
                let jobs = if self.has_all_jobs { changed } else { all };
                self.copy_rows_of_jobs(reading, &jobs, pass).await?;
            }
            match next {
                Some(next) => after = Some(next),
                None => return Ok((sum, None)),
            }
        }
        Ok((sum, after))
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
            pass.changed += self.equalize(&scope, &all(), rows).await?.len() as u64;
        }
        Ok(())
    }

    /// Makes the rows of a range of keys in the target equal to those of the source. Returns the keys of those that differed.
    async fn equalize(
        &self,
        scope: &Scope,
        range: &KeyRange<'_>,
        source: Vec<Row>,
    ) -> Result<Vec<Value>, StoreError> {
        let changes = self.differences(scope, range, source).await?;
        let mut changed = keys(&changes.insert);
        let written: BTreeSet<Value> = changed.iter().cloned().collect();
        let gone = changes.delete.iter().filter(|key| !written.contains(key));
        changed.extend(gone.cloned());
        if !changed.is_empty() {
            self.write(scope.table, changes).await?;
        }
        Ok(changed)
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
                let delete = self.differences(&scope, &range, page).await?.delete;
                let insert = Vec::new();
                self.write(table, Changes { delete, insert }).await?;
                match next {
                    Some(next) => after = Some(next),
                    None => break,
                }
            }
        }
        Ok(())
    }

    /// Returns the changes that make the rows of a range in the target equal to those of the source.
    async fn differences(
        &self,
        scope: &Scope,
        range: &KeyRange<'_>,
        source: Vec<Row>,
    ) -> Result<Changes, StoreError> {
        let mut stored = self.read(self.target).await?;
        let rows = read_range(stored.as_mut(), scope, range).await?;
        stored.rollback().await;
        Ok(Changes::between(rows, source))
    }

    /// Changes rows in the target.
    async fn write(&self, table: &'static Table, changes: Changes) -> Result<(), StoreError> {
        let Changes { delete, insert } = changes;
        let rows = self.cells.rows(self.target);
        let mut unit = rows.begin(Mode::ReadCommitted).await?;
        // After the switch, no other process overwrites what the target serves.
        lock_hidden(unit.as_mut(), self.run).await?;
        delete_rows(unit.as_mut(), table, delete, &insert).await?;
        if !insert.is_empty() {
            unit.insert_many(table, insert).await?;
        }
        unit.commit().await
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
