//! An ordered index: the rows that it covers, sorted by its columns and then by the key.
//!
//! An entry holds the shared row and the positions of the compared columns. No value is copied, and a scan has the rows
//! at hand.

use std::borrow::Borrow;
use std::cmp::Ordering;
use std::ops::Bound;
use std::sync::Arc;

use imbl::OrdSet;

use super::predicate::{NULL, Test, value};
use crate::table::{IndexPredicate, Table, Unique};
use crate::value::Value;

/// A row, shared by the indexes and snapshots that contain it.
pub(super) type SharedRow = Arc<[Value]>;

/// The number of columns by which entries are compared. An index with more columns is sorted by the first of them.
const MAX_COLUMNS: usize = 7;
/// The compared parts of an entry: the columns and, after them, the key.
const MAX_PARTS: usize = MAX_COLUMNS + 1;
/// The position of the key, which is the first column of every table.
pub(super) const KEY: usize = 0;

/// The positions of an index's columns in a row. Small, because every entry contains them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Columns {
    len: u8,
    at: [u8; MAX_COLUMNS],
}

impl Columns {
    fn of(positions: &[usize]) -> Self {
        let mut columns = Self::default();
        for (slot, position) in columns.at.iter_mut().zip(positions) {
            let Ok(position) = u8::try_from(*position) else {
                break;
            };
            *slot = position;
            columns.len += 1;
        }
        columns
    }

    /// Returns the positions of the columns and, last, of the key.
    fn parts(&self) -> impl Iterator<Item = usize> {
        let columns = self.at.iter().take(usize::from(self.len));
        columns.map(|at| usize::from(*at)).chain([KEY])
    }
}

/// A part of a position in an index. `Start` is less than every value and `End` is greater. Neither is stored.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Part<'a> {
    Start,
    Value(&'a Value),
    End,
}

/// A position in the order of an index: an entry, or the edge of a range.
trait IndexPosition {
    fn part(&self, n: usize) -> Part<'_>;
}

impl Ord for dyn IndexPosition + '_ {
    fn cmp(&self, other: &Self) -> Ordering {
        for n in 0..=MAX_PARTS {
            let (left, right) = (self.part(n), other.part(n));
            let ordering = left.cmp(&right);
            if ordering.is_ne() || !matches!(left, Part::Value(_)) {
                return ordering;
            }
        }
        Ordering::Equal
    }
}

impl PartialOrd for dyn IndexPosition + '_ {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for dyn IndexPosition + '_ {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other).is_eq()
    }
}

impl Eq for dyn IndexPosition + '_ {}

#[derive(Clone, Debug)]
struct Entry {
    columns: Columns,
    row: SharedRow,
}

impl IndexPosition for Entry {
    fn part(&self, n: usize) -> Part<'_> {
        let len = usize::from(self.columns.len);
        match n.cmp(&len) {
            Ordering::Less => Part::Value(value(&self.row, usize::from(self.columns.at[n]))),
            Ordering::Equal => Part::Value(value(&self.row, KEY)),
            Ordering::Greater => Part::Start,
        }
    }
}

impl Ord for Entry {
    fn cmp(&self, other: &Self) -> Ordering {
        for at in self.columns.parts() {
            let ordering = value(&self.row, at).cmp(value(&other.row, at));
            if ordering.is_ne() {
                return ordering;
            }
        }
        Ordering::Equal
    }
}

impl PartialOrd for Entry {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for Entry {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other).is_eq()
    }
}

impl Eq for Entry {}

impl<'p> Borrow<dyn IndexPosition + 'p> for Entry {
    fn borrow(&self) -> &(dyn IndexPosition + 'p) {
        self
    }
}

/// The edge of a range: before or after all entries that start with these values.
#[derive(Clone, Copy)]
pub(super) struct Edge<'q> {
    values: [&'q Value; MAX_PARTS],
    len: usize,
    is_after: bool,
}

impl<'q> Edge<'q> {
    /// Returns the edge before the first entry of the index.
    pub(super) fn start() -> Self {
        Self {
            values: [&NULL; MAX_PARTS],
            len: 0,
            is_after: false,
        }
    }

    /// Appends a value.
    pub(super) fn with(mut self, value: &'q Value) -> Self {
        if let Some(slot) = self.values.get_mut(self.len) {
            *slot = value;
            self.len += 1;
        }
        self
    }

    /// Returns the edge after the entries that start with the values.
    pub(super) const fn after(mut self) -> Self {
        self.is_after = true;
        self
    }

    fn compare(&self, other: &Self) -> Ordering {
        let (left, right): (&dyn IndexPosition, &dyn IndexPosition) = (self, other);
        left.cmp(right)
    }

    /// Returns the later of two edges.
    pub(super) fn max(self, other: Self) -> Self {
        if self.compare(&other).is_lt() {
            other
        } else {
            self
        }
    }

    /// Returns the earlier of two edges.
    pub(super) fn min(self, other: Self) -> Self {
        if other.compare(&self).is_lt() {
            other
        } else {
            self
        }
    }
}

impl IndexPosition for Edge<'_> {
    fn part(&self, n: usize) -> Part<'_> {
        match self.values[..self.len].get(n) {
            Some(value) => Part::Value(value),
            None if self.is_after => Part::End,
            None => Part::Start,
        }
    }
}

/// The definition of an index, without its entries.
#[derive(Debug)]
struct Shape {
    /// The columns by which entries are compared.
    columns: Columns,
    /// The positions of all columns.
    positions: Vec<usize>,
    /// The name of the unique index that it enforces; `None` if it enforces none.
    unique: Option<&'static str>,
    /// The index covers only rows for which all of these predicates are true.
    predicates: Vec<(usize, IndexPredicate)>,
}

