//! Rows that nothing can be in the way of: they wait until their table is looked at or the unit commits, and go in one
//! statement, whatever their tables.

use core_domain::kernel::StoreError;

use super::executor::Executor;
use super::statement::Cost;
use super::text::Writer;
use super::tx::SqlTx;
use super::{batch, render};
use crate::table::Table;
use crate::value::Row;

/// What the parts of a statement are called; how many tables one statement writes at most.
const PARTS: [&str; 8] = ["p0", "p1", "p2", "p3", "p4", "p5", "p6", "p7"];

/// The rows that wait.
#[derive(Default)]
pub(super) struct Appended(Vec<(&'static Table, Vec<Row>)>);

impl Appended {
    fn add(&mut self, table: &'static Table, rows: Vec<Row>) {
        let known = self.0.iter_mut().find(|(known, _)| *known == table);
        match known {
            Some((_, waiting)) => waiting.extend(rows),
            None => self.0.push((table, rows)),
        }
    }

    fn has(&self, table: &'static Table) -> bool {
        self.0.iter().any(|(known, _)| *known == table)
    }
}

impl<E: Executor> SqlTx<E> {
    /// Lets rows wait, where a statement is a round trip; inserts them where it is none.
    pub(super) async fn append_rows(
        &mut self,
        table: &'static Table,
        rows: Vec<Row>,
    ) -> Result<(), StoreError> {
        if self.dialect.has_arrays() {
            self.appended.add(table, rows);
            return Ok(());
        }
        let inserted = self.insert_all(table, &rows).await;
        inserted.map_err(StoreError::conflict_as_retry)
    }

    /// Writes what waits, if it is looked for in this table.
    pub(super) async fn flush_of(&mut self, table: &'static Table) -> Result<(), StoreError> {
        if self.appended.has(table) {
            self.flush().await?;
        }
        Ok(())
    }

    /// Writes what waits.
    pub(super) async fn flush(&mut self) -> Result<(), StoreError> {
        let appended = std::mem::take(&mut self.appended).0;
        for parts in appended.chunks(PARTS.len()) {
            let Some((last, before)) = parts.split_last() else {
                return Ok(());
            };
            let inserted = self.execute(last.0, Cost::Unbounded, |w| insert_parts(w, before, last));
            inserted.await?;
        }
        Ok(())
    }
}

fn insert_parts<'q>(
    w: &mut Writer<'q>,
    before: &'q [(&'static Table, Vec<Row>)],
    last: &'q (&'static Table, Vec<Row>),
) {
    if !before.is_empty() {
        w.sql("WITH ");
        w.joined(PARTS.into_iter().zip(before), ", ", |w, (name, part)| {
            w.name(name).sql(" AS (");
            insert_part(w, part);
            w.sql(")");
        });
        w.sql(" ");
    }
    insert_part(w, last);
}

fn insert_part<'q>(w: &mut Writer<'q>, (table, rows): &'q (&'static Table, Vec<Row>)) {
    match rows.as_slice() {
        [row] => render::insert_new(w, table, row),
        rows => batch::insert_new_rows(w, table, rows),
    }
}
