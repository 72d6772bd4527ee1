//! Runs a planned query.

use std::sync::Arc;

use super::index::{KEY, SharedRow};
use super::plan::{Direction, Query, Scan, compare};
use super::predicate::matches;
use super::predicate::value;
use super::rows::Rows;
use crate::value::Value;

/// Passes the matching rows to the visitor in order, up to the limit. Stops at the first error of the visitor.
pub(super) fn visit<E>(
    rows: &Rows,
    query: &Query<'_>,
    mut visit: impl FnMut(&SharedRow) -> Result<(), E>,
) -> Result<(), E> {
    if let Some((at, keys)) = query.keys() {
        let found = with_keys(rows, query, at, keys);
        return found.into_iter().try_for_each(visit);
    }
    let Some(scan) = query.scan(rows) else {
        return Ok(());
    };
    if let Some(branches) = query.union(rows, &scan) {
        return union(rows, query, &branches)
            .into_iter()
            .try_for_each(visit);
    }
    match scan.in_order {
        Some(Direction::Forwards) => matching_rows(&scan, query)
            .take(query.limit)
            .try_for_each(visit),
        Some(Direction::Backwards) => {
            let passing = matching_rows(&scan, query).rev();
            passing.take(query.limit).try_for_each(visit)
        }
        None => sorted_rows(&scan, query)
            .into_iter()
            .try_for_each(&mut visit),
    }
}

/// Returns the number of matching rows.
pub(super) fn count(rows: &Rows, query: &Query<'_>) -> u64 {
    let mut count = 0;
    if query.tests.is_empty() {
        return rows.by_key().map_or(0, |all| all.len() as u64);
    }
    let counted = visit(rows, query, |_| {
        count += 1;
        Ok::<(), std::convert::Infallible>(())
    });
    counted.map_or(0, |()| count)
}

/// Returns the matching rows.
pub(super) fn collect(rows: &Rows, query: &Query<'_>) -> Vec<SharedRow> {
    let mut found = Vec::new();
    let collected = visit(rows, query, |row| {
        found.push(row.clone());
        Ok::<(), std::convert::Infallible>(())
    });
    collected.map_or_else(|never| match never {}, |()| found)
}

/// Returns the matching rows of a scan, in the order of its index.
fn matching_rows<'r>(
    scan: &Scan<'r, '_>,
    query: &Query<'_>,
) -> impl DoubleEndedIterator<Item = &'r SharedRow> {
    let range = scan.index.range(&scan.from, &scan.to);
    range.filter(|row| {
        #[cfg(test)]
        visited::add();
        matches(&query.tests, row)
    })
}

/// Returns the matching rows of a scan whose index has another order than the query.
fn sorted_rows<'r>(scan: &Scan<'r, '_>, query: &Query<'_>) -> Vec<&'r SharedRow> {
    let passing = matching_rows(scan, query);
    let mut found: Vec<&SharedRow> = passing
        .filter(|row| is_after_position(query, row))
        .collect();
    sort(query, &mut found);
    found.truncate(query.limit);
    found
}

/// Returns whether the row is after the position at which the query starts.
fn is_after_position(query: &Query<'_>, row: &SharedRow) -> bool {
    query.after.is_none_or(|after| {
        let ordering = compare(
            &query.order,
            |_, part| value(row, part.at),
            |n, _| value(after, n),
        );
        ordering.is_gt()
    })
}

/// Returns the matching rows of a query that names their keys, in order. `at` is the index of the test that names them.
fn with_keys<'r>(
    rows: &'r Rows,
    query: &Query<'_>,
    at: usize,
    keys: &[Value],
) -> Vec<&'r SharedRow> {
    let (before, behind) = query.tests.split_at(at);
    let others = behind.get(1..).unwrap_or_default();
    let passes = |row: &&SharedRow| {
        #[cfg(test)]
        visited::add();
        matches(before, row) && matches(others, row) && is_after_position(query, row)
    };
    let named = keys.iter().filter_map(|key| rows.get(key));
    let mut found: Vec<&SharedRow> = named.filter(passes).collect();
    sort(query, &mut found);
    found.dedup_by(|left, right| Arc::ptr_eq(left, right));
    found.truncate(query.limit);
    found
}

/// Returns the rows that match at least one of the queries, in order and without duplicates.
fn union<'r>(rows: &'r Rows, query: &Query<'_>, branches: &[Query<'_>]) -> Vec<&'r SharedRow> {
    let mut found = Vec::new();
    for branch in branches {
        let Some(scan) = branch.scan(rows) else {
            continue;
        };
        match scan.in_order {
            Some(Direction::Forwards) => {
                found.extend(matching_rows(&scan, branch).take(branch.limit))
            }
            Some(Direction::Backwards) => {
                found.extend(matching_rows(&scan, branch).rev().take(branch.limit));
            }
            None => found.extend(sorted_rows(&scan, branch)),
        }
    }
    sort(query, &mut found);
    found.dedup_by(|left, right| Arc::ptr_eq(left, right));
    found.truncate(query.limit);
    found
}

/// Sorts the rows by the order of the query, which ends with the key. Sorts by the key if the query has no order.
fn sort(query: &Query<'_>, found: &mut [&SharedRow]) {
    if query.order.is_empty() {
        found.sort_unstable_by(|left, right| value(left, KEY).cmp(value(right, KEY)));
        return;
    }
    found.sort_unstable_by(|left, right| {
        compare(
            &query.order,
            |_, part| value(left, part.at),
            |_, part| value(right, part.at),
        )
    });
}

/// Counts the rows that scans visit. Tests measure the work of a query with it.
#[cfg(test)]
pub(super) mod visited {
    use std::cell::Cell;

    thread_local! {
        static VISITED: Cell<usize> = const { Cell::new(0) };
    }

    pub(super) fn add() {
        VISITED.set(VISITED.get() + 1);
    }

    /// Returns the count and resets it.
    pub(in crate::memory) fn take() -> usize {
        VISITED.take()
    }
}