/// An ordered index. A clone shares all data with the original until one of them changes.
#[derive(Clone, Debug)]
pub(super) struct Index {
    shape: Arc<Shape>,
    entries: OrdSet<Entry>,
}

impl Index {
    /// Creates an index over these columns and the key.
    pub(super) fn new(table: &Table, columns: &[&str]) -> Self {
        Self::build(table, columns, &[], None)
    }

    /// Creates an index that the table describes.
    pub(super) fn from_definition(table: &Table, index: &crate::table::Index) -> Self {
        Self::build(table, index.columns, index.predicates, None)
    }

    /// Creates the index that enforces a unique index.
    pub(super) fn of_unique(table: &Table, unique: &'static Unique) -> Self {
        Self::build(table, unique.columns, unique.predicates, Some(unique.name))
    }

    fn build(
        table: &Table,
        columns: &[&str],
        predicates: &[IndexPredicate],
        unique: Option<&'static str>,
    ) -> Self {
        let position = |column: &&str| table.column_index(column);
        let positions: Vec<usize> = columns.iter().filter_map(position).collect();
        let resolve = |predicate: &IndexPredicate| {
            let at = table.column_index(predicate.column())?;
            Some((at, *predicate))
        };
        Self {
            shape: Arc::new(Shape {
                columns: Columns::of(&positions),
                positions,
                unique,
                predicates: predicates.iter().filter_map(resolve).collect(),
            }),
            entries: OrdSet::new(),
        }
    }

    /// Returns the number of rows that it covers.
    pub(super) fn len(&self) -> usize {
        self.entries.len()
    }

    /// Returns the positions of its columns and, last, of the key.
    pub(super) fn parts(&self) -> impl Iterator<Item = usize> {
        self.shape.columns.parts()
    }

    /// Returns the number of its predicates.
    pub(super) fn predicates(&self) -> usize {
        self.shape.predicates.len()
    }

    /// Returns whether no two entries have the same values in the first `parts` parts. NULLs are never the same.
    pub(super) fn is_unique_by(&self, parts: usize) -> bool {
        let columns = usize::from(self.shape.columns.len);
        let all_compared = columns == self.shape.positions.len();
        parts > columns || (self.shape.unique.is_some() && all_compared && parts == columns)
    }

    fn covers(&self, row: &[Value]) -> bool {
        let holds = |(at, predicate): &(usize, IndexPredicate)| {
            let stored = value(row, *at);
            match predicate {
                IndexPredicate::IsNull(_) => stored.is_null(),
                IndexPredicate::NotNull(_) => !stored.is_null(),
                IndexPredicate::Is(_, text) => stored.as_text() == Some(text),
                IndexPredicate::OneOf(_, texts) => {
                    stored.as_text().is_some_and(|text| texts.contains(&text))
                }
            }
        };
        self.shape.predicates.iter().all(holds)
    }

    /// Returns whether the index covers every row that passes all of the tests.
    pub(super) fn covers_all(&self, tests: &[Test<'_>]) -> bool {
        let implied = |(at, predicate): &(usize, IndexPredicate)| {
            tests.iter().any(|test| test.implies(*at, predicate))
        };
        self.shape.predicates.iter().all(implied)
    }

    fn entry(&self, row: &SharedRow) -> Entry {
        Entry {
            columns: self.shape.columns,
            row: row.clone(),
        }
    }

    /// Returns the name of the unique index if a row with another key has the same values in it.
    pub(super) fn conflict(&self, row: &[Value]) -> Option<&'static str> {
        let name = self.shape.unique?;
        let columns = &self.shape.positions;
        if columns.iter().any(|at| value(row, *at).is_null()) || !self.covers(row) {
            return None;
        }
        let compared = columns.iter().take(usize::from(self.shape.columns.len));
        let from = compared.fold(Edge::start(), |edge, at| edge.with(value(row, *at)));
        let is_taken_by = |other: &SharedRow| {
            let same = |at: &usize| value(other, *at) == value(row, *at);
            value(other, KEY) != value(row, KEY) && columns.iter().all(same)
        };
        let mut others = self.range(&from, &from.after());
        others.any(is_taken_by).then_some(name)
    }

    /// Returns whether two rows have the same values in all columns on which the index depends.
    pub(super) fn is_same_for(&self, old: &[Value], new: &[Value]) -> bool {
        let same = |at: &usize| value(old, *at) == value(new, *at);
        let predicates = self.shape.predicates.iter().map(|(at, _)| at);
        self.shape.positions.iter().chain(predicates).all(same)
    }

    pub(super) fn insert(&mut self, row: &SharedRow) {
        if self.covers(row) {
            let entry = self.entry(row);
            self.entries.insert(entry);
        }
    }

    pub(super) fn remove(&mut self, row: &SharedRow) {
        if self.covers(row) {
            let entry = self.entry(row);
            self.entries.remove(&entry);
        }
    }

    /// Returns the rows between two edges, in order.
    pub(super) fn range<'i>(
        &'i self,
        from: &Edge<'_>,
        to: &Edge<'_>,
    ) -> impl DoubleEndedIterator<Item = &'i SharedRow> + use<'i> {
        let is_empty = from.compare(to).is_ge();
        let (from, to): (&dyn IndexPosition, &dyn IndexPosition) = (from, to);
        let range = (Bound::Included(from), Bound::Excluded(to));
        let entries = (!is_empty).then(|| self.entries.range::<_, dyn IndexPosition>(range));
        entries.into_iter().flatten().map(|entry| &entry.row)
    }

    /// Returns the row with these values in all parts.
    pub(super) fn get(&self, edge: &Edge<'_>) -> Option<&SharedRow> {
        let position: &dyn IndexPosition = edge;
        self.entries.get(position).map(|entry| &entry.row)
    }
}
