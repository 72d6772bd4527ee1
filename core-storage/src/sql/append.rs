//! A queue of rows that cannot conflict. They are written in one statement, whatever their tables, when the unit uses
//! their table or commits.

use super::text::StatementWriter;
use super::{batch, render};
use crate::table::Table;
use crate::value::Row;

/// The names of the parts of a statement. Their number is the maximum number of parts in one statement.
const PARTS: [&str; 8] = ["p0", "p1", "p2", "p3", "p4", "p5", "p6", "p7"];

/// The queued rows of one table.
pub(super) struct QueuedRows {
    pub(super) table: &'static Table,
    rows: Vec<Row>,
    /// Whether the rows replace the rows with their keys, which the unit has locked.
    replaces: bool,
}

/// The queue of rows.
#[derive(Default)]
pub(super) struct AppendQueue(Vec<QueuedRows>);

impl AppendQueue {
    pub(super) fn add(&mut self, table: &'static Table, rows: Vec<Row>) {
        let mut parts = self.0.iter_mut();
        match parts.find(|part| part.table == table && !part.replaces) {
            Some(part) => part.rows.extend(rows),
            None => self.push(table, rows, false),
        }
    }

    /// Adds rows that replace locked ones. All keys differ, and no other rows of the table are queued.
    pub(super) fn add_replacing(&mut self, table: &'static Table, rows: Vec<Row>) {
        self.push(table, rows, true);
    }

    fn push(&mut self, table: &'static Table, rows: Vec<Row>, replaces: bool) {
        self.0.push(QueuedRows {
            table,
            rows,
            replaces,
        });
    }

    pub(super) fn has(&self, table: &'static Table) -> bool {
        self.0.iter().any(|part| part.table == table)
    }

    /// Splits the parts into groups. Each group becomes one statement.
    pub(super) fn statements(&self) -> impl DoubleEndedIterator<Item = &[QueuedRows]> {
        self.0.chunks(PARTS.len())
    }
}

/// Writes an insert of the rows of all parts.
pub(super) fn insert_parts<'q>(w: &mut StatementWriter<'q>, parts: &'q [QueuedRows]) {
    let Some((last, before)) = parts.split_last() else {
        return;
    };
    if !before.is_empty() {
        w.sql("WITH ");
        w.join_parts(PARTS.into_iter().zip(before), ", ", |w, (name, part)| {
            w.name(name).sql(" AS (");
            insert_part(w, part);
            w.sql(")");
        });
        w.sql(" ");
    }
    insert_part(w, last);
}

fn insert_part<'q>(w: &mut StatementWriter<'q>, part: &'q QueuedRows) {
    insert_new(w, part.table, &part.rows);
    if part.replaces {
        batch::or_replace(w, part.table);
    }
}

/// Writes an insert of rows that cannot conflict.
pub(super) fn insert_new<'q>(w: &mut StatementWriter<'q>, table: &Table, rows: &'q [Row]) {
    match rows {
        [row] => render::insert_new(w, table, row),
        rows => batch::insert_new_rows(w, table, rows),
    }
}
