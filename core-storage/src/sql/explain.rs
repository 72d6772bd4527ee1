//! Renders queries with literal values, to examine how a database plans them.

use super::ddl::text_literal;
use super::dialect::Dialect;
use super::render;
use super::statement::Bind;
use super::text::StatementCache;
use crate::query::Select;
use crate::value::ValueRef;

/// Returns the text of a query with its values as literals.
#[must_use]
pub fn with_literals(select: &Select, dialect: Dialect) -> String {
    let order = select.full_order();
    let texts = StatementCache::with_uuids(dialect == Dialect::Postgres);
    let (text, binds) = texts.of(|w| render::select(w, dialect, select, &order, false));
    let mut text = text.to_string();
    // From the last one to the first, because `$1` is a prefix of `$10`.
    for (at, bind) in binds.iter().enumerate().rev() {
        text = text.replace(&format!("${}", at + 1), &literal(bind, dialect));
    }
    text
}

fn literal(bind: &Bind<'_>, dialect: Dialect) -> String {
    match bind {
        Bind::One(_, value) => of_value(*value, dialect),
        Bind::Generated(_, text) => text_literal(text),
        Bind::Array(of, values) => {
            let values: Vec<String> = values.iter().map(|v| of_value(*v, dialect)).collect();
            format!("ARRAY[{}]{}", values.join(", "), Dialect::array_cast(*of))
        }
    }
}

fn of_value(value: ValueRef<'_>, dialect: Dialect) -> String {
    match (value, dialect) {
        (ValueRef::Null, _) => "NULL".to_owned(),
        (ValueRef::Bool(yes), Dialect::Postgres) => yes.to_string(),
        (ValueRef::Bool(yes), Dialect::Sqlite) => i64::from(yes).to_string(),
        (ValueRef::Int(number), _) => number.to_string(),
        (ValueRef::Text(text), _) => text_literal(text),
    }
}
