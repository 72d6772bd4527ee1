//! Rows that nothing can be in the way of: they wait until their table is looked at or the unit commits, and go in one
//! statement, whatever their tables.

use super::text::Writer;
use super::{batch, render};
use crate::table::Table;
use crate::value::Row;

/// What the parts of a statement are called; how many tables one statement writes at most.
const PARTS: [&str; 8] = ["p0", "p1", "p2", "p3", "p4", "p5", "p6", "p7"];

/// The rows of one table.
pub(super) struct Part {
    pub(super) table: &'static Table,
    rows: Vec<Row>,
    /// Whether the rows take the place of those with their keys, which the unit has locked.
    replaces: bool,
}

/// The rows that wait.
#[derive(Default)]
pub(super) struct Appended(Vec<Part>);

impl Appended {
    pub(super) fn add(&mut self, table: &'static Table, rows: Vec<Row>) {
        let mut parts = self.0.iter_mut();
        match parts.find(|part| part.table == table && !part.replaces) {
            Some(part) => part.rows.extend(rows),
            None => self.push(table, rows, false),
        }
    }

    /// Adds rows that take the place of locked ones, no two of them with one key. None of the table wait.
    pub(super) fn add_replacing(&mut self, table: &'static Table, rows: Vec<Row>) {
        self.push(table, rows, true);
    }

    fn push(&mut self, table: &'static Table, rows: Vec<Row>, replaces: bool) {
        self.0.push(Part {
            table,
            rows,
            replaces,
        });
    }

    pub(super) fn has(&self, table: &'static Table) -> bool {
        self.0.iter().any(|part| part.table == table)
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

fn insert_part<'q>(w: &mut Writer<'q>, part: &'q Part) {
    insert_new(w, part.table, &part.rows);
    if part.replaces {
        batch::or_replace(w, part.table);
    }
}

/// Inserts rows that conflict with none.
pub(super) fn insert_new<'q>(w: &mut Writer<'q>, table: &Table, rows: &'q [Row]) {
    match rows {
        [row] => render::insert_new(w, table, row),
        rows => batch::insert_new_rows(w, table, rows),
    }
}
