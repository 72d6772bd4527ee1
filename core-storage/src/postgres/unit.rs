//! A unit of work on Postgres.

use std::sync::Arc;
use std::time::Duration;

use core_domain::kernel::{StoreError, Timestamp};
use core_domain::port::Mode;

use super::pool::{Lease, Pool, Work};
use super::position::Position;
use super::prepared::quote_literal;
use crate::sql::postgres::RunError;
use crate::sql::{Executor, Statement};
use crate::value::Visit;

/// A unit of work: a transaction, or single reads on a connection without a transaction. A transaction that is dropped
/// is rolled back.
pub(super) struct PostgresTx {
    lease: Lease,
    mode: Mode,
    /// The statement that opens the transaction; `None` if the unit has none.
    opening: Option<Arc<str>>,
    state: State,
    /// `true` until the first statement has run: a lost connection can still be replaced.
    is_fresh: bool,
    now: Option<Timestamp>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum State {
    /// No transaction yet. The statement that opens it is sent with the first statement of the unit.
    NotStarted,
    Open,
    /// The unit has no transaction, or has ended it.
    NoTransaction,
}

impl PostgresTx {
    /// Creates a unit that opens its transaction with its first statement. `opening` is the statement that opens it; `None` if
    /// the unit has no transaction.
    pub(super) async fn begin(
        pool: &Arc<Pool>,
        mode: Mode,
        opening: Option<Arc<str>>,
    ) -> Result<Self, StoreError> {
        Ok(Self {
            lease: pool.acquire().await?,
            mode,
            state: match &opening {
                Some(_) => State::NotStarted,
                None => State::NoTransaction,
            },
            opening,
            is_fresh: true,
            now: None,
        })
    }

    /// Opens a unit of reads on a standby. Also returns the position that the standby has replayed; `None` if the server
    /// is not a standby.
    pub(super) async fn begin_on_standby(
        pool: Arc<Pool>,
        opening: Arc<str>,
    ) -> Result<(Self, Option<Position>), StoreError> {
        let mut unit = Self {
            lease: pool.acquire().await?,
            mode: Mode::Read,
            opening: Some(Arc::clone(&opening)),
            state: State::NotStarted,
            is_fresh: true,
            now: None,
        };
        unit.lease.work = Work::Statement;
        let mut outcome = unit.lease.connection()?.position(&opening).await;
        if unit.has_reconnected(&outcome).await? {
            outcome = unit.lease.connection()?.position(&opening).await;
        }
        let position = outcome.as_ref().ok().copied().flatten();
        unit.finish_open(outcome.map(|_| None))?;
        Ok((unit, position))
    }

    /// Records the outcome of a statement.
    fn finish_statement<T>(&mut self, outcome: Result<T, RunError>) -> Result<T, StoreError> {
        self.is_fresh = false;
        self.lease.work = Work::None;
        outcome.map_err(|error| {
            self.lease.handle_error(&error);
            error.into_failure()
        })
    }

    /// Records that the transaction is open, and its time. If the transaction could not be opened, the connection is
    /// closed so that nothing runs outside of a transaction.
    fn finish_open(&mut self, outcome: Result<Option<i64>, RunError>) -> Result<(), StoreError> {
        let outcome = self.finish_statement(outcome);
        if outcome.is_err() {
            self.lease.discard();
        }
        self.state = State::Open;
        self.now = outcome?.map(Timestamp::from_millis);
        Ok(())
    }

    /// Replaces a connection that was lost while it was idle. Returns whether to run the statement again.
    async fn has_reconnected<T>(
        &mut self,
        outcome: &Result<T, RunError>,
    ) -> Result<bool, StoreError> {
        // After a reply that timed out, the caller does not wait a second time.
        let is_lost = |error: &RunError| error.is_lost() && !error.is_timed_out();
        let is_lost = outcome.as_ref().is_err_and(is_lost);
        if !is_lost || !self.is_fresh || self.lease.is_new {
            return Ok(false);
        }
        self.lease.reconnect().await?;
        Ok(true)
    }

    /// Returns the statement that opens the transaction, if it has not been sent.
    fn unsent_opening(&self) -> Option<Arc<str>> {
        let opening = self.opening.as_ref();
        opening.filter(|_| self.state == State::NotStarted).cloned()
    }

    /// Opens the transaction, unless it is open or the unit has none.
    async fn open(&mut self) -> Result<(), StoreError> {
        let Some(opening) = self.unsent_opening() else {
            return Ok(());
        };
        self.lease.work = Work::Statement;
        let mut outcome = self.lease.connection()?.number(&opening).await;
        if self.has_reconnected(&outcome).await? {
            outcome = self.lease.connection()?.number(&opening).await;
        }
        self.finish_open(outcome)
    }

