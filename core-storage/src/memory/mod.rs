//! The engine in memory: for tests, for trials, and as the reference for the other engines.
//!
//! | file | contents |
//! |---|---|
//! | `state` | the tables of the writer, and the snapshots of readers |
//! | `rows` | the rows of one table in its indexes |
//! | `index` | an ordered index |
//! | `predicate`, `plan`, `scan`, `tree` | queries: conditions, choice of the index, execution, tree walks |

#[cfg(test)]
mod growth;
mod index;
mod plan;
mod predicate;
mod rows;
mod scan;
mod state;
mod tree;

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use async_trait::async_trait;
use core_domain::kernel::{Clock, StoreError, Timestamp};
use core_domain::port::{Direction, Mode, Store};
use tokio::sync::OwnedMutexGuard;

use crate::checked_tx::CheckedTx;
use crate::cursor::CursorKey;
use crate::filter::Filter;
use crate::join::{self, Join, VisitJoined};
use crate::query::Select;
use crate::row_store::{GroupSum, PreparedUnit, Replacement, RowStore, RowTx, UnitEnd};
use crate::table::{Table, VERSION};
use crate::unit::RecordStore;
use crate::value::{Row, Value, Visit};
use index::SharedRow;
use plan::Query;
use predicate::value;
use rows::Rows;
use state::{State, Tables};

/// The configuration of the memory store.
#[derive(Clone, Debug)]
pub struct MemoryConfig {
    /// The source of `now`.
    pub clock: Arc<dyn Clock>,
    /// The key that signs cursors.
    pub cursor_key: CursorKey,
}

/// Opens a new, empty store in memory.
#[must_use]
pub fn open(config: MemoryConfig) -> Arc<dyn Store> {
    Arc::new(RecordStore::new(rows(config.clock), config.cursor_key))
}

/// Opens a new, empty row engine in memory.
#[must_use]
pub fn rows(clock: Arc<dyn Clock>) -> Arc<dyn RowStore> {
    MemoryRows::new(clock)
}

/// The row engine in memory.
#[derive(Debug)]
pub struct MemoryRows {
    state: Arc<Mutex<State>>,
    /// Locked by the one write unit that is open.
    writer: Arc<tokio::sync::Mutex<()>>,
    /// The prepared units by name. Such a unit keeps its turn to write.
    prepared: Arc<Mutex<BTreeMap<String, PreparedTx>>>,
    clock: Arc<dyn Clock>,
}

/// A prepared unit, and the time at which it was prepared.
#[derive(Debug)]
struct PreparedTx {
    unit: Box<MemoryTx>,
    since: Instant,
}

impl MemoryRows {
    /// Creates an empty engine.
    #[must_use]
    pub fn new(clock: Arc<dyn Clock>) -> Arc<Self> {
        Arc::new(Self {
            state: Arc::default(),
            writer: Arc::default(),
            prepared: Arc::default(),
            clock,
        })
    }

    /// Returns an engine with the committed rows of this one. Later changes of one are not seen by the other. The copy
    /// shares the unchanged rows, so its cost does not depend on their number.
    #[must_use]
    pub fn copy(&self) -> Arc<Self> {
        let tables = lock(&self.state).snapshot();
        Arc::new(Self {
            state: Arc::new(Mutex::new(State::of(tables))),
            writer: Arc::default(),
            prepared: Arc::default(),
            clock: Arc::clone(&self.clock),
        })
    }
}

#[async_trait]
impl RowStore for MemoryRows {
    async fn begin(&self, mode: Mode) -> Result<Box<dyn RowTx>, StoreError> {
        let view = match mode {
            Mode::Write | Mode::ReadCommitted => View::Writer {
                state: self.state.clone(),
                _turn: self.writer.clone().lock_owned().await,
            },
            Mode::Auto | Mode::Read => View::Snapshot(lock(&self.state).snapshot()),
        };
        let unit = MemoryTx {
            view,
            now: self.clock.now(),
            prepared: Arc::clone(&self.prepared),
        };
        Ok(CheckedTx::wrap(Box::new(unit), mode))
    }

    fn has_one_writer(&self) -> bool {
        true
    }

    async fn prepared_units(&self, prefix: &str) -> Result<Vec<PreparedUnit>, StoreError> {
        let prepared = lock(&self.prepared);
        let found = prepared.iter().filter(|(name, _)| name.starts_with(prefix));
        let unit = |(name, prepared): (&String, &PreparedTx)| PreparedUnit {
            name: name.clone(),
            age: prepared.since.elapsed(),
        };
        Ok(found.map(unit).collect())
    }

