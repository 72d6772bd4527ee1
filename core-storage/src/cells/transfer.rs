//! The copy of a platform's rows from one cell to another.
//!
//! A pass compares all rows of the platform in both cells and writes the differences. The first passes run while the platform
//! is in use. They record the number of rows and the sum of their versions for each part of a table. The last pass runs while
//! nothing changes. It compares only the parts whose sums differ, and the end of each table, where new rows are.

use core_domain::kernel::StoreError;
use core_domain::port::Mode;
use core_domain::provisioning::{Job, JobLease};

use super::cell_set::CellSet;
use super::hidden::lock_hidden;
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

/// A part of a table that was equal in both cells.
struct Part {
    scope: Scope,
    sum: VersionSum,
    /// `true` if new rows of the table are in this part.
    is_open: bool,
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
    pub(super) cells: &'c CellSet,
    pub(super) platform: &'c str,
    pub(super) source: usize,
    pub(super) target: usize,
    parts: Vec<Part>,
}

impl<'c> Transfer<'c> {
    pub(super) const fn new(
        cells: &'c CellSet,
        platform: &'c str,
        source: usize,
        target: usize,
    ) -> Self {
        Self {
            cells,
            platform,
            source,
            target,
            parts: Vec::new(),
        }
    }

    /// Makes all rows in the target equal to those in the source. Each table is read in one state.
    pub(super) async fn copy_all(
        &mut self,
        on_table: &mut (dyn FnMut(&'static str, u64) + Send),
    ) -> Result<Pass, StoreError> {
        self.parts.clear();
        let mut pass = Pass::default();
        for scope in scopes(self.platform) {
            let mut reading = self.read(self.source).await?;
            let mut after = None;
            loop {
                let mut part = Part {
                    scope: scope.clone(),
                    sum: VersionSum::default(),
                    is_open: true,
                };
                if let Some(after) = &after {
                    let behind = Filter::gt(scope.table.key(), Value::clone(after));
                    part.scope.filter = part.scope.filter.and(behind);
                }
                let next = self
                    .copy_part(reading.as_mut(), &mut part, PART_PAGES, &mut pass)
                    .await?;
                if let Some(last) = &next {
                    let up_to = Filter::le(scope.table.key(), last.clone());
                    part.scope.filter = part.scope.filter.and(up_to);
                    part.is_open = false;
                }
                self.parts.push(part);
                on_table(scope.table.name, pass.rows);
                match next {
                    Some(next) => after = Some(next),
                    None => break,
                }
            }
            reading.rollback().await;
        }
        Ok(pass)
    }

    /// Makes the rows that may have changed since the last pass equal. Nothing changes in the source meanwhile.
    pub(super) async fn copy_changes(&mut self) -> Result<Pass, StoreError> {
        let mut reading = self.read(self.source).await?;
        let mut pass = Pass::default();
        for mut part in std::mem::take(&mut self.parts) {
            let is_settled =
                !part.is_open && VersionSum::read(reading.as_mut(), &part.scope).await? == part.sum;
            if !is_settled {
                self.copy_part(reading.as_mut(), &mut part, usize::MAX, &mut pass)
                    .await?;
            }
        }
        reading.rollback().await;
        Ok(pass)
    }

    /// Compares the numbers of rows and the sums of versions of all tables. Returns the number of rows of each table.
    ///
    /// # Errors
    /// [`StoreError::Backend`] if they differ.
    pub(super) async fn verify(&self) -> Result<Vec<(&'static str, u64)>, StoreError> {
        let mut source = self.read(self.source).await?;
        let mut target = self.read(self.target).await?;
        let mut tables = Vec::new();
        for scope in scopes(self.platform) {
            let left = VersionSum::read(source.as_mut(), &scope).await?;
            let right = VersionSum::read(target.as_mut(), &scope).await?;
            if left != right {
                let name = scope.table.name;
                return Err(StoreError::backend(format!(
                    "the copy of the table {name} differs from its source"
                )));
            }
            tables.push((scope.table.name, left.rows));
        }
        source.rollback().await;
        target.rollback().await;
        Ok(tables)
    }

    async fn read(&self, cell: usize) -> Result<Box<dyn RowTx>, StoreError> {
        self.cells.rows(cell).begin(Mode::Read).await
    }

    /// Makes up to a number of pages of a part equal. Returns the last key, if there may be more rows.
    async fn copy_part(
        &mut self,
        reading: &mut dyn RowTx,
        part: &mut Part,
        max_pages: usize,
        pass: &mut Pass,
    ) -> Result<Option<Value>, StoreError> {
        let scope = part.scope.clone();
        let mut after = None;
        for _ in 0..max_pages {
            let page = read_page(reading, &scope, after.clone(), None).await?;
            let next = next_position(&page);
            let sum = VersionSum::of(&page);
            part.sum = part.sum.plus(sum);
            pass.rows += sum.rows;
            let jobs = jobs_of(&scope, &page);
            let range = KeyRange {
                after: after.take(),
                last: next.as_ref(),
            };
            pass.changed += match self.equalize(&scope, &range, page.clone()).await {
                Err(StoreError::Conflict { .. }) => {
                    // A value moved from a row of a later page to one of this page.
                    self.delete_differences(reading, scope.table).await?;
                    self.equalize(&scope, &range, page).await?
                }
                outcome => outcome?,
            };
            if !jobs.is_empty() {
                self.copy_rows_of_jobs(reading, &jobs, pass).await?;
            }
            match next {
                Some(next) => after = Some(next),
                None => return Ok(None),
            }
        }
        Ok(after)
    }

    /// Makes the rows of jobs equal in the tables that name jobs.
    async fn copy_rows_of_jobs(
        &mut self,
        reading: &mut dyn RowTx,
        jobs: &[Value],
        pass: &mut Pass,
    ) -> Result<(), StoreError> {
        let all = || KeyRange {
            after: None,
            last: None,
        };
        for scope in scopes_of_jobs(jobs) {
            let rows = read_range(reading, &scope, &all()).await?;
            let sum = VersionSum::of(&rows);
            pass.rows += sum.rows;
            pass.changed += self.equalize(&scope, &all(), rows).await?;
            self.parts.push(Part {
                scope,
                sum,
                is_open: false,
            });
        }
        Ok(())
    }

    /// Makes the rows of a range of keys in the target equal to those of the source. Returns the number of differences.
    async fn equalize(
        &self,
        scope: &Scope,
        range: &KeyRange<'_>,
        source: Vec<Row>,
    ) -> Result<u64, StoreError> {
        let changes = self.differences(scope, range, source).await?;
        let count = changes.delete.len().max(changes.insert.len()) as u64;
        if count > 0 {
            self.write(scope.table, changes).await?;
        }
        Ok(count)
    }

    /// Deletes all rows of the platform in a table of the target that differ from those of the source.
    async fn delete_differences(
        &self,
        reading: &mut dyn RowTx,
        table: &'static Table,
    ) -> Result<(), StoreError> {
        let scopes = scopes(self.platform).into_iter();
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
        lock_hidden(unit.as_mut(), self.platform).await?;
        delete_rows(unit.as_mut(), table, delete, &insert).await?;
        if !insert.is_empty() {
            unit.insert_many(table, insert).await?;
        }
        unit.commit().await
    }
}

/// Returns the keys of the rows, if they are jobs.
fn jobs_of(scope: &Scope, rows: &[Row]) -> Vec<Value> {
    if scope.table.name != Job::TABLE.name {
        return Vec::new();
    }
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
    platform: &str,
) -> Result<u64, StoreError> {
    let rows = cells.rows(cell);
    let mut removed = 0;
    for scope in scopes(platform) {
        loop {
            let mut reading = rows.begin(Mode::Read).await?;
            let page = read_page(reading.as_mut(), &scope, None, None).await?;
            reading.rollback().await;
            let keys: Vec<Value> = page
                .into_iter()
                .filter_map(|row| row.into_iter().next())
                .collect();
            if keys.is_empty() {
                break;
            }
            removed += keys.len() as u64;
            let mut unit = rows.begin(Mode::ReadCommitted).await?;
            lock_hidden(unit.as_mut(), platform).await?;
            delete_rows(unit.as_mut(), scope.table, keys, &[]).await?;
            unit.commit().await?;
        }
    }
    Ok(removed)
}
