//! An ordered index: the rows of a table that it covers, sorted by its columns and then by the key.
//!
//! An entry is the row itself, shared, with the positions of the columns it is compared by: nothing of the row is copied,
//! and a scan has the rows at hand.

use std::borrow::Borrow;
use std::cmp::Ordering;
use std::ops::Bound;
use std::sync::Arc;

use imbl::OrdSet;

use super::predicate::{NULL, Test, value};
use crate::table::{IndexPredicate, Table, Unique};
use crate::value::Value;

/// A row, shared by the indexes and the snapshots it is in.
pub(super) type SharedRow = Arc<[Value]>;

/// So many columns of an index are compared; one with more is sorted by its first.
const MAX_COLUMNS: usize = 7;
/// The key stands behind the columns.
const MAX_PARTS: usize = MAX_COLUMNS + 1;
/// The key is the first column of every table.
pub(super) const KEY: usize = 0;

/// The positions in a row of the columns of an index. Small, because every entry has them.
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

    /// The positions of the columns and, behind them, of the key.
    fn parts(&self) -> impl Iterator<Item = usize> {
        let columns = self.at.iter().take(usize::from(self.len));
        columns.map(|at| usize::from(*at)).chain([KEY])
    }
}

/// A part of a place in an index. `Start` is less than every value and `End` greater; neither is ever stored.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Part<'a> {
    Start,
    Value(&'a Value),
    End,
}

/// What has a place in the order of an index: its entries, and the edges of ranges.
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

/// An edge of a range: before, or behind, all entries that begin with these values.
#[derive(Clone, Copy)]
pub(super) struct Edge<'q> {
    values: [&'q Value; MAX_PARTS],
    len: usize,
    behind: bool,
}

impl<'q> Edge<'q> {
    /// Before the first entry of the index.
    pub(super) fn before_all() -> Self {
        Self {
            values: [&NULL; MAX_PARTS],
            len: 0,
            behind: false,
        }
    }

    /// One value more.
    pub(super) fn with(mut self, value: &'q Value) -> Self {
        if let Some(slot) = self.values.get_mut(self.len) {
            *slot = value;
            self.len += 1;
        }
        self
    }

    /// Behind the entries that begin with its values.
    pub(super) const fn behind(mut self) -> Self {
        self.behind = true;
        self
    }

    fn compare(&self, other: &Self) -> Ordering {
        let (left, right): (&dyn IndexPosition, &dyn IndexPosition) = (self, other);
        left.cmp(right)
    }

    /// The later of two.
    pub(super) fn max(self, other: Self) -> Self {
        if self.compare(&other).is_lt() {
            other
        } else {
            self
        }
    }

    /// The earlier of two.
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
            None if self.behind => Part::End,
            None => Part::Start,
        }
    }
}

/// What an index is, apart from its entries.
#[derive(Debug)]
struct Shape {
    /// What entries are compared by.
    columns: Columns,
    /// All of its columns.
    positions: Vec<usize>,
    /// The name of the unique index it implements, if it does.
    unique: Option<&'static str>,
    /// Covers only rows for which all of these are true.
    predicates: Vec<(usize, IndexPredicate)>,
}

/// An ordered index. A clone shares everything with the original until one of them changes.
#[derive(Clone, Debug)]
pub(super) struct Index {
    shape: Arc<Shape>,
    entries: OrdSet<Entry>,
}

impl Index {
    /// An index over these columns and the key.
    pub(super) fn new(table: &Table, columns: &[&str]) -> Self {
        Self::build(table, columns, &[], None)
    }

    /// An index of the table's description.
    pub(super) fn declared(table: &Table, index: &crate::table::Index) -> Self {
        Self::build(table, index.columns, index.predicates, None)
    }

    /// The index that keeps a unique index unique.
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

    /// How many rows it covers.
    pub(super) fn len(&self) -> usize {
        self.entries.len()
    }

    /// The positions of its columns and, behind them, of the key.
    pub(super) fn parts(&self) -> impl Iterator<Item = usize> {
        self.shape.columns.parts()
    }

    /// Tells whether no two of its entries have the same values, NULLs aside, in so many of its first parts.
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

    /// Tells whether it covers every row that passes all of the tests.
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

    /// The name of the unique index, if a row with another key has the same values in it.
    pub(super) fn conflict(&self, row: &[Value]) -> Option<&'static str> {
        let name = self.shape.unique?;
        let columns = &self.shape.positions;
        if columns.iter().any(|at| value(row, *at).is_null()) || !self.covers(row) {
            return None;
        }
        let compared = columns.iter().take(usize::from(self.shape.columns.len));
        let from = compared.fold(Edge::before_all(), |edge, at| edge.with(value(row, *at)));
        let is_taken_by = |other: &SharedRow| {
            let same = |at: &usize| value(other, *at) == value(row, *at);
            value(other, KEY) != value(row, KEY) && columns.iter().all(same)
        };
        let mut others = self.range(&from, &from.behind());
        others.any(is_taken_by).then_some(name)
    }

    /// Tells whether two rows have the same values in all columns that the index depends on.
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

    /// The rows between two edges, in order.
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

    /// The row with these values in all of its parts.
    pub(super) fn get(&self, edge: &Edge<'_>) -> Option<&SharedRow> {
        let position: &dyn IndexPosition = edge;
        self.entries.get(position).map(|entry| &entry.row)
    }
}