    async fn end_prepared(&self, name: &str, end: UnitEnd) -> Result<(), StoreError> {
        let prepared = lock(&self.prepared).remove(name);
        match (prepared, end) {
            (Some(PreparedTx { unit, .. }), UnitEnd::Commit) => unit.commit().await,
            // Dropping a unit undoes its changes.
            _ => Ok(()),
        }
    }
}

fn lock<T>(state: &Mutex<T>) -> MutexGuard<'_, T> {
    state.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The state of the tables that a unit sees.
enum View {
    Snapshot(Arc<Tables>),
    Writer {
        state: Arc<Mutex<State>>,
        _turn: OwnedMutexGuard<()>,
    },
}

struct MemoryTx {
    view: View,
    now: Timestamp,
    /// The prepared units of the engine.
    prepared: Arc<Mutex<BTreeMap<String, PreparedTx>>>,
}

impl std::fmt::Debug for MemoryTx {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("MemoryTx").finish_non_exhaustive()
    }
}

impl Drop for MemoryTx {
    fn drop(&mut self) {
        // After a commit this has no effect.
        if let View::Writer { state, .. } = &self.view {
            lock(state).rollback();
        }
    }
}

impl MemoryTx {
    /// Returns the rows of the table; `None` if the table never had a row. Drop the result before the table is changed:
    /// a change copies the nodes that are shared.
    fn rows(&self, table: &'static Table) -> Option<Arc<Rows>> {
        match &self.view {
            View::Snapshot(tables) => tables.rows(table).cloned(),
            View::Writer { state, .. } => lock(state).rows(table),
        }
    }

    /// Returns the tables of the writer.
    fn state(&self) -> Result<MutexGuard<'_, State>, StoreError> {
        match &self.view {
            View::Writer { state, .. } => Ok(lock(state)),
            View::Snapshot(_) => Err(StoreError::backend("the unit of work is read-only")),
        }
    }

    fn matching(&self, table: &'static Table, filter: &Filter) -> Vec<SharedRow> {
        let found = |rows: Arc<Rows>| scan::collect(&rows, &Query::matching(table, filter));
        self.rows(table).map_or_else(Vec::new, found)
    }

    /// Returns the stored rows to replace, each with its replacement.
    fn pair_with_stored(
        &self,
        table: &'static Table,
        replacements: Vec<Replacement>,
    ) -> Result<Vec<(SharedRow, SharedRow)>, StoreError> {
        let rows = self.rows(table);
        let version = table.column_index(VERSION).unwrap_or_default();
        let pair = |Replacement { old, new }: Replacement| {
            let stored = rows.as_ref()?.get(value(&old, index::KEY))?;
            let is_unchanged = value(stored, version) == value(&old, version);
            is_unchanged.then(|| (stored.clone(), SharedRow::from(new)))
        };
        let pairs = replacements.into_iter().map(pair).collect::<Option<_>>();
        pairs.ok_or_else(|| {
            StoreError::retry(format!("a row of {} was changed concurrently", table.name))
        })
    }
}

#[async_trait]
impl RowTx for MemoryTx {
    async fn insert(&mut self, table: &'static Table, row: Row) -> Result<(), StoreError> {
        self.state()?.insert(table, [SharedRow::from(row)])
    }

    async fn insert_many(
        &mut self,
        table: &'static Table,
        rows: Vec<Row>,
    ) -> Result<(), StoreError> {
        let rows = rows.into_iter().map(SharedRow::from);
        self.state()?.insert(table, rows)
    }

    async fn replace_many(
        &mut self,
        table: &'static Table,
        rows: Vec<Replacement>,
    ) -> Result<(), StoreError> {
        let replaced = self.pair_with_stored(table, rows)?;
        let outcome = self.state()?.replace(table, replaced);
        outcome.map_err(StoreError::retry)
    }

