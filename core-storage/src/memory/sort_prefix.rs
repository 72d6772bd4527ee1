//! The beginning of what an index sorts by, as bytes that sort in the same way: they lie in the index itself, so that most
//! comparisons end without a look at the rows.

use crate::value::Value;

const BYTES: usize = 16;
/// Behind a text; no stored text contains it.
const END_OF_TEXT: u8 = 0;

/// The first bytes of an encoding of values. Where two differ, the values sort as they do; where they are equal, the values
/// have to be looked at.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct SortPrefix([u8; BYTES]);

impl SortPrefix {
    /// Of an entry, which has values in all parts, or of the edge before all entries that begin with these.
    pub(super) fn of<'v>(values: impl Iterator<Item = &'v Value>) -> Self {
        Self::filled(values, 0)
    }

    /// Of the edge behind all entries that begin with these values.
    pub(super) fn behind<'v>(values: impl Iterator<Item = &'v Value>) -> Self {
        Self::filled(values, u8::MAX)
    }

    fn filled<'v>(values: impl Iterator<Item = &'v Value>, fill: u8) -> Self {
        let mut encoded = Encoded {
            bytes: [fill; BYTES],
            len: 0,
        };
        for value in values {
            if encoded.len >= BYTES {
                break;
            }
            encoded.add(value);
        }
        Self(encoded.bytes)
    }
}

struct Encoded {
    bytes: [u8; BYTES],
    len: usize,
}

impl Encoded {
    /// The type first: values of different types sort by it.
    fn add(&mut self, value: &Value) {
        match value {
            Value::Null => self.push(&[0]),
            Value::Bool(yes) => self.push(&[1, u8::from(*yes)]),
            Value::Int(number) => {
                self.push(&[2]);
                // Negative numbers before the others.
                self.push(&(number ^ i64::MIN).to_be_bytes());
            }
            Value::Text(text) => {
                self.push(&[3]);
                self.add_text(text.as_bytes());
            }
        }
    }

    fn add_text(&mut self, text: &[u8]) {
        let seen = text.get(..BYTES).unwrap_or(text);
        let end = seen.iter().position(|byte| *byte == END_OF_TEXT);
        self.push(seen.get(..end.unwrap_or(seen.len())).unwrap_or(seen));
        self.push(&[END_OF_TEXT]);
        if end.is_some() {
            // Only what is looked for can contain the character: it stands behind the stored text that ends before it.
            self.push(&[u8::MAX; BYTES]);
        }
    }

    fn push(&mut self, more: &[u8]) {
        let room = self.bytes.iter_mut().skip(self.len);
        for (byte, more) in room.zip(more) {
            *byte = *more;
        }
        self.len += more.len();
    }
}

#[cfg(test)]
mod tests {
    use std::cmp::Ordering;

    use proptest::prelude::*;

    use super::*;

    fn stored() -> impl Strategy<Value = Value> {
        prop_oneof![
            Just(Value::Null),
            any::<bool>().prop_map(Value::Bool),
            any::<i64>().prop_map(Value::Int),
            (-2_i64..2).prop_map(Value::Int),
            "[a-b\u{1}\u{fe}\u{ff}\u{10ffff}]{0,18}".prop_map(|text| Value::text(&text)),
        ]
    }

    /// What is looked for may contain what no stored text does.
    fn sought() -> impl Strategy<Value = Value> {
        prop_oneof![
            stored(),
            "[a-b\u{0}\u{1}\u{ff}]{0,6}".prop_map(|text| Value::text(&text)),
        ]
    }

    /// Entries have all parts; an edge has some, and stands before or behind those that begin with them.
    fn compare_to_edge(entry: &[Value], edge: &[Value], behind: bool) -> Ordering {
        let begins = entry.iter().take(edge.len()).cmp(edge.iter());
        match (begins, behind) {
            (Ordering::Equal, true) => Ordering::Less,
            (Ordering::Equal, false) => Ordering::Greater,
            (ordering, _) => ordering,
        }
    }

    proptest! {
        #[test]
        fn entries_whose_prefixes_differ_sort_as_they_do(
            left in prop::collection::vec(stored(), 3),
            right in prop::collection::vec(stored(), 3),
        ) {
            let prefixes = SortPrefix::of(left.iter()).cmp(&SortPrefix::of(right.iter()));
            prop_assert!(prefixes.is_eq() || prefixes == left.cmp(&right));
        }

        #[test]
        fn an_entry_whose_prefix_differs_from_that_of_an_edge_stands_where_it_says(
            entry in prop::collection::vec(stored(), 3),
            edge in prop::collection::vec(sought(), 0..=3),
            shared in 0_usize..=3,
            behind in any::<bool>(),
        ) {
            // Half of the time they begin alike.
            let edge: Vec<Value> = entry.iter().take(shared).cloned().chain(edge).take(3).collect();
            let prefix = match behind {
                true => SortPrefix::behind(edge.iter()),
                false => SortPrefix::of(edge.iter()),
            };
            let prefixes = SortPrefix::of(entry.iter()).cmp(&prefix);
            let expected = compare_to_edge(&entry, &edge, behind);
            prop_assert!(prefixes.is_eq() || prefixes == expected, "{prefixes:?} {expected:?}");
        }
    }
}