    /// Opens the transaction and runs a query in it.
    async fn open_and_fetch(
        &mut self,
        opening: &str,
        statement: &Statement<'_>,
        visit: Visit<'_>,
    ) -> Result<(), StoreError> {
        self.lease.work = Work::Statement;
        let mut shown = false;
        let connection = self.lease.connection()?;
        let begun = connection.begin_and_fetch(opening, statement, visit, &mut shown);
        let mut outcome = begun.await;
        if !shown && self.has_reconnected(&outcome).await? {
            let connection = self.lease.connection()?;
            let begun = connection.begin_and_fetch(opening, statement, visit, &mut shown);
            outcome = begun.await;
        }
        let (millis, fetched) = match outcome {
            Ok((millis, fetched)) => (Ok(millis), fetched),
            Err(error) => (Err(error), Ok(())),
        };
        self.finish_open(millis)?;
        self.finish_statement(fetched)
    }

    /// Ends a transaction that has nothing to make permanent, without waiting for the reply.
    fn end_without_commit(&mut self, text: &str) {
        let is_open = std::mem::replace(&mut self.state, State::NoTransaction) == State::Open;
        if !is_open || self.lease.work != Work::None {
            return;
        }
        if let Ok(connection) = self.lease.connection()
            && !connection.send(text)
        {
            self.lease.discard();
        }
    }

    /// Records the outcome of a commit.
    fn finish_commit(&mut self, outcome: Result<(), RunError>) -> Result<(), StoreError> {
        self.lease.work = Work::None;
        self.state = State::NoTransaction;
        outcome.map_err(|error| {
            self.lease.handle_error(&error);
            error.into_commit_failure()
        })
    }
}

impl Executor for PostgresTx {
    async fn execute(&mut self, statement: &Statement<'_>) -> Result<u64, StoreError> {
        // A change must not run outside of a transaction, so it is not sent with the statement that opens it.
        self.open().await?;
        self.lease.work = Work::Statement;
        let outcome = self.lease.connection()?.execute(statement).await;
        self.finish_statement(outcome)
    }

    async fn fetch(
        &mut self,
        statement: &Statement<'_>,
        visit: Visit<'_>,
    ) -> Result<(), StoreError> {
        if let (Some(opening), None) = (self.unsent_opening(), statement.changes) {
            return self.open_and_fetch(&opening, statement, visit).await;
        }
        self.open().await?;
        self.lease.work = Work::Statement;
        let mut shown = false;
        let connection = self.lease.connection()?;
        let mut outcome = connection.fetch(statement, visit, &mut shown).await;
        if !shown && self.has_reconnected(&outcome).await? {
            let connection = self.lease.connection()?;
            outcome = connection.fetch(statement, visit, &mut shown).await;
        }
        self.finish_statement(outcome)
    }

    async fn now(&mut self) -> Result<Option<Timestamp>, StoreError> {
        self.open().await?;
        Ok(self.now)
    }

    async fn commit(mut self) -> Result<(), StoreError> {
        if self.state != State::Open {
            return Ok(());
        }
        if matches!(self.mode, Mode::Read | Mode::Auto) {
            self.end_without_commit("COMMIT");
            return Ok(());
        }
        self.lease.work = Work::Commit;
        let outcome = self.lease.connection()?.commit().await;
        self.finish_commit(outcome)
    }

    async fn commit_after(mut self, statement: &Statement<'_>) -> Result<(), StoreError> {
        self.open().await?;
        self.lease.work = Work::Statement;
        // If this fails, no commit was sent, and dropping the unit rolls it back.
        let prepared = self.lease.connection()?.prepare(statement).await;
        self.finish_statement(prepared)?;
        self.lease.work = Work::Commit;
        let connection = self.lease.connection()?;
        let outcome = connection.execute_and_commit(statement).await;
        self.finish_commit(outcome)
    }

    async fn run_locking(
        &mut self,
        statements: &str,
        max_wait: Duration,
    ) -> Result<(), StoreError> {
        self.open().await?;
        self.lease.work = Work::Statement;
        // With 0, the server would wait without a limit.
        let millis = max_wait.as_millis().max(1);
        let statements = format!("SET LOCAL lock_timeout = {millis}; {statements}");
        let outcome = self.lease.connection()?.batch(&statements).await;
        self.finish_statement(outcome)
    }

    async fn prepare(mut self, name: &str) -> Result<(), StoreError> {
        self.open().await?;
        self.lease.work = Work::Commit;
        let prepare = format!("PREPARE TRANSACTION {}", quote_literal(name));
        let outcome = self.lease.connection()?.batch_durable(&prepare).await;
        // Nothing is decided yet, so neither a lost reply nor an unconfirmed preparation is an unknown commit: the
        // caller undoes the unit.
        self.state = State::NoTransaction;
        self.finish_statement(outcome)
    }

    async fn rollback(mut self) {
        self.end_without_commit("ROLLBACK");
    }
}

impl Drop for PostgresTx {
    fn drop(&mut self) {
        self.end_without_commit("ROLLBACK");
    }
}