    async fn update(
        &mut self,
        table: &'static Table,
        filter: &Filter,
        set: &[(&'static str, Value)],
    ) -> Result<u64, StoreError> {
        let matching = self.matching(table, filter);
        let position = |(column, value): &(&'static str, Value)| {
            Some((table.column_index(column)?, value.clone()))
        };
        let set: Vec<(usize, Value)> = set.iter().filter_map(position).collect();
        let count = matching.len() as u64;
        let changed = matching.into_iter().map(|old| {
            let new = rows::with_values(&old, &set);
            (old, new)
        });
        self.state()?.replace(table, changed)?;
        Ok(count)
    }

    async fn delete(&mut self, table: &'static Table, filter: &Filter) -> Result<u64, StoreError> {
        let matching = self.matching(table, filter);
        let count = matching.len() as u64;
        self.state()?.remove(table, matching);
        Ok(count)
    }

    async fn get(
        &mut self,
        table: &'static Table,
        key: &str,
        filter: &Filter,
        visit: Visit<'_>,
    ) -> Result<(), StoreError> {
        let Some(rows) = self.rows(table) else {
            return Ok(());
        };
        match rows.get(&Value::text(key)) {
            Some(row) if filter.matches(table, row) => visit(row),
            _ => Ok(()),
        }
    }

    fn commit_number(&self, table: &'static Table, _: Option<&str>) -> Option<u64> {
        match &self.view {
            View::Snapshot(tables) => Some(tables.commit_number(table)),
            View::Writer { state, .. } => lock(state).commit_number(table),
        }
    }

    async fn select(&mut self, select: &Select, visit: Visit<'_>) -> Result<(), StoreError> {
        let Some(rows) = self.rows(select.table) else {
            return Ok(());
        };
        scan::visit(&rows, &Query::new(select), |row| visit(row))
    }

    async fn select_joined(
        &mut self,
        select: &Select,
        joins: &'static [Join],
        visit: VisitJoined<'_>,
    ) -> Result<(), StoreError> {
        let mut tables = vec![select.table];
        tables.extend(joins.iter().map(|join| join.table));
        let Some(roots) = self.rows(select.table) else {
            return Ok(());
        };
        for root in scan::collect(&roots, &Query::new(select)) {
            let mut rows = vec![Some(root)];
            for join in joins {
                let filter = join.filter(&tables, &rows);
                let joined = |filter| self.matching(join.table, &filter).pop();
                rows.push(filter.and_then(joined));
            }
            visit(&join::as_refs(&rows))?;
        }
        Ok(())
    }

    async fn claim(&mut self, select: &Select, visit: Visit<'_>) -> Result<(), StoreError> {
        self.select(select, visit).await
    }

    async fn count(&mut self, table: &'static Table, filter: &Filter) -> Result<u64, StoreError> {
        let count = |rows: Arc<Rows>| scan::count(&rows, &Query::matching(table, filter));
        Ok(self.rows(table).map_or(0, count))
    }

    async fn sum(
        &mut self,
        table: &'static Table,
        column: &'static str,
        groups: &[&'static str],
        filter: &Filter,
    ) -> Result<Vec<GroupSum>, StoreError> {
        let Some(rows) = self.rows(table) else {
            return Ok(Vec::new());
        };
        let mut sums: BTreeMap<Vec<Value>, (u64, i64)> = BTreeMap::new();
        scan::visit(&rows, &Query::matching(table, filter), |row| {
            let values = groups.iter().map(|group| table.value(row, group).clone());
            let (count, sum) = sums.entry(values.collect()).or_default();
            let number = table.value(row, column).as_int().unwrap_or(0);
            *count += 1;
            *sum = sum
                .checked_add(number)
                .ok_or_else(|| StoreError::backend("a sum exceeds 64 bits"))?;
            Ok(())
        })?;
        let group = |(values, (count, sum))| GroupSum { values, count, sum };
        Ok(sums.into_iter().map(group).collect())
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
        let Some(rows) = self.rows(table) else {
            return Ok(());
        };
        let key = Value::text(key);
        let found = match direction {
            Direction::Ancestors => tree::ancestors(&rows, &key, depth),
            Direction::Descendants => tree::descendants(&rows, &key, depth),
        };
        let mut matching = found.iter().filter(|row| filter.matches(table, row));
        matching.try_for_each(|row| visit(row))
    }

    async fn now(&mut self) -> Result<Timestamp, StoreError> {
        Ok(self.now)
    }

    async fn commit(self: Box<Self>) -> Result<(), StoreError> {
        if let View::Writer { state, .. } = &self.view {
            lock(state).commit();
        }
        Ok(())
    }

    async fn prepare(self: Box<Self>, name: &str) -> Result<(), StoreError> {
        let prepared = Arc::clone(&self.prepared);
        let unit = PreparedTx {
            unit: self,
            since: Instant::now(),
        };
        lock(&prepared).insert(name.to_owned(), unit);
        Ok(())
    }

    async fn rollback(self: Box<Self>) {}
}
