//! A unit of work on any executor.

use std::sync::Arc;
use std::time::{Duration, Instant};

use async_trait::async_trait;
use core_domain::kernel::{Clock, StoreError, Timestamp};
use core_domain::port::{Direction, HostStatements, SlowestStatements, StatementTime};

use super::append::AppendQueue;
use super::dialect::Dialect;
use super::executor::Executor;
use super::gate;
use super::recording;
use super::render;
use super::statement::{Change, Cost, Statement};
use super::text::{StatementCache, StatementWriter};
use crate::filter::Filter;
use crate::join::{Join, VisitJoined};
use crate::query::Select;
use crate::row_store::{GroupSum, RecordedRows, Replacement, RowTx, insert_or_read};
use crate::table::{Column, Table, Type};
use crate::value::{ReadRow, Row, Value, Visit};

/// A unit of work on an executor. Engines return it wrapped in [`crate::CheckedTx`].
pub struct SqlTx<E> {
    pub(super) executor: E,
    pub(super) dialect: Dialect,
    pub(super) appended: AppendQueue,
    texts: Arc<StatementCache>,
    clock: Option<Arc<dyn Clock>>,
    slowest: SlowestStatements,
}

impl<E> std::fmt::Debug for SqlTx<E> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("SqlTx")
            .field("dialect", &self.dialect)
            .finish_non_exhaustive()
    }
}

/// The result column of a count.
static NUMBER: [Column; 1] = [Column {
    name: "number",
    kind: Type::Int,
    nullable: false,
}];

/// The maximum number of rows of a list that counts as bounded. A database in this process reads that many in about 100
/// µs.
const MAX_BOUNDED_ROWS: u32 = 256;

/// Returns whether the filter names one key.
pub(super) fn names_one_key(table: &Table, filter: &Filter) -> bool {
    filter.conjuncts().into_iter().any(
        |part| matches!(part, Filter::Compare(column, crate::Op::Eq, _) if *column == table.key()),
    )
}

impl<E: Executor> SqlTx<E> {
    /// Creates a unit of work on the executor. `texts` is the cache of the store. Without a clock the database supplies
    /// the time.
    #[must_use]
    pub fn new(
        executor: E,
        dialect: Dialect,
        texts: Arc<StatementCache>,
        clock: Option<Arc<dyn Clock>>,
    ) -> Self {
        Self {
            executor,
            dialect,
            appended: AppendQueue::default(),
            texts,
            clock,
            slowest: SlowestStatements::default(),
        }
    }

    pub(super) fn statement<'q>(
        &self,
        columns: &'q [Column],
        changes: Option<Change<'q>>,
        cost: Cost,
        write: impl Fn(&mut StatementWriter<'q>),
    ) -> Statement<'q> {
        let (text, binds) = self.texts.of(write);
        Statement {
            text,
            binds,
            columns,
            changes,
            cost,
        }
    }

    /// Runs a change. Returns the number of affected rows.
    pub(super) async fn execute<'q>(
        &mut self,
        change: Change<'q>,
        cost: Cost,
        write: impl Fn(&mut StatementWriter<'q>) + Send,
    ) -> Result<u64, StoreError> {
        let statement = self.statement(&[], Some(change), cost, write);
        let began = Instant::now();
        let outcome = self.executor.execute(&statement).await;
        self.slowest.record(&statement.text, began.elapsed());
        outcome
    }

    /// Runs a query and passes its rows to the visitor.
    pub(super) async fn fetch<'q>(
        &mut self,
        columns: &'q [Column],
        cost: Cost,
        write: impl Fn(&mut StatementWriter<'q>) + Send,
        visit: Visit<'_>,
    ) -> Result<(), StoreError> {
        let statement = self.statement(columns, None, cost, write);
        self.fetch_measured(&statement, visit).await
    }

    /// Runs a change of the table that returns rows, and passes them to the visitor.
    pub(super) async fn fetch_changed<'q>(
        &mut self,
        table: &'static Table,
        columns: &'q [Column],
        write: impl Fn(&mut StatementWriter<'q>) + Send,
        visit: Visit<'_>,
    ) -> Result<(), StoreError> {
        let statement = self.statement(columns, Some(Change::of(table)), Cost::Unbounded, write);
        self.fetch_measured(&statement, visit).await
    }

    /// Runs a statement that returns rows, and records its duration.
    async fn fetch_measured(
        &mut self,
        statement: &Statement<'_>,
        visit: Visit<'_>,
    ) -> Result<(), StoreError> {
        let began = Instant::now();
        let outcome = self.executor.fetch(statement, visit).await;
        self.slowest.record(&statement.text, began.elapsed());
        outcome
    }

    /// Runs a query that returns one number.
    async fn number<'q>(
        &mut self,
        cost: Cost,
        write: impl Fn(&mut StatementWriter<'q>) + Send,
    ) -> Result<i64, StoreError> {
        let mut number = None;
        let mut visit = |row: &dyn ReadRow| {
            number = row.read(0)?.as_int();
            Ok(())
        };
        self.fetch(&NUMBER, cost, write, &mut visit).await?;
        number.ok_or_else(|| StoreError::backend("an integer was expected"))
    }

    /// Returns the number of matching rows.
    pub(super) async fn count_rows(
        &mut self,
        table: &'static Table,
        filter: &Filter,
        cost: Cost,
    ) -> Result<i64, StoreError> {
        let dialect = self.dialect;
        self.number(cost, |w| render::count(w, dialect, table, filter))
            .await
    }

    async fn select_rows(
        &mut self,
        select: &Select,
        lock: bool,
        visit: Visit<'_>,
    ) -> Result<(), StoreError> {
        let order = select.full_order();
        let dialect = self.dialect;
        let one = names_one_key(select.table, &select.filter);
        let cost = match select.limit {
            Some(..=MAX_BOUNDED_ROWS) => Cost::Bounded,
            _ if one => Cost::Bounded,
            _ => Cost::Unbounded,
        };
        self.fetch(
            select.table.columns,
            cost,
            |w| render::select(w, dialect, select, &order, lock),
            visit,
        )
        .await
    }
}

