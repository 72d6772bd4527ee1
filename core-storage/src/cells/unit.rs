//! The calls of a unit of work over several cells.

use std::collections::BTreeMap;
use std::sync::Arc;

use async_trait::async_trait;
use core_domain::kernel::{StoreError, Timestamp};
use core_domain::port::{Direction, HostStatements, StatementTime};

use super::commit::{carry_out_decisions, commit_together};
use super::config::HOME;
use super::directory;
use super::merge::{MergedRows, MergedSums};
use super::place::{Place, confirms_changes, has_common_order, place_of};
use super::route::{CellUnit, LeftOut, SeenRows, key_count};
use super::unique_values::{self, Change, UniqueValue};
use crate::checked_tx::is_recoverable;
use crate::filter::Filter;
use crate::join::{Join, VisitJoined};
use crate::query::Select;
use crate::row_store::{GroupSum, Replacement, RowTx, copies, join_row_by_row};
use crate::table::Table;
use crate::value::{ReadRow, Row, Value, Visit};

impl CellUnit {
    /// Takes the new values that are unique over all cells.
    async fn take(&mut self, table: &'static Table, change: &Change) -> Result<(), StoreError> {
        if change.added.is_empty() {
            return Ok(());
        }
        unique_values::take(self.changing(HOME).await?, table, &change.added).await
    }

    /// Releases the old values if the change was made, and the new ones if it was not.
    async fn settle<T>(
        &mut self,
        change: &Change,
        outcome: Result<T, StoreError>,
    ) -> Result<T, StoreError> {
        let released = match &outcome {
            Ok(_) => &change.removed,
            Err(error) if is_recoverable(error) => &change.added,
            Err(_) => return outcome,
        };
        self.release(released).await?;
        outcome
    }

    /// Settles a change of all of the old rows. Another unit may have changed them after they were read.
    async fn settle_all(
        &mut self,
        change: &Change,
        old: &[Row],
        outcome: Result<u64, StoreError>,
    ) -> Result<u64, StoreError> {
        match outcome {
            Ok(0) if !old.is_empty() => {
                self.release(&change.added).await?;
                Ok(0)
            }
            Ok(count) if count != old.len() as u64 => Err(StoreError::retry(
                "a row with a unique value was changed concurrently",
            )),
            outcome => self.settle(change, outcome).await,
        }
    }

    /// Releases values that are unique over all cells.
    async fn release(&mut self, values: &[UniqueValue]) -> Result<(), StoreError> {
        if values.is_empty() {
            return Ok(());
        }
        unique_values::release(self.changing(HOME).await?, values).await
    }

    /// Returns the rows that match, from all cells that can have them.
    async fn matching(
        &mut self,
        table: &'static Table,
        filter: &Filter,
    ) -> Result<Vec<Row>, StoreError> {
        let mut rows = Vec::new();
        for cell in self.route(table, filter).await? {
            let select = Select::of(table).filter(self.visible(cell, table, filter).await?);
            rows.extend(copies(self.tx(cell).await?, &select).await?);
        }
        Ok(rows)
    }

    /// Inserts rows in their cells: all of them, or none after a conflict.
    async fn insert_parts(
        &mut self,
        table: &'static Table,
        parts: BTreeMap<usize, Vec<Row>>,
    ) -> Result<(), StoreError> {
        let mut inserted: Vec<(usize, Vec<Value>)> = Vec::new();
        for (cell, rows) in parts {
            let keys = rows.iter().filter_map(|row| row.first().cloned()).collect();
            let outcome = self.changing(cell).await?.insert_many(table, rows).await;
            if let Err(error) = outcome {
                for (cell, keys) in inserted {
                    let with_keys = Filter::In(table.key(), keys);
                    self.changing(cell).await?.delete(table, &with_keys).await?;
                }
                return Err(error);
            }
            inserted.push((cell, keys));
        }
        Ok(())
    }

