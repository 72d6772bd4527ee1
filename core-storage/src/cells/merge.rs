//! Merges what several cells return for one read.

use std::collections::BTreeMap;

use core_domain::kernel::StoreError;

use super::hidden::{hidden_jobs, is_of_job};
use crate::query::{Select, compare_positions};
use crate::row_store::{GroupSum, RowTx, copies};
use crate::value::{Row, Value};

/// A row and its place in the order of a query.
struct PositionedRow {
    position: Vec<Value>,
    cell: usize,
    row: Row,
}

/// The rows of a query from several cells.
#[derive(Default)]
pub(super) struct MergedRows(Vec<PositionedRow>);

impl MergedRows {
    /// Reads the rows of one cell. Each cell returns as many as the query may have. Rows of the hidden platforms are left out.
    pub(super) async fn read(
        &mut self,
        cell: usize,
        tx: &mut dyn RowTx,
        select: &Select,
        hidden: &[String],
    ) -> Result<(), StoreError> {
        let mut select = select.clone();
        loop {
            let rows = copies(tx, &select).await?;
            let hidden_jobs = hidden_jobs(tx, select.table, &rows, hidden).await?;
            let is_full = select.limit == u32::try_from(rows.len()).ok();
            let (before, mut after) = (self.0.len(), None);
            for row in rows {
                let position = select.position_of(&row)?;
                after = Some(position.clone());
                if !is_of_job(select.table, &row, &hidden_jobs) {
                    self.0.push(PositionedRow {
                        position,
                        cell,
                        row,
                    });
                }
            }
            let read = u32::try_from(self.0.len() - before).unwrap_or(u32::MAX);
            select.limit = select.limit.map(|limit| limit.saturating_sub(read));
            if hidden_jobs.is_empty() || !is_full || select.limit == Some(0) {
                return Ok(());
            }
            select.after = after;
        }
    }

    /// Adds a row of one cell.
    pub(super) fn add(&mut self, cell: usize, row: Row, select: &Select) -> Result<(), StoreError> {
        let position = select.position_of(&row)?;
        self.0.push(PositionedRow {
            position,
            cell,
            row,
        });
        Ok(())
    }

    pub(super) const fn len(&self) -> usize {
        self.0.len()
    }

    /// Returns the first rows in the order of the query, each with its cell.
    pub(super) fn into_ordered(mut self, select: &Select) -> impl Iterator<Item = (usize, Row)> {
        let order = select.full_order();
        self.0
            .sort_by(|left, right| compare_positions(&order, &left.position, &right.position));
        let limit = select.limit.and_then(|limit| usize::try_from(limit).ok());
        let rows = self.0.into_iter().take(limit.unwrap_or(usize::MAX));
        rows.map(|row| (row.cell, row.row))
    }
}

/// The groups of rows from several cells.
#[derive(Default)]
pub(super) struct MergedSums(BTreeMap<Vec<Value>, (u64, i64)>);

impl MergedSums {
    /// Adds the groups of one cell.
    pub(super) fn add(&mut self, groups: Vec<GroupSum>) -> Result<(), StoreError> {
        for GroupSum { values, count, sum } in groups {
            let (all, total) = self.0.entry(values).or_default();
            *all += count;
            *total = total
                .checked_add(sum)
                .ok_or_else(|| StoreError::backend("a sum exceeds 64 bits"))?;
        }
        Ok(())
    }

    /// Returns the groups, sorted by their values.
    pub(super) fn into_ordered(self) -> Vec<GroupSum> {
        let group = |(values, (count, sum))| GroupSum { values, count, sum };
        self.0.into_iter().map(group).collect()
    }
}
