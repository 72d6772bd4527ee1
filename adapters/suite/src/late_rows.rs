//! A database that could not be reached when the suite started.

use std::fmt;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};

use async_trait::async_trait;
use core_domain::kernel::StoreError;
use core_domain::port::{Mode, PoolState};
use core_storage::{PreparedUnit, RowStore, RowTx, UnitEnd};
use futures_util::future::BoxFuture;

use crate::error::SuiteError;

type OpenOutcome = Result<Arc<dyn RowStore>, SuiteError>;
type Open = dyn Fn() -> BoxFuture<'static, OpenOutcome> + Send + Sync;

/// The rows of a Postgres database that is opened when it can be reached, with the same checks and migrations as at the start.
/// Until then, calls fail with [`StoreError::Unavailable`]. A call does not wait while the database is opened, and the opening
/// goes on if its caller has given up.
#[derive(Clone)]
pub(crate) struct LateRows(Arc<State>);

struct State {
    open: Box<Open>,
    rows: OnceLock<Arc<dyn RowStore>>,
    /// `true` while the database is being opened.
    is_opening: AtomicBool,
}

impl fmt::Debug for LateRows {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LateRows")
            .field("is_open", &self.0.rows.get().is_some())
            .finish_non_exhaustive()
    }
}

impl LateRows {
    /// Uses a function that opens the database.
    pub(crate) fn new(
        open: impl Fn() -> BoxFuture<'static, OpenOutcome> + Send + Sync + 'static,
    ) -> Self {
        Self(Arc::new(State {
            open: Box::new(open),
            rows: OnceLock::new(),
            is_opening: AtomicBool::new(false),
        }))
    }

    /// Returns the rows if the database is open. Otherwise starts to open it, unless this has begun.
    fn rows(&self) -> Result<&Arc<dyn RowStore>, StoreError> {
        if let Some(rows) = self.0.rows.get() {
            return Ok(rows);
        }
        if !self.0.is_opening.swap(true, Ordering::SeqCst) {
            let state = Arc::clone(&self.0);
            tokio::spawn(async move {
                match (state.open)().await {
                    Ok(rows) => drop(state.rows.set(rows)),
                    Err(SuiteError::Store(StoreError::Unavailable(_))) => {}
                    // Such as a migration that this program does not know. Only this database is concerned.
                    Err(error) => {
                        tracing::error!(error = %describe(&error), "the database of a cell cannot be used");
                    }
                }
                state.is_opening.store(false, Ordering::SeqCst);
            });
        }
        Err(StoreError::unavailable("the database is not open yet"))
    }
}

/// Returns an error with its causes.
fn describe(error: &SuiteError) -> String {
    let mut text = error.to_string();
    let mut cause = std::error::Error::source(error);
    while let Some(error) = cause {
        text.push_str(&format!(": {error}"));
        cause = error.source();
    }
    text
}

#[async_trait]
impl RowStore for LateRows {
    async fn begin(&self, mode: Mode) -> Result<Box<dyn RowTx>, StoreError> {
        self.rows()?.begin(mode).await
    }

    fn has_gate(&self) -> bool {
        true
    }

    async fn begin_gated(&self, mode: Mode) -> Result<Box<dyn RowTx>, StoreError> {
        self.rows()?.begin_gated(mode).await
    }

    async fn begin_stale(&self) -> Option<Box<dyn RowTx>> {
        self.0.rows.get()?.begin_stale().await
    }

    fn pools(&self) -> Vec<PoolState> {
        self.0
            .rows
            .get()
            .map(|rows| rows.pools())
            .unwrap_or_default()
    }

    async fn prepared_units(&self, prefix: &str) -> Result<Vec<PreparedUnit>, StoreError> {
        self.rows()?.prepared_units(prefix).await
    }

    async fn end_prepared(&self, name: &str, end: UnitEnd) -> Result<(), StoreError> {
        self.rows()?.end_prepared(name, end).await
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicBool, Ordering};

    use core_domain::kernel::Timestamp;
    use core_domain::testing::ManualClock;

    use super::*;

    fn memory() -> Arc<dyn RowStore> {
        let clock = ManualClock::at(Timestamp::from_seconds(1_800_000_000));
        core_storage::memory::rows(Arc::new(clock))
    }

    #[tokio::test]
    async fn a_database_that_was_away_at_the_start_is_used_as_soon_as_it_can_be_opened() {
        let is_back = Arc::new(AtomicBool::new(false));
        let can_open = Arc::clone(&is_back);
        let late = LateRows::new(move || {
            let can_open = can_open.load(Ordering::Relaxed);
            Box::pin(async move {
                match can_open {
                    true => Ok(memory()),
                    false => Err(SuiteError::Store(StoreError::unavailable("no route"))),
                }
            })
        });
        let failed = late.begin(Mode::Read).await;
        assert!(matches!(failed, Err(StoreError::Unavailable(_))));
        is_back.store(true, Ordering::Relaxed);
        for _ in 0..100 {
            if let Ok(unit) = late.begin(Mode::Read).await {
                return unit.rollback().await;
            }
            tokio::task::yield_now().await;
        }
        panic!("the database was not opened");
    }

    #[tokio::test]
    async fn a_database_that_cannot_be_used_fails_as_one_that_is_away() {
        let late = LateRows::new(|| {
            Box::pin(async { Err(SuiteError::Store(StoreError::backend("too new"))) })
        });
        let failed = late.prepared_units("core:").await;
        assert!(matches!(failed, Err(StoreError::Unavailable(_))));
    }
}
