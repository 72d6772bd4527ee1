//! The query planner of the memory engine. It chooses the index that a query scans, and the edges of the scan.

use std::cmp::Ordering;

use super::index::{Edge, Index, KEY};
use super::predicate::{Test, compile};
use super::rows::Rows;
use crate::filter::{Filter, Op};
use crate::query::Select;
use crate::table::Table;
use crate::value::Value;

/// A query whose columns are resolved to positions.
pub(super) struct Query<'q> {
    /// The tests that a row must pass.
    pub(super) tests: Vec<Test<'q>>,
    /// The order, which is total; empty if the order does not matter.
    pub(super) order: Vec<Part>,
    /// Only rows after this position in the order.
    pub(super) after: Option<&'q [Value]>,
    pub(super) limit: usize,
}

/// A column to sort by.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Part {
    pub(super) at: usize,
    pub(super) descending: bool,
}

/// A scan of an index.
pub(super) struct Scan<'r, 'q> {
    pub(super) index: &'r Index,
    pub(super) from: Edge<'q>,
    pub(super) to: Edge<'q>,
    /// The direction in which the scan returns the rows in the order of the query; `None` if there is no such
    /// direction.
    pub(super) in_order: Option<Direction>,
    /// The number of first parts of the index that the query fixes.
    fixed_parts: usize,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Direction {
    Forwards,
    Backwards,
}

impl<'q> Query<'q> {
    pub(super) fn new(select: &'q Select) -> Self {
        let table = select.table;
        let part = |column: &str, descending| Part {
            at: table.column_index(column).unwrap_or(KEY),
            descending,
        };
        let mut order: Vec<Part> = Vec::with_capacity(select.order.len() + 1);
        order.extend(select.order.iter().map(|by| part(by.column, by.descending)));
        if order.iter().all(|part| part.at != KEY) {
            let descending = order.last().is_some_and(|last| last.descending);
            order.push(Part {
                at: KEY,
                descending,
            });
        }
        Self {
            tests: compile(table, &select.filter),
            order,
            after: select.after.as_deref(),
            limit: select.limit.map_or(usize::MAX, |limit| {
                usize::try_from(limit).unwrap_or(usize::MAX)
            }),
        }
    }

    /// Creates a query for every matching row, in any order.
    pub(super) fn matching(table: &'static Table, filter: &'q Filter) -> Self {
        Self {
            tests: compile(table, filter),
            order: Vec::new(),
            after: None,
            limit: usize::MAX,
        }
    }

    fn fixed_value(&self, column: usize) -> Option<&'q Value> {
        self.tests.iter().find_map(|test| test.fixes(column))
    }

    /// Returns the keys that the query names, and the index of the test that names them.
    pub(super) fn keys(&self) -> Option<(usize, &'q [Value])> {
        let keys = |(at, test): (usize, &Test<'q>)| Some((at, test.one_of(KEY)?));
        self.tests.iter().enumerate().find_map(keys)
    }

    /// Returns the best scan of one index; `None` if no row can match.
    pub(super) fn scan<'r>(&'q self, rows: &'r Rows) -> Option<Scan<'r, 'q>> {
        if let Some(key) = self.fixed_value(KEY) {
            let at = Edge::start().with(key);
            return Some(Scan {
                index: rows.by_key()?,
                from: at,
                to: at.after(),
                in_order: self.after.is_none().then_some(Direction::Forwards),
                fixed_parts: 1,
            });
        }
        let usable = rows
            .indexes()
            .filter(|index| index.covers_all(&self.tests))
            .map(|index| (self.rank(index), index));
        let (rank, index) =
            usable.reduce(|best, other| if other.0 > best.0 { other } else { best })?;
        let (from, to) = self.edges(index, rank.fixed, rank.in_order());
        Some(Scan {
            index,
            from,
            to,
            in_order: rank.in_order(),
            fixed_parts: rank.fixed,
        })
    }

