//! The rules that every unit of work follows, whatever its engine:
//!
//! - An aborted unit stays aborted.
//! - Read units do not write.
//! - Queries are valid for their tables.
//! - `now` is constant.

use std::time::Duration;

use async_trait::async_trait;
use core_domain::kernel::{StoreError, Timestamp};
use core_domain::port::{Direction, HostStatements, Mode, StatementTime};

use crate::filter::Filter;
use crate::join::{Join, VisitJoined};
use crate::query::Select;
use crate::row_store::{GroupSum, RecordedRows, Replacement, RowTx};
use crate::table::{Table, Type};
use crate::tables;
use crate::value::{ReadRow, Row, Value, Visit};

/// Enforces the rules of the contract for the unit of work that it wraps. Engines return their units wrapped in it.
pub struct CheckedTx {
    inner: Box<dyn RowTx>,
    mode: Mode,
    aborted: bool,
    now: Option<Timestamp>,
}

impl std::fmt::Debug for CheckedTx {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("CheckedTx")
            .field("mode", &self.mode)
            .field("aborted", &self.aborted)
            .finish_non_exhaustive()
    }
}

impl CheckedTx {
    /// Wraps a unit of work that was opened in this mode.
    #[must_use]
    pub fn wrap(inner: Box<dyn RowTx>, mode: Mode) -> Box<dyn RowTx> {
        Box::new(Self {
            inner,
            mode,
            aborted: false,
            now: None,
        })
    }

    fn ensure_active(&self) -> Result<(), StoreError> {
        if self.aborted {
            Err(aborted_error())
        } else {
            Ok(())
        }
    }

    fn ensure_writable(&mut self) -> Result<(), StoreError> {
        self.ensure_active()?;
        if matches!(self.mode, Mode::Write | Mode::ReadCommitted) {
            return Ok(());
        }
        self.aborted = true;
        Err(StoreError::backend("the unit of work is read-only"))
    }

    /// Like [`Self::ensure_writable`], for calls that change or delete rows of the table.
    fn ensure_changeable(&mut self, table: &Table) -> Result<(), StoreError> {
        self.ensure_writable()?;
        if !table.append_only {
            return Ok(());
        }
        self.aborted = true;
        Err(StoreError::backend(format!(
            "rows of {} are never changed or deleted",
            table.name
        )))
    }

    /// Like [`Self::ensure_writable`], for calls that remove the rows with these keys, which must be archived.
    async fn ensure_archived(&mut self, table: &Table, keys: &[Value]) -> Result<(), StoreError> {
        self.ensure_writable()?;
        let bound = self.archive_bound(table).await?;
        let is_archived = |key: &Value| key.as_text() < bound.as_deref();
        if keys.iter().all(is_archived) {
            return Ok(());
        }
        self.aborted = true;
        Err(StoreError::backend(format!(
            "rows of {} are not archived",
            table.name
        )))
    }

    /// Returns the smallest key of the rows that are not archived; `None` if no row is archived.
    async fn archive_bound(&mut self, table: &Table) -> Result<Option<String>, StoreError> {
        let Some(archive) = table.archive else {
            return Ok(None);
        };
        let tables = tables::all();
        let Some(archives) = tables.into_iter().find(|found| found.name == archive.table) else {
            return Ok(None);
        };
        let at = archives.column_index(archive.column).unwrap_or_default();
        let newest = Select::of(archives).order_by_desc(archive.column).limit(1);
        let mut bound = None;
        let mut visit = |row: &dyn ReadRow| {
            bound = row.read(at)?.as_text().map(str::to_owned);
            Ok(())
        };
        let outcome = self.inner.select(&newest, &mut visit).await;
        self.track_error(outcome)?;
        Ok(bound)
    }

    fn track_error<T>(&mut self, outcome: Result<T, StoreError>) -> Result<T, StoreError> {
        if let Err(error) = &outcome {
            self.aborted |= !is_recoverable(error);
        }
        outcome
    }
}

