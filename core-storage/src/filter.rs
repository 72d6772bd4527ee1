//! Predicates on rows. They are data: SQL engines render them as SQL, and the memory engine evaluates them with SQL's
//! three-valued logic.

use std::slice;

use core_domain::kernel::{StoreError, TextValue, Timestamp};

use crate::table::{IndexPredicate, PLATFORM, Table, Unique};
use crate::value::Value;

/// A comparison of two values.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Op {
    /// The values are equal.
    Eq,
    /// The values differ.
    Ne,
    /// The left value is less than the right one.
    Lt,
    /// The left value is less than or equal to the right one.
    Le,
    /// The left value is greater than the right one.
    Gt,
    /// The left value is greater than or equal to the right one.
    Ge,
}

impl Op {
    pub(crate) fn holds(self, left: &Value, right: &Value) -> bool {
        match self {
            Self::Eq => left == right,
            Self::Ne => left != right,
            Self::Lt => left < right,
            Self::Le => left <= right,
            Self::Gt => left > right,
            Self::Ge => left >= right,
        }
    }
}

/// A predicate on the rows of a table. As in SQL, a comparison with NULL is unknown, and a row matches only if the
/// whole predicate is true.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Filter {
    /// All of these predicates are true. The empty list matches every row.
    And(Vec<Filter>),
    /// At least one of these predicates is true. The empty list matches no row.
    Or(Vec<Filter>),
    /// Exactly one of these predicates is true; no row matches two of them. An engine may read the rows of each in
    /// order from a separate index, and merge them.
    Disjoint(Vec<Filter>),
    /// The column compares to the value by the operator.
    Compare(&'static str, Op, Value),
    /// The column equals one of these values. The empty list matches no row.
    In(&'static str, Vec<Value>),
    /// The column is NULL.
    IsNull(&'static str),
    /// The column is not NULL.
    NotNull(&'static str),
    /// The text of the column starts with this prefix.
    Prefix(&'static str, String),
}

/// A value to which a column can be compared.
pub trait IntoValue {
    /// Converts into the value of a column.
    fn into_value(self) -> Value;
}

impl<T: TextValue> IntoValue for &T {
    fn into_value(self) -> Value {
        Value::text(self.as_text())
    }
}

impl IntoValue for &str {
    fn into_value(self) -> Value {
        Value::text(self)
    }
}

impl IntoValue for Timestamp {
    fn into_value(self) -> Value {
        Value::Int(self.millis())
    }
}

impl IntoValue for i64 {
    fn into_value(self) -> Value {
        Value::Int(self)
    }
}

impl IntoValue for bool {
    fn into_value(self) -> Value {
        Value::Bool(self)
    }
}

impl IntoValue for Value {
    fn into_value(self) -> Value {
        self
    }
}

impl Filter {
    /// Matches every row.
    #[must_use]
    pub const fn all() -> Self {
        Self::And(Vec::new())
    }

    /// Returns whether no row matches in which the column is NULL.
    #[must_use]
    pub fn excludes_null(&self, column: &str) -> bool {
        match self {
            Self::And(parts) => parts.iter().any(|part| part.excludes_null(column)),
            Self::Or(parts) | Self::Disjoint(parts) => {
                parts.iter().all(|part| part.excludes_null(column))
            }
            Self::Compare(own, ..)
            | Self::In(own, _)
            | Self::Prefix(own, _)
            | Self::NotNull(own) => *own == column,
            Self::IsNull(_) => false,
        }
    }

    /// The column equals the value.
    pub fn eq(column: &'static str, value: impl IntoValue) -> Self {
        Self::Compare(column, Op::Eq, value.into_value())
    }

    /// The column equals the value, or is NULL if there is no value.
    pub fn eq_or_null(column: &'static str, value: Option<impl IntoValue>) -> Self {
        match value {
            Some(value) => Self::eq(column, value),
            None => Self::IsNull(column),
        }
    }

    /// The column does not equal the value.
    pub fn ne(column: &'static str, value: impl IntoValue) -> Self {
        Self::Compare(column, Op::Ne, value.into_value())
    }

    /// The column is less than the value.
    pub fn lt(column: &'static str, value: impl IntoValue) -> Self {
        Self::Compare(column, Op::Lt, value.into_value())
    }

    /// The column is less than or equal to the value.
    pub fn le(column: &'static str, value: impl IntoValue) -> Self {
        Self::Compare(column, Op::Le, value.into_value())
    }

    /// The column is greater than the value.
    pub fn gt(column: &'static str, value: impl IntoValue) -> Self {
        Self::Compare(column, Op::Gt, value.into_value())
    }

    /// The column is greater than or equal to the value.
    pub fn ge(column: &'static str, value: impl IntoValue) -> Self {
        Self::Compare(column, Op::Ge, value.into_value())
    }

    /// The column equals one of the values.
    pub fn one_of<V: IntoValue>(column: &'static str, values: impl IntoIterator<Item = V>) -> Self {
        Self::In(
            column,
            values.into_iter().map(IntoValue::into_value).collect(),
        )
    }

    /// Matches the rows that a unique index covers. The conjunction is empty if the index covers all rows.
    #[must_use]
    pub fn covered_by(unique: &Unique) -> Self {
        Self::And(
            unique
                .predicates
                .iter()
                .copied()
                .map(Self::of_index)
                .collect(),
        )
    }

    /// Matches the rows for which the index predicate is true.
    #[must_use]
    pub fn of_index(predicate: IndexPredicate) -> Self {
        match predicate {
            IndexPredicate::IsNull(column) => Self::IsNull(column),
            IndexPredicate::NotNull(column) => Self::NotNull(column),
            IndexPredicate::Is(column, text) => Self::eq(column, text),
            IndexPredicate::OneOf(column, texts) => Self::one_of(column, texts.iter().copied()),
        }
    }

    /// Returns the conjunction of both filters.
    #[must_use]
    pub fn and(self, other: Self) -> Self {
        match self {
            Self::And(mut all) => {
                all.push(other);
                Self::And(all)
            }
            one => Self::And(vec![one, other]),
        }
    }

    /// Returns whether the row matches.
    #[must_use]
    pub fn matches(&self, table: &Table, row: &[Value]) -> bool {
        self.evaluate(table, row) == Some(true)
    }

    /// Evaluates the filter by SQL's three-valued logic. `None` is unknown.
    fn evaluate(&self, table: &Table, row: &[Value]) -> Option<bool> {
        match self {
            Self::And(all) => {
                let mut result = Some(true);
                for one in all {
                    match one.evaluate(table, row) {
                        Some(false) => return Some(false),
                        None => result = None,
                        Some(true) => {}
                    }
                }
                result
            }
            Self::Or(any) | Self::Disjoint(any) => {
                let mut result = Some(false);
                for one in any {
                    match one.evaluate(table, row) {
                        Some(true) => return Some(true),
                        None => result = None,
                        Some(false) => {}
                    }
                }
                result
            }
            Self::Compare(column, op, value) => {
                let stored = table.value(row, column);
                (!stored.is_null() && !value.is_null()).then(|| op.holds(stored, value))
            }
            Self::In(_, values) if values.is_empty() => Some(false),
            Self::In(column, values) => {
                let stored = table.value(row, column);
                if stored.is_null() {
                    return None;
                }
                if values.contains(stored) {
                    return Some(true);
                }
                (!values.iter().any(Value::is_null)).then_some(false)
            }
            Self::IsNull(column) => Some(table.value(row, column).is_null()),
            Self::NotNull(column) => Some(!table.value(row, column).is_null()),
            Self::Prefix(column, prefix) => table
                .value(row, column)
                .as_text()
                .map(|text| text.starts_with(prefix.as_str())),
        }
    }

    /// Returns the parts of the outermost conjunction, with nested conjunctions flattened.
    #[cfg(feature = "sql")]
    #[must_use]
    pub fn conjuncts(&self) -> Vec<&Self> {
        match self {
            Self::And(all) => all.iter().flat_map(Self::conjuncts).collect(),
            one => vec![one],
        }
    }

    /// Also requires that the row belongs to the platform, if there is one.
    #[must_use]
    pub fn and_platform(self, platform: Option<&str>) -> Self {
        match platform {
            Some(platform) => self.and(Self::eq(PLATFORM, platform)),
            None => self,
        }
    }

    /// Returns the platform to which all matching rows belong, if the filter names one.
    #[must_use]
    pub fn platform(&self) -> Option<&str> {
        match self.values_of(PLATFORM)? {
            [platform] => platform.as_text(),
            _ => None,
        }
    }

    /// Returns the values that the column can have in a matching row, if the filter lists them. The list may contain
    /// values that no matching row has.
    #[must_use]
    pub fn values_of(&self, column: &str) -> Option<&[Value]> {
        match self {
            Self::And(all) => all.iter().find_map(|part| part.values_of(column)),
            Self::Compare(own, Op::Eq, value) if *own == column => Some(slice::from_ref(value)),
            Self::In(own, values) if *own == column => Some(values),
            _ => None,
        }
    }

    /// Returns whether the column is NULL in every matching row, as far as the filter shows.
    #[must_use]
    pub fn requires_null(&self, column: &str) -> bool {
        match self {
            Self::And(all) => all.iter().any(|part| part.requires_null(column)),
            Self::IsNull(own) => *own == column,
            _ => false,
        }
    }

    /// Returns whether the predicate is one of those that every matching row must satisfy.
    #[must_use]
    pub fn requires(&self, predicate: &Self) -> bool {
        match self {
            Self::And(all) => all.iter().any(|part| part.requires(predicate)),
            one => one == predicate,
        }
    }

    /// Checks that every column exists and is compared with a value of its type.
    ///
    /// # Errors
    /// [`StoreError::Backend`] if a column does not exist or the value has another type. Both are mistakes in the
    /// query.
    pub fn check(&self, table: &Table) -> Result<(), StoreError> {
        let of_type = |column: &'static str, value: &Value| {
            let kind = table.column(column)?.kind;
            if kind.compares_with(value) {
                return Ok(());
            }
            Err(StoreError::backend(format!(
                "{}.{column} is compared with a value of another type",
                table.name
            )))
        };
        match self {
            Self::And(all) | Self::Or(all) | Self::Disjoint(all) => {
                all.iter().try_for_each(|f| f.check(table))
            }
            Self::Compare(column, _, value) => of_type(column, value),
            Self::In(column, values) => {
                table.column(column)?;
                values.iter().try_for_each(|value| of_type(column, value))
            }
            Self::IsNull(column) | Self::NotNull(column) => table.column(column).map(|_| ()),
            Self::Prefix(column, prefix) => of_type(column, &Value::text(prefix)),
        }
    }
}

/// Returns the smallest text that is greater than every text with this prefix; `None` if there is no such text.
#[must_use]
pub fn prefix_end(prefix: &str) -> Option<String> {
    let mut chars: Vec<char> = prefix.chars().collect();
    while let Some(last) = chars.pop() {
        // UTF-8 sorts like its code points. The surrogates between U+D7FF and U+E000 are not characters.
        let next = match last {
            '\u{D7FF}' => Some('\u{E000}'),
            other => char::from_u32(u32::from(other) + 1),
        };
        if let Some(next) = next {
            chars.push(next);
            return Some(chars.into_iter().collect());
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn a_text_has_the_prefix_exactly_if_it_is_in_the_range(prefix in "\\PC{0,3}", text in "\\PC{0,5}") {
            let in_range = text >= prefix && prefix_end(&prefix).is_none_or(|end| text < end);
            prop_assert_eq!(text.starts_with(&prefix), in_range);
        }
    }

    #[test]
    fn prefix_end_skips_surrogates_and_the_last_character() {
        assert_eq!(prefix_end("\u{10FFFF}"), None);
        assert_eq!(prefix_end("a\u{10FFFF}").as_deref(), Some("b"));
        assert_eq!(prefix_end("\u{D7FF}").as_deref(), Some("\u{E000}"));
    }
}
