//! The engine contract, on rows: what a new engine implements.

use async_trait::async_trait;
use core_domain::kernel::{StoreError, Timestamp};
use core_domain::port::{Direction, Mode};

use crate::filter::Filter;
use crate::query::Select;
use crate::table::Table;
use crate::value::{Row, Value, Visit};

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

    /// Shows the matching rows, in order.
    ///
    /// # Errors
    /// [`StoreError`] when the store failed, or what `visit` answered.
    async fn select(&mut self, select: &Select, visit: Visit<'_>) -> Result<(), StoreError>;

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
