//! What drives a database: the part of an SQL engine that another database replaces.

use core_domain::kernel::{StoreError, Timestamp};

use super::statement::Statement;
use crate::table::Table;
use crate::value::Visit;

/// One open unit of work of a database: a transaction, or a bare connection for a single read.
///
/// Dropping it rolls back. An error aborts the unit, so an executor need not recover from one.
pub trait Executor: Send {
    /// Runs a statement that answers no rows; tells how many rows it affected.
    ///
    /// # Errors
    /// [`StoreError::Retry`] for a conflict with a concurrent unit: serialization failure, deadlock, a unique index that a
    /// row takes which this unit cannot see. [`StoreError::Unavailable`] when the database cannot be reached.
    fn execute(
        &mut self,
        statement: &Statement<'_>,
    ) -> impl Future<Output = Result<u64, StoreError>> + Send;

    /// Runs a statement and shows its rows. A value is read as the type of its column in `statement.columns`.
    ///
    /// # Errors
    /// As [`Executor::execute`], or what `visit` answered.
    fn fetch(
        &mut self,
        statement: &Statement<'_>,
        visit: Visit<'_>,
    ) -> impl Future<Output = Result<(), StoreError>> + Send;

    /// The instant of the unit, if the database tells it when the unit is opened.
    ///
    /// # Errors
    /// As [`Executor::execute`].
    fn now(&mut self) -> impl Future<Output = Result<Option<Timestamp>, StoreError>> + Send {
        async { Ok(None) }
    }

    /// As [`crate::RowTx::commit_number`].
    fn commit_number(&self, table: &'static Table, platform: Option<&str>) -> Option<u64> {
        let _ = (table, platform);
        None
    }

    /// Makes everything permanent; nothing to do for a bare connection.
    ///
    /// # Errors
    /// [`StoreError::Retry`] when the unit conflicts with a concurrent one; nothing was changed.
    /// [`StoreError::CommitUnknown`] when the answer was lost: it may have been committed.
    fn commit(self) -> impl Future<Output = Result<(), StoreError>> + Send;

    /// Runs a statement that answers no rows, and commits if it ran: what a database does in one round trip is worth more
    /// than this.
    ///
    /// # Errors
    /// Those of both.
    fn commit_after(
        mut self,
        statement: &Statement<'_>,
    ) -> impl Future<Output = Result<(), StoreError>> + Send
    where
        Self: Sized,
    {
        async {
            match self.execute(statement).await {
                Ok(_) => self.commit().await,
                Err(error) => {
                    self.rollback().await;
                    Err(error)
                }
            }
        }
    }

    /// Undoes everything.
    fn rollback(self) -> impl Future<Output = ()> + Send;
}
