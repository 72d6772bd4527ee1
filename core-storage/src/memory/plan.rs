//! The query planner of the memory engine: an index scan where an index gives the order, else a sort.

use std::collections::HashSet;
use std::ops::Bound;
use std::sync::Arc;

use super::rows::{Entry, Index, Rows, Slot};
use crate::filter::{Filter, Op, prefix_end};
use crate::query::{Order, Select, compare_positions, keyset_position};
use crate::value::{Row, Value};

/// The matching rows, in order.
pub(super) fn run(rows: &Rows, select: &Select) -> Vec<Arc<Row>> {
    let limit = select.limit.map_or(usize::MAX, |limit| {
        usize::try_from(limit).unwrap_or(usize::MAX)
    });
    let order = select.full_order();
    let fixed = fixed(&select.filter);
    if let Some(key) = value_of(&fixed, rows.table.key()).and_then(Value::as_text) {
        return sorted(select, &order, rows.get(key).into_iter(), limit);
    }
    let descending = order.first().is_some_and(|part| part.descending);
    if order.iter().all(|part| part.descending == descending)
        && let Some(found) = in_index_order(rows, select, &order, &fixed, descending, limit)
    {
        return found;
    }
    match best_index(rows, select, &fixed) {
        Some(index) => {
            let (from, to) = bounds(rows, index, &select.filter, &fixed);
            if is_empty(&from, &to) {
                return Vec::new();
            }
            let candidates = index.range(from, to).filter_map(|entry| rows.row(entry));
            sorted(select, &order, candidates, limit)
        }
        None => {
            let all = rows.by_key(Bound::Unbounded, Bound::Unbounded);
            sorted(select, &order, all, limit)
        }
    }
}

/// The columns that the filter fixes to one value.
fn fixed(filter: &Filter) -> Vec<(&'static str, &Value)> {
    let fixes = |part: &Filter| matches!(part, Filter::Compare(_, Op::Eq, _));
    filter
        .conjuncts()
        .into_iter()
        .filter(|part| fixes(part))
        .filter_map(|part| match part {
            Filter::Compare(column, _, value) if !value.is_null() => Some((*column, value)),
            _ => None,
        })
        .collect()
}

fn value_of<'f>(fixed: &[(&'static str, &'f Value)], column: &str) -> Option<&'f Value> {
    fixed
        .iter()
        .find(|(name, _)| *name == column)
        .map(|(_, value)| *value)
}

