//! Joined queries as one statement.

use core_domain::kernel::StoreError;

use super::dialect::Dialect;
use super::executor::Executor;
use super::render;
use super::statement::Cost;
use super::text::StatementWriter;
use super::tx::SqlTx;
use crate::join::{Join, VisitJoined};
use crate::query::{Order, Select};
use crate::table::{Column, Table};
use crate::value::{ReadRow, ValueRef};

/// The aliases of the tables. The first is for the table of the query.
const ALIASES: [&str; 8] = ["t0", "t1", "t2", "t3", "t4", "t5", "t6", "t7"];
/// The aliases as qualifiers of columns.
const QUALIFIERS: [&str; 8] = ["t0.", "t1.", "t2.", "t3.", "t4.", "t5.", "t6.", "t7."];

/// The columns of a result row that belong to one table.
struct JoinedRow<'r> {
    row: &'r dyn ReadRow,
    offset: usize,
    width: usize,
}

impl ReadRow for JoinedRow<'_> {
    fn read(&self, at: usize) -> Result<ValueRef<'_>, StoreError> {
        if at >= self.width {
            return Ok(ValueRef::Null);
        }
        self.row.read(self.offset + at)
    }
}

/// Splits a result row into the rows of the tables. A table whose key is NULL has no row.
fn parts<'r>(
    tables: &[&'static Table],
    row: &'r dyn ReadRow,
) -> Result<Vec<Option<JoinedRow<'r>>>, StoreError> {
    let mut offset = 0;
    let part = |table: &&'static Table| {
        let width = table.columns.len();
        let part = JoinedRow { row, offset, width };
        offset += width;
        let is_there = !part.read(0)?.is_null();
        Ok(is_there.then_some(part))
    };
    tables.iter().map(part).collect()
}

fn write<'q>(
    w: &mut StatementWriter<'q>,
    dialect: Dialect,
    select: &'q Select,
    order: &[Order],
    joins: &'static [Join],
    tables: &[&'static Table],
) {
    w.sql("SELECT ");
    w.join_parts(
        tables.iter().zip(QUALIFIERS),
        ", ",
        |w, (table, qualifier)| {
            w.columns(table, qualifier);
        },
    );
    w.sql(" FROM (");
    render::select(w, dialect, select, order, false);
    w.sql(") ").sql(ALIASES[0]);
    for (at, join) in joins.iter().enumerate() {
        w.sql(" LEFT JOIN ").name(join.table.name).sql(" ");
        w.sql(ALIASES[at + 1]).sql(" ON ");
        w.join_parts(join.on, " AND ", |w, on| {
            w.sql(QUALIFIERS[at + 1]).name(on.column).sql(" = ");
            w.sql(QUALIFIERS[on.source]).name(on.source_column);
        });
    }
    w.sql(" ORDER BY ").join_parts(order, ", ", |w, part| {
        w.sql(QUALIFIERS[0]).name(part.column);
        w.sql(if part.descending { " DESC" } else { " ASC" });
    });
}

impl<E: Executor> SqlTx<E> {
    /// Runs a joined query and passes its rows to the visitor.
    pub(super) async fn select_with_joins(
        &mut self,
        select: &Select,
        joins: &'static [Join],
        visit: VisitJoined<'_>,
    ) -> Result<(), StoreError> {
        if joins.len() >= ALIASES.len() || joins.iter().any(|join| is_ahead(join, joins)) {
            return Err(StoreError::backend("this query joins too many tables"));
        }
        let joined = joins.iter().map(|join| join.table);
        let tables: Vec<_> = std::iter::once(select.table).chain(joined).collect();
        let columns = tables.iter().flat_map(|table| table.columns).copied();
        let columns: Vec<Column> = columns.collect();
        let order = select.full_order();
        let dialect = self.dialect;
        let cost = match select.limit {
            Some(_) => Cost::Bounded,
            None => Cost::Unbounded,
        };
        let mut show = |row: &dyn ReadRow| {
            let parts = parts(&tables, row)?;
            visit(&crate::join::as_refs(&parts))
        };
        self.fetch(
            &columns,
            cost,
            |w| write(w, dialect, select, &order, joins, &tables),
            &mut show,
        )
        .await
    }
}

/// Returns whether the join refers to a table that is not joined before it.
fn is_ahead(join: &Join, joins: &[Join]) -> bool {
    let at = joins.iter().position(|one| one == join).unwrap_or_default();
    join.on.iter().any(|on| on.source > at)
}
