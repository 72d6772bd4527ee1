//! Rows that nothing can be in the way of: they wait until their table is looked at or the unit commits, and go in one
//! statement, whatever their tables.

use super::text::Writer;
use super::{batch, render};
use crate::table::Table;
use crate::value::Row;

/// What the parts of a statement are called; how many tables one statement writes at most.
const PARTS: [&str; 8] = ["p0", "p1", "p2", "p3", "p4", "p5", "p6", "p7"];

/// The rows of one table.
pub(super) type Part = (&'static Table, Vec<Row>);

/// The rows that wait.
#[derive(Default)]
pub(super) struct Appended(Vec<Part>);

impl Appended {
    pub(super) fn add(&mut self, table: &'static Table, rows: Vec<Row>) {
        let known = self.0.iter_mut().find(|(known, _)| *known == table);
        match known {
            Some((_, waiting)) => waiting.extend(rows),
            None => self.0.push((table, rows)),
        }
    }

    pub(super) fn has(&self, table: &'static Table) -> bool {
        self.0.iter().any(|(known, _)| *known == table)
    }

    /// The parts in portions, each of which is one statement.
    pub(super) fn statements(&self) -> impl DoubleEndedIterator<Item = &[Part]> {
        self.0.chunks(PARTS.len())
    }
}

/// Inserts the rows of all parts.
pub(super) fn insert_parts<'q>(w: &mut Writer<'q>, parts: &'q [Part]) {
    let Some((last, before)) = parts.split_last() else {
        return;
    };
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

fn insert_part<'q>(w: &mut Writer<'q>, (table, rows): &'q Part) {
    match rows.as_slice() {
        [row] => render::insert_new(w, table, row),
        rows => batch::insert_new_rows(w, table, rows),
    }
}
