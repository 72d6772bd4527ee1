//! Triggers of Postgres that record which rows of a platform change, while it moves to another cell.
//!
//! They call the function `record_change` of the migrations, which adds the keys to the table `cell_changes`. The condition of
//! a trigger names the platform, so changes of other platforms cost little.

use super::ddl::{quote_ident, text_literal};
use crate::row_store::RecordedRows;

/// The events that are recorded, and the versions of the row that they have.
const EVENTS: [(&str, &[&str]); 3] = [
    ("INSERT", &["NEW"]),
    ("UPDATE", &["OLD", "NEW"]),
    ("DELETE", &["OLD"]),
];

/// Returns the statements that create the triggers of a table, or drop them.
pub(super) fn statements(rows: &RecordedRows<'_>, is_on: bool) -> String {
    match is_on {
        true => start(rows),
        false => stop(rows),
    }
}

/// Returns the statement that creates the triggers of a table, unless they exist. It waits for units that have changed the table.
fn start(rows: &RecordedRows<'_>) -> String {
    let RecordedRows {
        platform, table, ..
    } = rows;
    let on = quote_ident(table.name);
    let names: Vec<String> = rows.names.iter().map(|name| text_literal(name)).collect();
    let names = names.join(", ");
    let (key, platform) = (text_literal(table.key()), text_literal(platform));
    let creates: Vec<String> = EVENTS
        .iter()
        .map(|(event, versions)| {
            let trigger = quote_ident(&trigger_name(rows, event));
            let column = quote_ident(rows.column);
            let is_named = |version: &&str| format!("{version}.{column} IN ({names})");
            let is_named: Vec<String> = versions.iter().map(is_named).collect();
            let is_named = is_named.join(" OR ");
            format!(
                "CREATE TRIGGER {trigger} AFTER {event} ON {on} FOR EACH ROW WHEN ({is_named}) \
                 EXECUTE FUNCTION \"record_change\"({platform}, {key});"
            )
        })
        .collect();
    let (relation, first) = (text_literal(&on), trigger_name(rows, EVENTS[0].0));
    let first = text_literal(&first);
    format!(
        "DO $start$ BEGIN IF NOT EXISTS (SELECT 1 FROM pg_trigger WHERE tgrelid = {relation}::regclass \
         AND tgname = {first}) THEN {} END IF; END $start$",
        creates.join(" ")
    )
}

/// Returns the statements that drop the triggers of a table. They wait for units that have used the table.
fn stop(rows: &RecordedRows<'_>) -> String {
    let on = quote_ident(rows.table.name);
    let drop = |(event, _): &(&str, _)| {
        let trigger = quote_ident(&trigger_name(rows, event));
        format!("DROP TRIGGER IF EXISTS {trigger} ON {on}")
    };
    let drops: Vec<String> = EVENTS.iter().map(drop).collect();
    drops.join("; ")
}

/// Returns the name of a trigger. It is shorter than the limit of Postgres (63 bytes).
fn trigger_name(rows: &RecordedRows<'_>, event: &str) -> String {
    format!("record_{}_{}", event.to_lowercase(), rows.platform)
}
