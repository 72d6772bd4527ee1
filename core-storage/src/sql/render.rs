//! Queries and changes of one table as SQL. Names are quoted, values are bound.

use core_domain::port::Direction;

use super::conditions::{after, filter, order_by};
use super::dialect::Dialect;
use super::text::StatementWriter;
use crate::filter::Filter;
use crate::query::{Order, Select};
use crate::table::{Table, Type, Unique};
use crate::value::{Row, Value, ValueRef};

/// Writes an insert that affects no row if the row violates a unique index.
pub(super) fn insert<'q>(w: &mut StatementWriter<'q>, table: &Table, row: &'q Row) {
    insert_new(w, table, row);
    w.sql(" ON CONFLICT DO NOTHING");
}

/// Writes an insert of a row that cannot conflict.
pub(super) fn insert_new<'q>(w: &mut StatementWriter<'q>, table: &Table, row: &'q Row) {
    w.sql("INSERT INTO ").name(table.name).sql(" (");
    w.columns(table, "").sql(") VALUES (");
    w.join_parts(table.columns.iter().zip(row), ", ", |w, (column, value)| {
        w.value(column.kind, value.as_ref());
    });
    w.sql(")");
}

/// Writes an insert that copies the matching rows of a table with the same columns. Rows whose keys are taken are
/// skipped.
pub(super) fn insert_from<'q>(
    w: &mut StatementWriter<'q>,
    dialect: Dialect,
    from: &'static Table,
    to: &'static Table,
    matching: &'q Filter,
) {
    w.sql("INSERT INTO ").name(to.name).sql(" (");
    w.columns(to, "").sql(") SELECT ").columns(from, "");
    w.sql(" FROM ").name(from.name).sql(" WHERE ");
    filter(w, dialect, from, matching);
    w.sql(" ON CONFLICT DO NOTHING");
}

/// Writes an update of the matching rows. With `guards`, it skips rows that would violate one of these unique indexes.
pub(super) fn update<'q>(
    w: &mut StatementWriter<'q>,
    dialect: Dialect,
    table: &'static Table,
    matching: &'q Filter,
    set: &'q [(&'static str, Value)],
    guards: &[&'static Unique],
) {
    w.sql("UPDATE ").name(table.name).sql(" SET ");
    w.join_parts(set, ", ", |w, (column, value)| {
        w.name(column)
            .sql(" = ")
            .value(table.kind_of(column), value.as_ref());
    });
    w.sql(" WHERE ");
    filter(w, dialect, table, matching);
    for unique in guards {
        w.sql(" AND NOT EXISTS (");
        conflicting_row(w, table, unique, set);
        w.sql(")");
    }
}

/// Writes a query for another row that has the same values in the unique index as the changed row would have.
fn conflicting_row<'q>(
    w: &mut StatementWriter<'q>,
    table: &'static Table,
    unique: &'static Unique,
    set: &'q [(&'static str, Value)],
) {
    let (own, key) = (table.name, table.key());
    w.sql("SELECT 1 FROM ")
        .name(own)
        .sql(" o WHERE o.")
        .name(key);
    w.sql(" <> ").name(own).sql(".").name(key);
    for column in unique.columns {
        w.sql(" AND o.").name(column).sql(" = ");
        match set.iter().find(|(name, _)| name == column) {
            Some((_, value)) => w.value(table.kind_of(column), value.as_ref()),
            None => w.name(own).sql(".").name(column),
        };
    }
    for predicate in unique.predicates {
        w.sql(" AND o.");
        super::conditions::predicate(w, *predicate);
        // A change that sets the column is known to match the predicate.
        if set.iter().all(|(name, _)| *name != predicate.column()) {
            w.sql(" AND ").name(own).sql(".");
            super::conditions::predicate(w, *predicate);
        }
    }
}

pub(super) fn delete<'q>(
    w: &mut StatementWriter<'q>,
    dialect: Dialect,
    table: &'static Table,
    matching: &'q Filter,
) {
    w.sql("DELETE FROM ").name(table.name).sql(" WHERE ");
    filter(w, dialect, table, matching);
}

/// Writes a query for the matching rows, in order. A disjunction whose parts exclude each other is selected part by
/// part, because a planner would sort the rows if it saw one condition.
pub(super) fn select<'q>(
    w: &mut StatementWriter<'q>,
    dialect: Dialect,
    select: &'q Select,
    order: &[Order],
    lock: bool,
) {
    let table = select.table;
    let parts = select.filter.conjuncts();
    match disjoint(&parts).filter(|_| !lock) {
        None => select_where(w, select, order, |w| {
            filter(w, dialect, table, &select.filter);
        }),
        Some((at, branches)) => {
            w.join_parts(branches, " UNION ALL ", |w, branch| {
                // Without the limit in each part, a planner would sort all rows of the part.
                let limited = select.limit.filter(|_| dialect.plans_by_limit());
                if limited.is_some() {
                    w.sql("(");
                }
                select_where(w, select, order, |w| {
                    with_branch(w, dialect, table, &parts, at, branch);
                });
                if let Some(limit) = limited {
                    order_by(w, order);
                    self::limit(w, dialect, limit);
                    w.sql(")");
                }
            });
        }
    }
    order_by(w, order);
    if let Some(limit) = select.limit {
        self::limit(w, dialect, limit);
    }
    if lock {
        w.sql(dialect.row_lock());
    }
}

