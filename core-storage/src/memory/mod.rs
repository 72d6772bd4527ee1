//! The engine in memory: for tests, for trials, and as the reference of the others.
//!
//! Tables are persistent (structure-sharing) maps. A reader keeps the root it began with as its snapshot; the one writer
//! changes its own copy of the root and publishes it at commit. The cost of either grows with the rows it touches, not with those that are stored.

mod plan;
mod rows;

use std::collections::BTreeMap;
use std::sync::{Arc, PoisonError, RwLock};

use async_trait::async_trait;
use core_domain::kernel::{Clock, StoreError, Timestamp};
use core_domain::port::{Direction, Mode, Store};
use tokio::sync::{Mutex, OwnedMutexGuard};

use crate::checked_tx::CheckedTx;
use crate::cursor::CursorKey;
use crate::filter::Filter;
use crate::query::Select;
use crate::row_store::{Replacement, RowStore, RowTx};
use crate::table::Table;
use crate::unit::RecordStore;
use crate::value::{Row, Value, Visit};
use rows::Rows;

/// What the memory store needs.
#[derive(Clone, Debug)]
pub struct MemoryConfig {
    /// Where `now` comes from.
    pub clock: Arc<dyn Clock>,
    /// What cursors are signed with.
    pub cursor_key: CursorKey,
}

/// A new, empty store in memory.
#[must_use]
pub fn open(config: MemoryConfig) -> Arc<dyn Store> {
    Arc::new(RecordStore::new(rows(config.clock), config.cursor_key))
}

/// A new, empty row engine in memory.
#[must_use]
pub fn rows(clock: Arc<dyn Clock>) -> Arc<dyn RowStore> {
    Arc::new(Memory {
        root: Arc::default(),
        writer: Arc::default(),
        clock,
    })
}

fn stale(table: &Table) -> StoreError {
    StoreError::retry(format!("a row of {} was changed in between", table.name))
}

type Root = imbl::OrdMap<&'static str, Rows>;

#[derive(Debug)]
struct Memory {
    root: Arc<RwLock<Root>>,
    writer: Arc<Mutex<()>>,
    clock: Arc<dyn Clock>,
}

#[async_trait]
impl RowStore for Memory {
    async fn begin(&self, mode: Mode) -> Result<Box<dyn RowTx>, StoreError> {
        let writing = match mode {
            Mode::Write | Mode::ReadCommitted => Some(self.writer.clone().lock_owned().await),
            Mode::Auto | Mode::Read => None,
        };
        let root = self
            .root
            .read()
            .unwrap_or_else(PoisonError::into_inner)
            .clone();
        let tx = MemoryTx {
            shared: self.root.clone(),
            root,
            writing,
            now: self.clock.now(),
        };
        Ok(CheckedTx::wrap(Box::new(tx), mode))
    }
}

struct MemoryTx {
    shared: Arc<RwLock<Root>>,
    root: Root,
    writing: Option<OwnedMutexGuard<()>>,
    now: Timestamp,
}

impl MemoryTx {
    fn table(&self, table: &'static Table) -> Rows {
        self.root
            .get(table.name)
            .cloned()
            .unwrap_or_else(|| Rows::new(table))
    }

    fn matching(&self, table: &'static Table, filter: &Filter) -> Vec<Arc<Row>> {
        let mut select = Select::of(table);
        select.filter = filter.clone();
        plan::run(&self.table(table), &select)
    }
}

#[async_trait]
impl RowTx for MemoryTx {
    async fn insert(&mut self, table: &'static Table, row: Row) -> Result<(), StoreError> {
        let mut rows = self.table(table);
        rows.insert(Arc::new(row))?;
        self.root.insert(table.name, rows);
        Ok(())
    }

    async fn insert_many(
        &mut self,
        table: &'static Table,
        rows: Vec<Row>,
    ) -> Result<(), StoreError> {
        let mut table_rows = self.table(table);
        for row in rows {
            table_rows.insert(Arc::new(row))?;
        }
        self.root.insert(table.name, table_rows);
        Ok(())
    }

    async fn replace_many(
        &mut self,
        table: &'static Table,
        rows: Vec<Replacement>,
    ) -> Result<(), StoreError> {
        let mut table_rows = self.table(table);
        for Replacement { old, new } in rows {
            let key = table.value(&old, table.key()).as_text();
            let Some(stored) = key.and_then(|key| table_rows.get(key)) else {
                return Err(stale(table));
            };
            if stored.last() != old.last() {
                return Err(stale(table));
            }
            let stored = Arc::clone(stored);
            table_rows
                .replace(&stored, Arc::new(new))
                .map_err(StoreError::retry)?;
        }
        self.root.insert(table.name, table_rows);
        Ok(())
    }

    async fn update(
        &mut self,
        table: &'static Table,
        filter: &Filter,
        set: &[(&'static str, Value)],
    ) -> Result<u64, StoreError> {
        let matching = self.matching(table, filter);
        let mut rows = self.table(table);
        for old in &matching {
            let mut next = Row::clone(old);
            for (column, value) in set {
                if let Some(stored) = table.column_index(column).and_then(|at| next.get_mut(at)) {
                    *stored = value.clone();
                }
            }
            rows.replace(old, Arc::new(next))?;
        }
        self.root.insert(table.name, rows);
        Ok(matching.len() as u64)
    }

    async fn delete(&mut self, table: &'static Table, filter: &Filter) -> Result<u64, StoreError> {
        let matching = self.matching(table, filter);
        let mut rows = self.table(table);
        for old in &matching {
            rows.remove(old);
        }
        self.root.insert(table.name, rows);
        Ok(matching.len() as u64)
    }

    async fn select(&mut self, select: &Select, visit: Visit<'_>) -> Result<(), StoreError> {
        let found = plan::run(&self.table(select.table), select);
        found.iter().try_for_each(|row| visit(row.as_ref()))
    }

    async fn claim(&mut self, select: &Select, visit: Visit<'_>) -> Result<(), StoreError> {
        self.select(select, visit).await
    }

    async fn count(&mut self, table: &'static Table, filter: &Filter) -> Result<u64, StoreError> {
        Ok(self.matching(table, filter).len() as u64)
    }

    async fn sum(
        &mut self,
        table: &'static Table,
        column: &'static str,
        group: &'static str,
        filter: &Filter,
    ) -> Result<Vec<(Value, i64)>, StoreError> {
        let mut sums: BTreeMap<Value, i64> = BTreeMap::new();
        for row in self.matching(table, filter) {
            let sum = sums.entry(table.value(&row, group).clone()).or_default();
            let number = table.value(&row, column).as_int().unwrap_or(0);
            *sum = sum
                .checked_add(number)
                .ok_or_else(|| StoreError::backend("a sum does not fit 64 bits"))?;
        }
        Ok(sums.into_iter().collect())
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
        let rows = self.table(table);
        let found = match direction {
            Direction::Ancestors => plan::ancestors(&rows, key, depth),
            Direction::Descendants => plan::descendants(&rows, key, depth),
        };
        let mut matching = found.iter().filter(|row| filter.matches(table, row));
        matching.try_for_each(|row| visit(row.as_ref()))
    }

    async fn now(&mut self) -> Result<Timestamp, StoreError> {
        Ok(self.now)
    }

    async fn commit(self: Box<Self>) -> Result<(), StoreError> {
        if self.writing.is_some() {
            *self.shared.write().unwrap_or_else(PoisonError::into_inner) = self.root;
        }
        Ok(())
    }

    async fn rollback(self: Box<Self>) {}
}
