//! Merges what several cells return for one read.

use std::collections::BTreeMap;

use core_domain::kernel::StoreError;

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
    /// Reads the rows of one cell. Each cell returns as many as the query may have.
    pub(super) async fn read(
        &mut self,
        cell: usize,
        tx: &mut dyn RowTx,
        select: &Select,
    ) -> Result<(), StoreError> {
        for row in copies(tx, select).await? {
            self.0.push(PositionedRow {
                position: select.position_of(&row)?,
                cell,
                row,
            });
        }
        Ok(())
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