/// Writes a query for the rows that meet a condition, after the position at which the query starts.
fn select_where<'q>(
    w: &mut StatementWriter<'q>,
    select: &'q Select,
    order: &[Order],
    condition: impl FnOnce(&mut StatementWriter<'q>),
) {
    let table = select.table;
    w.sql("SELECT ").columns(table, "");
    w.sql(" FROM ").name(table.name).sql(" WHERE ");
    condition(w);
    if let Some(position) = &select.after {
        w.sql(" AND ");
        after(w, table, order, position);
    }
}

/// Writes the LIMIT clause.
pub(super) fn limit(w: &mut StatementWriter<'_>, dialect: Dialect, limit: u32) {
    w.sql(" LIMIT ");
    if dialect.plans_by_limit() {
        w.number(limit);
    } else {
        w.value(Type::Int, ValueRef::Int(i64::from(limit)));
    }
}

pub(super) fn count<'q>(
    w: &mut StatementWriter<'q>,
    dialect: Dialect,
    table: &'static Table,
    matching: &'q Filter,
) {
    let parts = matching.conjuncts();
    let Some((at, branches)) = disjoint(&parts) else {
        w.sql("SELECT COUNT(*) FROM ")
            .name(table.name)
            .sql(" WHERE ");
        return filter(w, dialect, table, matching);
    };
    w.sql("SELECT ").join_parts(branches, " + ", |w, branch| {
        w.sql("(SELECT COUNT(*) FROM ")
            .name(table.name)
            .sql(" WHERE ");
        with_branch(w, dialect, table, &parts, at, branch);
        w.sql(")");
    });
}

/// Finds the part of a conjunction that is a [`Filter::Disjoint`]. Returns its index and its branches.
fn disjoint<'q>(parts: &[&'q Filter]) -> Option<(usize, &'q [Filter])> {
    parts.iter().enumerate().find_map(|(at, part)| match part {
        Filter::Disjoint(branches) if !branches.is_empty() => Some((at, branches.as_slice())),
        _ => None,
    })
}

/// Writes the conjunction with one part replaced by a branch.
fn with_branch<'q>(
    w: &mut StatementWriter<'q>,
    dialect: Dialect,
    table: &'static Table,
    parts: &[&'q Filter],
    at: usize,
    branch: &'q Filter,
) {
    let parts = parts.iter().enumerate();
    let parts = parts.map(|(n, part)| if n == at { branch } else { part });
    w.join_parts(parts, " AND ", |w, part| {
        filter(w, dialect, table, part);
    });
}

pub(super) fn sum<'q>(
    w: &mut StatementWriter<'q>,
    dialect: Dialect,
    table: &'static Table,
    column: &'static str,
    groups: &[&'static str],
    matching: &'q Filter,
) {
    w.sql("SELECT ");
    for group in groups {
        w.name(group).sql(", ");
    }
    // Postgres returns sums of integers as NUMERIC. The cast fails if the sum exceeds 64 bits.
    w.sql("COUNT(*), CAST(COALESCE(SUM(")
        .name(column)
        .sql("), 0) AS BIGINT) FROM ");
    w.name(table.name).sql(" WHERE ");
    filter(w, dialect, table, matching);
    if groups.is_empty() {
        return;
    }
    for clause in [" GROUP BY ", " ORDER BY "] {
        w.sql(clause).join_parts(groups, ", ", |w, group| {
            w.name(group);
        });
    }
}

/// Writes a walk of a tree by its parent column. The depth limits the recursion, so a cycle ends too.
pub(super) fn walk<'q>(
    w: &mut StatementWriter<'q>,
    dialect: Dialect,
    table: &'static Table,
    key: &'q str,
    direction: Direction,
    depth: u32,
    matching: &'q Filter,
) {
    let (name, id, parent) = (table.name, table.key(), table.parent.unwrap_or_default());
    let (kind, start) = (table.kind_of(id), ValueRef::Text(key));
    w.sql("WITH RECURSIVE w (id, parent, depth) AS (SELECT ")
        .name(id);
    w.sql(", ")
        .name(parent)
        .sql(", CAST(0 AS BIGINT) FROM ")
        .name(name);
    w.sql(" WHERE ").name(id).sql(" = ").value(kind, start);
    w.sql(" UNION ALL SELECT n.")
        .name(id)
        .sql(", n.")
        .name(parent);
    w.sql(", w.depth + 1 FROM ")
        .name(name)
        .sql(" n JOIN w ON n.");
    match direction {
        Direction::Ancestors => w.name(id).sql(" = w.parent"),
        Direction::Descendants => w.name(parent).sql(" = w.id"),
    };
    w.sql(" WHERE n.").name(id).sql(" <> ").value(kind, start);
    w.sql(" AND w.depth < ")
        .value(Type::Int, ValueRef::Int(i64::from(depth)));
    w.sql(") SELECT ")
        .columns(table, "t.")
        .sql(" FROM (SELECT * FROM ")
        .name(name);
    w.sql(" WHERE ");
    filter(w, dialect, table, matching);
    w.sql(") t JOIN (SELECT id, MIN(depth) AS depth FROM w GROUP BY id) w ON t.")
        .name(id);
    w.sql(" = w.id WHERE w.depth > 0 ORDER BY w.depth");
    w.sql(match direction {
        Direction::Ancestors => " DESC, t.",
        Direction::Descendants => " ASC, t.",
    });
    w.name(id);
}
