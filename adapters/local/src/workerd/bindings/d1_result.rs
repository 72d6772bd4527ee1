//! The results of a database request as JSON. The limits are enforced while rows are read.

use std::time::Duration;

use rusqlite::Statement;
use rusqlite::types::{Value as SqlValue, ValueRef};
use serde::Serialize;
use serde_json::{Value, json};

use super::calls::Call;
use crate::error::{LocalError, Result};
use crate::limits::BindingLimits;

/// The form of rows in a response.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum RowFormat {
    /// One object per row.
    Objects,
    /// The column names, and one list per row.
    Rows,
}

/// The statistics of a query.
pub(super) struct QueryMeta {
    pub(super) duration: Duration,
    pub(super) changes: i64,
    pub(super) last_row_id: i64,
    pub(super) database_bytes: i64,
}

/// The results of all queries of one request: an unfinished JSON list.
pub(super) struct Results {
    text: Vec<u8>,
    form: RowFormat,
    rows: usize,
    limits: BindingLimits,
    call: Call,
    /// Number of bytes that the call has reserved for the text.
    reserved: usize,
}

impl Results {
    pub(super) fn new(form: RowFormat, limits: BindingLimits, call: Call) -> Self {
        Self {
            text: b"[".to_vec(),
            form,
            rows: 0,
            limits,
            call,
            reserved: 0,
        }
    }

    /// Returns the complete JSON list.
    pub(super) fn finish(mut self) -> Vec<u8> {
        self.text.push(b']');
        self.text
    }

    /// Starts the result of a query.
    pub(super) fn begin(&mut self) -> ResultStart {
        let start = self.text.len();
        if start > 1 {
            self.text.push(b',');
        }
        self.text.extend(br#"{"success":true,"results":"#);
        ResultStart {
            at: self.text.len(),
            rows: self.rows,
        }
    }

    /// Writes an empty result for a query without statements.
    pub(super) fn write_empty(&mut self) {
        self.text.extend(match self.form {
            RowFormat::Objects => &b"[]"[..],
            RowFormat::Rows => br#"{"columns":[],"rows":[]}"#,
        });
    }

    /// Runs a statement and writes its rows. They replace the rows of the previous statement of the query.
    pub(super) fn write_rows(
        &mut self,
        start: &ResultStart,
        statement: &mut Statement<'_>,
        params: &[SqlValue],
    ) -> Result<()> {
        self.text.truncate(start.at);
        self.rows = start.rows;
        let names: Vec<String> = statement
            .column_names()
            .into_iter()
            .map(|name| Value::from(name).to_string())
            .collect();
        // A statement without parameters gets none.
        let params = if statement.parameter_count() == 0 {
            &[]
        } else {
            params
        };
        let mut rows = statement.query(rusqlite::params_from_iter(params))?;
        match self.form {
            RowFormat::Objects => self.text.push(b'['),
            RowFormat::Rows => {
                let columns = names.join(",");
                self.text.extend(br#"{"columns":["#);
                self.text.extend(columns.as_bytes());
                self.text.extend(br#"],"rows":["#);
            }
        }
        let mut is_first = true;
        while let Some(row) = rows.next()? {
            self.count_row()?;
            if !std::mem::take(&mut is_first) {
                self.text.push(b',');
            }
            let (open, close) = match self.form {
                RowFormat::Objects => (b'{', b'}'),
                RowFormat::Rows => (b'[', b']'),
            };
            self.text.push(open);
            for (at, name) in names.iter().enumerate() {
                if at > 0 {
                    self.text.push(b',');
                }
                if self.form == RowFormat::Objects {
                    self.text.extend(name.as_bytes());
                    self.text.push(b':');
                }
                self.write_value(row.get_ref(at)?)?;
            }
            self.text.push(close);
        }
        self.text.extend(match self.form {
            RowFormat::Objects => &b"]"[..],
            RowFormat::Rows => b"]}",
        });
        self.ensure_room(0)
    }

    /// Completes the result of a query.
    pub(super) fn end(&mut self, start: &ResultStart, meta: &QueryMeta) -> Result<()> {
        let meta = json!({
            "served_by": "local",
            "duration": meta.duration.as_secs_f64() * 1_000.0,
            "changes": meta.changes,
            "last_row_id": meta.last_row_id,
            "changed_db": meta.changes != 0,
            "size_after": meta.database_bytes,
            "rows_read": self.rows - start.rows,
            "rows_written": meta.changes,
        });
        self.text.extend(br#","meta":"#);
        self.write_json(&meta)?;
        self.text.push(b'}');
        self.ensure_room(0)
    }

    fn count_row(&mut self) -> Result<()> {
        self.rows += 1;
        if self.rows > self.limits.result_rows {
            let what = format!(
                "the results have more than {} rows",
                self.limits.result_rows
            );
            return Err(LocalError::Limit(what));
        }
        Ok(())
    }

    fn write_value(&mut self, value: ValueRef<'_>) -> Result<()> {
        match value {
            ValueRef::Null => self.write_json(&()),
            ValueRef::Integer(number) => self.write_json(&number),
            ValueRef::Real(number) => self.write_json(&number),
            ValueRef::Text(text) => {
                self.ensure_room(text.len())?;
                self.write_json(&String::from_utf8_lossy(text))
            }
            ValueRef::Blob(bytes) => {
                // Each byte becomes at least a digit and a comma.
                self.ensure_room(bytes.len().saturating_mul(2))?;
                self.write_json(&bytes)
            }
        }
    }

    fn write_json(&mut self, value: &impl Serialize) -> Result<()> {
        let written = serde_json::to_writer(&mut self.text, value);
        written.map_err(|error| LocalError::Io(error.into()))?;
        self.ensure_room(0)
    }

    /// Checks that `bytes` more bytes are within the limits, and reserves memory for the text.
    fn ensure_room(&mut self, bytes: usize) -> Result<()> {
        let total = self.text.len().saturating_add(bytes);
        if total > self.limits.result_bytes {
            let what = format!(
                "the results have more than {} bytes of JSON",
                self.limits.result_bytes
            );
            return Err(LocalError::Limit(what));
        }
        if total > self.reserved {
            self.call.reserve(total - self.reserved)?;
            self.reserved = total;
        }
        Ok(())
    }
}

/// The start of a query's result, so that it can be overwritten.
pub(super) struct ResultStart {
    at: usize,
    rows: usize,
}