#[async_trait]
impl<E: Executor> RowTx for SqlTx<E> {
    async fn insert(&mut self, table: &'static Table, row: Row) -> Result<(), StoreError> {
        self.insert_one(table, &row).await
    }

    async fn insert_many(
        &mut self,
        table: &'static Table,
        rows: Vec<Row>,
    ) -> Result<(), StoreError> {
        self.insert_all(table, &rows).await
    }

    async fn append(&mut self, table: &'static Table, rows: Vec<Row>) -> Result<(), StoreError> {
        self.append_rows(table, rows).await
    }

    async fn replace_many(
        &mut self,
        table: &'static Table,
        rows: Vec<Replacement>,
    ) -> Result<(), StoreError> {
        self.flush_of(table).await?;
        self.replace_all(table, rows).await
    }

    async fn insert_or_lock(
        &mut self,
        table: &'static Table,
        rows: Vec<Row>,
        visit: Visit<'_>,
    ) -> Result<(), StoreError> {
        self.flush_of(table).await?;
        if self.dialect.has_arrays() {
            return self.insert_or_lock_rows(table, &rows, visit).await;
        }
        insert_or_read(self, table, rows, visit).await
    }

    async fn lock(
        &mut self,
        table: &'static Table,
        key: &Value,
        visit: Visit<'_>,
    ) -> Result<(), StoreError> {
        self.flush_of(table).await?;
        if !table.accepts_key(key) {
            return Ok(());
        }
        if self.dialect.has_arrays() {
            return self.lock_row(table, key, visit).await;
        }
        let with_key = Select::of(table).filter(Filter::eq(table.key(), key.clone()));
        self.select_rows(&with_key, false, visit).await
    }

    async fn insert_new(
        &mut self,
        table: &'static Table,
        rows: Vec<Row>,
    ) -> Result<Vec<Value>, StoreError> {
        self.flush_of(table).await?;
        self.insert_free(table, &rows).await
    }

    async fn replace_locked(
        &mut self,
        table: &'static Table,
        rows: Vec<Replacement>,
    ) -> Result<(), StoreError> {
        if !self.dialect.has_arrays() {
            return self.replace_many(table, rows).await;
        }
        self.flush_of(table).await?;
        let rows = rows.into_iter().map(|row| row.new).collect();
        self.appended.add_replacing(table, rows);
        Ok(())
    }

