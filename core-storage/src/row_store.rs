//! The contract between records and engines, on the level of rows. A new engine implements these traits.

use std::collections::BTreeSet;
use std::iter;
use std::time::Duration;

use async_trait::async_trait;
use core_domain::kernel::{StoreError, Timestamp};
use core_domain::port::{CellState, Direction, HostStatements, Mode, PoolState, StatementTime};

use crate::filter::Filter;
use crate::join::{self, Join, VisitJoined};
use crate::query::Select;
use crate::table::Table;
use crate::value::{ReadRow, Row, Value, Visit};

/// The rows of a platform in a table, whose changes are recorded.
#[derive(Clone, Copy, Debug)]
pub struct RecordedRows<'r> {
    /// The id of the platform.
    pub platform: &'r str,
    /// The table.
    pub table: &'static Table,
    /// The column that names the platform.
    pub column: &'static str,
    /// The values of this column in the rows of the platform.
    pub names: &'r [String],
}

/// An engine that stores rows. The module `conformance` tests the contract.
#[async_trait]
pub trait RowStore: Send + Sync + std::fmt::Debug {
    /// Opens a unit of work. Dropping the unit undoes its changes.
    ///
    /// Write units behave as if they ran one after the other (see [`Mode`] for units with weaker needs). A read unit
    /// sees one state of the store throughout. `Auto` opens no transaction. Engines return units that are wrapped in
    /// [`crate::CheckedTx`].
    ///
    /// # Errors
    /// [`StoreError::Unavailable`] if the store cannot be reached.
    async fn begin(&self, mode: Mode) -> Result<Box<dyn RowTx>, StoreError>;

    /// Returns whether [`RowStore::begin_gated`] and [`RowTx::close_gate`] exclude each other. Default: whether the engine has
    /// [one writer](RowStore::has_one_writer), which is enough.
    fn has_gate(&self) -> bool {
        self.has_one_writer()
    }

    /// Opens a write unit that [`RowTx::close_gate`] waits for, and that waits while the gate is closed. An engine without a
    /// gate, or with one writer, keeps the default implementation.
    ///
    /// # Errors
    /// Those of [`RowStore::begin`].
    async fn begin_gated(&self, mode: Mode) -> Result<Box<dyn RowTx>, StoreError> {
        self.begin(mode).await
    }

    /// Opens a unit of reads that may lack the latest commits, see [`Store::begin_stale`](core_domain::port::Store::begin_stale).
    /// An engine without replicas keeps the default implementation, which returns `None`.
    async fn begin_stale(&self) -> Option<Box<dyn RowTx>> {
        None
    }

    /// Returns the current use of the engine's connections, for metrics. Must not wait. An engine without connections
    /// keeps the default implementation.
    fn pools(&self) -> Vec<PoolState> {
        Vec::new()
    }

    /// Returns the state of each cell except home, see [`Store::cells`](core_domain::port::Store::cells). Default: no cells.
    fn cells(&self) -> Vec<CellState> {
        Vec::new()
    }

    /// Returns whether a write unit waits, when it is opened, until the write unit before it has ended. Default: `false`.
    fn has_one_writer(&self) -> bool {
        false
    }

    /// Returns the [prepared](RowTx::prepare) units whose names start with this prefix, from all processes.
    ///
    /// # Errors
    /// [`StoreError::Backend`] if the engine cannot prepare units, or is configured not to. This is the default.
    async fn prepared_units(&self, prefix: &str) -> Result<Vec<PreparedUnit>, StoreError> {
        let _ = prefix;
        Err(cannot_prepare())
    }

    /// Ends the prepared unit with this name. Does nothing if there is none.
    ///
    /// # Errors
    /// [`StoreError::Backend`] if the engine cannot prepare units.
    async fn end_prepared(&self, name: &str, end: UnitEnd) -> Result<(), StoreError> {
        let _ = (name, end);
        Err(cannot_prepare())
    }
}

/// How a prepared unit of work ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum UnitEnd {
    /// Its changes become visible.
    Commit,
    /// Its changes are undone.
    Rollback,
}

/// A unit of work that is [prepared](RowTx::prepare) and has not ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PreparedUnit {
    /// The name of the unit.
    pub name: String,
    /// The time since it was prepared.
    pub age: Duration,
}

