//! A unit of work.

use std::sync::{Arc, LazyLock};

use core_domain::kernel::{StoreError, Timestamp};
use core_domain::port::Mode;

use super::error::{commit_failure, failure, is_lost};
use super::pool::{Lease, Pool};
use super::run::{RunError, control, execute, fetch};
use crate::sql::{Dialect, Executor, Statement};
use crate::value::Visit;

const SERIALIZABLE: &str = "BEGIN ISOLATION LEVEL SERIALIZABLE";
/// The statements of these units are few and always the same: each is planned once for a connection instead of for every
/// run, which takes as long as running it. What a plan depends on is in the text: limits, and the values of index
/// predicates. A plan that was made while a table was small must be good when it is large, so it follows indexes alone.
const READ_COMMITTED: &str = "BEGIN ISOLATION LEVEL READ COMMITTED; \
     SET LOCAL plan_cache_mode = force_generic_plan; SET LOCAL enable_bitmapscan = off; \
     SET LOCAL enable_hashjoin = off; SET LOCAL enable_mergejoin = off";
const SNAPSHOT: &str = "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY";

/// A unit of work: a transaction, or single reads on a bare connection. A transaction that is dropped is rolled back.
pub(super) struct Unit {
    lease: Option<Lease>,
    transaction: bool,
    /// Whether nothing has run yet, so that a lost connection can be replaced.
    is_fresh: bool,
    now: Option<Timestamp>,
}

/// The statement that opens a unit of the mode; one that writes is told its instant in the same round trip.
fn opening(mode: Mode, with_now: bool) -> Option<&'static str> {
    static WITH_NOW: LazyLock<[String; 2]> = LazyLock::new(|| {
        [SERIALIZABLE, READ_COMMITTED].map(|begin| format!("{begin}; {}", Dialect::Postgres.now()))
    });
    let [serializable, read_committed] = &*WITH_NOW;
    match (mode, with_now) {
        (Mode::Auto, _) => None,
        (Mode::Read, _) => Some(SNAPSHOT),
        (Mode::Write, false) => Some(SERIALIZABLE),
        (Mode::Write, true) => Some(serializable),
        (Mode::ReadCommitted, false) => Some(READ_COMMITTED),
        (Mode::ReadCommitted, true) => Some(read_committed),
    }
}

fn lost() -> StoreError {
    StoreError::unavailable("the connection of this unit is lost")
}

impl Unit {
    pub(super) async fn begin(
        pool: &Arc<Pool>,
        mode: Mode,
        with_now: bool,
    ) -> Result<Self, StoreError> {
        let mut lease = pool.acquire().await?;
        let mut now = None;
        let opening = opening(mode, with_now);
        if let Some(text) = opening {
            lease.is_busy = true;
            let begun = match control(lease.connection()?, text).await {
                Err(error) if is_lost(&error) && !lease.is_new => {
                    lease.reconnect().await?;
                    lease.is_busy = true;
                    control(lease.connection()?, text).await
                }
                begun => begun,
            };
            now = begun.map_err(failure)?.map(Timestamp::from_millis);
            lease.is_busy = false;
        }
        Ok(Self {
            lease: Some(lease),
            transaction: opening.is_some(),
            is_fresh: opening.is_none(),
            now,
        })
    }

    /// Notes how a statement ended.
    fn ended<T>(&mut self, outcome: Result<T, RunError>) -> Result<T, StoreError> {
        self.is_fresh = false;
        let lease = self.lease.as_mut().ok_or_else(lost)?;
        lease.is_busy = false;
        outcome.map_err(|error| match error {
            RunError::Lost(error) => {
                lease.forget();
                error
            }
            RunError::Failed(error) => error,
        })
    }

    /// Ends the transaction.
    async fn end(&mut self, text: &'static str) -> Result<(), sqlx::Error> {
        let Some(mut lease) = self.lease.take().filter(|_| self.transaction) else {
            return Ok(());
        };
        lease.is_busy = true;
        let Ok(connection) = lease.connection() else {
            return Ok(());
        };
        let outcome = control(connection, text).await;
        match &outcome {
            Err(error) if is_lost(error) => lease.forget(),
            _ => lease.is_busy = false,
        }
        outcome.map(|_| ())
    }
}

impl Executor for Unit {
    async fn execute(&mut self, statement: &Statement<'_>) -> Result<u64, StoreError> {
        let lease = self.lease.as_mut().ok_or_else(lost)?;
        lease.is_busy = true;
        let outcome = execute(lease.connection()?, statement).await;
        self.ended(outcome)
    }

    async fn fetch(
        &mut self,
        statement: &Statement<'_>,
        visit: Visit<'_>,
    ) -> Result<(), StoreError> {
        let lease = self.lease.as_mut().ok_or_else(lost)?;
        lease.is_busy = true;
        let mut shown = false;
        let outcome = fetch(lease.connection()?, statement, visit, &mut shown).await;
        let outcome = match outcome {
            // Nobody used the connection for a while, and it was lost meanwhile.
            Err(RunError::Lost(_)) if self.is_fresh && !lease.is_new && !shown => {
                lease.reconnect().await?;
                lease.is_busy = true;
                fetch(lease.connection()?, statement, visit, &mut shown).await
            }
            outcome => outcome,
        };
        self.ended(outcome)
    }

    fn now(&self) -> Option<Timestamp> {
        self.now
    }

    async fn commit(mut self) -> Result<(), StoreError> {
        if self.transaction && self.lease.as_mut().is_none_or(|l| l.connection().is_err()) {
            return Err(lost());
        }
        self.end("COMMIT").await.map_err(commit_failure)
    }

    async fn rollback(mut self) {
        // When it fails, the connection is closed, and the transaction with it.
        let _ = self.end("ROLLBACK").await;
    }
}

impl Drop for Unit {
    fn drop(&mut self) {
        let Some(mut lease) = self.lease.take().filter(|_| self.transaction) else {
            return;
        };
        if lease.is_busy {
            return;
        }
        // Until it is rolled back nobody else may have the connection.
        lease.is_busy = true;
        let Ok(runtime) = tokio::runtime::Handle::try_current() else {
            return;
        };
        runtime.spawn(async move {
            let Ok(connection) = lease.connection() else {
                return;
            };
            if control(connection, "ROLLBACK").await.is_ok() {
                lease.give_back();
            }
        });
    }
}