    /// Splits the query into queries that together match the same rows, if each of them has a better scan than the
    /// whole query. This is the case for a disjunction whose parts have separate indexes.
    pub(super) fn union(&self, rows: &Rows, scan: &Scan<'_, '_>) -> Option<Vec<Query<'q>>> {
        let fixed = scan.fixed_parts;
        let split = |(at, test): (usize, &Test<'q>)| {
            let branches = test.alternatives()?.into_iter();
            let branches: Vec<Query<'q>> = branches.map(|tests| self.with(at, tests)).collect();
            let is_better = |query: &Query<'_>| {
                let scan = query.scan(rows);
                scan.is_none_or(|scan| scan.fixed_parts > fixed)
            };
            branches.iter().all(is_better).then_some(branches)
        };
        self.tests.iter().enumerate().find_map(split)
    }

    /// Returns the query with one test replaced by others.
    fn with(&self, replaced: usize, tests: Vec<Test<'q>>) -> Query<'q> {
        let others = self.tests.iter().enumerate();
        let others = others
            .filter(|(at, _)| *at != replaced)
            .map(|(_, test)| test.clone());
        Query {
            tests: tests.into_iter().chain(others).collect(),
            order: self.order.clone(),
            after: self.after,
            limit: self.limit,
        }
    }

    fn rank(&self, index: &Index) -> Rank {
        let is_fixed = |at: &usize| self.fixed_value(*at).is_some();
        let fixed = index.parts().take_while(is_fixed).count();
        let next = index.parts().nth(fixed);
        let direction = self.direction(index, fixed);
        Rank {
            one_row: index.is_unique_by(fixed),
            fixed,
            stops_at_limit: self.limit < usize::MAX && direction.is_some(),
            has_range: next.is_some_and(|at| self.tests.iter().any(|test| test.bounds(at))),
            predicates: index.predicates(),
            forwards: direction == Some(Direction::Forwards),
            backwards: direction == Some(Direction::Backwards),
        }
    }

    /// Returns the direction in which the index returns the rows in the order of the query. Its parts after the fixed
    /// ones must be the parts of the order that are not fixed.
    fn direction(&self, index: &Index, fixed: usize) -> Option<Direction> {
        if self.after_contradicts() {
            return None;
        }
        let order = self
            .order
            .iter()
            .filter(|part| self.fixed_value(part.at).is_none());
        let mut descending = order.clone().map(|part| part.descending);
        let first = descending.next().unwrap_or_default();
        if descending.any(|other| other != first) {
            return None;
        }
        let mut rest = index.parts().skip(fixed);
        let mut order = order.map(|part| part.at);
        // The order and the parts of the index both end with the key, so they end together.
        if order.any(|at| rest.next() != Some(at)) {
            return None;
        }
        Some(if first {
            Direction::Backwards
        } else {
            Direction::Forwards
        })
    }

    /// Returns whether no matching row can be at the position after which the query starts.
    fn after_contradicts(&self) -> bool {
        let after = self.after.unwrap_or_default();
        let mut parts = self.order.iter().zip(after);
        parts.any(|(part, at)| self.fixed_value(part.at).is_some_and(|value| value != at))
    }

    /// Returns the edges between which the index contains every matching row.
    fn edges(
        &'q self,
        index: &Index,
        fixed: usize,
        in_order: Option<Direction>,
    ) -> (Edge<'q>, Edge<'q>) {
        let mut parts = index.parts();
        let values = parts
            .by_ref()
            .take(fixed)
            .filter_map(|at| self.fixed_value(at));
        let prefix = values.fold(Edge::start(), Edge::with);
        let (mut from, mut to) = (prefix, prefix.after());
        if let Some(next) = index.parts().nth(fixed) {
            for test in &self.tests {
                (from, to) = narrow(test, next, prefix, from, to);
            }
        }
        if let (Some(direction), Some(after)) = (in_order, self.after) {
            let in_position = |at: usize| {
                let part = self.order.iter().position(|part| part.at == at)?;
                after.get(part)
            };
            let rest = index.parts().skip(fixed).filter_map(in_position);
            let start = rest.fold(prefix, Edge::with);
            match direction {
                Direction::Forwards => from = from.max(start.after()),
                Direction::Backwards => to = to.min(start),
            }
        }
        (from, to)
    }
}

/// Narrows a range of an index to the rows that can pass a test of the column after the prefix.
fn narrow<'q>(
    test: &'q Test<'q>,
    column: usize,
    prefix: Edge<'q>,
    from: Edge<'q>,
    to: Edge<'q>,
) -> (Edge<'q>, Edge<'q>) {
    match test {
        Test::Compare(at, op, value) if *at == column => {
            let value = prefix.with(value);
            match op {
                Op::Gt => (from.max(value.after()), to),
                Op::Ge => (from.max(value), to),
                Op::Lt => (from, to.min(value)),
                Op::Le => (from, to.min(value.after())),
                Op::Eq | Op::Ne => (from, to),
            }
        }
        Test::Prefix(text) if text.at == column => {
            let from = from.max(prefix.with(&text.first));
            let end = text.end.as_ref().map(|end| prefix.with(end));
            (from, end.map_or(to, |end| to.min(end)))
        }
        _ => (from, to),
    }
}

/// The quality of an index scan. Ranks compare by the fields in this order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Rank {
    /// At most one row matches.
    one_row: bool,
    /// The number of fixed columns.
    fixed: usize,
    /// The scan stops at the limit.
    stops_at_limit: bool,
    /// The column after the fixed ones has a bound.
    has_range: bool,
    /// The number of predicates of the index. Each of them leaves out rows that do not match.
    predicates: usize,
    /// A forward scan returns the rows in the order of the query.
    forwards: bool,
    /// A backward scan returns the rows in the order of the query.
    backwards: bool,
}

impl Rank {
    const fn in_order(self) -> Option<Direction> {
        match self {
            Self { forwards: true, .. } => Some(Direction::Forwards),
            Self {
                backwards: true, ..
            } => Some(Direction::Backwards),
            _ => None,
        }
    }
}

/// Compares two positions in an order. The functions return the value of a position in the n-th part.
pub(super) fn compare<'v>(
    order: &[Part],
    left: impl Fn(usize, Part) -> &'v Value,
    right: impl Fn(usize, Part) -> &'v Value,
) -> Ordering {
    for (n, part) in order.iter().enumerate() {
        let ordering = left(n, *part).cmp(right(n, *part));
        if ordering.is_ne() {
            return if part.descending {
                ordering.reverse()
            } else {
                ordering
            };
        }
    }
    Ordering::Equal
}