/// A row and its replacement. Both are complete, with key and version.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Replacement {
    /// The row as it was read.
    pub old: Row,
    /// The new row, which has the same key.
    pub new: Row,
}

/// The rows with the same values in some columns.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GroupSum {
    /// The values of the columns.
    pub values: Vec<Value>,
    /// The number of rows.
    pub count: u64,
    /// The sum of the summed column.
    pub sum: i64,
}

/// A unit of work on rows. Every error except [`StoreError::Conflict`] aborts it.
#[async_trait]
pub trait RowTx: Send {
    /// Inserts a row.
    ///
    /// # Errors
    /// [`StoreError::Conflict`] with the name of the unique index in which the value is taken, or `key` if the key is
    /// taken. Nothing was changed, and the unit stays usable.
    async fn insert(&mut self, table: &'static Table, row: Row) -> Result<(), StoreError>;

    /// Inserts rows: all of them, or none after an error. An engine on a network needs one round trip.
    ///
    /// # Errors
    /// [`StoreError::Conflict`] for the first row with a conflict, as in [`RowTx::insert`]. Nothing was changed.
    async fn insert_many(
        &mut self,
        table: &'static Table,
        rows: Vec<Row>,
    ) -> Result<(), StoreError>;

    /// Inserts rows that cannot conflict with others: their keys are newly generated, and no unique index covers them.
    /// An engine on a network may queue the rows until the unit reads or changes their table or commits, and then write
    /// them together.
    ///
    /// # Errors
    /// [`StoreError::Retry`], from this call or a later one, if a row has a conflict after all.
    async fn append(&mut self, table: &'static Table, rows: Vec<Row>) -> Result<(), StoreError> {
        let inserted = self.insert_many(table, rows).await;
        inserted.map_err(StoreError::conflict_as_retry)
    }

    /// Replaces rows, which are identified by key and version. No two of them have the same key. An engine on a network
    /// needs one round trip.
    ///
    /// # Errors
    /// [`StoreError::Retry`] if one of the old rows was changed or deleted, or if a unique value is taken. Use
    /// [`RowTx::update`] to handle these cases row by row.
    async fn replace_many(
        &mut self,
        table: &'static Table,
        rows: Vec<Replacement>,
    ) -> Result<(), StoreError>;

    /// Inserts the rows whose keys are free. Locks the stored rows with the other keys, if the engine has row locks.
    /// Passes the stored rows with all of the keys to the visitor. The table has no unique index, and the keys are
    /// sorted. An engine with several concurrent write units must not read a range of keys here, so that units with
    /// different keys do not conflict.
    ///
    /// # Errors
    /// [`StoreError::Retry`] if a concurrent unit inserted or changed one of the rows; the error of `visit`.
    async fn insert_or_lock(
        &mut self,
        table: &'static Table,
        rows: Vec<Row>,
        visit: Visit<'_>,
    ) -> Result<(), StoreError> {
        insert_or_read(self, table, rows, visit).await
    }

    /// Locks the row with this key, if the engine has row locks, and passes it to the visitor. For concurrent units, the lock
    /// is a change of the row. The default implementation only reads the row, for engines whose write units run one after the
    /// other. Other engines override it, and wrappers pass the call on.
    ///
    /// # Errors
    /// [`StoreError::Retry`] if a concurrent unit changed the row; the error of `visit`.
    async fn lock(
        &mut self,
        table: &'static Table,
        key: &Value,
        visit: Visit<'_>,
    ) -> Result<(), StoreError> {
        let with_key = Filter::eq(table.key(), key.clone());
        self.select(&Select::of(table).filter(with_key), visit)
            .await
    }

    /// Inserts the rows whose keys are free and returns their keys. The table has no unique index, and all keys differ.
    /// An engine on a network needs one round trip.
    ///
    /// # Errors
    /// [`StoreError::Retry`] if a concurrent unit inserted one of the keys and this unit cannot see it.
    async fn insert_new(
        &mut self,
        table: &'static Table,
        rows: Vec<Row>,
    ) -> Result<Vec<Value>, StoreError> {
        insert_free(self, table, rows).await
    }

    /// Like [`RowTx::replace_many`], for rows that this unit has locked. An engine on a
    /// network may queue the rows, as in [`RowTx::append`].
    ///
    /// # Errors
    /// Those of [`RowTx::replace_many`], from this call or a later one.
    async fn replace_locked(
        &mut self,
        table: &'static Table,
        rows: Vec<Replacement>,
    ) -> Result<(), StoreError> {
        self.replace_many(table, rows).await
    }

    /// Sets columns of the matching rows. Returns the number of matching rows. The key cannot be set.
    ///
    /// # Errors
    /// [`StoreError::Conflict`] as in [`RowTx::insert`].
    async fn update(
        &mut self,
        table: &'static Table,
        filter: &Filter,
        set: &[(&'static str, Value)],
    ) -> Result<u64, StoreError>;

    /// Deletes the matching rows. Returns the number of deleted rows.
    ///
    /// # Errors
    /// Only those of the store.
    async fn delete(&mut self, table: &'static Table, filter: &Filter) -> Result<u64, StoreError>;

    /// Deletes the rows with these keys from an append-only table with an [archive](crate::Table::archive). Returns their
    /// number. A database refuses to delete rows that are not archived.
    ///
    /// # Errors
    /// Only those of the store.
    async fn remove_archived(
        &mut self,
        table: &'static Table,
        keys: &[Value],
    ) -> Result<u64, StoreError> {
        let archived = Filter::In(table.key(), keys.to_vec());
        self.delete(table, &archived).await
    }

    /// Deletes the rows with these keys from an append-only table with an [archive](crate::Table::archive). The rows are
    /// those of a platform that another cell serves. A database refuses to delete other rows.
    ///
    /// # Errors
    /// Only those of the store.
    async fn remove_moved(
        &mut self,
        table: &'static Table,
        keys: &[Value],
    ) -> Result<u64, StoreError> {
        self.remove_archived(table, keys).await
    }

    /// Moves the rows with these keys unchanged to a table with the same columns and no unique index. Returns the
    /// number of rows that were in the table `from`. If a key exists in the table `to`, the row there is kept and the
    /// moved row is dropped.
    ///
    /// # Errors
    /// Only those of the store.
    async fn promote(
        &mut self,
        from: &'static Table,
        to: &'static Table,
        keys: &[Value],
    ) -> Result<u64, StoreError> {
        let with_keys = Filter::In(from.key(), keys.to_vec());
        let taken = copies(self, &Select::of(to).filter(with_keys.clone())).await?;
        let taken: BTreeSet<Option<&Value>> = taken.iter().map(|row| row.first()).collect();
        let mut rows = copies(self, &Select::of(from).filter(with_keys.clone())).await?;
        rows.retain(|row| !taken.contains(&row.first()));
        self.insert_many(to, rows).await?;
        self.delete(from, &with_keys).await
    }

    /// Passes the row with this key to the visitor, if it exists and matches the filter.
    ///
    /// # Errors
    /// The error of `visit`.
    async fn get(
        &mut self,
        table: &'static Table,
        key: &str,
        filter: &Filter,
        visit: Visit<'_>,
    ) -> Result<(), StoreError> {
        let by_key = Filter::eq(table.key(), key);
        let mut select = Select::of(table).filter(by_key).limit(1);
        if *filter != Filter::all() {
            select = select.filter(filter.clone());
        }
        self.select(&select, visit).await
    }

    /// Passes the matching rows to the visitor, in order.
    ///
    /// # Errors
    /// The error of `visit`.
    async fn select(&mut self, select: &Select, visit: Visit<'_>) -> Result<(), StoreError>;

    /// Passes the matching rows to the visitor, in order, each with the rows joined to it. The default implementation
    /// reads the joined rows one by one. Engines override it if they can use one statement.
    ///
    /// # Errors
    /// The error of `visit`.
    async fn select_joined(
        &mut self,
        select: &Select,
        joins: &'static [Join],
        visit: VisitJoined<'_>,
    ) -> Result<(), StoreError> {
        join_row_by_row(self, select, joins, visit).await
    }

    /// Like [`RowTx::select`]. An engine with row locks also locks the rows, and skips those that another unit has
    /// locked.
    ///
    /// # Errors
    /// The error of `visit`.
    async fn claim(&mut self, select: &Select, visit: Visit<'_>) -> Result<(), StoreError>;

    /// Returns the number of matching rows.
    ///
    /// # Errors
    /// Only those of the store.
    async fn count(&mut self, table: &'static Table, filter: &Filter) -> Result<u64, StoreError>;

    /// Returns the commit number of the platform's rows in the table, or of all rows if no platform is given. It
    /// changes with every committed unit that changed such rows. Two units that get the same number see the same rows,
    /// so a count from one is valid in the other. The number may also change without a change of the rows. `None` is
    /// always correct. It is required in these cases: the engine does not know the number because other processes
    /// commit; a later read of this unit may see another state; this unit may have changed the table.
    fn commit_number(&self, table: &'static Table, platform: Option<&str>) -> Option<u64> {
        let _ = (table, platform);
        None
    }

    /// Returns the number of matching rows and the sum of an integer column for each combination of values of the group
    /// columns, sorted by these values. Without group columns, all matching rows form one group. As in SQL, NULLs are
    /// ignored; a group with only NULLs has the sum 0. Every group has at least one row.
    ///
    /// # Errors
    /// [`StoreError::Backend`] if a sum exceeds 64 bits.
    async fn sum(
        &mut self,
        table: &'static Table,
        column: &'static str,
        groups: &[&'static str],
        filter: &Filter,
    ) -> Result<Vec<GroupSum>, StoreError>;

    /// Passes the matching ancestors or descendants of the row with this key to the visitor, at most `depth` steps
    /// away. The row itself is omitted. Ancestors are passed root first, descendants nearest first; rows at the same
    /// distance are sorted by key. The walk stops at a cycle.
    ///
    /// # Errors
    /// The error of `visit`.
    async fn walk(
        &mut self,
        table: &'static Table,
        key: &str,
        direction: Direction,
        depth: u32,
        filter: &Filter,
        visit: Visit<'_>,
    ) -> Result<(), StoreError>;

    /// Returns the current time. [`crate::CheckedTx`] calls this once per unit.
    ///
    /// # Errors
    /// Only those of the store.
    async fn now(&mut self) -> Result<Timestamp, StoreError>;

    /// Closes the gate of the database until this unit ends: waits until the [gated](RowStore::begin_gated) units have ended,
    /// and makes new ones wait. The default implementation does nothing, because engines with one writer do this for every
    /// write unit.
    ///
    /// # Errors
    /// [`StoreError::Retry`] if units are open after this time.
    async fn close_gate(&mut self, max_wait: Duration) -> Result<(), StoreError> {
        let _ = max_wait;
        Ok(())
    }

    /// Starts or stops to record which rows change, when this unit commits: the key of each changed row is added to the table
    /// `cell_changes`. Waits for the units that have changed the table. Does nothing if the rows are recorded already, or not
    /// recorded. Returns whether the engine can record changes. Default: `false`.
    ///
    /// # Errors
    /// [`StoreError::Retry`] if such units are open after this time.
    async fn set_recording(
        &mut self,
        rows: &RecordedRows<'_>,
        is_on: bool,
        max_wait: Duration,
    ) -> Result<bool, StoreError> {
        let _ = (rows, is_on, max_wait);
        Ok(false)
    }

    /// Runs statements of the host program in the transaction of this unit. Every error aborts the unit. An engine without
    /// a connection to a database keeps the default implementation.
    ///
    /// # Errors
    /// The error of the statements; [`StoreError::Backend`] if the engine has no connection.
    async fn enlist(&mut self, statements: &mut dyn HostStatements) -> Result<(), StoreError> {
        let _ = statements;
        Err(no_connection())
    }

    /// Removes and returns the slowest statements so far, see [`core_domain::port::UnitOfWork::take_slowest_statements`].
    fn take_slowest_statements(&mut self) -> Vec<StatementTime> {
        Vec::new()
    }

    /// Makes all changes permanent.
    ///
    /// # Errors
    /// [`StoreError::Retry`] if the unit conflicts with a concurrent one; nothing was changed.
    /// [`StoreError::CommitUnknown`] if the reply was lost; the changes may or may not be committed.
    async fn commit(self: Box<Self>) -> Result<(), StoreError>;

    /// Makes all changes durable, but not visible, and ends this handle. The changes and their locks survive a restart of
    /// the engine. [`RowStore::end_prepared`] decides them. This is the first phase of a commit in several stores. The
    /// name is unique, and has at most 100 characters of `[a-z0-9:-]`.
    ///
    /// # Errors
    /// Those of [`RowTx::commit`]. [`StoreError::Backend`] if the engine cannot prepare units, which is the default.
    async fn prepare(self: Box<Self>, name: &str) -> Result<(), StoreError> {
        let _ = name;
        self.rollback().await;
        Err(cannot_prepare())
    }

    /// Undoes all changes.
    async fn rollback(self: Box<Self>);
}

/// Returns the error of an engine that cannot prepare units of work.
pub(crate) fn cannot_prepare() -> StoreError {
    StoreError::backend("this store cannot prepare a unit of work")
}

/// Returns the error of an engine on which the host program cannot run statements.
pub(crate) fn no_connection() -> StoreError {
    StoreError::backend("this store has no connection that the host program can use")
}

/// Implements [`RowTx::insert_or_lock`] for engines whose write units run one after the other.
pub(crate) async fn insert_or_read<T: RowTx + ?Sized>(
    tx: &mut T,
    table: &'static Table,
    rows: Vec<Row>,
    visit: Visit<'_>,
) -> Result<(), StoreError> {
    let keys = rows.iter().filter_map(|row| row.first().cloned());
    let stored = Select::of(table).filter(Filter::In(table.key(), keys.collect()));
    let stored = copies(tx, &stored).await?;
    let taken: BTreeSet<Option<&Value>> = stored.iter().map(|row| row.first()).collect();
    let mut new = rows;
    new.retain(|row| !taken.contains(&row.first()));
    let inserted = tx.insert_many(table, new.clone()).await;
    inserted.map_err(StoreError::conflict_as_retry)?;
    let mut all = stored.iter().chain(&new);
    all.try_for_each(|row| visit(row as &dyn ReadRow))
}

/// Implements [`RowTx::insert_new`] for engines whose write units run one after the other.
async fn insert_free<T: RowTx + ?Sized>(
    tx: &mut T,
    table: &'static Table,
    mut rows: Vec<Row>,
) -> Result<Vec<Value>, StoreError> {
    let keys = rows.iter().filter_map(|row| row.first().cloned());
    let mut taken = BTreeSet::new();
    let mut visit = |row: &dyn ReadRow| {
        taken.insert(row.read(0)?.to_value());
        Ok(())
    };
    let stored = Select::of(table).filter(Filter::In(table.key(), keys.collect()));
    tx.select(&stored, &mut visit).await?;
    rows.retain(|row| row.first().is_some_and(|key| !taken.contains(key)));
    let inserted = rows.iter().filter_map(|row| row.first().cloned()).collect();
    let outcome = tx.insert_many(table, rows).await;
    outcome.map_err(StoreError::conflict_as_retry)?;
    Ok(inserted)
}

/// Implements [`RowTx::select_joined`] with a read for each joined row.
pub(crate) async fn join_row_by_row<T: RowTx + ?Sized>(
    tx: &mut T,
    select: &Select,
    joins: &'static [Join],
    visit: VisitJoined<'_>,
) -> Result<(), StoreError> {
    let tables: Vec<_> = iter::once(select.table)
        .chain(joins.iter().map(|join| join.table))
        .collect();
    for row in copies(tx, select).await? {
        let mut rows: Vec<Option<Row>> = vec![Some(row)];
        for join in joins {
            let joined = match join.filter(&tables, &rows) {
                Some(filter) => {
                    let select = Select::of(join.table).filter(filter).limit(1);
                    copies(tx, &select).await?.pop()
                }
                None => None,
            };
            rows.push(joined);
        }
        visit(&join::as_refs(&rows))?;
    }
    Ok(())
}

pub(crate) async fn copies<T: RowTx + ?Sized>(
    tx: &mut T,
    select: &Select,
) -> Result<Vec<Row>, StoreError> {
    let mut rows = Vec::new();
    let mut visit = |row: &dyn ReadRow| {
        rows.push(select.table.copy_row(row)?);
        Ok(())
    };
    tx.select(select, &mut visit).await?;
    Ok(rows)
}
