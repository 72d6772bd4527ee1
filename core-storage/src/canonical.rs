//! The canonical bytes of queries and rows. Two queries have the same bytes exactly when they are equal.
//! Cursors are bound to these bytes, and remembered counts are keyed by them. Digests of tables are made of those of rows.

use crate::filter::{Filter, Op};
use crate::query::Order;
use crate::value::Value;

/// Returns the canonical bytes of a row. Rows with the same number of columns have the same bytes exactly when they are
/// equal.
pub(crate) fn canonical_row(row: &[Value]) -> Vec<u8> {
    let mut bytes = Canonical::default();
    row.iter().for_each(|value| bytes.value(value));
    bytes.into_bytes()
}

/// Collects the bytes of a query. A part without a fixed length is preceded by its length, so two different sequences
/// of parts never produce the same bytes.
#[derive(Debug, Default)]
pub(crate) struct Canonical(Vec<u8>);

impl Canonical {
    /// Encodes a filter on a table.
    pub(crate) fn filter(table: &str, filter: &Filter) -> Self {
        let mut bytes = Self(Vec::with_capacity(128));
        bytes.text(table);
        bytes.add_filter(filter);
        bytes
    }

    /// Appends the order.
    pub(crate) fn order(mut self, order: &[Order]) -> Self {
        self.length(order.len());
        for part in order {
            self.text(part.column);
            self.0.push(u8::from(part.descending));
        }
        self
    }

    pub(crate) fn into_bytes(self) -> Vec<u8> {
        self.0
    }

    fn length(&mut self, length: usize) {
        self.0.extend_from_slice(&(length as u64).to_le_bytes());
    }

    fn text(&mut self, text: &str) {
        self.length(text.len());
        self.0.extend_from_slice(text.as_bytes());
    }

    fn value(&mut self, value: &Value) {
        match value {
            Value::Null => self.0.push(0),
            Value::Bool(yes) => self.0.extend_from_slice(&[1, u8::from(*yes)]),
            Value::Int(number) => {
                self.0.push(2);
                self.0.extend_from_slice(&number.to_le_bytes());
            }
            Value::Text(text) => {
                self.0.push(3);
                self.text(text);
            }
        }
    }

    fn add_filter(&mut self, filter: &Filter) {
        match filter {
            Filter::And(all) => self.list(b'&', all, Self::add_filter),
            Filter::Or(any) => self.list(b'|', any, Self::add_filter),
            Filter::Disjoint(any) => self.list(b'd', any, Self::add_filter),
            Filter::Compare(column, op, value) => {
                self.0.push(operator(*op));
                self.text(column);
                self.value(value);
            }
            Filter::In(column, values) => {
                self.0.push(b'i');
                self.text(column);
                self.list(b'[', values, Self::value);
            }
            Filter::IsNull(column) => self.column(b'n', column),
            Filter::NotNull(column) => self.column(b'v', column),
            Filter::Prefix(column, prefix) => {
                self.column(b'p', column);
                self.text(prefix);
            }
        }
    }

    fn column(&mut self, tag: u8, column: &str) {
        self.0.push(tag);
        self.text(column);
    }

    fn list<T>(&mut self, tag: u8, items: &[T], mut add: impl FnMut(&mut Self, &T)) {
        self.0.push(tag);
        self.length(items.len());
        for item in items {
            add(self, item);
        }
    }
}

const fn operator(op: Op) -> u8 {
    match op {
        Op::Eq => b'=',
        Op::Ne => b'!',
        Op::Lt => b'<',
        Op::Le => b'l',
        Op::Gt => b'>',
        Op::Ge => b'g',
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn values() -> impl Strategy<Value = Value> {
        prop_oneof![
            Just(Value::Null),
            any::<bool>().prop_map(Value::Bool),
            (-2_i64..3).prop_map(Value::Int),
            "[ab\\PC]{0,2}".prop_map(|text| Value::text(&text)),
        ]
    }

    fn filters() -> impl Strategy<Value = Filter> {
        let column = || prop::sample::select(vec!["a", "ab", "b"]);
        let ops = vec![Op::Eq, Op::Ne, Op::Lt, Op::Le, Op::Gt, Op::Ge];
        let leaf = prop_oneof![
            (column(), prop::sample::select(ops), values())
                .prop_map(|(column, op, value)| Filter::Compare(column, op, value)),
            (column(), prop::collection::vec(values(), 0..3))
                .prop_map(|(column, values)| Filter::In(column, values)),
            column().prop_map(Filter::IsNull),
            column().prop_map(Filter::NotNull),
            (column(), "[ab]{0,2}").prop_map(|(column, text)| Filter::Prefix(column, text)),
        ];
        leaf.prop_recursive(3, 8, 3, |inner| {
            let list = prop::collection::vec(inner, 0..3);
            prop_oneof![
                list.clone().prop_map(Filter::And),
                list.prop_map(Filter::Or)
            ]
        })
    }

    proptest! {
        #[test]
        fn equal_filters_and_only_those_have_equal_bytes(left in filters(), right in filters()) {
            let bytes = |filter| Canonical::filter("table", filter).into_bytes();
            prop_assert_eq!(bytes(&left) == bytes(&right), left == right);
            prop_assert_eq!(bytes(&left), bytes(&left.clone()));
        }
    }

    #[test]
    fn table_and_order_are_part_of_the_bytes() {
        let bytes = |table: &'static str, order: &[Order]| {
            Canonical::filter(table, &Filter::all())
                .order(order)
                .into_bytes()
        };
        let by = |column, descending| Order { column, descending };
        let all = [
            bytes("a", &[]),
            bytes("b", &[]),
            bytes("a", &[by("x", false)]),
            bytes("a", &[by("x", true)]),
            bytes("a", &[by("x", true), by("y", true)]),
        ];
        for (n, one) in all.iter().enumerate() {
            assert!(!all[n + 1..].contains(one));
        }
    }
}
