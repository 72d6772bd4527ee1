//! Conditions of a WHERE clause, and the ORDER BY clause.

use std::borrow::Cow;

use core_domain::kernel::is_uuid;

use super::dialect::Dialect;
use super::text::StatementWriter;
use super::uuid_order::first_uuid_from;
use crate::filter::{Filter, Op, prefix_end};
use crate::query::Order;
use crate::table::{IndexPredicate, Table, Type};
use crate::value::{Value, ValueRef};

pub(super) fn filter<'q>(
    w: &mut StatementWriter<'q>,
    dialect: Dialect,
    table: &'static Table,
    condition: &'q Filter,
) {
    match condition {
        Filter::And(all) if all.is_empty() => {
            w.sql("TRUE");
        }
        Filter::Or(any) | Filter::Disjoint(any) if any.is_empty() => {
            w.sql("FALSE");
        }
        Filter::And(all) => group(w, dialect, table, all, " AND "),
        Filter::Or(any) | Filter::Disjoint(any) => group(w, dialect, table, any, " OR "),
        Filter::Compare(column, op, value) => compare(w, table, column, *op, value),
        Filter::In(column, values) => match values.as_slice() {
            [] => {
                w.sql("FALSE");
            }
            // Postgres estimates an array at ten values, and would plan the statement again for every value.
            [value] => compare(w, table, column, Op::Eq, value),
            values => one_of(w, dialect, table, column, values),
        },
        Filter::IsNull(column) => {
            w.name(column).sql(" IS NULL");
        }
        Filter::NotNull(column) => {
            w.name(column).sql(" IS NOT NULL");
        }
        Filter::Prefix(column, prefix) => {
            let kind = table.kind_of(column);
            w.sql("(");
            compare_text(w, column, kind, Op::Ge, Cow::Borrowed(prefix));
            if let Some(end) = prefix_end(prefix) {
                w.sql(" AND ");
                compare_text(w, column, kind, Op::Lt, Cow::Owned(end));
            }
            w.sql(")");
        }
    }
}

fn compare<'q>(
    w: &mut StatementWriter<'q>,
    table: &Table,
    column: &'static str,
    op: Op,
    value: &'q Value,
) {
    let kind = table.kind_of(column);
    match (literal(table, column, op, value), value) {
        (Some(literal), _) => {
            w.name(column).sql(operator(op)).literal(literal);
        }
        (None, Value::Text(text)) => compare_text(w, column, kind, op, Cow::Borrowed(text)),
        (None, _) => {
            w.name(column).sql(operator(op)).value(kind, value.as_ref());
        }
    }
}

/// Writes a comparison with a text, which may be any text also if the column stores UUIDs.
fn compare_text<'q>(
    w: &mut StatementWriter<'q>,
    column: &'static str,
    kind: Type,
    op: Op,
    text: Cow<'q, str>,
) {
    if w.stored_type(kind) != Type::Uuid || is_uuid(&text) {
        w.name(column).sql(operator(op));
        match text {
            Cow::Borrowed(text) => w.value(kind, ValueRef::Text(text)),
            Cow::Owned(text) => w.text_value(kind, text),
        };
        return;
    }
    let (op, from) = match op {
        Op::Eq | Op::Ne => (op, None),
        // No UUID equals the text.
        Op::Lt | Op::Le => (Op::Lt, first_uuid_from(&text)),
        Op::Gt | Op::Ge => (Op::Ge, first_uuid_from(&text)),
    };
    match (op, from) {
        (_, Some(from)) => w.name(column).sql(operator(op)).text_value(kind, from),
        (Op::Ne | Op::Lt, None) => w.name(column).sql(" IS NOT NULL"),
        (_, None) => w.sql("FALSE"),
    };
}

fn group<'q>(
    w: &mut StatementWriter<'q>,
    dialect: Dialect,
    table: &'static Table,
    parts: &'q [Filter],
    separator: &'static str,
) {
    w.sql("(");
    w.join_parts(parts, separator, |w, part| filter(w, dialect, table, part));
    w.sql(")");
}

/// Returns the text of an index predicate if the comparison is the same. A planner uses a partial index only if the
/// statement contains its values as literals.
fn literal(table: &Table, column: &str, op: Op, value: &Value) -> Option<&'static str> {
    match (op, value) {
        (Op::Eq, Value::Text(text)) => table.index_literal(column, text),
        _ => None,
    }
}

