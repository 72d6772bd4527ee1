//! A statement as an executor is given it.

use std::fmt;
use std::sync::Arc;

use crate::table::{Column, Table, Type};
use crate::value::ValueRef;

/// What is bound to a placeholder. The values lie where the query keeps them. `Debug` shows its type and no value, because
/// drivers log what they are given.
#[derive(Clone, PartialEq)]
pub enum Bind<'q> {
    /// A value, and the type of the column it belongs to: some databases need that of a NULL.
    One(Type, ValueRef<'q>),
    /// A text that the renderer made.
    Made(String),
    /// An array of values of one type; only in the dialect of Postgres.
    Array(Type, Vec<ValueRef<'q>>),
}

impl fmt::Debug for Bind<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::One(kind, _) => write!(f, "One({kind:?}, _)"),
            Self::Made(_) => f.write_str("Made(_)"),
            Self::Array(kind, values) => write!(f, "Array({kind:?}, {} values)", values.len()),
        }
    }
}

/// What a statement will cost, as far as its shape tells.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cost {
    /// One row or a page: a database in this process answers at once.
    Bounded,
    /// As much as there is: counts, walks, lists without a limit, changes of any number of rows.
    Unbounded,
}

/// What a statement changes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Change<'q> {
    /// The table.
    pub table: &'static Table,
    /// The platform to which all rows belong that it changes, before and after; `None` when that is not known.
    pub platform: Option<&'q str>,
}

impl Change<'static> {
    /// A change of any rows of a table.
    #[must_use]
    pub const fn of(table: &'static Table) -> Self {
        Self {
            table,
            platform: None,
        }
    }
}

/// A statement with what is bound to its `$1`, `$2`, ..
#[derive(Clone, Debug)]
pub struct Statement<'q> {
    /// The text; the same for all statements of one shape, so that prepared statements are found by it. Made of quoted
    /// names, placeholders, limits and the texts of index predicates alone.
    pub text: Arc<str>,
    /// What is bound, in the order of the placeholders.
    pub binds: Vec<Bind<'q>>,
    /// The columns of the answer; empty when it answers no rows.
    pub columns: &'q [Column],
    /// What it changes; `None` when it only reads. Rows that have waited may go into several tables in one statement, in
    /// dialects with arrays: it says the first.
    pub changes: Option<Change<'q>>,
    /// What it will cost.
    pub cost: Cost,
}
