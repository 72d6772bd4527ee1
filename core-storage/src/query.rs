//! A question: which rows, in which order, from where on, how many.

use std::cmp::Ordering;

use core_domain::port::StoreError;

use crate::filter::Filter;
use crate::table::{Table, Type};
use crate::value::{Row, Value};

/// A column to sort by.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Order {
    /// The column; one that always holds something.
    pub column: &'static str,
    /// Greatest first.
    pub descending: bool,
}

/// A question to a table. The order always ends with the key, so that it tells any two rows apart.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Select {
    /// Which table.
    pub table: &'static Table,
    /// Which rows.
    pub filter: Filter,
    /// In which order; the key is added by [`Select::full_order`].
    pub order: Vec<Order>,
    /// Only rows after this place: one value for each part of the full order.
    pub after: Option<Vec<Value>>,
    /// At most so many.
    pub limit: Option<u32>,
}

impl Select {
    /// Every row of the table, by key.
    #[must_use]
    pub const fn of(table: &'static Table) -> Self {
        Self {
            table,
            filter: Filter::all(),
            order: Vec::new(),
            after: None,
            limit: None,
        }
    }

    /// Only rows that meet this as well.
    #[must_use]
    pub fn only(mut self, filter: Filter) -> Self {
        self.filter = self.filter.and(filter);
        self
    }

    /// Only rows that meet this as well, if it is given.
    #[must_use]
    pub fn only_if(self, filter: Option<Filter>) -> Self {
        match filter {
            Some(filter) => self.only(filter),
            None => self,
        }
    }

    /// Least first.
    #[must_use]
    pub fn by(mut self, column: &'static str) -> Self {
        self.order.push(Order {
            column,
            descending: false,
        });
        self
    }

    /// Greatest first.
    #[must_use]
    pub fn by_desc(mut self, column: &'static str) -> Self {
        self.order.push(Order {
            column,
            descending: true,
        });
        self
    }

    /// At most so many rows.
    #[must_use]
    pub const fn limit(mut self, limit: u32) -> Self {
        self.limit = Some(limit);
        self
    }

    /// The order with the key at its end, in the direction of the part before it.
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

    /// The row's place in the order.
    #[must_use]
    pub fn place_of(&self, row: &Row) -> Vec<Value> {
        place(&self.full_order(), self.table, row)
    }

    /// Checks columns, types, and that nothing is sorted by a column that may be empty.
    ///
    /// # Errors
    /// [`StoreError::Backend`]: a mistake in a query.
    pub fn check(&self) -> Result<(), StoreError> {
        self.filter.check(self.table)?;
        for part in &self.order {
            let column = self.table.column(part.column)?;
            if column.nullable || column.kind == Type::Json {
                return Err(StoreError::Backend(format!(
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
            return Err(StoreError::Backend("a place does not fit its order".into()));
        }
        order.iter().zip(after).try_for_each(|(part, value)| {
            self.table
                .check_value(self.table.column(part.column)?, value)
        })
    }
}

/// The row's place in an order.
pub(crate) fn place(order: &[Order], table: &Table, row: &Row) -> Vec<Value> {
    let value = |part: &Order| table.value(row, part.column).clone();
    order.iter().map(value).collect()
}

/// Compares two places of an order.
#[must_use]
pub(crate) fn compare_places(order: &[Order], left: &[Value], right: &[Value]) -> Ordering {
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
    Ordering::Equal
}