fn leading_fixed(index: &Index, fixed: &[(&'static str, &Value)]) -> usize {
    let is_fixed = |column: &&&str| value_of(fixed, column).is_some();
    index.columns.iter().take_while(is_fixed).count()
}

/// Scans an index whose first columns are fixed and whose others are the order; `None` when there is no such index.
fn in_index_order(
    rows: &Rows,
    select: &Select,
    order: &[Order],
    fixed: &[(&'static str, &Value)],
    descending: bool,
    limit: usize,
) -> Option<Vec<Arc<Row>>> {
    if select
        .after
        .as_ref()
        .is_some_and(|after| contradicts_fixed(order, after, fixed))
    {
        return None;
    }
    let remaining: Vec<&str> = order
        .iter()
        .map(|part| part.column)
        .filter(|column| value_of(fixed, column).is_none())
        .collect();
    let key = rows.table.key();
    let gives_order = |index: &&Index| {
        let rest = index.columns[leading_fixed(index, fixed)..].iter().copied();
        index.is_full() && rest.chain([key]).eq(remaining.iter().copied())
    };
    let Some(index) = rows.indexes.iter().find(gives_order) else {
        return (remaining == [key] && fixed.is_empty())
            .then(|| by_key(rows, select, descending, limit));
    };
    let (mut from, mut to) = bounds(rows, index, &select.filter, fixed);
    if let Some(after) = &select.after {
        let start = Bound::Excluded(entry_at(index, key, order, after, fixed));
        if descending {
            to = lower_of(to, start);
        } else {
            from = higher_of(from, start);
        }
    }
    if is_empty(&from, &to) {
        return Some(Vec::new());
    }
    let range = index.range(from, to);
    let matches = |row: &&Arc<Row>| select.filter.matches(rows.table, row);
    let found = if descending {
        let scan = range.rev().filter_map(|entry| rows.row(entry));
        scan.filter(matches).take(limit).cloned().collect()
    } else {
        let scan = range.filter_map(|entry| rows.row(entry));
        scan.filter(matches).take(limit).cloned().collect()
    };
    Some(found)
}

/// Tells whether a keyset position contradicts a fixed column; an index range cannot start there then.
fn contradicts_fixed(order: &[Order], after: &[Value], fixed: &[(&'static str, &Value)]) -> bool {
    let mut position = order.iter().zip(after);
    position.any(|(part, at)| value_of(fixed, part.column).is_some_and(|value| value != at))
}

fn by_key(rows: &Rows, select: &Select, descending: bool, limit: usize) -> Vec<Arc<Row>> {
    let after = select.after.as_ref().and_then(|position| position.first());
    let after = after
        .and_then(Value::as_text)
        .map_or(Bound::Unbounded, Bound::Excluded);
    let matches = |row: &&Arc<Row>| select.filter.matches(rows.table, row);
    if descending {
        let scan = rows.by_key(Bound::Unbounded, after).rev();
        scan.filter(matches).take(limit).cloned().collect()
    } else {
        let scan = rows.by_key(after, Bound::Unbounded);
        scan.filter(matches).take(limit).cloned().collect()
    }
}

/// The index that is likely to leave the fewest candidates: the one with most columns in equalities, then a range.
fn best_index<'r>(
    rows: &'r Rows,
    select: &Select,
    fixed: &[(&'static str, &Value)],
) -> Option<&'r Index> {
    let selectivity = |index: &Index| {
        let fixed = leading_fixed(index, fixed);
        let ranged = index
            .columns
            .get(fixed)
            .is_some_and(|column| has_range(&select.filter, column));
        2 * fixed + usize::from(ranged)
    };
    rows.indexes
        .iter()
        .filter(|index| index.is_full() && selectivity(index) > 0)
        .max_by_key(|index| selectivity(index))
}

fn has_range(filter: &Filter, column: &str) -> bool {
    filter.conjuncts().into_iter().any(|part| match part {
        Filter::Compare(name, op, _) => *name == column && !matches!(op, Op::Ne),
        Filter::Prefix(name, _) => *name == column,
        _ => false,
    })
}

/// The range of the index that can contain matching rows.
fn bounds(
    rows: &Rows,
    index: &Index,
    filter: &Filter,
    fixed: &[(&'static str, &Value)],
) -> (Bound<Entry>, Bound<Entry>) {
    let leading = leading_fixed(index, fixed);
    let prefix: Entry = index.columns[..leading]
        .iter()
        .filter_map(|column| value_of(fixed, column))
        .map(|value| Slot::Value(value.clone()))
        .collect();
    let at = |parts: &[Slot]| -> Entry { prefix.iter().chain(parts).cloned().collect() };
    let mut from = Bound::Included(at(&[]));
    let mut to = Bound::Excluded(at(&[Slot::Top]));
    let next = index.columns.get(leading).copied();
    let next = next.unwrap_or_else(|| rows.table.key());
    for part in filter.conjuncts() {
        match part {
            Filter::Compare(column, op, value) if *column == next => {
                let value = Slot::Value(value.clone());
                match op {
                    Op::Gt => from = higher_of(from, Bound::Excluded(at(&[value, Slot::Top]))),
                    Op::Ge => from = higher_of(from, Bound::Included(at(&[value]))),
                    Op::Lt => to = lower_of(to, Bound::Excluded(at(&[value]))),
                    Op::Le => to = lower_of(to, Bound::Excluded(at(&[value, Slot::Top]))),
                    Op::Eq | Op::Ne => {}
                }
            }
            Filter::Prefix(column, text) if *column == next => {
                let start = Slot::Value(Value::text(text));
                from = higher_of(from, Bound::Included(at(&[start])));
                if let Some(end) = prefix_end(text) {
                    let end = Slot::Value(Value::text(&end));
                    to = lower_of(to, Bound::Excluded(at(&[end])));
                }
            }
            _ => {}
        }
    }
    (from, to)
}

fn entry_at(
    index: &Index,
    key: &'static str,
    order: &[Order],
    after: &[Value],
    fixed: &[(&'static str, &Value)],
) -> Entry {
    let in_position = |column: &str| {
        let at = order.iter().position(|part| part.column == column)?;
        after.get(at)
    };
    index
        .columns
        .iter()
        .chain([&key])
        .filter_map(|column| value_of(fixed, column).or_else(|| in_position(column)))
        .map(|value| Slot::Value(value.clone()))
        .collect()
}

fn entry(bound: &Bound<Entry>) -> Option<&Entry> {
    match bound {
        Bound::Included(entry) | Bound::Excluded(entry) => Some(entry),
        Bound::Unbounded => None,
    }
}

fn higher_of(left: Bound<Entry>, right: Bound<Entry>) -> Bound<Entry> {
    let right_wins = match entry(&left).cmp(&entry(&right)) {
        std::cmp::Ordering::Less => true,
        std::cmp::Ordering::Equal => matches!(right, Bound::Excluded(_)),
        std::cmp::Ordering::Greater => false,
    };
    if right_wins { right } else { left }
}

fn lower_of(left: Bound<Entry>, right: Bound<Entry>) -> Bound<Entry> {
    let right_wins = match entry(&left).cmp(&entry(&right)) {
        std::cmp::Ordering::Greater => true,
        std::cmp::Ordering::Equal => matches!(right, Bound::Excluded(_)),
        std::cmp::Ordering::Less => false,
    };
    if right_wins { right } else { left }
}

fn is_empty(from: &Bound<Entry>, to: &Bound<Entry>) -> bool {
    entry(from) >= entry(to)
}

/// Filters, sorts, skips to the keyset position and applies the limit.
fn sorted<'r>(
    select: &Select,
    order: &[Order],
    candidates: impl Iterator<Item = &'r Arc<Row>>,
    limit: usize,
) -> Vec<Arc<Row>> {
    let mut found: Vec<(Vec<Value>, &Arc<Row>)> = candidates
        .filter(|row| select.filter.matches(select.table, row))
        .map(|row| (keyset_position(order, select.table, row), row))
        .filter(|(position, _)| {
            let after = select.after.as_ref();
            after.is_none_or(|after| compare_positions(order, position, after).is_gt())
        })
        .collect();
    found.sort_by(|left, right| compare_positions(order, &left.0, &right.0));
    found
        .into_iter()
        .take(limit)
        .map(|(_, row)| row.clone())
        .collect()
}

/// The parents of the row, root first.
pub(super) fn ancestors(rows: &Rows, key: &str, depth: u32) -> Vec<Arc<Row>> {
    let Some(parent_column) = rows.table.parent else {
        return Vec::new();
    };
    let mut visited: HashSet<String> = HashSet::from([key.to_owned()]);
    let mut found = Vec::new();
    let mut current = rows.get(key);
    for _ in 0..depth {
        let parent = current.and_then(|row| rows.table.value(row, parent_column).as_text());
        let Some(row) = parent.and_then(|parent| rows.get(parent)) else {
            break;
        };
        if !visited.insert(
            rows.table
                .value(row, rows.table.key())
                .as_text()
                .unwrap_or_default()
                .to_owned(),
        ) {
            break;
        }
        found.push(row.clone());
        current = Some(row);
    }
    found.reverse();
    found
}

/// The children of the row, and theirs, nearest first.
pub(super) fn descendants(rows: &Rows, key: &str, depth: u32) -> Vec<Arc<Row>> {
    let Some(parent_column) = rows.table.parent.filter(|_| rows.get(key).is_some()) else {
        return Vec::new();
    };
    let mut visited: HashSet<String> = HashSet::from([key.to_owned()]);
    let mut found = Vec::new();
    let mut level = vec![key.to_owned()];
    for _ in 0..depth {
        let mut next: Vec<(String, Arc<Row>)> = Vec::new();
        for parent in &level {
            let children = Select::of(rows.table).filter(Filter::eq(parent_column, parent));
            for row in run(rows, &children) {
                let child = rows.table.value(&row, rows.table.key()).as_text();
                let child = child.unwrap_or_default().to_owned();
                if visited.insert(child.clone()) {
                    next.push((child, row));
                }
            }
        }
        if next.is_empty() {
            break;
        }
        next.sort_by(|left, right| left.0.cmp(&right.0));
        level = next.iter().map(|(child, _)| child.clone()).collect();
        found.extend(next.into_iter().map(|(_, row)| row));
    }
    found
}
