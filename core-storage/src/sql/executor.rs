//! The interface to a database, which an engine for another SQL database implements.

use std::time::Duration;

use core_domain::kernel::{StoreError, Timestamp};
use core_domain::port::HostStatements;

use super::statement::Statement;
use crate::row_store::{cannot_prepare, no_connection};
use crate::table::Table;
use crate::value::Visit;

/// An open unit of work on a database: a transaction, or a connection without a transaction for a single read.
///
/// Dropping it rolls the transaction back. Every error aborts the unit, so an executor need not recover from errors.
pub trait Executor: Send {
    /// Runs a statement that returns no rows. Returns the number of affected rows.
    ///
    /// # Errors
    /// [`StoreError::Retry`] for a conflict with a concurrent unit: a serialization failure, a deadlock, or a unique
    /// value of a row that this unit cannot see. [`StoreError::Unavailable`] if the database cannot be reached.
    fn execute(
        &mut self,
        statement: &Statement<'_>,
    ) -> impl Future<Output = Result<u64, StoreError>> + Send;

    /// Runs a statement and passes its rows to the visitor. Each value is read as the type of its column in
    /// `statement.columns`.
    ///
    /// # Errors
    /// Those of [`Executor::execute`], and the error of `visit`.
    fn fetch(
        &mut self,
        statement: &Statement<'_>,
        visit: Visit<'_>,
    ) -> impl Future<Output = Result<(), StoreError>> + Send;

    /// Returns the time of the unit, if the database reports it when the unit is opened.
    ///
    /// # Errors
    /// Those of [`Executor::execute`].
    fn now(&mut self) -> impl Future<Output = Result<Option<Timestamp>, StoreError>> + Send {
        async { Ok(None) }
    }

    /// Returns the commit number, see [`crate::RowTx::commit_number`].
    fn commit_number(&self, table: &'static Table, platform: Option<&str>) -> Option<u64> {
        let _ = (table, platform);
        None
    }

    /// Runs statements of the host program in the transaction, see [`crate::RowTx::enlist`]. An executor whose connection
    /// the host program cannot use keeps the default implementation.
    ///
    /// # Errors
    /// The error of the statements.
    fn enlist(
        &mut self,
        statements: &mut dyn HostStatements,
    ) -> impl Future<Output = Result<(), StoreError>> + Send {
        let _ = statements;
        async { Err(no_connection()) }
    }

    /// Runs statements that take locks of tables. An executor for a database without such locks keeps the default
    /// implementation.
    ///
    /// # Errors
    /// [`StoreError::Retry`] if other units hold a lock after this time; [`StoreError::Backend`] if the executor cannot run such
    /// statements.
    fn run_locking(
        &mut self,
        statements: &str,
        max_wait: Duration,
    ) -> impl Future<Output = Result<(), StoreError>> + Send {
        let _ = (statements, max_wait);
        async { Err(StoreError::backend("this store cannot lock tables")) }
    }

    /// Makes all changes permanent. Without a transaction this does nothing.
    ///
    /// # Errors
    /// [`StoreError::Retry`] if the unit conflicts with a concurrent one; nothing was changed.
    /// [`StoreError::CommitUnknown`] if the reply was lost; the changes may or may not be committed.
    fn commit(self) -> impl Future<Output = Result<(), StoreError>> + Send;

    /// Runs a statement that returns no rows, and commits if it succeeds. Override this for a database that can do both
    /// in one round trip.
    ///
    /// # Errors
    /// Those of [`Executor::execute`] and [`Executor::commit`].
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

    /// Prepares the transaction, see [`crate::RowTx::prepare`]. An executor for a database that cannot do so keeps the
    /// default implementation.
    ///
    /// # Errors
    /// Those of [`Executor::commit`]; [`StoreError::Backend`] if the database cannot prepare transactions.
    fn prepare(self, name: &str) -> impl Future<Output = Result<(), StoreError>> + Send
    where
        Self: Sized,
    {
        let _ = name;
        async {
            self.rollback().await;
            Err(cannot_prepare())
        }
    }

    /// Undoes all changes.
    fn rollback(self) -> impl Future<Output = ()> + Send;
}
