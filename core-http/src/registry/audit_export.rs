//! Exports the audit log. Each page is read after the previous one has been sent, so that a slow reader costs no
//! memory.

use std::sync::Arc;

use bytes::Bytes;
use core_domain::access::SignedInScope;
use core_domain::kernel::{Error, JsonText, Result};
use core_domain::port::Store;
use core_domain::shared::{AuditEntry, AuditFilter};
use core_domain::use_case::registry::audit::{self, AuditExport};
use futures_util::stream;
use schemars::JsonSchema;
use serde::Deserialize;

use crate::kernel::{Cx, Input, MediaStream};

const JSON_LINES: &str = "application/x-ndjson";
const CSV: &str = "text/csv; charset=utf-8";

pub(super) const CONTENT_TYPES: [&str; 2] = [JSON_LINES, CSV];

/// The column names of the CSV export. They are the names of the fields of an entry.
const HEADER: &str = "id,platformId,actorId,actorType,action,entityType,entityId,createdAt,before,after,metadata\r\n";

/// The file format of an export.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub(super) enum ExportFormat {
    /// One JSON object per line, for each entry.
    #[default]
    Jsonl,
    /// CSV as of RFC 4180. An apostrophe precedes each field that a spreadsheet would treat as a formula.
    Csv,
}

/// The format of an export, and the filter of its entries.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
pub(super) struct ExportQuery {
    /// The format of the export. Default: `jsonl`.
    #[serde(default)]
    format: ExportFormat,
    /// The filter of the entries.
    #[serde(flatten)]
    filter: AuditFilter,
}

pub(super) async fn export(
    cx: &Cx,
    scope: SignedInScope,
    input: Input<(), ExportQuery>,
) -> Result<MediaStream> {
    let (store, query) = (Arc::clone(&cx.app.store), input.query);
    let export = audit::export(cx, &scope, store.as_ref(), query.filter).await?;
    let (content_type, name) = match query.format {
        ExportFormat::Jsonl => (JSON_LINES, "audit.jsonl"),
        ExportFormat::Csv => (CSV, "audit.csv"),
    };
    let begin = Export {
        store,
        export,
        format: query.format,
        is_begun: false,
    };
    let pieces = stream::unfold(Some(begin), |export: Option<Export>| async move {
        export?.next_piece().await
    });
    Ok(MediaStream::new(content_type, pieces).attachment(name))
}

/// An export in progress.
struct Export {
    store: Arc<dyn Store>,
    export: AuditExport,
    format: ExportFormat,
    is_begun: bool,
}

impl Export {
    /// Returns the text of the next page. An error is the last piece.
    async fn next_piece(mut self) -> Option<(Result<Bytes, Error>, Option<Self>)> {
        let mut text = String::new();
        if self.format == ExportFormat::Csv && !self.is_begun {
            text.push_str(HEADER);
        }
        self.is_begun = true;
        let page = match self.export.next_page(self.store.as_ref()).await {
            Ok(page) => page,
            Err(error) => return Some((Err(error), None)),
        };
        for entry in &page {
            match self.format {
                ExportFormat::Jsonl => push_json_line(&mut text, entry),
                ExportFormat::Csv => push_csv_line(&mut text, entry),
            }
        }
        (!text.is_empty()).then(|| (Ok(Bytes::from(text)), Some(self)))
    }
}

fn push_json_line(text: &mut String, entry: &AuditEntry) {
    text.push_str(&one_line(&JsonText::of(entry)));
    text.push('\n');
}

/// Returns JSON on one line. Line breaks inside of strings are escaped, so those that remain are white space.
fn one_line(json: &JsonText) -> String {
    json.as_str().replace(['\r', '\n'], " ")
}

fn push_csv_line(text: &mut String, entry: &AuditEntry) {
    let json = |json: &Option<JsonText>| json.as_ref().map(one_line).unwrap_or_default();
    let platform = entry.platform_id.as_ref().map(ToString::to_string);
    let fields = [
        entry.id.to_string(),
        platform.unwrap_or_default(),
        entry.actor_id.clone(),
        entry.actor_type.clone(),
        entry.action.clone(),
        entry.entity_type.clone(),
        entry.entity_id.clone(),
        entry.created_at.to_rfc3339(),
        json(&entry.before),
        json(&entry.after),
        one_line(&entry.metadata),
    ];
    for (at, field) in fields.iter().enumerate() {
        if at > 0 {
            text.push(',');
        }
        push_csv_field(text, field);
    }
    text.push_str("\r\n");
}

/// Appends a field as of RFC 4180. An apostrophe marks a field that begins like a formula as text for spreadsheets.
fn push_csv_field(text: &mut String, field: &str) {
    let is_formula = field.starts_with(['=', '+', '-', '@', '\t', '\r', '\n']);
    if !is_formula && !field.contains([',', '"', '\r', '\n']) {
        text.push_str(field);
        return;
    }
    text.push('"');
    if is_formula {
        text.push('\'');
    }
    text.push_str(&field.replace('"', "\"\""));
    text.push('"');
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn csv_fields_are_quoted_and_formulas_are_defused() {
        for (field, written) in [
            ("", ""),
            ("plain text", "plain text"),
            ("a,b", "\"a,b\""),
            ("say \"hi\"", "\"say \"\"hi\"\"\""),
            ("two\r\nlines", "\"two\r\nlines\""),
            ("=1+1", "\"'=1+1\""),
            ("+1", "\"'+1\""),
            ("-1", "\"'-1\""),
            ("@SUM(A1)", "\"'@SUM(A1)\""),
            ("\tx", "\"'\tx\""),
            ("\rx", "\"'\rx\""),
        ] {
            let mut text = String::new();
            push_csv_field(&mut text, field);
            assert_eq!(text, written);
        }
    }
}
