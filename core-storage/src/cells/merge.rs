//! Merges what several cells return for one read.

use std::collections::BTreeMap;

use core_domain::kernel::StoreError;

use crate::filter::{Filter, Op};
use crate::query::{Select, compare_positions};
use crate::row_store::{GroupSum, RowTx, copies};
use crate::table::Table;
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

/// Returns the column whose values are consecutive numbers in the rows of the table, from all cells together.
fn consecutive_column(table: &Table) -> Option<&'static str> {
    (table.name == "audit_seals").then_some("position")
}

/// Returns the number to which the filter compares the column by this operator, if it does.
fn number_compared(filter: &Filter, column: &str, by: Op) -> Option<i64> {
    match filter {
        Filter::And(parts) => parts
            .iter()
            .find_map(|part| number_compared(part, column, by)),
        Filter::Compare(own, op, bound) if *own == column && *op == by => bound.as_int(),
        _ => None,
    }
}

/// The numbers of rows that are consecutive over all cells. A missing one belongs to a unit whose commit has not reached its
/// cell yet. A reader that went on would never see it.
pub(super) struct Consecutive {
    at: usize,
    last: i64,
}

impl Consecutive {
    /// Returns the check for a query that reads such rows in their order, from a number on and without an end. A query with
    /// an end looks for missing rows.
    pub(super) fn of(select: &Select) -> Option<Self> {
        let column = consecutive_column(select.table)?;
        let [first, ..] = &select.order[..] else {
            return None;
        };
        let has_end = number_compared(&select.filter, column, Op::Le).is_some();
        if first.column != column || first.descending || has_end {
            return None;
        }
        Some(Self {
            at: select.table.column_index(column)?,
            last: number_compared(&select.filter, column, Op::Gt)?,
        })
    }

    /// Returns whether the row follows the one before it.
    pub(super) fn follows(&mut self, row: &Row) -> bool {
        let number = row.get(self.at).and_then(Value::as_int);
        let is_next = number == self.last.checked_add(1);
        self.last = number.unwrap_or(self.last);
        is_next
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
