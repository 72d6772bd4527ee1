//! Filters compiled for one table: columns are positions, and nested conjunctions are flat.

use crate::filter::{Filter, Op, prefix_end};
use crate::table::{IndexPredicate, Table};
use crate::value::Value;

pub(super) static NULL: Value = Value::Null;

/// Returns the value of a row in a column; NULL beyond the last column.
pub(super) fn value(row: &[Value], at: usize) -> &Value {
    row.get(at).unwrap_or(&NULL)
}

/// A condition on a row. A result that is unknown in SQL's logic is false here. Without a negation this makes no
/// difference.
#[derive(Clone, Debug)]
pub(super) enum Test<'f> {
    /// No row passes.
    Never,
    /// The column compares to a value by the operator. Neither may be NULL.
    Compare(usize, Op, &'f Value),
    /// The column equals one of these values.
    In(usize, &'f [Value]),
    IsNull(usize),
    NotNull(usize),
    Prefix(Prefix<'f>),
    /// All tests of at least one of these lists pass.
    Any(Vec<Vec<Test<'f>>>),
}

/// The text of a column starts with this prefix.
#[derive(Clone, Debug)]
pub(super) struct Prefix<'f> {
    pub(super) at: usize,
    text: &'f str,
    /// The smallest text with the prefix.
    pub(super) first: Value,
    /// The smallest text after those with the prefix; `None` if there is no such text.
    pub(super) end: Option<Value>,
}

/// Returns the tests that a row passes exactly if it matches the filter.
pub(super) fn compile<'f>(table: &Table, filter: &'f Filter) -> Vec<Test<'f>> {
    let mut tests = Vec::with_capacity(4);
    add(table, filter, &mut tests);
    tests
}

fn add<'f>(table: &Table, filter: &'f Filter, tests: &mut Vec<Test<'f>>) {
    if let Filter::And(all) = filter {
        for one in all {
            add(table, one, tests);
        }
        return;
    }
    tests.push(one(table, filter).unwrap_or(Test::Never));
}

/// Compiles a filter that is not a conjunction. Returns `None` for an unknown column, which is NULL in every row.
fn one<'f>(table: &Table, filter: &'f Filter) -> Option<Test<'f>> {
    let test = match filter {
        Filter::And(_) => Test::Any(vec![compile(table, filter)]),
        Filter::Or(any) | Filter::Disjoint(any) => {
            Test::Any(any.iter().map(|one| compile(table, one)).collect())
        }
        Filter::Compare(_, _, Value::Null) => Test::Never,
        Filter::Compare(column, op, value) => {
            Test::Compare(table.column_index(column)?, *op, value)
        }
        Filter::In(column, values) => Test::In(table.column_index(column)?, values),
        Filter::IsNull(column) => Test::IsNull(table.column_index(column)?),
        Filter::NotNull(column) => Test::NotNull(table.column_index(column)?),
        Filter::Prefix(column, text) => Test::Prefix(Prefix {
            at: table.column_index(column)?,
            text,
            first: Value::text(text),
            end: prefix_end(text).map(|end| Value::text(&end)),
        }),
    };
    Some(test)
}

/// Returns whether the row passes all of the tests.
pub(super) fn matches(tests: &[Test<'_>], row: &[Value]) -> bool {
    tests.iter().all(|test| test.holds(row))
}

impl<'f> Test<'f> {
    fn holds(&self, row: &[Value]) -> bool {
        match self {
            Self::Never => false,
            Self::Compare(at, op, with) => {
                let stored = value(row, *at);
                !stored.is_null() && op.holds(stored, with)
            }
            Self::In(at, values) => {
                let stored = value(row, *at);
                !stored.is_null() && values.contains(stored)
            }
            Self::IsNull(at) => value(row, *at).is_null(),
            Self::NotNull(at) => !value(row, *at).is_null(),
            Self::Prefix(prefix) => {
                let stored = value(row, prefix.at).as_text();
                stored.is_some_and(|text| text.starts_with(prefix.text))
            }
            Self::Any(any) => any.iter().any(|tests| matches(tests, row)),
        }
    }

    /// Returns the value that the column has in every row that passes.
    pub(super) fn fixes(&self, column: usize) -> Option<&'f Value> {
        match self {
            Self::Compare(at, Op::Eq, value) if *at == column => Some(value),
            _ => None,
        }
    }

    /// Returns the list of values that contains the column's value in every row that passes.
    pub(super) fn one_of(&self, column: usize) -> Option<&'f [Value]> {
        match self {
            Self::In(at, values) if *at == column => Some(values),
            _ => None,
        }
    }

    /// Returns whether the predicate is true for every row that passes.
    pub(super) fn implies(&self, column: usize, predicate: &IndexPredicate) -> bool {
        match (self, predicate) {
            (Self::IsNull(at), IndexPredicate::IsNull(_)) => *at == column,
            // A comparison with NULL is never true.
            (
                Self::NotNull(at) | Self::Compare(at, ..) | Self::In(at, _),
                IndexPredicate::NotNull(_),
            ) => *at == column,
            (Self::Prefix(prefix), IndexPredicate::NotNull(_)) => prefix.at == column,
            (_, IndexPredicate::Is(_, text)) => {
                self.fixes(column).and_then(Value::as_text) == Some(text)
            }
            (Self::Compare(..), IndexPredicate::OneOf(_, texts)) => {
                let fixed = self.fixes(column).and_then(Value::as_text);
                fixed.is_some_and(|text| texts.contains(&text))
            }
            (Self::In(at, values), IndexPredicate::OneOf(_, texts)) => {
                let is_in =
                    |value: &Value| value.as_text().is_none_or(|text| texts.contains(&text));
                *at == column && values.iter().all(is_in)
            }
            _ => false,
        }
    }

    /// Returns whether the test limits the column to a range of values.
    pub(super) fn bounds(&self, column: usize) -> bool {
        match self {
            Self::Compare(at, op, _) => *at == column && !matches!(op, Op::Eq | Op::Ne),
            Self::Prefix(prefix) => prefix.at == column,
            _ => false,
        }
    }

    /// Returns lists of tests of which at least one passes exactly if this test passes. Each passes on fewer rows.
    pub(super) fn alternatives(&self) -> Option<Vec<Vec<Test<'f>>>> {
        match self {
            Self::In(at, values) => {
                let values = values.iter().filter(|value| !value.is_null());
                let branch = |value| vec![Self::Compare(*at, Op::Eq, value)];
                Some(values.map(branch).collect())
            }
            Self::Any(any) => Some(any.clone()),
            _ => None,
        }
    }
}
