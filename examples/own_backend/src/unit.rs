//! A unit of work.

use std::collections::BTreeMap;
use std::sync::Arc;

use async_trait::async_trait;
use core_domain::kernel::{Clock, StoreError, Timestamp};
use core_domain::port::Direction;
use core_storage::{Filter, GroupSum, Replacement, Row, RowTx, Select, Table, Value, Visit};
use redb::WriteTransaction;

use crate::transaction::Transaction;
use crate::{maps, query};

/// A unit of work. A redb transaction that is dropped is rolled back.
pub(crate) struct Unit {
    transaction: Transaction,
    clock: Arc<dyn Clock>,
}

impl Unit {
    pub(crate) fn new(transaction: Transaction, clock: Arc<dyn Clock>) -> Self {
        Self { transaction, clock }
    }

    fn writing(&self) -> Result<&WriteTransaction, StoreError> {
        match &self.transaction {
            Transaction::Write(write, _) => Ok(write),
            Transaction::Read(_) => Err(StoreError::backend("this unit of work is read-only")),
        }
    }

    fn by_key(&self, table: &'static Table, row: &Row) -> Result<Option<Row>, StoreError> {
        let filter = Filter::eq(table.key(), table.value(row, table.key()).clone());
        Ok(query::matching(&self.transaction, table, &filter)?.pop())
    }

    fn insert_row(&self, table: &'static Table, row: &Row) -> Result<(), StoreError> {
        let write = self.writing()?;
        if self.by_key(table, row)?.is_some() {
            return Err(conflict_error(table, "key"));
        }
        if let Some(index) = maps::conflict(write, table, row)? {
            return Err(conflict_error(table, index));
        }
        maps::upsert(write, table, None, row)
    }

    /// Replaces rows one after the other. Restores the old rows if one of the new ones conflicts.
    fn replace_rows(&self, table: &'static Table, rows: &[(Row, Row)]) -> Result<(), StoreError> {
        let write = self.writing()?;
        for (at, (old, new)) in rows.iter().enumerate() {
            if let Some(index) = maps::conflict(write, table, new)? {
                for (old, new) in rows.iter().take(at) {
                    maps::upsert(write, table, Some(new), old)?;
                }
                return Err(conflict_error(table, index));
            }
            maps::upsert(write, table, Some(old), new)?;
        }
        Ok(())
    }
}

fn conflict_error(table: &Table, index: &'static str) -> StoreError {
    let table = table.name;
    StoreError::Conflict { table, index }
}

#[async_trait]
impl RowTx for Unit {
    async fn insert(&mut self, table: &'static Table, row: Row) -> Result<(), StoreError> {
        self.insert_row(table, &row)
    }

    async fn insert_many(
        &mut self,
        table: &'static Table,
        rows: Vec<Row>,
    ) -> Result<(), StoreError> {
        for (at, row) in rows.iter().enumerate() {
            if let Err(error) = self.insert_row(table, row) {
                for row in rows.iter().take(at) {
                    maps::remove(self.writing()?, table, row)?;
                }
                return Err(error);
            }
        }
        Ok(())
    }

    async fn replace_many(
        &mut self,
        table: &'static Table,
        rows: Vec<Replacement>,
    ) -> Result<(), StoreError> {
        for Replacement { old, new } in rows {
            if self
                .by_key(table, &old)?
                .and_then(|row| row.last().cloned())
                != old.last().cloned()
            {
                return Err(StoreError::retry("a row was changed in between"));
            }
            self.replace_rows(table, &[(old, new)])
                .map_err(StoreError::retry)?;
        }
        Ok(())
    }

    async fn update(
        &mut self,
        table: &'static Table,
        filter: &Filter,
        set: &[(&'static str, Value)],
    ) -> Result<u64, StoreError> {
        let changed = |old: Row| {
            let mut new = old.clone();
            for (column, value) in set {
                let stored = table.column_index(column).and_then(|at| new.get_mut(at));
                if let Some(stored) = stored {
                    *stored = value.clone();
                }
            }
            (old, new)
        };
        let rows = query::matching(&self.transaction, table, filter)?;
        let rows: Vec<_> = rows.into_iter().map(changed).collect();
        self.replace_rows(table, &rows)?;
        Ok(rows.len() as u64)
    }

    async fn delete(&mut self, table: &'static Table, filter: &Filter) -> Result<u64, StoreError> {
        let rows = query::matching(&self.transaction, table, filter)?;
        for row in &rows {
            maps::remove(self.writing()?, table, row)?;
        }
        Ok(rows.len() as u64)
    }

    async fn select(&mut self, select: &Select, visit: Visit<'_>) -> Result<(), StoreError> {
        let rows = query::select(&self.transaction, select)?;
        rows.iter().try_for_each(|row| visit(row))
    }

    async fn claim(&mut self, select: &Select, visit: Visit<'_>) -> Result<(), StoreError> {
        // No other unit writes at the same time, so there are no rows to lock or to skip.
        self.select(select, visit).await
    }

    async fn count(&mut self, table: &'static Table, filter: &Filter) -> Result<u64, StoreError> {
        let rows = query::matching(&self.transaction, table, filter)?;
        Ok(rows.len() as u64)
    }

    async fn sum(
        &mut self,
        table: &'static Table,
        column: &'static str,
        groups: &[&'static str],
        filter: &Filter,
    ) -> Result<Vec<GroupSum>, StoreError> {
        let mut sums: BTreeMap<Vec<Value>, (u64, i64)> = BTreeMap::new();
        for row in query::matching(&self.transaction, table, filter)? {
            let values = groups.iter().map(|group| table.value(&row, group).clone());
            let (count, sum) = sums.entry(values.collect()).or_default();
            let added = sum.checked_add(table.value(&row, column).as_int().unwrap_or(0));
            *count += 1;
            *sum = added.ok_or_else(|| StoreError::backend("a sum is too large"))?;
        }
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
        let rows = query::walk(&self.transaction, table, key, direction, depth)?;
        let mut rows = rows.iter().map(|(_, row)| row);
        rows.try_for_each(|row| match filter.matches(table, row) {
            true => visit(row),
            false => Ok(()),
        })
    }

    async fn now(&mut self) -> Result<Timestamp, StoreError> {
        Ok(self.clock.now())
    }

    async fn commit(self: Box<Self>) -> Result<(), StoreError> {
        let Transaction::Write(write, turn) = self.transaction else {
            return Ok(());
        };
        // The commit waits for the disk.
        let committed = tokio::task::spawn_blocking(move || {
            let committed = write.commit();
            drop(turn);
            committed
        });
        let committed = committed.await.map_err(StoreError::commit_unknown)?;
        committed.map_err(StoreError::commit_unknown)
    }

    async fn rollback(self: Box<Self>) {}
}
