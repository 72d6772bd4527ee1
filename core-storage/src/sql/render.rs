//! Renders queries and changes as SQL. Names are quoted, values are bound, and both databases take the same text.

use std::fmt::Write;

use core_domain::port::Direction;

use crate::filter::{Filter, Op, prefix_end};
use crate::query::{Order, Select};
use crate::table::{Table, Type, Unique};
use crate::value::{Row, Value};

/// A statement and the values bound to its `$1`, `$2`, .. with the types of their columns.
#[derive(Debug, Default)]
pub(crate) struct Statement {
    pub(crate) text: String,
    pub(crate) binds: Vec<(Type, Value)>,
}

/// A name as an identifier of SQL.
#[must_use]
pub fn quoted(name: &str) -> String {
    format!("\"{}\"", name.replace('"', "\"\""))
}

impl Statement {
    fn new(text: impl Into<String>) -> Self {
        Self {
            text: text.into(),
            binds: Vec::new(),
        }
    }

    fn push(&mut self, text: &str) -> &mut Self {
        self.text.push_str(text);
        self
    }

    fn bind(&mut self, kind: Type, value: &Value) -> &mut Self {
        self.binds.push((kind, value.clone()));
        let _ = write!(self.text, "${}", self.binds.len());
        self
    }

    /// Binds a value as the type of the column it belongs to.
    fn bind_for(&mut self, table: &Table, column: &str, value: &Value) -> &mut Self {
        let kind = table
            .column_index(column)
            .and_then(|at| table.columns.get(at));
        self.bind(kind.map_or(Type::Text, |column| column.kind), value)
    }

    /// Writes the parts with a separator.
    fn joined<T>(
        &mut self,
        parts: impl IntoIterator<Item = T>,
        separator: &str,
        mut write: impl FnMut(&mut Self, T),
    ) -> &mut Self {
        for (at, part) in parts.into_iter().enumerate() {
            if at > 0 {
                self.push(separator);
            }
            write(self, part);
        }
        self
    }

    fn filter(&mut self, table: &Table, filter: &Filter) -> &mut Self {
        match filter {
            Filter::And(all) if all.is_empty() => self.push("TRUE"),
            Filter::Or(any) if any.is_empty() => self.push("FALSE"),
            Filter::And(all) => self.group(table, all, " AND "),
            Filter::Or(any) => self.group(table, any, " OR "),
            Filter::Compare(column, op, value) => {
                self.push(&quoted(column)).push(operator(*op));
                self.bind_for(table, column, value)
            }
            Filter::In(_, values) if values.is_empty() => self.push("FALSE"),
            Filter::In(column, values) => {
                self.push(&quoted(column)).push(" IN (");
                self.joined(values, ", ", |s, value| {
                    s.bind_for(table, column, value);
                });
                self.push(")")
            }
            Filter::IsNull(column) => self.push(&quoted(column)).push(" IS NULL"),
            Filter::NotNull(column) => self.push(&quoted(column)).push(" IS NOT NULL"),
            Filter::Prefix(column, prefix) => {
                self.push("(").push(&quoted(column)).push(" >= ");
                self.bind(Type::Text, &Value::text(prefix));
                if let Some(end) = prefix_end(prefix) {
                    self.push(" AND ").push(&quoted(column)).push(" < ");
                    self.bind(Type::Text, &Value::text(&end));
                }
                self.push(")")
            }
        }
    }

    fn group(&mut self, table: &Table, parts: &[Filter], separator: &str) -> &mut Self {
        self.push("(");
        self.joined(parts, separator, |s, part| {
            s.filter(table, part);
        });
        self.push(")")
    }

    fn after(&mut self, table: &Table, order: &[Order], position: &[Value]) -> &mut Self {
        let descending = order.first().is_some_and(|part| part.descending);
        if order.iter().all(|part| part.descending == descending) {
            self.push("(");
            self.joined(order, ", ", |s, part| {
                s.push(&quoted(part.column));
            });
            self.push(if descending { ") < (" } else { ") > (" });
            self.joined(order.iter().zip(position), ", ", |s, (part, value)| {
                s.bind_for(table, part.column, value);
            });
            return self.push(")");
        }
        // Mixed directions have no row-value comparison: equal in the first n parts and beyond in the next, for each n.
        self.push("(");
        self.joined(0..order.len(), " OR ", |s, length| {
            s.push("(");
            let parts = order.iter().zip(position).take(length + 1).enumerate();
            s.joined(parts, " AND ", |s, (at, (part, value))| {
                let operator = match (at == length, part.descending) {
                    (false, _) => " = ",
                    (true, true) => " < ",
                    (true, false) => " > ",
                };
                s.push(&quoted(part.column)).push(operator);
                s.bind_for(table, part.column, value);
            });
            s.push(")");
        });
        self.push(")")
    }

