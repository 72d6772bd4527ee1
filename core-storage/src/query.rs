//! Queries: filter, order, keyset position, limit.

use core_domain::kernel::StoreError;

use crate::filter::Filter;
use crate::table::{Table, Type};
use crate::value::{ReadRow, Value, ValueRef};

/// A column to sort by.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Order {
    /// The column, which must not be nullable.
    pub column: &'static str,
    /// Whether the order is descending.
    pub descending: bool,
}

/// A query on a table. The order always ends with the key, so that it is total.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Select {
    /// The table to read.
    pub table: &'static Table,
    /// The predicate that the rows match.
    pub filter: Filter,
    /// The order, without the key, which [`Select::full_order`] appends.
    pub order: Vec<Order>,
    /// Returns only rows after this keyset position, which has one value for each column of the full order.
    pub after: Option<Vec<Value>>,
    /// The maximum number of rows; `None` means no limit.
    pub limit: Option<u32>,
    /// The filter of the append-only list from which this query selects rows, see
    /// [`Total::AtVersion`](core_domain::kernel::Total::AtVersion). `None` if the list has no version. Engines can ignore
    /// this field.
    pub list: Option<Filter>,
    /// If `true`, records that cannot be decoded are skipped; if `false`, they abort the unit. Engines can ignore this
    /// field.
    pub skips_damaged: bool,
    /// If `true`, rows in a database that cannot be reached are left out, such as rows that wait for work, which can begin with any
    /// of them; if `false`, the query fails. Engines with one database ignore this field.
    pub skips_unreachable: bool,
}

impl Select {
    /// Selects every row of the table, sorted by key.
    #[must_use]
    pub const fn of(table: &'static Table) -> Self {
        Self {
            table,
            filter: Filter::all(),
            order: Vec::new(),
            after: None,
            limit: None,
            list: None,
            skips_damaged: false,
            skips_unreachable: false,
        }
    }

    /// Leaves out rows in a database that cannot be reached, see [`Self::skips_unreachable`].
    #[must_use]
    pub const fn skip_unreachable(mut self) -> Self {
        self.skips_unreachable = true;
        self
    }

    /// Sets whether records that cannot be decoded are skipped.
    #[must_use]
    pub const fn leave_out_damaged(mut self, leave_out: bool) -> Self {
        self.skips_damaged = leave_out;
        self
    }

    /// Declares that the conditions so far describe an append-only list with a version. Later conditions select rows from
    /// that list.
    #[must_use]
    pub fn as_list(mut self) -> Self {
        self.list = Some(self.filter.clone());
        self
    }

    /// Adds a condition that the rows must meet.
    #[must_use]
    pub fn filter(mut self, filter: Filter) -> Self {
        self.filter = self.filter.and(filter);
        self
    }

    /// Like [`Select::filter`], if there is a filter.
    #[must_use]
    pub fn filter_if(self, filter: Option<Filter>) -> Self {
        match filter {
            Some(filter) => self.filter(filter),
            None => self,
        }
    }

    /// Adds a column to the order, ascending.
    #[must_use]
    pub fn order_by(mut self, column: &'static str) -> Self {
        self.order.push(Order {
            column,
            descending: false,
        });
        self
    }

    /// Adds a column to the order, descending.
    #[must_use]
    pub fn order_by_desc(mut self, column: &'static str) -> Self {
        self.order.push(Order {
            column,
            descending: true,
        });
        self
    }

    /// Sets the maximum number of rows.
    #[must_use]
    pub const fn limit(mut self, limit: u32) -> Self {
        self.limit = Some(limit);
        self
    }

    /// Returns the order with the key at its end. The key has the direction of the part before it.
    #[must_use]
    pub fn full_order(&self) -> Vec<Order> {
        let key = self.table.key();
        let mut order = self.order.clone();
        if !order.iter().any(|part| part.column == key) {
            let descending = order.last().is_some_and(|part| part.descending);
            order.push(Order {
                column: key,
                descending,
            });
        }
        order
    }

    /// Returns the keyset position of the row.
    ///
    /// # Errors
    /// [`StoreError`] if the engine cannot read a value of the row.
    pub fn position_of(&self, row: &dyn ReadRow) -> Result<Vec<Value>, StoreError> {
        let value = |part: &Order| {
            let at = self.table.column_index(part.column);
            let value = at.map_or(Ok(ValueRef::Null), |at| row.read(at))?;
            Ok(value.to_value())
        };
        self.full_order().iter().map(value).collect()
    }

    /// Checks the columns and types, and that no column of the order can be NULL in a matching row.
    ///
    /// # Errors
    /// [`StoreError::Backend`] if a check fails, which is a mistake in the query.
    pub fn check(&self) -> Result<(), StoreError> {
        self.filter.check(self.table)?;
        for part in &self.order {
            let column = self.table.column(part.column)?;
            let is_null = column.nullable && !self.filter.excludes_null(part.column);
            if is_null || column.kind == Type::Json {
                return Err(StoreError::backend(format!(
                    "{} cannot be sorted by {}",
                    self.table.name, part.column
                )));
            }
        }
        let Some(after) = &self.after else {
            return Ok(());
        };
        let order = self.full_order();
        if after.len() != order.len() {
            return Err(StoreError::backend(
                "a keyset position does not match its order",
            ));
        }
        order.iter().zip(after).try_for_each(|(part, value)| {
            self.table
                .check_value(self.table.column(part.column)?, value)
        })
    }
}

/// Compares two keyset positions of an order.
pub(crate) fn compare_positions(
    order: &[Order],
    left: &[Value],
    right: &[Value],
) -> std::cmp::Ordering {
    for ((part, left), right) in order.iter().zip(left).zip(right) {
        let ordering = left.cmp(right);
        if ordering.is_ne() {
            return if part.descending {
                ordering.reverse()
            } else {
                ordering
            };
        }
    }
    std::cmp::Ordering::Equal
}
