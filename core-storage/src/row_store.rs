//! The engine contract, on rows: what a new engine implements.

use std::collections::BTreeSet;
use std::iter;

use async_trait::async_trait;
use core_domain::kernel::{StoreError, Timestamp};
use core_domain::port::{Direction, Mode};

use crate::filter::Filter;
use crate::join::{self, Join, VisitJoined};
use crate::query::Select;
use crate::table::Table;
use crate::value::{ReadRow, Row, Value, Visit};

/// An engine. `conformance` checks the contract.
#[async_trait]
pub trait RowStore: Send + Sync + std::fmt::Debug {
    /// Opens a unit of work. Dropping it undoes what it did.
    ///
    /// Write units behave as if they ran one after the other (see [`Mode`] for those that need less); a read unit sees one state of the store throughout;
    /// `Auto` opens no transaction. Engines wrap what they return in [`crate::CheckedTx`].
    ///
    /// # Errors
    /// [`StoreError::Unavailable`] when the store cannot be reached.
    async fn begin(&self, mode: Mode) -> Result<Box<dyn RowTx>, StoreError>;
}

/// A row and what takes its place, both whole: key and version are in them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Replacement {
    /// The row as it was read.
    pub old: Row,
    /// The row as it shall be, with the same key.
    pub new: Row,
}

