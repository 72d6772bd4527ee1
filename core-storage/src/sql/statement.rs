//! Statements in the form in which an executor receives them.

use std::fmt;
use std::sync::Arc;

use crate::table::{Column, Table, Type};
use crate::value::ValueRef;

/// A parameter of a statement. Values are borrowed from the query. `Debug` prints the type and not the value, because
/// drivers log parameters.
#[derive(Clone, PartialEq)]
pub enum Bind<'q> {
    /// A value and the type of its column, which some databases need for a NULL.
    One(Type, ValueRef<'q>),
    /// A text that was generated with the statement, and its type.
    Generated(Type, String),
    /// An array of values of one type. Only used in the Postgres dialect.
    Array(Type, Vec<ValueRef<'q>>),
}

impl fmt::Debug for Bind<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::One(kind, _) => write!(f, "One({kind:?}, _)"),
            Self::Generated(kind, _) => write!(f, "Generated({kind:?}, _)"),
            Self::Array(kind, values) => write!(f, "Array({kind:?}, {} values)", values.len()),
        }
    }
}

/// The expected cost of a statement.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cost {
    /// One row or a page. A database in this process returns it immediately.
    Bounded,
    /// Unlimited: counts, walks, lists without a limit, changes of any number of rows.
    Unbounded,
}

/// The rows that a statement changes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Change<'q> {
    /// The table that is changed.
    pub table: &'static Table,
    /// The platform that owns all changed rows, before and after the change; `None` if unknown.
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

/// A statement and the parameters for its placeholders `$1`, `$2`, ..
#[derive(Clone, Debug)]
pub struct Statement<'q> {
    /// The text. It consists only of quoted names, placeholders, limits and the values of index predicates. All
    /// statements of one kind have the same text, so it identifies the prepared statement.
    pub text: Arc<str>,
    /// The parameters, in the order of the placeholders.
    pub binds: Vec<Bind<'q>>,
    /// The columns of the result; empty if the statement returns no rows.
    pub columns: &'q [Column],
    /// The rows that it changes; `None` if it only reads. In dialects with arrays one statement may write queued rows
    /// to several tables; this is then the first table.
    pub changes: Option<Change<'q>>,
    /// The expected cost.
    pub cost: Cost,
}