    async fn update(
        &mut self,
        table: &'static Table,
        filter: &Filter,
        set: &[(&'static str, Value)],
    ) -> Result<u64, StoreError> {
        self.flush_of(table).await?;
        self.update_rows(table, filter, set).await
    }

    async fn delete(&mut self, table: &'static Table, filter: &Filter) -> Result<u64, StoreError> {
        self.flush_of(table).await?;
        let (dialect, platform) = (self.dialect, filter.platform());
        let cost = change_cost(table, filter);
        self.execute(Change { table, platform }, cost, |w| {
            render::delete(w, dialect, table, filter)
        })
        .await
    }

    async fn promote(
        &mut self,
        from: &'static Table,
        to: &'static Table,
        keys: &[Value],
    ) -> Result<u64, StoreError> {
        self.flush_of(from).await?;
        self.flush_of(to).await?;
        let dialect = self.dialect;
        let with_keys = Filter::In(from.key(), keys.to_vec());
        let copied = self.execute(Change::of(to), Cost::Unbounded, |w| {
            render::insert_from(w, dialect, from, to, &with_keys);
        });
        copied.await?;
        self.delete(from, &with_keys).await
    }

    async fn select(&mut self, select: &Select, visit: Visit<'_>) -> Result<(), StoreError> {
        self.flush_of(select.table).await?;
        self.select_rows(select, false, visit).await
    }

    async fn select_joined(
        &mut self,
        select: &Select,
        joins: &'static [Join],
        visit: VisitJoined<'_>,
    ) -> Result<(), StoreError> {
        self.flush().await?;
        self.select_with_joins(select, joins, visit).await
    }

    async fn claim(&mut self, select: &Select, visit: Visit<'_>) -> Result<(), StoreError> {
        self.flush_of(select.table).await?;
        self.select_rows(select, true, visit).await
    }

    async fn count(&mut self, table: &'static Table, filter: &Filter) -> Result<u64, StoreError> {
        self.flush_of(table).await?;
        let count = self.count_rows(table, filter, Cost::Unbounded).await?;
        Ok(u64::try_from(count).unwrap_or(0))
    }

    fn commit_number(&self, table: &'static Table, platform: Option<&str>) -> Option<u64> {
        self.executor.commit_number(table, platform)
    }

    async fn sum(
        &mut self,
        table: &'static Table,
        column: &'static str,
        groups: &[&'static str],
        filter: &Filter,
    ) -> Result<Vec<GroupSum>, StoreError> {
        self.flush_of(table).await?;
        let [number] = NUMBER;
        let of_groups = groups.iter().map(|group| table.column(group).copied());
        let mut columns = of_groups.collect::<Result<Vec<Column>, StoreError>>()?;
        columns.extend([number, number]);
        let dialect = self.dialect;
        let mut sums = Vec::new();
        let mut visit = |row: &dyn ReadRow| {
            sums.extend(read_group(row, groups.len())?);
            Ok(())
        };
        self.fetch(
            &columns,
            Cost::Unbounded,
            |w| render::sum(w, dialect, table, column, groups, filter),
            &mut visit,
        )
        .await?;
        Ok(sums)
    }

    async fn walk(
        &mut self,
        table: &'static Table,
        key: &str,
        direction: Direction,
        depth: u32,
        filter: &Filter,
        visit: Visit<'_>,
    ) -> Result<(), StoreError> {
        self.flush_of(table).await?;
        if !table.accepts_key(&Value::text(key)) {
            return Ok(());
        }
        let dialect = self.dialect;
        self.fetch(
            table.columns,
            Cost::Unbounded,
            |w| render::walk(w, dialect, table, key, direction, depth, filter),
            visit,
        )
        .await
    }

    async fn now(&mut self) -> Result<Timestamp, StoreError> {
        if let Some(clock) = &self.clock {
            return Ok(clock.now());
        }
        if let Some(now) = self.executor.now().await? {
            return Ok(now);
        }
        let dialect = self.dialect;
        let millis = self.number(Cost::Bounded, |w| {
            w.sql(dialect.now());
        });
        Ok(Timestamp::from_millis(millis.await?))
    }

    async fn enlist(&mut self, statements: &mut dyn HostStatements) -> Result<(), StoreError> {
        // The host program must see the rows that this unit has added.
        self.flush().await?;
        self.executor.enlist(statements).await
    }

    async fn close_gate(&mut self, max_wait: Duration) -> Result<(), StoreError> {
        self.executor.run_locking(&gate::close(), max_wait).await
    }

    async fn set_recording(
        &mut self,
        rows: &RecordedRows<'_>,
        is_on: bool,
        max_wait: Duration,
    ) -> Result<bool, StoreError> {
        if self.dialect != Dialect::Postgres {
            return Ok(false);
        }
        let statements = match is_on {
            true => recording::start(rows),
            false => recording::stop(rows),
        };
        self.executor.run_locking(&statements, max_wait).await?;
        Ok(true)
    }

    fn take_slowest_statements(&mut self) -> Vec<StatementTime> {
        self.slowest.take()
    }

    async fn commit(self: Box<Self>) -> Result<(), StoreError> {
        self.flush_and_commit().await
    }

    async fn prepare(mut self: Box<Self>, name: &str) -> Result<(), StoreError> {
        match self.flush().await {
            Ok(()) => self.executor.prepare(name).await,
            Err(error) => {
                self.executor.rollback().await;
                Err(error)
            }
        }
    }

    async fn rollback(self: Box<Self>) {
        self.executor.rollback().await;
    }
}

pub(super) fn change_cost(table: &Table, filter: &Filter) -> Cost {
    if names_one_key(table, filter) {
        Cost::Bounded
    } else {
        Cost::Unbounded
    }
}

/// Reads a row with the values of the group columns, the number of rows and the sum. Returns `None` for a group without
/// rows, which a query without group columns returns if no row matches.
fn read_group(row: &dyn ReadRow, groups: usize) -> Result<Option<GroupSum>, StoreError> {
    let values = (0..groups).map(|at| Ok(row.read(at)?.to_value()));
    let values = values.collect::<Result<Vec<Value>, StoreError>>()?;
    let count = row.read(groups)?.as_int().unwrap_or(0);
    let count = u64::try_from(count).unwrap_or(0);
    let sum = row.read(groups + 1)?.as_int().unwrap_or(0);
    Ok((count > 0).then_some(GroupSum { values, count, sum }))
}