/// One unit of work on rows. Every error but [`StoreError::Conflict`] aborts it.
#[async_trait]
pub trait RowTx: Send {
    /// Inserts a row.
    ///
    /// # Errors
    /// [`StoreError::Conflict`] names the unique index that is taken, `key` for the key itself; nothing was changed and
    /// the unit goes on.
    async fn insert(&mut self, table: &'static Table, row: Row) -> Result<(), StoreError>;

    /// As [`RowTx::insert`], for many rows: all of them or none. An engine behind a network needs one round trip.
    ///
    /// # Errors
    /// [`StoreError::Conflict`] as for [`RowTx::insert`], for the first row that meets one; nothing was changed.
    async fn insert_many(
        &mut self,
        table: &'static Table,
        rows: Vec<Row>,
    ) -> Result<(), StoreError>;

    /// Inserts rows whose keys were made for them and which are in no unique index's way, so that they meet no other. An
    /// engine behind a network may keep them back until the unit reads or changes their table or commits, and write them
    /// together.
    ///
    /// # Errors
    /// [`StoreError::Retry`], here or from what follows, when a row met another after all.
    async fn append(&mut self, table: &'static Table, rows: Vec<Row>) -> Result<(), StoreError> {
        let inserted = self.insert_many(table, rows).await;
        inserted.map_err(StoreError::conflict_as_retry)
    }

    /// Puts new rows in the place of old ones, which are found by key and version. No two have the same key. An engine
    /// behind a network needs one round trip.
    ///
    /// # Errors
    /// [`StoreError::Retry`] when one of the old rows is not there any more, or a unique index is taken: whoever can
    /// meet either one by one uses [`RowTx::update`].
    async fn replace_many(
        &mut self,
        table: &'static Table,
        rows: Vec<Replacement>,
    ) -> Result<(), StoreError>;

    /// Inserts the rows whose keys are free, and locks those that are stored under the other keys if the engine has row
    /// locks. Shows what is stored under all of the keys. The table has no unique index; the keys are given in order. Where
    /// several write units are open at once, an engine does this without reading a range of keys, so that units with
    /// different keys do not conflict.
    ///
    /// # Errors
    /// [`StoreError::Retry`] when a concurrent unit inserted or changed one of the rows; what `visit` answered.
    async fn insert_or_lock(
        &mut self,
        table: &'static Table,
        rows: Vec<Row>,
        visit: Visit<'_>,
    ) -> Result<(), StoreError> {
        insert_or_read(self, table, rows, visit).await
    }

    /// As [`RowTx::replace_many`], for rows that this unit has locked with [`RowTx::insert_or_lock`]. An engine behind a
    /// network may keep them back as [`RowTx::append`] does.
    ///
    /// # Errors
    /// As [`RowTx::replace_many`], here or from what follows.
    async fn replace_locked(
        &mut self,
        table: &'static Table,
        rows: Vec<Replacement>,
    ) -> Result<(), StoreError> {
        self.replace_many(table, rows).await
    }

    /// Updates columns of the matching rows; answers how many rows matched. The key is never set.
    ///
    /// # Errors
    /// [`StoreError::Conflict`] as for [`RowTx::insert`].
    async fn update(
        &mut self,
        table: &'static Table,
        filter: &Filter,
        set: &[(&'static str, Value)],
    ) -> Result<u64, StoreError>;

    /// Deletes the matching rows; answers how many.
    ///
    /// # Errors
    /// [`StoreError`] when the store failed.
    async fn delete(&mut self, table: &'static Table, filter: &Filter) -> Result<u64, StoreError>;

    /// Moves the rows with these keys, as they are, to a table with the same columns and no unique index; answers how many.
    /// Where a key is taken there, the row that was there stays in the place of the one that was moved.
    ///
    /// # Errors
    /// [`StoreError`] when the store failed.
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

    /// Shows the row with this key, if there is one and it matches.
    ///
    /// # Errors
    /// [`StoreError`] when the store failed, or what `visit` answered.
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

    /// Shows the matching rows, in order.
    ///
    /// # Errors
    /// [`StoreError`] when the store failed, or what `visit` answered.
    async fn select(&mut self, select: &Select, visit: Visit<'_>) -> Result<(), StoreError>;

    /// Shows the matching rows, in order, each with the rows joined to it. An engine that can does it in one statement; as
    /// it stands here it asks for one row after the other.
    ///
    /// # Errors
    /// [`StoreError`] when the store failed, or what `visit` answered.
    async fn select_joined(
        &mut self,
        select: &Select,
        joins: &'static [Join],
        visit: VisitJoined<'_>,
    ) -> Result<(), StoreError> {
        let tables: Vec<_> = iter::once(select.table)
            .chain(joins.iter().map(|join| join.table))
            .collect();
        for row in copies(self, select).await? {
            let mut rows: Vec<Option<Row>> = vec![Some(row)];
            for join in joins {
                let joined = match join.filter(&tables, &rows) {
                    Some(filter) => {
                        let select = Select::of(join.table).filter(filter).limit(1);
                        copies(self, &select).await?.pop()
                    }
                    None => None,
                };
                rows.push(joined);
            }
            visit(&join::shown(&rows))?;
        }
        Ok(())
    }

    /// As [`RowTx::select`]; an engine with row locks locks the rows and skips those another unit has locked.
    ///
    /// # Errors
    /// [`StoreError`] when the store failed.
    async fn claim(&mut self, select: &Select, visit: Visit<'_>) -> Result<(), StoreError>;

    /// How many rows match.
    ///
    /// # Errors
    /// [`StoreError`] when the store failed.
    async fn count(&mut self, table: &'static Table, filter: &Filter) -> Result<u64, StoreError>;

    /// A number that moves with every committed unit that changed the table's rows of this platform, or any rows of it:
    /// two units that are told the same number see the same of them, and counts made in one hold in the other. It may
    /// move without a change of them. `None`, which is always right, when the engine does not know it (other processes
    /// commit as well), when a later read of this unit may see another state, and in a unit that may have changed the
    /// table itself.
    fn commit_number(&self, table: &'static Table, platform: Option<&str>) -> Option<u64> {
        let _ = (table, platform);
        None
    }

    /// The sum of an integer column over the matching rows, for each value of the group column, in its order. As in SQL,
    /// NULLs are ignored; a group of NULLs alone sums to 0.
    ///
    /// # Errors
    /// [`StoreError`] when the store failed.
    async fn sum(
        &mut self,
        table: &'static Table,
        column: &'static str,
        group: &'static str,
        filter: &Filter,
    ) -> Result<Vec<(Value, i64)>, StoreError>;

    /// The rows reached from the one with this key by the table's parent column, itself left out, at most `depth` steps
    /// away; those of them that match. Ancestors come root first, descendants nearest first; the key settles ties. Ends on
    /// a cycle.
    ///
    /// # Errors
    /// [`StoreError`] when the store failed.
    async fn walk(
        &mut self,
        table: &'static Table,
        key: &str,
        direction: Direction,
        depth: u32,
        filter: &Filter,
        visit: Visit<'_>,
    ) -> Result<(), StoreError>;

    /// The current instant. [`crate::CheckedTx`] asks once per unit.
    ///
    /// # Errors
    /// [`StoreError`] when the store failed.
    async fn now(&mut self) -> Result<Timestamp, StoreError>;

    /// Makes everything permanent.
    ///
    /// # Errors
    /// [`StoreError::Retry`] when the unit conflicts with a concurrent one; nothing was changed.
    /// [`StoreError::CommitUnknown`] when the answer was lost: it may have been committed.
    async fn commit(self: Box<Self>) -> Result<(), StoreError>;

    /// Undoes everything.
    async fn rollback(self: Box<Self>);
}

/// What [`RowTx::insert_or_lock`] does on an engine whose write units run one after the other.
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

async fn copies<T: RowTx + ?Sized>(tx: &mut T, select: &Select) -> Result<Vec<Row>, StoreError> {
    let mut rows = Vec::new();
    let mut visit = |row: &dyn ReadRow| {
        rows.push(select.table.copy_row(row)?);
        Ok(())
    };
    tx.select(select, &mut visit).await?;
    Ok(rows)
}