    /// Runs a change on every cell that can have matching rows. Returns the number of rows.
    async fn update_in_cells(
        &mut self,
        table: &'static Table,
        filter: &Filter,
        set: &[(&'static str, Value)],
    ) -> Result<u64, StoreError> {
        let (mut count, mut left_out) = (0, LeftOut::default());
        for cell in self.route_change(table, filter).await? {
            let was_open = self.is_open(cell);
            let changed = self.update_in(cell, table, filter, set).await;
            let changed = self.unless_unreachable(cell, was_open, changed, &mut left_out)?;
            count += count_once(table, cell, changed.unwrap_or_default());
        }
        left_out.ensure(is_whole_change(table, filter, count))?;
        Ok(count)
    }

    async fn update_in(
        &mut self,
        cell: usize,
        table: &'static Table,
        filter: &Filter,
        set: &[(&'static str, Value)],
    ) -> Result<u64, StoreError> {
        let visible = self.visible(cell, table, filter).await?;
        let (unit, _) = self.parts(cell).await?;
        let changed = unit.tx.update(table, &visible, set).await?;
        unit.has_changes |= changed > 0;
        Ok(changed)
    }

    async fn delete_in_cells(
        &mut self,
        table: &'static Table,
        filter: &Filter,
    ) -> Result<u64, StoreError> {
        let (mut count, mut left_out) = (0, LeftOut::default());
        for cell in self.route_change(table, filter).await? {
            let was_open = self.is_open(cell);
            let deleted = self.delete_in(cell, table, filter).await;
            let deleted = self.unless_unreachable(cell, was_open, deleted, &mut left_out)?;
            count += count_once(table, cell, deleted.unwrap_or_default());
        }
        left_out.ensure(is_whole_change(table, filter, count))?;
        Ok(count)
    }

    async fn delete_in(
        &mut self,
        cell: usize,
        table: &'static Table,
        filter: &Filter,
    ) -> Result<u64, StoreError> {
        let visible = self.visible(cell, table, filter).await?;
        let (unit, _) = self.parts(cell).await?;
        let deleted = unit.tx.delete(table, &visible).await?;
        unit.has_changes |= deleted > 0;
        Ok(deleted)
    }

    /// Claims rows in one cell. Returns them.
    async fn claim_in(
        &mut self,
        cell: usize,
        select: &Select,
        limit: Option<u32>,
    ) -> Result<Vec<Row>, StoreError> {
        let mut select = self.visible_select(cell, select).await?;
        select.limit = limit;
        let table = select.table;
        let mut rows = Vec::new();
        let mut visit = |row: &dyn ReadRow| {
            rows.push(table.copy_row(row)?);
            Ok(())
        };
        let (unit, seen) = self.parts(cell).await?;
        let mut watch = watch_rows(table, cell, seen, &mut visit);
        unit.tx.claim(&select, &mut watch).await?;
        drop(watch);
        Ok(rows)
    }

    /// Returns how many of the first rows of a query over these cells each cell has. A cell that has only later rows has 0. A cell
    /// that cannot be reached is left out, unless none can be reached.
    async fn shares(
        &mut self,
        cells: Vec<usize>,
        select: &Select,
    ) -> Result<BTreeMap<usize, u32>, StoreError> {
        let mut merged = MergedRows::default();
        let (mut shares, mut left_out, mut is_reached) =
            (BTreeMap::new(), LeftOut::default(), false);
        for cell in cells {
            let was_open = self.is_open(cell);
            let before = merged.len();
            let read = self.read_into(&mut merged, cell, select).await;
            // The work of the other cells goes on.
            let read = self.unless_unreachable(cell, was_open, read, &mut left_out)?;
            is_reached |= read.is_some();
            if merged.len() > before {
                shares.insert(cell, 0);
            }
        }
        left_out.ensure(is_reached)?;
        for (cell, _) in merged.into_ordered(select) {
            *shares.entry(cell).or_default() += 1;
        }
        Ok(shares)
    }

    /// Reads the rows of one cell.
    async fn read_into(
        &mut self,
        merged: &mut MergedRows,
        cell: usize,
        select: &Select,
    ) -> Result<(), StoreError> {
        let hidden = self.hidden_in(cell).await?;
        let select = self.visible_select(cell, select).await?;
        let cells = Arc::clone(&self.cells);
        let tx = self.tx(cell).await?;
        let read = merged.read(cell, tx, &select, &hidden);
        cells.availability.while_reached(cell, read).await
    }

    /// Returns the query for the rows of one cell.
    async fn visible_select(&mut self, cell: usize, select: &Select) -> Result<Select, StoreError> {
        let filter = self.visible(cell, select.table, &select.filter).await?;
        Ok(Select {
            filter,
            ..select.clone()
        })
    }

    /// Waits for the commits in these cells that are decided, if the rows of the table have one order over all cells. A reader
    /// that knows the end of this order, from home, then sees all rows before it.
    async fn wait_for_commits(
        &mut self,
        table: &'static Table,
        cells: &[usize],
    ) -> Result<(), StoreError> {
        if cells.len() > 1 && has_common_order(table) {
            self.carry_out(cells.iter().copied()).await?;
        }
        Ok(())
    }

    /// Waits for the commits in these cells that the unit sees as decided at home. Their processes may have ended.
    async fn carry_out(&mut self, in_cells: impl Iterator<Item = usize>) -> Result<(), StoreError> {
        let cells = Arc::clone(&self.cells);
        for cell in in_cells {
            // With another connection to home, many units could wait for each other.
            carry_out_decisions(&cells, cell, self.tx(HOME).await?).await?;
        }
        Ok(())
    }

    /// Like [`Self::carry_out`], for all cells that can be reached. In another one, decisions are carried out before it is read
    /// again.
    async fn carry_out_where_reached(&mut self) -> Result<(), StoreError> {
        for cell in HOME + 1..self.cells.configs.len() {
            if self.cells.availability.is_away(cell) {
                continue;
            }
            match self.carry_out(std::iter::once(cell)).await {
                Err(StoreError::Unavailable(_)) if self.cells.availability.is_away(cell) => {}
                outcome => outcome?,
            }
        }
        Ok(())
    }

    /// Passes the row with this key in one cell to the visitor.
    async fn get_in(
        &mut self,
        cell: usize,
        table: &'static Table,
        key: &str,
        filter: &Filter,
        visit: Visit<'_>,
    ) -> Result<(), StoreError> {
        let visible = self.visible(cell, table, filter).await?;
        let cells = Arc::clone(&self.cells);
        let (unit, seen) = self.parts(cell).await?;
        let mut watch = watch_rows(table, cell, seen, visit);
        let get = unit.tx.get(table, key, &visible, &mut watch);
        cells.availability.while_reached(cell, get).await
    }

    /// Returns the keys that have not been seen in another cell than this one.
    fn keys_in(&self, cell: usize, table: &'static Table, keys: &[Value]) -> Vec<Value> {
        let is_here = |key: &&Value| self.seen.cell(table, key).is_none_or(|seen| seen == cell);
        keys.iter().filter(is_here).cloned().collect()
    }

    /// Passes the rows of a query in one cell to the visitor.
    async fn select_in(
        &mut self,
        cell: usize,
        select: &Select,
        visit: Visit<'_>,
    ) -> Result<(), StoreError> {
        let select = self.visible_select(cell, select).await?;
        let cells = Arc::clone(&self.cells);
        let (unit, seen) = self.parts(cell).await?;
        let mut watch = watch_rows(select.table, cell, seen, visit);
        let read = unit.tx.select(&select, &mut watch);
        cells.availability.while_reached(cell, read).await
    }
}

/// Returns the number of changed rows of a cell. Of rows that are in each cell, those of home count.
fn count_once(table: &Table, cell: usize, changed: u64) -> u64 {
    match place_of(table) {
        Place::Everywhere if cell != HOME => 0,
        _ => changed,
    }
}

/// Returns whether a change of this many rows has changed all that match. Rows that are in each cell must change in each.
fn is_whole_change(table: &Table, filter: &Filter, count: u64) -> bool {
    place_of(table) != Place::Everywhere && key_count(table, filter) == Some(count)
}

/// Returns a visitor that also records the cell of each row.
fn watch_rows<'v>(
    table: &'static Table,
    cell: usize,
    seen: &'v mut SeenRows,
    visit: Visit<'v>,
) -> impl FnMut(&dyn ReadRow) -> Result<(), StoreError> + Send + 'v {
    let is_home = matches!(place_of(table), Place::Home | Place::Everywhere);
    move |row: &dyn ReadRow| {
        if !is_home {
            seen.add(table, row.read(0)?.to_value(), cell);
        }
        visit(row)
    }
}

/// Returns the row with some of its columns set.
fn with_values(table: &Table, row: &Row, set: &[(&'static str, Value)]) -> Row {
    let mut row = row.clone();
    for (column, value) in set {
        let stored = table.column_index(column).and_then(|at| row.get_mut(at));
        if let Some(stored) = stored {
            *stored = value.clone();
        }
    }
    row
}

/// Returns the unique values of all rows.
fn values_of(table: &'static Table, rows: &[Row]) -> Vec<UniqueValue> {
    let values = rows
        .iter()
        .flat_map(|row| unique_values::of_row(table, row));
    values.collect()
}

#[async_trait]
impl RowTx for CellUnit {
    async fn insert(&mut self, table: &'static Table, row: Row) -> Result<(), StoreError> {
        self.insert_many(table, vec![row]).await
    }

    async fn insert_many(
        &mut self,
        table: &'static Table,
        rows: Vec<Row>,
    ) -> Result<(), StoreError> {
        let change = Change::between(Vec::new(), values_of(table, &rows));
        let known = self.known_platforms(table, &rows).await?;
        let parts = self.split(table, rows, |row| row).await?;
        self.take(table, &change).await?;
        let outcome = self.insert_parts(table, parts).await;
        self.settle(&change, outcome).await?;
        for platform in known {
            directory::set_organization(self.changing(HOME).await?, &platform).await?;
        }
        Ok(())
    }

    async fn append(&mut self, table: &'static Table, rows: Vec<Row>) -> Result<(), StoreError> {
        for (cell, rows) in self.split(table, rows, |row| row).await? {
            self.changing(cell).await?.append(table, rows).await?;
        }
        Ok(())
    }

    async fn replace_many(
        &mut self,
        table: &'static Table,
        rows: Vec<Replacement>,
    ) -> Result<(), StoreError> {
        let old = rows
            .iter()
            .flat_map(|row| unique_values::of_row(table, &row.old));
        let new = rows
            .iter()
            .flat_map(|row| unique_values::of_row(table, &row.new));
        let change = Change::between(old.collect(), new.collect());
        let taken = self.take(table, &change).await;
        taken.map_err(StoreError::conflict_as_retry)?;
        for (cell, rows) in self.split(table, rows, |row| &row.new).await? {
            self.changing(cell).await?.replace_many(table, rows).await?;
        }
        self.settle(&change, Ok(())).await
    }

    async fn insert_or_lock(
        &mut self,
        table: &'static Table,
        rows: Vec<Row>,
        visit: Visit<'_>,
    ) -> Result<(), StoreError> {
        for (cell, rows) in self.split(table, rows, |row| row).await? {
            let tx = self.changing(cell).await?;
            tx.insert_or_lock(table, rows, &mut *visit).await?;
        }
        Ok(())
    }

    async fn lock(
        &mut self,
        table: &'static Table,
        key: &Value,
        visit: Visit<'_>,
    ) -> Result<(), StoreError> {
        let cells = self
            .route(table, &Filter::eq(table.key(), key.clone()))
            .await?;
        let cell = match cells[..] {
            [cell] => Some(cell),
            _ => self.find_in(cells, table, key).await?,
        };
        let Some(cell) = cell else {
            return Ok(());
        };
        let (unit, seen) = self.parts(cell).await?;
        unit.has_changes = true;
        let mut watch = watch_rows(table, cell, seen, visit);
        unit.tx.lock(table, key, &mut watch).await
    }

    async fn insert_new(
        &mut self,
        table: &'static Table,
        rows: Vec<Row>,
    ) -> Result<Vec<Value>, StoreError> {
        let mut inserted = Vec::new();
        for (cell, rows) in self.split(table, rows, |row| row).await? {
            let tx = self.changing(cell).await?;
            inserted.extend(tx.insert_new(table, rows).await?);
        }
        Ok(inserted)
    }

    async fn replace_locked(
        &mut self,
        table: &'static Table,
        rows: Vec<Replacement>,
    ) -> Result<(), StoreError> {
        if unique_values::has_any(table) {
            return self.replace_many(table, rows).await;
        }
        for (cell, rows) in self.split(table, rows, |row| &row.new).await? {
            self.changing(cell)
                .await?
                .replace_locked(table, rows)
                .await?;
        }
        Ok(())
    }

    async fn update(
        &mut self,
        table: &'static Table,
        filter: &Filter,
        set: &[(&'static str, Value)],
    ) -> Result<u64, StoreError> {
        if !unique_values::depend_on(table, set) {
            return self.update_in_cells(table, filter, set).await;
        }
        let old = self.matching(table, filter).await?;
        let new: Vec<Row> = old.iter().map(|row| with_values(table, row, set)).collect();
        let change = Change::between(values_of(table, &old), values_of(table, &new));
        self.take(table, &change).await?;
        let outcome = self.update_in_cells(table, filter, set).await;
        self.settle_all(&change, &old, outcome).await
    }

    async fn delete(&mut self, table: &'static Table, filter: &Filter) -> Result<u64, StoreError> {
        if !unique_values::has_any(table) {
            return self.delete_in_cells(table, filter).await;
        }
        let old = self.matching(table, filter).await?;
        let change = Change::between(values_of(table, &old), Vec::new());
        let outcome = self.delete_in_cells(table, filter).await;
        self.settle_all(&change, &old, outcome).await
    }

    async fn remove_archived(
        &mut self,
        table: &'static Table,
        keys: &[Value],
    ) -> Result<u64, StoreError> {
        let mut count = 0;
        for cell in self.by_keys(table, &Filter::In(table.key(), keys.to_vec())) {
            let keys = self.keys_in(cell, table, keys);
            let (unit, _) = self.parts(cell).await?;
            let removed = unit.tx.remove_archived(table, &keys).await?;
            unit.has_changes |= removed > 0;
            count += removed;
        }
        Ok(count)
    }

    async fn promote(
        &mut self,
        from: &'static Table,
        to: &'static Table,
        keys: &[Value],
    ) -> Result<u64, StoreError> {
        let mut count = 0;
        for cell in self.by_keys(from, &Filter::In(from.key(), keys.to_vec())) {
            let keys = self.keys_in(cell, from, keys);
            let (unit, _) = self.parts(cell).await?;
            let moved = unit.tx.promote(from, to, &keys).await?;
            unit.has_changes |= moved > 0;
            count += moved;
        }
        Ok(count)
    }

    async fn get(
        &mut self,
        table: &'static Table,
        key: &str,
        filter: &Filter,
        visit: Visit<'_>,
    ) -> Result<(), StoreError> {
        let with_key = Filter::eq(table.key(), key).and(filter.clone());
        let mut left_out = LeftOut::default();
        for cell in self.route(table, &with_key).await? {
            let (mut found, mut confirms) = (false, false);
            let mut visit = |row: &dyn ReadRow| {
                found = true;
                confirms = confirms_changes(table, row)?;
                visit(row)
            };
            let was_open = self.is_open(cell);
            let got = self.get_in(cell, table, key, filter, &mut visit).await;
            self.unless_unreachable(cell, was_open, got, &mut left_out)?;
            if confirms {
                return self.carry_out_where_reached().await;
            }
            if found {
                return Ok(());
            }
        }
        left_out.ensure(false)
    }

    async fn select(&mut self, select: &Select, visit: Visit<'_>) -> Result<(), StoreError> {
        let cells = self.route(select.table, &select.filter).await?;
        if let [cell] = cells[..] {
            return self.select_in(cell, select, visit).await;
        }
        if !select.skips_unreachable {
            self.wait_for_commits(select.table, &cells).await?;
        }
        let (mut merged, mut left_out) = (MergedRows::default(), LeftOut::default());
        for cell in cells {
            let was_open = self.is_open(cell);
            let read = self.read_into(&mut merged, cell, select).await;
            self.unless_unreachable(cell, was_open, read, &mut left_out)?;
        }
        let has_all = key_count(select.table, &select.filter) == Some(merged.len() as u64);
        left_out.ensure(select.skips_unreachable || has_all)?;
        for (cell, row) in merged.into_ordered(select) {
            let key = row.first().cloned().unwrap_or(Value::Null);
            self.seen.add(select.table, key, cell);
            visit(&row)?;
        }
        Ok(())
    }

    async fn select_joined(
        &mut self,
        select: &Select,
        joins: &'static [Join],
        visit: VisitJoined<'_>,
    ) -> Result<(), StoreError> {
        let is_home = |table: &'static Table| place_of(table) == Place::Home;
        if is_home(select.table) && joins.iter().all(|join| is_home(join.table)) {
            let home = self.tx(HOME).await?;
            return home.select_joined(select, joins, visit).await;
        }
        join_row_by_row(self, select, joins, visit).await
    }

    async fn claim(&mut self, select: &Select, visit: Visit<'_>) -> Result<(), StoreError> {
        let cells = self.route(select.table, &select.filter).await?;
        let shares: Vec<(usize, Option<u32>)> = match cells[..] {
            [cell] => vec![(cell, select.limit)],
            _ => {
                let shares = self.shares(cells, select).await?.into_iter();
                let limit = |share| select.limit.map(|_| share);
                shares.map(|(cell, share)| (cell, limit(share))).collect()
            }
        };
        let mut claimed = MergedRows::default();
        // Other units may have locked the first rows. Then rows of the cells without a share are claimed, too.
        let (first, others): (Vec<_>, Vec<_>) =
            shares.into_iter().partition(|(_, limit)| *limit != Some(0));
        for (cell, limit) in first.into_iter().chain(others) {
            let read = u32::try_from(claimed.len()).unwrap_or(u32::MAX);
            let left = select.limit.map(|limit| limit.saturating_sub(read));
            if left == Some(0) {
                break;
            }
            let limit = if limit == Some(0) { left } else { limit };
            for row in self.claim_in(cell, select, limit).await? {
                claimed.add(cell, row, select)?;
            }
        }
        for (_, row) in claimed.into_ordered(select) {
            visit(&row)?;
        }
        Ok(())
    }

    async fn count(&mut self, table: &'static Table, filter: &Filter) -> Result<u64, StoreError> {
        let cells = self.route(table, filter).await?;
        self.wait_for_commits(table, &cells).await?;
        let mut count = 0;
        for cell in cells {
            let visible = self.visible(cell, table, filter).await?;
            count += self.tx(cell).await?.count(table, &visible).await?;
        }
        Ok(count)
    }

    fn commit_number(&self, table: &'static Table, platform: Option<&str>) -> Option<u64> {
        let home = self.units[HOME].as_ref();
        let is_home = place_of(table) == Place::Home;
        home.filter(|_| is_home)?.tx.commit_number(table, platform)
    }

    async fn sum(
        &mut self,
        table: &'static Table,
        column: &'static str,
        groups: &[&'static str],
        filter: &Filter,
    ) -> Result<Vec<GroupSum>, StoreError> {
        let mut sums = MergedSums::default();
        for cell in self.route(table, filter).await? {
            let visible = self.visible(cell, table, filter).await?;
            let tx = self.tx(cell).await?;
            sums.add(tx.sum(table, column, groups, &visible).await?)?;
        }
        Ok(sums.into_ordered())
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
        let cells = self.route(table, filter).await?;
        let cell = match cells[..] {
            [cell] => Some(cell),
            // A tree is in one cell.
            _ => self.find_in(cells, table, &Value::text(key)).await?,
        };
        let Some(cell) = cell else {
            return Ok(());
        };
        let tx = self.tx(cell).await?;
        tx.walk(table, key, direction, depth, filter, visit).await
    }

    async fn now(&mut self) -> Result<Timestamp, StoreError> {
        let open = self.units.iter().position(Option::is_some);
        self.tx(open.unwrap_or(HOME)).await?.now().await
    }

    async fn enlist(&mut self, statements: &mut dyn HostStatements) -> Result<(), StoreError> {
        self.changing(HOME).await?.enlist(statements).await
    }

    fn take_slowest_statements(&mut self) -> Vec<StatementTime> {
        let units = self.units.iter_mut().flatten();
        units
            .flat_map(|unit| unit.tx.take_slowest_statements())
            .collect()
    }

    async fn commit(mut self: Box<Self>) -> Result<(), StoreError> {
        let mut home = None;
        let mut others = Vec::new();
        for (cell, unit) in std::mem::take(&mut self.units).into_iter().enumerate() {
            match unit {
                Some(unit) if cell == HOME => home = Some(unit),
                Some(unit) if unit.has_changes => others.push((cell, unit.tx)),
                Some(unit) => unit.tx.commit().await?,
                None => {}
            }
        }
        match (home, others.len()) {
            (None, 0) => return Ok(()),
            (Some(home), 0) => home.tx.commit().await?,
            (home, 1) if home.as_ref().is_none_or(|home| !home.has_changes) => {
                if let Some(home) = home {
                    home.tx.commit().await?;
                }
                for (_, tx) in others {
                    tx.commit().await?;
                }
            }
            (home, _) => {
                let home = match home {
                    Some(home) => home.tx,
                    None => self.cells.rows(HOME).begin(self.mode).await?,
                };
                let together = commit_together(Arc::clone(&self.cells), home, others);
                // A dropped request does not stop a commit half-way.
                let joined = tokio::spawn(together).await;
                joined.map_err(StoreError::commit_unknown)??;
            }
        }
        for (platform, cell) in &self.created {
            self.cells.directory.remember(platform, *cell);
        }
        Ok(())
    }

    async fn rollback(self: Box<Self>) {
        for unit in self.units.into_iter().flatten() {
            unit.tx.rollback().await;
        }
    }
}
