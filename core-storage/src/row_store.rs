//! The engine contract: rows, no records. What a new engine implements.

use async_trait::async_trait;
use core_domain::kernel::Timestamp;
use core_domain::port::{Direction, Mode, StoreError};

use crate::filter::Filter;
use crate::query::Select;
use crate::table::Table;
use crate::value::{Row, Value};

/// An engine. `conformance` tells whether one keeps the contract.
#[async_trait]
pub trait RowStore: Send + Sync + std::fmt::Debug {
    /// Opens a unit of work. Dropping it undoes what it did.
    ///
    /// Write units behave as if they ran one after the other; a read unit sees one state of the store throughout;
    /// `Auto` opens no transaction. Engines wrap what they return in [`crate::Guarded`].
    ///
    /// # Errors
    /// [`StoreError::Unavailable`] when the store cannot be reached.
    async fn begin(&self, mode: Mode) -> Result<Box<dyn RowTx>, StoreError>;
}

/// One unit of work on rows. Every error but [`StoreError::Conflict`] ends it.
#[async_trait]
pub trait RowTx: Send {
    /// Adds a row.
    ///
    /// # Errors
    /// [`StoreError::Conflict`] names the unique set that is taken, `key` for the key itself; nothing was changed and the
    /// unit goes on.
    async fn insert(&mut self, table: &'static Table, row: Row) -> Result<(), StoreError>;

    /// Sets columns of the rows that are meant; tells how many rows those were. The key is never set.
    ///
    /// # Errors
    /// [`StoreError::Conflict`] as for [`RowTx::insert`].
    async fn update(
        &mut self,
        table: &'static Table,
        filter: &Filter,
        set: &[(&'static str, Value)],
    ) -> Result<u64, StoreError>;

    /// Removes the rows that are meant; tells how many.
    ///
    /// # Errors
    /// [`StoreError`] when the store failed.
    async fn delete(&mut self, table: &'static Table, filter: &Filter) -> Result<u64, StoreError>;

    /// The rows that are meant, in order.
    ///
    /// # Errors
    /// [`StoreError`] when the store failed.
    async fn select(&mut self, select: &Select) -> Result<Vec<Row>, StoreError>;

    /// As [`RowTx::select`]; an engine with row locks locks the rows and leaves out those another unit holds.
    ///
    /// # Errors
    /// [`StoreError`] when the store failed.
    async fn claim(&mut self, select: &Select) -> Result<Vec<Row>, StoreError>;

    /// How many rows are meant.
    ///
    /// # Errors
    /// [`StoreError`] when the store failed.
    async fn count(&mut self, table: &'static Table, filter: &Filter) -> Result<u64, StoreError>;

    /// The sum of a number column over the rows that are meant, for each value of the group column, in its order.
    /// Rows in which the number is nothing add nothing.
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
    /// away. Ancestors come root first, descendants nearest first; the key settles ties. Ends on a cycle.
    ///
    /// # Errors
    /// [`StoreError`] when the store failed.
    async fn walk(
        &mut self,
        table: &'static Table,
        key: &str,
        direction: Direction,
        depth: u32,
    ) -> Result<Vec<Row>, StoreError>;

    /// The current instant. [`crate::Guarded`] asks once and keeps the answer.
    ///
    /// # Errors
    /// [`StoreError`] when the store failed.
    async fn now(&mut self) -> Result<Timestamp, StoreError>;

    /// Makes everything permanent.
    ///
    /// # Errors
    /// [`StoreError::Retry`] when the unit lost a race; nothing was changed.
    async fn commit(self: Box<Self>) -> Result<(), StoreError>;

    /// Undoes everything.
    async fn rollback(self: Box<Self>);
}
