//! Inserts and changes. Without a conflict each is one statement. Only after a conflict, further queries identify the
//! violated index.

use std::collections::BTreeSet;

use core_domain::kernel::StoreError;

use super::append::{QueuedRows, insert_new, insert_parts};
use super::executor::Executor;
use super::statement::{Change, Cost};
use super::tx::{SqlTx, change_cost, names_one_key};
use super::{batch, render};
use crate::filter::Filter;
use crate::query::Select;
use crate::row_store::Replacement;
use crate::table::{Column, PLATFORM, Table, Unique, VERSION};
use crate::value::{ReadRow, Row, Value, Visit};

fn conflict(table: &Table, index: &'static str) -> StoreError {
    let table = table.name;
    StoreError::Conflict { table, index }
}

fn same_key(table: &'static Table, row: &Row) -> Filter {
    Filter::eq(table.key(), table.value(row, table.key()).clone())
}

/// Returns whether the change can make a row violate the unique index. It must set a column of the index, and no column
/// to a value that the index does not cover.
fn can_violate(unique: &Unique, set: &[(&'static str, Value)]) -> bool {
    let uncovered = |(column, value): &(&'static str, Value)| {
        let is_null = unique.columns.contains(column) && value.is_null();
        let predicates = unique.predicates.iter();
        let mut of_column = predicates.filter(|predicate| predicate.column() == *column);
        is_null || of_column.any(|predicate| !predicate.holds(value))
    };
    set.iter().any(|(column, _)| unique.depends_on(column)) && !set.iter().any(uncovered)
}

/// Returns the columns in which any row differs from the row that it replaces.
fn changed_columns(table: &Table, rows: &[Replacement]) -> Vec<usize> {
    let changed = |at: &usize| rows.iter().any(|row| row.old.get(*at) != row.new.get(*at));
    (0..table.columns.len()).filter(changed).collect()
}

/// The index of a unique index in its table, and the values of a row in it.
type UniqueKey = (usize, Vec<Value>);

/// Returns the keys of the row in the unique indexes that cover it.
fn unique_keys(table: &Table, row: &Row) -> BTreeSet<UniqueKey> {
    let place = |(at, unique): (usize, &Unique)| {
        let value = |column: &&str| table.value(row, column).clone();
        let is_covered = Filter::covered_by(unique).matches(table, row);
        is_covered.then(|| (at, unique.columns.iter().map(value).collect()))
    };
    table.uniques.iter().enumerate().filter_map(place).collect()
}

/// Splits the rows into those that take over a unique key from another row of the batch, and the others.
fn split_dependent(table: &Table, rows: Vec<Replacement>) -> (Vec<Replacement>, Vec<Replacement>) {
    let (mut left, mut taken) = (BTreeSet::new(), Vec::with_capacity(rows.len()));
    for row in &rows {
        let (old, new) = (unique_keys(table, &row.old), unique_keys(table, &row.new));
        left.extend(old.difference(&new).cloned());
        taken.push(new.difference(&old).cloned().collect::<Vec<_>>());
    }
    let waits = |taken: &Vec<UniqueKey>| taken.iter().any(|place| left.contains(place));
    let mut waits = taken.iter().map(waits);
    rows.into_iter()
        .partition(|_| waits.next().unwrap_or(false))
}

impl<E: Executor> SqlTx<E> {
    pub(super) async fn insert_one(
        &mut self,
        table: &'static Table,
        row: &Row,
    ) -> Result<(), StoreError> {
        let platform = table.platform_of(row);
        let change = Change { table, platform };
        let inserted = self.execute(change, Cost::Bounded, |w| render::insert(w, table, row));
        match inserted.await? {
            0 => Err(self.identify_conflict(table, row).await),
            _ => Ok(()),
        }
    }

    pub(super) async fn insert_all(
        &mut self,
        table: &'static Table,
        rows: &[Row],
    ) -> Result<(), StoreError> {
        if self.dialect.has_arrays() && rows.len() > 1 {
            let inserted = self.insert_batch(table, rows).await?;
            if inserted.len() == rows.len() {
                return Ok(());
            }
            self.delete_keys(table, inserted).await?;
        }
        for (at, row) in rows.iter().enumerate() {
            if let Err(error) = self.insert_one(table, row).await {
                // After any other error the unit is aborted and runs no more statements.
                if at > 0 && matches!(error, StoreError::Conflict { .. }) {
                    let before = rows.iter().take(at);
                    let keys = before.map(|row| table.value(row, table.key()).clone());
                    self.delete_keys(table, keys.collect()).await?;
                }
                return Err(error);
            }
        }
        Ok(())
    }

    /// Queues the rows if a statement takes a round trip; inserts them immediately otherwise.
    pub(super) async fn append_rows(
        &mut self,
        table: &'static Table,
        rows: Vec<Row>,
    ) -> Result<(), StoreError> {
        if self.dialect.has_arrays() {
            self.appended.add(table, rows);
            return Ok(());
        }
        let inserted = self.insert_all(table, &rows).await;
        inserted.map_err(StoreError::conflict_as_retry)
    }

    /// Writes the queued rows if some of them belong to this table.
    pub(super) async fn flush_of(&mut self, table: &'static Table) -> Result<(), StoreError> {
        if self.appended.has(table) {
            self.flush().await?;
        }
        Ok(())
    }

    /// Writes the queued rows.
    pub(super) async fn flush(&mut self) -> Result<(), StoreError> {
        let appended = std::mem::take(&mut self.appended);
        for parts in appended.statements() {
            self.insert_parts(parts).await?;
        }
        Ok(())
    }

    /// Writes the queued rows of one statement.
    async fn insert_parts(&mut self, parts: &[QueuedRows]) -> Result<(), StoreError> {
        let Some(QueuedRows { table, .. }) = parts.first() else {
            return Ok(());
        };
        let inserted = self.execute(Change::of(table), Cost::Unbounded, |w| {
            insert_parts(w, parts)
        });
        inserted.await.map(drop)
    }

    /// Writes the queued rows. The last statement is sent together with the commit.
    pub(super) async fn flush_and_commit(mut self) -> Result<(), StoreError> {
        let appended = std::mem::take(&mut self.appended);
        let mut statements = appended.statements();
        let last = statements.next_back();
        for parts in statements {
            if let Err(error) = self.insert_parts(parts).await {
                self.executor.rollback().await;
                return Err(error);
            }
        }
        let last = last.and_then(|parts| Some((parts, parts.first()?)));
        let Some((parts, QueuedRows { table, .. })) = last else {
            return self.executor.commit().await;
        };
        let statement = self.statement(&[], Some(Change::of(table)), Cost::Unbounded, |w| {
            insert_parts(w, parts);
        });
        self.executor.commit_after(&statement).await
    }

    /// Inserts the rows whose keys are free, locks the others, and passes all rows to the visitor as they are stored.
    pub(super) async fn insert_or_lock_rows(
        &mut self,
        table: &'static Table,
        rows: &[Row],
        visit: Visit<'_>,
    ) -> Result<(), StoreError> {
        self.fetch_changed(
            table,
            table.columns,
            |w| {
                insert_new(w, table, rows);
                batch::or_lock(w, table);
            },
            visit,
        )
        .await
    }

    /// Locks the row with a key, if there is one.
    pub(super) async fn lock_row(
        &mut self,
        table: &'static Table,
        key: &Value,
        visit: Visit<'_>,
    ) -> Result<(), StoreError> {
        self.fetch_changed(table, table.columns, |w| batch::lock(w, table, key), visit)
            .await
    }

    /// Inserts the rows that have no conflict, row by row on a database without arrays. Returns their keys.
    pub(super) async fn insert_free(
        &mut self,
        table: &'static Table,
        rows: &[Row],
    ) -> Result<Vec<Value>, StoreError> {
        if self.dialect.has_arrays() {
            return self.insert_batch(table, rows).await;
        }
        let mut keys = Vec::with_capacity(rows.len());
        for row in rows {
            let platform = table.platform_of(row);
            let change = Change { table, platform };
            let inserted = self.execute(change, Cost::Bounded, |w| render::insert(w, table, row));
            if inserted.await? > 0 {
                keys.extend(row.first().cloned());
            }
        }
        Ok(keys)
    }

    /// Inserts the rows that have no conflict. Returns their keys.
    async fn insert_batch(
        &mut self,
        table: &'static Table,
        rows: &[Row],
    ) -> Result<Vec<Value>, StoreError> {
        let mut keys = Vec::with_capacity(rows.len());
        let mut visit = |row: &dyn ReadRow| {
            keys.push(row.read(0)?.to_value());
            Ok(())
        };
        let key: &'static [Column] = table.columns.get(..1).unwrap_or_default();
        self.fetch_changed(
            table,
            key,
            |w| batch::insert_rows(w, table, rows),
            &mut visit,
        )
        .await?;
        Ok(keys)
    }

    async fn delete_keys(
        &mut self,
        table: &'static Table,
        keys: Vec<Value>,
    ) -> Result<(), StoreError> {
        let (dialect, keys) = (self.dialect, Filter::In(table.key(), keys));
        self.execute(Change::of(table), Cost::Unbounded, |w| {
            render::delete(w, dialect, table, &keys)
        })
        .await
        .map(|_| ())
    }

    pub(super) async fn replace_all(
        &mut self,
        table: &'static Table,
        rows: Vec<Replacement>,
    ) -> Result<(), StoreError> {
        let (last, first) = split_dependent(table, rows);
        for rows in [first, last] {
            if self.dialect.has_arrays() && rows.len() > 1 {
                self.replace_batch(table, &rows).await?;
                continue;
            }
            for row in &rows {
                self.replace_one(table, row).await?;
            }
        }
        Ok(())
    }

    async fn replace_batch(
        &mut self,
        table: &'static Table,
        rows: &[Replacement],
    ) -> Result<(), StoreError> {
        let columns = changed_columns(table, rows);
        if columns.is_empty() {
            return Ok(());
        }
        let replaced = self.execute(Change::of(table), Cost::Unbounded, |w| {
            batch::replace_rows(w, table, rows, &columns);
        });
        match usize::try_from(replaced.await?) {
            Ok(replaced) if replaced == rows.len() => Ok(()),
            _ => Err(changed_concurrently(table)),
        }
    }

    async fn replace_one(
        &mut self,
        table: &'static Table,
        row: &Replacement,
    ) -> Result<(), StoreError> {
        let version = table.value(&row.old, VERSION).clone();
        let filter = same_key(table, &row.old).and(Filter::eq(VERSION, version));
        let filter = filter.and_platform(table.platform_of(&row.old));
        let columns = table.columns.iter().zip(row.old.iter().zip(&row.new));
        let changed = columns.filter(|(_, (old, new))| *old != *new);
        let set: Vec<_> = changed
            .map(|(column, (_, new))| (column.name, new.clone()))
            .collect();
        match self.update_rows(table, &filter, &set).await {
            Ok(0) => Err(changed_concurrently(table)),
            Ok(_) => Ok(()),
            Err(error) => Err(error.conflict_as_retry()),
        }
    }

    pub(super) async fn update_rows(
        &mut self,
        table: &'static Table,
        filter: &Filter,
        set: &[(&'static str, Value)],
    ) -> Result<u64, StoreError> {
        let guards = table
            .uniques
            .iter()
            .filter(|unique| can_violate(unique, set));
        let mut guards: Vec<&'static Unique> = guards.collect();
        let one_row = names_one_key(table, filter);
        if !guards.is_empty() && !one_row {
            // With a guard the statement would skip the conflicting rows and change the others.
            self.check_conflicts(table, filter, set).await?;
            guards.clear();
        }
        let (dialect, cost) = (self.dialect, change_cost(table, filter));
        let moves = set.iter().any(|(column, _)| *column == PLATFORM);
        let platform = filter.platform().filter(|_| !moves);
        let updated = self.execute(Change { table, platform }, cost, |w| {
            render::update(w, dialect, table, filter, set, &guards);
        });
        let updated = updated.await?;
        if updated == 0 && !guards.is_empty() {
            self.check_conflicts(table, filter, set).await?;
        }
        Ok(updated)
    }

    /// Returns the conflict that the change of a matching row would cause, if there is one.
    async fn check_conflicts(
        &mut self,
        table: &'static Table,
        filter: &Filter,
        set: &[(&'static str, Value)],
    ) -> Result<(), StoreError> {
        use crate::row_store::RowTx;

        let mut matching = Vec::new();
        let mut visit = |row: &dyn ReadRow| {
            matching.push(table.copy_row(row)?);
            Ok(())
        };
        let select = Select::of(table).filter(filter.clone());
        self.select(&select, &mut visit).await?;
        for row in &mut matching {
            for (column, value) in set {
                let stored = table.column_index(column).and_then(|at| row.get_mut(at));
                if let Some(stored) = stored {
                    *stored = value.clone();
                }
            }
        }
        // All rows change at once, so they are also compared with each other.
        for (at, row) in matching.iter().enumerate() {
            let others = matching.iter().take(at);
            if let Some(unique) = conflict_among(table, row, others) {
                return Err(conflict(table, unique));
            }
            if let Some(unique) = self.unique_conflict(table, row).await? {
                return Err(conflict(table, unique));
            }
        }
        Ok(())
    }

    /// Identifies the unique index that an insert would have violated.
    async fn identify_conflict(&mut self, table: &'static Table, row: &Row) -> StoreError {
        let same_key = same_key(table, row);
        match self.count_rows(table, &same_key, Cost::Bounded).await {
            Err(error) => return error,
            Ok(0) => {}
            Ok(_) => return conflict(table, "key"),
        }
        match self.unique_conflict(table, row).await {
            Ok(Some(unique)) => conflict(table, unique),
            Ok(None) => StoreError::retry(format!(
                "a row of {} conflicts with a row that is not visible to this unit of work",
                table.name
            )),
            Err(error) => error,
        }
    }

    /// Returns the unique index in which another row has the same values.
    async fn unique_conflict(
        &mut self,
        table: &'static Table,
        row: &Row,
    ) -> Result<Option<&'static str>, StoreError> {
        for unique in table.uniques {
            let Some(others) = same_unique_values(table, unique, row) else {
                continue;
            };
            if self.count_rows(table, &others, Cost::Bounded).await? > 0 {
                return Ok(Some(unique.name));
            }
        }
        Ok(None)
    }
}

fn changed_concurrently(table: &Table) -> StoreError {
    StoreError::retry(format!("a row of {} was changed concurrently", table.name))
}

/// Returns the unique index in which one of these rows has the same values as the row.
fn conflict_among<'r>(
    table: &'static Table,
    row: &Row,
    others: impl Iterator<Item = &'r Row> + Clone,
) -> Option<&'static str> {
    let is_taken = |unique: &&Unique| {
        let place = same_unique_values(table, unique, row);
        place.is_some_and(|place| others.clone().any(|other| place.matches(table, other)))
    };
    table
        .uniques
        .iter()
        .find(is_taken)
        .map(|unique| unique.name)
}

/// Returns a filter for the other rows with the same values in the unique index; `None` if the index does not cover the
/// row.
fn same_unique_values(table: &'static Table, unique: &Unique, row: &Row) -> Option<Filter> {
    let stored = |column: &str| table.value(row, column);
    let has_null = unique.columns.iter().any(|column| stored(column).is_null());
    let covered = Filter::covered_by(unique);
    if has_null || !covered.matches(table, row) {
        return None;
    }
    let same = unique.columns.iter();
    let same = same.map(|column| Filter::eq(column, stored(column).clone()));
    let mut all: Vec<Filter> = same.collect();
    all.push(covered);
    all.push(Filter::ne(table.key(), stored(table.key()).clone()));
    Some(Filter::And(all))
}
