//! Merges what several cells return for one read.

use std::collections::BTreeMap;

use core_domain::kernel::StoreError;

use crate::query::{Select, compare_positions};
use crate::row_store::{RowTx, copies};
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

/// Adds the sums of one cell to those of others.
pub(super) fn add_sums(
    sums: &mut BTreeMap<Value, i64>,
    more: Vec<(Value, i64)>,
) -> Result<(), StoreError> {
    for (group, number) in more {
        let sum = sums.entry(group).or_default();
        *sum = sum
            .checked_add(number)
            .ok_or_else(|| StoreError::backend("a sum exceeds 64 bits"))?;
    }
    Ok(())
}
