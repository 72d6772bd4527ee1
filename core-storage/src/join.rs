//! Left joins: the rows of a query with the rows of other tables that belong to them.

use core_domain::kernel::StoreError;

use crate::filter::Filter;
use crate::table::Table;
use crate::value::{ReadRow, Value};

/// A table that is joined to the tables before it. At most one of its rows is joined, because the columns in `on` are
/// unique.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Join {
    /// The joined table.
    pub table: &'static Table,
    /// The columns that identify the joined row: the key, or all columns of a unique index without predicates.
    pub on: &'static [On],
}

/// A column of the joined table that equals a column of an earlier table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct On {
    /// The column of the joined table.
    pub column: &'static str,
    /// The index of the earlier table: 0 is the table of the query, 1 is the table of the first join, and so on.
    pub source: usize,
    /// The column of the earlier table.
    pub source_column: &'static str,
}

/// The visitor of a joined query. It receives the row of the query and one row for each join; `None` if no row is
/// joined.
pub type VisitJoined<'a> =
    &'a mut (dyn FnMut(&[Option<&dyn ReadRow>]) -> Result<(), StoreError> + Send);

/// Converts rows into the references that a [`VisitJoined`] receives.
pub(crate) fn as_refs<R: ReadRow>(rows: &[Option<R>]) -> Vec<Option<&dyn ReadRow>> {
    fn show<R: ReadRow>(row: &R) -> &dyn ReadRow {
        row
    }
    rows.iter().map(|row| row.as_ref().map(show)).collect()
}

impl Join {
    /// Returns the filter that finds the joined row for the earlier rows of these tables; `None` if no row can match.
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