fn one_of<'q>(
    w: &mut StatementWriter<'q>,
    dialect: Dialect,
    table: &'static Table,
    column: &'static str,
    values: &'q [Value],
) {
    let literal = |value: &Value| literal(table, column, Op::Eq, value);
    let literals: Option<Vec<_>> = values.iter().map(literal).collect();
    w.name(column);
    if let Some(literals) = literals {
        w.sql(" IN (").join_parts(literals, ", ", |w, literal| {
            w.literal(literal);
        });
        w.sql(")");
        return;
    }
    let kind = table.kind_of(column);
    if dialect.has_arrays() {
        // No stored UUID equals another text.
        let can_equal = |value: &&Value| w.stored_type(kind) != Type::Uuid || kind.accepts(value);
        let values = values.iter().filter(can_equal).map(Value::as_ref);
        let values = values.collect();
        w.sql(" = ANY(").array(kind, values).sql(")");
        return;
    }
    let values = values.iter().map(Value::as_ref);
    w.sql(" IN (");
    w.join_parts(pad_to_power_of_two(values.collect()), ", ", |w, value| {
        w.value(kind, value);
    });
    w.sql(")");
}

/// Repeats the last value up to the next power of two, so that lists of different lengths share few statement texts.
fn pad_to_power_of_two(mut values: Vec<ValueRef<'_>>) -> Vec<ValueRef<'_>> {
    if let Some(last) = values.last().copied() {
        values.resize(values.len().next_power_of_two(), last);
    }
    values
}

/// Writes the condition for the rows after a keyset position.
pub(super) fn after<'q>(
    w: &mut StatementWriter<'q>,
    table: &'static Table,
    order: &[Order],
    position: &'q [Value],
) {
    let descending = order.first().is_some_and(|part| part.descending);
    if order.iter().all(|part| part.descending == descending) {
        w.sql("(").join_parts(order, ", ", |w, part| {
            w.name(part.column);
        });
        w.sql(if descending { ") < (" } else { ") > (" });
        w.join_parts(order.iter().zip(position), ", ", |w, (part, value)| {
            w.value(table.kind_of(part.column), value.as_ref());
        });
        w.sql(")");
        return;
    }
    // Row values cannot be compared in mixed directions. Instead, for each n: equal in the first n parts, and beyond in
    // the next part.
    w.sql("(");
    w.join_parts(0..order.len(), " OR ", |w, length| {
        w.sql("(");
        let parts = order.iter().zip(position).take(length + 1).enumerate();
        w.join_parts(parts, " AND ", |w, (at, (part, value))| {
            w.name(part.column)
                .sql(match (at == length, part.descending) {
                    (false, _) => " = ",
                    (true, true) => " < ",
                    (true, false) => " > ",
                });
            w.value(table.kind_of(part.column), value.as_ref());
        });
        w.sql(")");
    });
    w.sql(")");
}

pub(super) fn order_by(w: &mut StatementWriter<'_>, order: &[Order]) {
    w.sql(" ORDER BY ").join_parts(order, ", ", |w, part| {
        w.name(part.column);
        w.sql(if part.descending { " DESC" } else { " ASC" });
    });
}

/// Writes the predicate of a partial index.
pub(super) fn predicate(w: &mut StatementWriter<'_>, predicate: IndexPredicate) {
    match predicate {
        IndexPredicate::IsNull(column) => w.name(column).sql(" IS NULL"),
        IndexPredicate::NotNull(column) => w.name(column).sql(" IS NOT NULL"),
        IndexPredicate::Is(column, text) => w.name(column).sql(" = ").literal(text),
        IndexPredicate::OneOf(column, texts) => {
            w.name(column)
                .sql(" IN (")
                .join_parts(texts, ", ", |w, text| {
                    w.literal(text);
                });
            w.sql(")")
        }
    };
}

const fn operator(op: Op) -> &'static str {
    match op {
        Op::Eq => " = ",
        Op::Ne => " <> ",
        Op::Lt => " < ",
        Op::Le => " <= ",
        Op::Gt => " > ",
        Op::Ge => " >= ",
    }
}
