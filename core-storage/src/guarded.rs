//! The rules every unit of work follows, whatever its engine: what is dead stays dead, readers do not write, queries
//! make sense, and time stands still.

use async_trait::async_trait;
use core_domain::kernel::Timestamp;
use core_domain::port::{Direction, Mode, StoreError};

use crate::filter::Filter;
use crate::query::Select;
use crate::row_store::RowTx;
use crate::table::{Table, Type};
use crate::value::{Row, Value};

/// A unit of work that keeps the rules around one that need not know them. Engines return theirs wrapped in it.
pub struct Guarded {
    inner: Box<dyn RowTx>,
    mode: Mode,
    dead: bool,
    now: Option<Timestamp>,
}

impl std::fmt::Debug for Guarded {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Guarded")
            .field("mode", &self.mode)
            .field("dead", &self.dead)
            .finish_non_exhaustive()
    }
}

impl Guarded {
    /// Wraps a unit of work that was opened in this mode.
    #[must_use]
    pub fn wrap(inner: Box<dyn RowTx>, mode: Mode) -> Box<dyn RowTx> {
        Box::new(Self {
            inner,
            mode,
            dead: false,
            now: None,
        })
    }

    fn alive(&self) -> Result<(), StoreError> {
        if self.dead { Err(ended()) } else { Ok(()) }
    }

    fn may_write(&mut self) -> Result<(), StoreError> {
        self.alive()?;
        if self.mode == Mode::Write {
            return Ok(());
        }
        self.dead = true;
        Err(StoreError::Backend("this unit only reads".into()))
    }

    fn seen<T>(&mut self, outcome: Result<T, StoreError>) -> Result<T, StoreError> {
        if let Err(error) = &outcome {
            self.dead |= !leaves_unit_alive(error);
        }
        outcome
    }
}

/// What a unit of work answers after an error that ended it.
pub(crate) fn ended() -> StoreError {
    StoreError::Backend("an earlier error ended this unit of work".into())
}

/// The errors after which a unit of work goes on.
pub(crate) const fn leaves_unit_alive(error: &StoreError) -> bool {
    matches!(
        error,
        StoreError::Conflict { .. } | StoreError::Stale { .. } | StoreError::InvalidCursor
    )
}

fn check_set(table: &Table, set: &[(&'static str, Value)]) -> Result<(), StoreError> {
    set.iter().try_for_each(|(name, value)| {
        if *name == table.key() {
            return Err(StoreError::Backend("a key never changes".into()));
        }
        table.check_value(table.column(name)?, value)
    })
}

fn check_sum(table: &Table, column: &str, group: &str) -> Result<(), StoreError> {
    let group = table.column(group)?;
    if table.column(column)?.kind == Type::Int && !group.nullable {
        return Ok(());
    }
    Err(StoreError::Backend(
        "only numbers are summed, by a column that is never empty".into(),
    ))
}

#[async_trait]
impl RowTx for Guarded {
    async fn insert(&mut self, table: &'static Table, row: Row) -> Result<(), StoreError> {
        self.may_write()?;
        let checked = table.check_row(&row);
        self.seen(checked)?;
        let outcome = self.inner.insert(table, row).await;
        self.seen(outcome)
    }

    async fn update(
        &mut self,
        table: &'static Table,
        filter: &Filter,
        set: &[(&'static str, Value)],
    ) -> Result<u64, StoreError> {
        self.may_write()?;
        let checked = filter.check(table).and_then(|()| check_set(table, set));
        self.seen(checked)?;
        let outcome = self.inner.update(table, filter, set).await;
        self.seen(outcome)
    }

    async fn delete(&mut self, table: &'static Table, filter: &Filter) -> Result<u64, StoreError> {
        self.may_write()?;
        self.seen(filter.check(table))?;
        let outcome = self.inner.delete(table, filter).await;
        self.seen(outcome)
    }

    async fn select(&mut self, select: &Select) -> Result<Vec<Row>, StoreError> {
        self.alive()?;
        self.seen(select.check())?;
        let outcome = self.inner.select(select).await;
        self.seen(outcome)
    }

    async fn claim(&mut self, select: &Select) -> Result<Vec<Row>, StoreError> {
        self.may_write()?;
        self.seen(select.check())?;
        let outcome = self.inner.claim(select).await;
        self.seen(outcome)
    }

    async fn count(&mut self, table: &'static Table, filter: &Filter) -> Result<u64, StoreError> {
        self.alive()?;
        self.seen(filter.check(table))?;
        let outcome = self.inner.count(table, filter).await;
        self.seen(outcome)
    }

    async fn sum(
        &mut self,
        table: &'static Table,
        column: &'static str,
        group: &'static str,
        filter: &Filter,
    ) -> Result<Vec<(Value, i64)>, StoreError> {
        self.alive()?;
        let checked = filter
            .check(table)
            .and_then(|()| check_sum(table, column, group));
        self.seen(checked)?;
        let outcome = self.inner.sum(table, column, group, filter).await;
        self.seen(outcome)
    }

    async fn walk(
        &mut self,
        table: &'static Table,
        key: &str,
        direction: Direction,
        depth: u32,
    ) -> Result<Vec<Row>, StoreError> {
        self.alive()?;
        if table.parent.is_none() {
            return Ok(Vec::new());
        }
        let outcome = self.inner.walk(table, key, direction, depth).await;
        self.seen(outcome)
    }

    async fn now(&mut self) -> Result<Timestamp, StoreError> {
        self.alive()?;
        if let Some(now) = self.now {
            return Ok(now);
        }
        let outcome = self.inner.now().await;
        let now = self.seen(outcome)?;
        self.now = Some(now);
        Ok(now)
    }

    async fn commit(self: Box<Self>) -> Result<(), StoreError> {
        if self.dead {
            self.inner.rollback().await;
            return Err(ended());
        }
        self.inner.commit().await
    }

    async fn rollback(self: Box<Self>) {
        self.inner.rollback().await;
    }
}
