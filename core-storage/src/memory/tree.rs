//! Walks of a tree of rows by the parent column.

use std::collections::HashSet;

use super::index::{KEY, SharedRow};
use super::plan::Query;
use super::predicate::value;
use super::rows::Rows;
use super::scan;
use crate::filter::Filter;
use crate::value::Value;

/// Returns the ancestors of the row, root first.
pub(super) fn ancestors(rows: &Rows, key: &Value, depth: u32) -> Vec<SharedRow> {
    let parent_column = rows.table.parent;
    let Some(parent_column) = parent_column.and_then(|name| rows.table.column_index(name)) else {
        return Vec::new();
    };
    let mut visited: HashSet<&Value> = HashSet::from([key]);
    let mut found = Vec::new();
    let mut current = rows.get(key);
    for _ in 0..depth {
        let parent = current.and_then(|row| rows.get(value(row, parent_column)));
        let Some(row) = parent.filter(|row| visited.insert(value(row, KEY))) else {
            break;
        };
        found.push(row.clone());
        current = Some(row);
    }
    found.reverse();
    found
}

/// Returns the descendants of the row, nearest first.
pub(super) fn descendants(rows: &Rows, key: &Value, depth: u32) -> Vec<SharedRow> {
    let Some(parent_column) = rows.table.parent.filter(|_| rows.get(key).is_some()) else {
        return Vec::new();
    };
    let mut visited: HashSet<Value> = HashSet::from([key.clone()]);
    let mut found = Vec::new();
    let mut level = vec![key.clone()];
    for _ in 0..depth {
        let mut next = Vec::new();
        for parent in level {
            let children = Filter::eq(parent_column, parent);
            next.extend(scan::collect(rows, &Query::matching(rows.table, &children)));
        }
        next.retain(|row| visited.insert(value(row, KEY).clone()));
        if next.is_empty() {
            break;
        }
        next.sort_unstable_by(|left, right| value(left, KEY).cmp(value(right, KEY)));
        level = next.iter().map(|row| value(row, KEY).clone()).collect();
        found.extend(next);
    }
    found
}