/// Returns the error of every call after an error that aborted the unit of work.
pub(crate) fn aborted_error() -> StoreError {
    StoreError::backend("an earlier error aborted this unit of work")
}

/// Returns whether the unit of work stays usable after the error.
pub(crate) const fn is_recoverable(error: &StoreError) -> bool {
    matches!(
        error,
        StoreError::Conflict { .. } | StoreError::Stale { .. } | StoreError::InvalidCursor
    )
}

fn check_set(table: &Table, set: &[(&'static str, Value)]) -> Result<(), StoreError> {
    set.iter().try_for_each(|(name, value)| {
        if *name == table.key() {
            return Err(StoreError::backend("the key of a row cannot be changed"));
        }
        table.check_value(table.column(name)?, value)
    })
}

fn check_replacement(table: &Table, row: &Replacement) -> Result<(), StoreError> {
    table.check_row(&row.old)?;
    table.check_row(&row.new)?;
    if row.old.first() == row.new.first() {
        return Ok(());
    }
    Err(StoreError::backend("the key of a row cannot be changed"))
}

fn check_same_columns(from: &Table, to: &Table) -> Result<(), StoreError> {
    if from.columns == to.columns {
        return Ok(());
    }
    let (from, to) = (from.name, to.name);
    Err(StoreError::backend(format!(
        "rows of {from} do not have the columns of {to}"
    )))
}

fn check_key(table: &Table, key: &str) -> Result<(), StoreError> {
    if !key.contains('\0') {
        return Ok(());
    }
    Err(StoreError::backend(format!(
        "{}.{} is compared with a value of another type",
        table.name,
        table.key()
    )))
}

fn check_sum(table: &Table, column: &str, groups: &[&str]) -> Result<(), StoreError> {
    let mut is_valid = table.column(column)?.kind == Type::Int;
    for group in groups {
        is_valid &= !table.column(group)?.nullable;
    }
    if is_valid {
        return Ok(());
    }
    Err(StoreError::backend(
        "only integer columns can be summed, grouped by columns that are not nullable",
    ))
}

#[async_trait]
impl RowTx for CheckedTx {
    async fn insert(&mut self, table: &'static Table, row: Row) -> Result<(), StoreError> {
        self.ensure_writable()?;
        let checked = table.check_row(&row);
        self.track_error(checked)?;
        let outcome = self.inner.insert(table, row).await;
        self.track_error(outcome)
    }

    async fn insert_many(
        &mut self,
        table: &'static Table,
        rows: Vec<Row>,
    ) -> Result<(), StoreError> {
        self.ensure_writable()?;
        let checked = rows.iter().try_for_each(|row| table.check_row(row));
        self.track_error(checked)?;
        if rows.is_empty() {
            return Ok(());
        }
        let outcome = self.inner.insert_many(table, rows).await;
        self.track_error(outcome)
    }

    async fn append(&mut self, table: &'static Table, rows: Vec<Row>) -> Result<(), StoreError> {
        self.ensure_writable()?;
        let checked = rows.iter().try_for_each(|row| table.check_row(row));
        self.track_error(checked)?;
        if rows.is_empty() {
            return Ok(());
        }
        let outcome = self.inner.append(table, rows).await;
        self.track_error(outcome)
    }

    async fn replace_many(
        &mut self,
        table: &'static Table,
        rows: Vec<Replacement>,
    ) -> Result<(), StoreError> {
        self.ensure_changeable(table)?;
        let checked = rows
            .iter()
            .try_for_each(|row| check_replacement(table, row));
        self.track_error(checked)?;
        if rows.is_empty() {
            return Ok(());
        }
        let outcome = self.inner.replace_many(table, rows).await;
        self.track_error(outcome)
    }

    async fn replace_locked(
        &mut self,
        table: &'static Table,
        rows: Vec<Replacement>,
    ) -> Result<(), StoreError> {
        self.ensure_changeable(table)?;
        let checked = rows
            .iter()
            .try_for_each(|row| check_replacement(table, row));
        self.track_error(checked)?;
        if rows.is_empty() {
            return Ok(());
        }
        let outcome = self.inner.replace_locked(table, rows).await;
        self.track_error(outcome)
    }

    async fn insert_or_lock(
        &mut self,
        table: &'static Table,
        rows: Vec<Row>,
        visit: Visit<'_>,
    ) -> Result<(), StoreError> {
        self.ensure_changeable(table)?;
        let checked = rows.iter().try_for_each(|row| table.check_row(row));
        self.track_error(checked)?;
        if rows.is_empty() {
            return Ok(());
        }
        let locked = self.inner.insert_or_lock(table, rows, visit).await;
        self.track_error(locked)
    }

    async fn lock(
        &mut self,
        table: &'static Table,
        key: &Value,
        visit: Visit<'_>,
    ) -> Result<(), StoreError> {
        self.ensure_changeable(table)?;
        let locked = self.inner.lock(table, key, visit).await;
        self.track_error(locked)
    }

    async fn insert_new(
        &mut self,
        table: &'static Table,
        rows: Vec<Row>,
    ) -> Result<Vec<Value>, StoreError> {
        self.ensure_changeable(table)?;
        let checked = rows.iter().try_for_each(|row| table.check_row(row));
        self.track_error(checked)?;
        if rows.is_empty() {
            return Ok(Vec::new());
        }
        let inserted = self.inner.insert_new(table, rows).await;
        self.track_error(inserted)
    }

    async fn update(
        &mut self,
        table: &'static Table,
        filter: &Filter,
        set: &[(&'static str, Value)],
    ) -> Result<u64, StoreError> {
        self.ensure_changeable(table)?;
        let checked = filter.check(table).and_then(|()| check_set(table, set));
        self.track_error(checked)?;
        let outcome = self.inner.update(table, filter, set).await;
        self.track_error(outcome)
    }

    async fn delete(&mut self, table: &'static Table, filter: &Filter) -> Result<u64, StoreError> {
        self.ensure_changeable(table)?;
        self.track_error(filter.check(table))?;
        let outcome = self.inner.delete(table, filter).await;
        self.track_error(outcome)
    }

    async fn promote(
        &mut self,
        from: &'static Table,
        to: &'static Table,
        keys: &[Value],
    ) -> Result<u64, StoreError> {
        self.ensure_writable()?;
        let checked = check_same_columns(from, to);
        self.track_error(checked)?;
        let outcome = self.inner.promote(from, to, keys).await;
        self.track_error(outcome)
    }

    async fn get(
        &mut self,
        table: &'static Table,
        key: &str,
        filter: &Filter,
        visit: Visit<'_>,
    ) -> Result<(), StoreError> {
        self.ensure_active()?;
        let checked = check_key(table, key).and_then(|()| filter.check(table));
        self.track_error(checked)?;
        let outcome = self.inner.get(table, key, filter, visit).await;
        self.track_error(outcome)
    }

    fn commit_number(&self, table: &'static Table, platform: Option<&str>) -> Option<u64> {
        self.inner.commit_number(table, platform)
    }

    async fn select(&mut self, select: &Select, visit: Visit<'_>) -> Result<(), StoreError> {
        self.ensure_active()?;
        self.track_error(select.check())?;
        let outcome = self.inner.select(select, visit).await;
        self.track_error(outcome)
    }

    async fn select_joined(
        &mut self,
        select: &Select,
        joins: &'static [Join],
        visit: VisitJoined<'_>,
    ) -> Result<(), StoreError> {
        self.ensure_active()?;
        self.track_error(select.check())?;
        let outcome = self.inner.select_joined(select, joins, visit).await;
        self.track_error(outcome)
    }

    async fn claim(&mut self, select: &Select, visit: Visit<'_>) -> Result<(), StoreError> {
        self.ensure_writable()?;
        self.track_error(select.check())?;
        let outcome = self.inner.claim(select, visit).await;
        self.track_error(outcome)
    }

    async fn count(&mut self, table: &'static Table, filter: &Filter) -> Result<u64, StoreError> {
        self.ensure_active()?;
        self.track_error(filter.check(table))?;
        let outcome = self.inner.count(table, filter).await;
        self.track_error(outcome)
    }

    async fn remove_archived(
        &mut self,
        table: &'static Table,
        keys: &[Value],
    ) -> Result<u64, StoreError> {
        self.ensure_archived(table, keys).await?;
        let outcome = self.inner.remove_archived(table, keys).await;
        self.track_error(outcome)
    }

    async fn remove_moved(
        &mut self,
        table: &'static Table,
        keys: &[Value],
    ) -> Result<u64, StoreError> {
        self.ensure_writable()?;
        let outcome = self.inner.remove_moved(table, keys).await;
        self.track_error(outcome)
    }

    async fn close_gate(&mut self, max_wait: Duration) -> Result<(), StoreError> {
        self.ensure_writable()?;
        let outcome = self.inner.close_gate(max_wait).await;
        self.track_error(outcome)
    }

    async fn set_recording(
        &mut self,
        rows: &RecordedRows<'_>,
        is_on: bool,
        max_wait: Duration,
    ) -> Result<bool, StoreError> {
        self.ensure_writable()?;
        let outcome = self.inner.set_recording(rows, is_on, max_wait).await;
        self.track_error(outcome)
    }

    async fn sum(
        &mut self,
        table: &'static Table,
        column: &'static str,
        groups: &[&'static str],
        filter: &Filter,
    ) -> Result<Vec<GroupSum>, StoreError> {
        self.ensure_active()?;
        let checked = filter
            .check(table)
            .and_then(|()| check_sum(table, column, groups));
        self.track_error(checked)?;
        let outcome = self.inner.sum(table, column, groups, filter).await;
        self.track_error(outcome)
    }

    async fn walk(
        &mut self,
        table: &'static Table,
        key: &str,
        direction: Direction,
        depth: u32,
        filter: &Filter,
        visit: Visit<'_>,
    ) -> Result<(), StoreError> {
        self.ensure_active()?;
        if table.parent.is_none() {
            return Ok(());
        }
        let checked = filter.check(table);
        self.track_error(checked)?;
        let outcome = self
            .inner
            .walk(table, key, direction, depth, filter, visit)
            .await;
        self.track_error(outcome)
    }

    async fn now(&mut self) -> Result<Timestamp, StoreError> {
        self.ensure_active()?;
        if let Some(now) = self.now {
            return Ok(now);
        }
        let outcome = self.inner.now().await;
        let now = self.track_error(outcome)?;
        self.now = Some(now);
        Ok(now)
    }

    fn take_slowest_statements(&mut self) -> Vec<StatementTime> {
        self.inner.take_slowest_statements()
    }

    async fn enlist(&mut self, statements: &mut dyn HostStatements) -> Result<(), StoreError> {
        self.ensure_writable()?;
        // If this call is dropped, some of the statements may have run.
        self.aborted = true;
        self.inner.enlist(statements).await?;
        self.aborted = false;
        Ok(())
    }

    async fn commit(self: Box<Self>) -> Result<(), StoreError> {
        if self.aborted {
            self.inner.rollback().await;
            return Err(aborted_error());
        }
        self.inner.commit().await
    }

    async fn prepare(self: Box<Self>, name: &str) -> Result<(), StoreError> {
        if self.aborted {
            self.inner.rollback().await;
            return Err(aborted_error());
        }
        self.inner.prepare(name).await
    }

    async fn rollback(self: Box<Self>) {
        self.inner.rollback().await;
    }
}
