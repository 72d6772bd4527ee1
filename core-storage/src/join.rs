//! Left joins: rows of a query with the rows that belong to them.

use core_domain::kernel::StoreError;

use crate::filter::Filter;
use crate::table::Table;
use crate::value::{ReadRow, Value};

/// A table whose row is joined to those before it: at most one, because what it is found by is unique.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Join {
    /// The table.
    pub table: &'static Table,
    /// What its row is found by: all columns of a unique index without predicates, or the key.
    pub on: &'static [On],
}

/// A column of a joined table that equals one of a table before it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct On {
    /// The column of the joined table.
    pub column: &'static str,
    /// The table it is compared with: 0 is that of the query, 1 that of the first join, and so on.
    pub source: usize,
    /// The column there.
    pub source_column: &'static str,
}

/// What is shown the rows of a joined query: the row itself, and one for each join; `None` where there is none.
pub type VisitJoined<'a> =
    &'a mut (dyn FnMut(&[Option<&dyn ReadRow>]) -> Result<(), StoreError> + Send);

/// Rows as they are shown.
pub(crate) fn shown<R: ReadRow>(rows: &[Option<R>]) -> Vec<Option<&dyn ReadRow>> {
    fn show<R: ReadRow>(row: &R) -> &dyn ReadRow {
        row
    }
    rows.iter().map(|row| row.as_ref().map(show)).collect()
}

impl Join {
    /// What finds the joined row, given the rows before it, of these tables; `None` when there can be none.
    #[must_use]
    pub(crate) fn filter<R: AsRef<[Value]>>(
        &self,
        tables: &[&'static Table],
        rows: &[Option<R>],
    ) -> Option<Filter> {
        let condition = |on: &On| {
            let row = rows.get(on.source)?.as_ref()?;
            let value = tables.get(on.source)?.value(row.as_ref(), on.source_column);
            (!value.is_null()).then(|| Filter::eq(on.column, value.clone()))
        };
        let conditions = self.on.iter().map(condition);
        conditions.collect::<Option<Vec<_>>>().map(Filter::And)
    }
}
