//! Decisions that the difference of two schemas does not contain: the values of existing rows in columns that must not
//! be NULL.

use std::collections::BTreeMap;

use core_storage::sql::ddl::{Dialect, text_literal};
use core_storage::{Column, Table, Type, Value};

use crate::error::WriteError;

/// The values given on the command line, by table and column, and the problems found.
#[derive(Debug, Default)]
pub(crate) struct Decisions {
    defaults: BTreeMap<(String, String), String>,
    problems: Vec<String>,
}

impl Decisions {
    /// Adds a default in the form `table.column=value`.
    ///
    /// # Errors
    /// [`WriteError::Usage`] if the text has another form or the column already has a default.
    pub(crate) fn add_default(&mut self, text: &str) -> Result<(), WriteError> {
        let parts = text.split_once('=').and_then(|(column, value)| {
            let (table, column) = column.split_once('.')?;
            Some(((table.to_owned(), column.to_owned()), value.to_owned()))
        });
        let Some((column, value)) = parts else {
            let usage = format!("--default takes table.column=value, not {text}");
            return Err(WriteError::Usage(usage));
        };
        match self.defaults.insert(column, value) {
            None => Ok(()),
            Some(_) => {
                let usage = format!("--default is given twice for the column of {text}");
                Err(WriteError::Usage(usage))
            }
        }
    }

    /// Returns the value of existing rows in the column: the given one, or `false` for a boolean. Otherwise records a
    /// problem. No number or text suits every column: 0 may be a time, and a text may be an id or a status.
    pub(crate) fn take_default(&mut self, table: &Table, column: &Column) -> Value {
        let name = (table.name.to_owned(), column.name.to_owned());
        let value = match self.defaults.remove(&name) {
            Some(text) => parse(column.kind, &text).ok_or_else(|| {
                format!(
                    "--default {}.{}={text}: the column is of type {:?}",
                    table.name, column.name, column.kind
                )
            }),
            None if column.kind == Type::Bool => Ok(Value::Bool(false)),
            None => Err(format!(
                "{0}.{1} must not be NULL and existing rows have no value for it: \
                 give one with --default {0}.{1}=value",
                table.name, column.name
            )),
        };
        value.unwrap_or_else(|problem| {
            self.problems.push(problem);
            Value::Null
        })
    }

    /// Records why a difference cannot be migrated.
    pub(crate) fn refuse(&mut self, problem: String) {
        self.problems.push(problem);
    }

    /// Checks that no value is missing and that every given value was used.
    ///
    /// # Errors
    /// [`WriteError::Undecided`] with all problems.
    pub(crate) fn finish(mut self) -> Result<(), WriteError> {
        for (table, column) in self.defaults.keys() {
            self.problems.push(format!(
                "--default {table}.{column}: no existing row needs a value for it"
            ));
        }
        if self.problems.is_empty() {
            Ok(())
        } else {
            Err(WriteError::Undecided(self.problems))
        }
    }
}

fn parse(kind: Type, text: &str) -> Option<Value> {
    let value = match kind {
        Type::Bool => Value::Bool(text.parse().ok()?),
        Type::Int => Value::Int(text.parse().ok()?),
        Type::Text | Type::Uuid => Value::text(text),
        Type::Json => {
            let json: serde_json::Value = serde_json::from_str(text).ok()?;
            Value::text(&json.to_string())
        }
    };
    kind.accepts(&value).then_some(value)
}

/// Returns the value as an SQL literal.
pub(crate) fn literal(value: &Value, dialect: Dialect) -> String {
    match (value, dialect) {
        (Value::Null, _) => "NULL".to_owned(),
        (Value::Bool(yes), Dialect::Sqlite) => i32::from(*yes).to_string(),
        (Value::Bool(yes), Dialect::Postgres) => yes.to_string().to_uppercase(),
        (Value::Int(number), _) => number.to_string(),
        (Value::Text(text), _) => text_literal(text),
    }
}