    fn ordered(&mut self, order: &[Order]) -> &mut Self {
        self.push(" ORDER BY ");
        self.joined(order, ", ", |s, part| {
            s.push(&quoted(part.column));
            s.push(if part.descending { " DESC" } else { " ASC" });
        })
    }
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

fn columns(table: &Table, qualifier: &str) -> String {
    let column = |column: &crate::table::Column| format!("{qualifier}{}", quoted(column.name));
    let columns: Vec<String> = table.columns.iter().map(column).collect();
    columns.join(", ")
}

/// Inserts a row unless it violates a unique index; then no row is affected.
pub(crate) fn insert(table: &Table, row: &Row) -> Statement {
    let mut statement = Statement::new("INSERT INTO ");
    statement
        .push(&quoted(table.name))
        .push(&format!(" ({}) VALUES (", columns(table, "")));
    statement.joined(table.columns.iter().zip(row), ", ", |s, (column, value)| {
        s.bind(column.kind, value);
    });
    statement.push(") ON CONFLICT DO NOTHING");
    statement
}

pub(crate) fn update(table: &Table, filter: &Filter, set: &[(&'static str, Value)]) -> Statement {
    let mut statement = Statement::new("UPDATE ");
    statement.push(&quoted(table.name)).push(" SET ");
    statement.joined(set, ", ", |s, (column, value)| {
        s.push(&quoted(column)).push(" = ");
        s.bind_for(table, column, value);
    });
    statement.push(" WHERE ").filter(table, filter);
    statement
}

pub(crate) fn delete(table: &Table, filter: &Filter) -> Statement {
    let mut statement = Statement::new("DELETE FROM ");
    statement
        .push(&quoted(table.name))
        .push(" WHERE ")
        .filter(table, filter);
    statement
}

/// The matching rows, in order; `lock` is the database's locking clause.
pub(crate) fn select(select: &Select, lock: &str) -> Statement {
    let table = select.table;
    let order = select.full_order();
    let mut statement = Statement::new(format!(
        "SELECT {} FROM {} WHERE ",
        columns(table, ""),
        quoted(table.name)
    ));
    statement.filter(table, &select.filter);
    if let Some(position) = &select.after {
        statement.push(" AND ").after(table, &order, position);
    }
    statement.ordered(&order);
    if let Some(limit) = select.limit {
        statement.push(" LIMIT ");
        statement.bind(Type::Int, &Value::Int(i64::from(limit)));
    }
    statement.push(lock);
    statement
}

/// Every matching row, by key.
pub(crate) fn select_matching(table: &'static Table, filter: &Filter) -> Statement {
    select(&Select::of(table).filter(filter.clone()), "")
}

pub(crate) fn count(table: &Table, filter: &Filter) -> Statement {
    let mut statement = Statement::new("SELECT COUNT(*) FROM ");
    statement
        .push(&quoted(table.name))
        .push(" WHERE ")
        .filter(table, filter);
    statement
}

pub(crate) fn sum(table: &Table, column: &str, group: &str, filter: &Filter) -> Statement {
    let (column, group) = (quoted(column), quoted(group));
    // Postgres sums integers to NUMERIC; the cast fails when the sum does not fit.
    let mut statement = Statement::new(format!(
        "SELECT {group}, CAST(COALESCE(SUM({column}), 0) AS BIGINT) FROM {} WHERE ",
        quoted(table.name)
    ));
    statement
        .filter(table, filter)
        .push(&format!(" GROUP BY {group} ORDER BY {group}"));
    statement
}

/// Counts the other rows with the row's values in the unique index; `None` when the index does not cover the row.
pub(crate) fn count_unique_conflicts(
    table: &Table,
    unique: &Unique,
    row: &Row,
) -> Option<Statement> {
    let stored = |column: &str| table.value(row, column);
    let has_null = unique.columns.iter().any(|column| stored(column).is_null());
    if has_null || !Filter::covered_by(unique).matches(table, row) {
        return None;
    }
    let same = unique
        .columns
        .iter()
        .map(|column| Filter::eq(column, stored(column).clone()));
    let mut all: Vec<Filter> = same.collect();
    all.push(Filter::covered_by(unique));
    all.push(Filter::ne(table.key(), stored(table.key()).clone()));
    Some(count(table, &Filter::And(all)))
}

/// Walks a tree by its parent column. The depth bounds the recursion, so a cycle ends it too.
pub(crate) fn walk(
    table: &Table,
    key: &str,
    direction: Direction,
    depth: u32,
    filter: &Filter,
) -> Statement {
    let name = quoted(table.name);
    let id = quoted(table.key());
    let parent = quoted(table.parent.unwrap_or_default());
    let (step, order) = match direction {
        Direction::Ancestors => (format!("n.{id} = w.parent"), "DESC"),
        Direction::Descendants => (format!("n.{parent} = w.id"), "ASC"),
    };
    let mut statement = Statement::new(format!(
        "WITH RECURSIVE w (id, parent, depth) AS \
         (SELECT {id}, {parent}, CAST(0 AS BIGINT) FROM {name} WHERE {id} = "
    ));
    statement.bind(Type::Text, &Value::text(key));
    statement.push(&format!(
        " UNION ALL SELECT n.{id}, n.{parent}, w.depth + 1 FROM {name} n JOIN w ON {step} \
         WHERE n.{id} <> "
    ));
    statement.bind(Type::Text, &Value::text(key));
    statement.push(" AND w.depth < ");
    statement.bind(Type::Int, &Value::Int(i64::from(depth)));
    statement.push(&format!(
        ") SELECT {} FROM (SELECT * FROM {name} WHERE ",
        columns(table, "t.")
    ));
    statement.filter(table, filter).push(&format!(
        ") t JOIN (SELECT id, MIN(depth) AS depth FROM w GROUP BY id) w \
         ON t.{id} = w.id WHERE w.depth > 0 ORDER BY w.depth {order}, t.{id}"
    ));
    statement
}
