//! The query planner of the memory engine: which index a query scans, and between which edges.

use std::cmp::Ordering;

use super::index::{Edge, Index, KEY};
use super::predicate::{Test, compile};
use super::rows::Rows;
use crate::filter::{Filter, Op};
use crate::query::Select;
use crate::table::Table;
use crate::value::Value;

/// A query with the positions of its columns.
pub(super) struct Query<'q> {
    /// What the rows must pass, all of them.
    pub(super) tests: Vec<Test<'q>>,
    /// The order, total; empty when it does not matter.
    pub(super) order: Vec<Part>,
    /// Only rows behind this position in the order.
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
    /// The direction in which it gives the rows in the order of the query; `None` when it gives them in another.
    pub(super) in_order: Option<Direction>,
    /// How many of the index's first parts the query fixes.
    fixed: usize,
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

    /// Every matching row, in any order.
    pub(super) fn matching(table: &'static Table, filter: &'q Filter) -> Self {
        Self {
            tests: compile(table, filter),
            order: Vec::new(),
            after: None,
            limit: usize::MAX,
        }
    }

    fn fixed(&self, column: usize) -> Option<&'q Value> {
        self.tests.iter().find_map(|test| test.fixes(column))
    }

    /// The keys that the query names, and which of its tests does.
    pub(super) fn keys(&self) -> Option<(usize, &'q [Value])> {
        let keys = |(at, test): (usize, &Test<'q>)| Some((at, test.one_of(KEY)?));
        self.tests.iter().enumerate().find_map(keys)
    }

    /// The best scan of one index; `None` when no row can match.
    pub(super) fn scan<'r>(&'q self, rows: &'r Rows) -> Option<Scan<'r, 'q>> {
        if let Some(key) = self.fixed(KEY) {
            let at = Edge::before_all().with(key);
            return Some(Scan {
                index: rows.by_key()?,
                from: at,
                to: at.behind(),
                in_order: self.after.is_none().then_some(Direction::Forwards),
                fixed: 1,
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
            fixed: rank.fixed,
        })
    }

    /// Queries that together match the same rows, each with a better scan than the query has as a whole: those of a
    /// disjunction of which every part has an index of its own.
    pub(super) fn union(&self, rows: &Rows, scan: &Scan<'_, '_>) -> Option<Vec<Query<'q>>> {
        let fixed = scan.fixed;
        let split = |(at, test): (usize, &Test<'q>)| {
            let branches = test.alternatives()?.into_iter();
            let branches: Vec<Query<'q>> = branches.map(|tests| self.with(at, tests)).collect();
            let is_better = |query: &Query<'_>| {
                let scan = query.scan(rows);
                scan.is_none_or(|scan| scan.fixed > fixed)
            };
            branches.iter().all(is_better).then_some(branches)
        };
        self.tests.iter().enumerate().find_map(split)
    }

    /// The query with other tests in the place of one.
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
        let is_fixed = |at: &usize| self.fixed(*at).is_some();
        let fixed = index.parts().take_while(is_fixed).count();
        let next = index.parts().nth(fixed);
        let direction = self.direction(index, fixed);
        Rank {
            one_row: index.is_unique_by(fixed),
            fixed,
            limited: self.limit < usize::MAX && direction.is_some(),
            ranged: next.is_some_and(|at| self.tests.iter().any(|test| test.bounds(at))),
            forwards: direction == Some(Direction::Forwards),
            backwards: direction == Some(Direction::Backwards),
        }
    }

    /// The direction in which the index gives the rows in the order of the query: its parts behind the fixed ones are
    /// the parts of the order that are not fixed.
    fn direction(&self, index: &Index, fixed: usize) -> Option<Direction> {
        if self.after_contradicts() {
            return None;
        }
        let order = self
            .order
            .iter()
            .filter(|part| self.fixed(part.at).is_none());
        let mut descending = order.clone().map(|part| part.descending);
        let first = descending.next().unwrap_or_default();
        if descending.any(|other| other != first) {
            return None;
        }
        let mut rest = index.parts().skip(fixed);
        let mut order = order.map(|part| part.at);
        // The order may end before the index does not: both end with the key.
        if order.any(|at| rest.next() != Some(at)) {
            return None;
        }
        Some(if first {
            Direction::Backwards
        } else {
            Direction::Forwards
        })
    }

    /// Tells whether the position to start behind is one that no matching row can have.
    fn after_contradicts(&self) -> bool {
        let after = self.after.unwrap_or_default();
        let mut parts = self.order.iter().zip(after);
        parts.any(|(part, at)| self.fixed(part.at).is_some_and(|value| value != at))
    }

    /// The edges between which the index has every matching row.
    fn edges(
        &'q self,
        index: &Index,
        fixed: usize,
        in_order: Option<Direction>,
    ) -> (Edge<'q>, Edge<'q>) {
        let mut parts = index.parts();
        let values = parts.by_ref().take(fixed).filter_map(|at| self.fixed(at));
        let prefix = values.fold(Edge::before_all(), Edge::with);
        let (mut from, mut to) = (prefix, prefix.behind());
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
                Direction::Forwards => from = from.max(start.behind()),
                Direction::Backwards => to = to.min(start),
            }
        }
        (from, to)
    }
}

/// Narrows a range of an index to what a test of the column behind the prefix leaves.
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
                Op::Gt => (from.max(value.behind()), to),
                Op::Ge => (from.max(value), to),
                Op::Lt => (from, to.min(value)),
                Op::Le => (from, to.min(value.behind())),
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

/// How good a scan of an index is; the fields are compared one after the other.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Rank {
    /// There is at most one row.
    one_row: bool,
    /// How many columns are fixed.
    fixed: usize,
    /// It ends at the limit.
    limited: bool,
    /// The column behind the fixed ones is bounded.
    ranged: bool,
    /// It gives the rows in order.
    forwards: bool,
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

/// Compares two places in an order, each given by the value it has in the n-th part.
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
