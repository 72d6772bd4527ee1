//! Triggers of Postgres that record which rows of a platform change, while it moves to another cell.
//!
//! They call the function `record_change` of the migrations, which adds the keys to the table `cell_changes`. The condition of
//! a trigger names the platform, so changes of other platforms cost little.

use core_domain::kernel::hex;
use sha2::{Digest, Sha256};

use super::ddl::{quote_ident, text_literal};
use crate::row_store::RecordedRows;

/// The events that are recorded, and the versions of the row that they have.
const EVENTS: [(&str, &[&str]); 3] = [
    ("INSERT", &["NEW"]),
    ("UPDATE", &["OLD", "NEW"]),
    ("DELETE", &["OLD"]),
];

/// The longest id of a platform that is part of a trigger's name, in bytes. The limit of Postgres is 63 bytes for the name.
const MAX_NAMED_ID: usize = 40;

/// Returns the statement that creates the triggers of a table, or enables those that exist. It waits for units that have changed
/// the table, but not for readers.
pub(super) fn start(rows: &RecordedRows<'_>) -> String {
    let (on, exists) = (quote_ident(rows.table.name), exists(rows));
    let (creates, enables) = (each(rows, create), alter(rows, "ENABLE"));
    format!(
        "DO $start$ BEGIN IF {exists} THEN ALTER TABLE {on} {enables}; ELSE {creates}; END IF; END $start$"
    )
}

/// Returns the statement that drops the triggers of a table. To drop them, it would have to wait for all readers, such as a
/// backup. If there are any, the triggers are disabled.
pub(super) fn stop(rows: &RecordedRows<'_>) -> String {
    let (on, exists) = (quote_ident(rows.table.name), exists(rows));
    let (drops, disables) = (each(rows, drop), alter(rows, "DISABLE"));
    format!(
        "DO $stop$ BEGIN IF {exists} THEN BEGIN SET LOCAL lock_timeout = 200; {drops}; \
         EXCEPTION WHEN lock_not_available THEN ALTER TABLE {on} {disables}; END; END IF; END $stop$"
    )
}

fn create(rows: &RecordedRows<'_>, event: &str, versions: &[&str]) -> String {
    let (trigger, on) = (trigger_name(rows, event), quote_ident(rows.table.name));
    let names: Vec<String> = rows.names.iter().map(|name| text_literal(name)).collect();
    let (column, names) = (quote_ident(rows.column), names.join(", "));
    let is_named = |version: &&str| format!("{version}.{column} IN ({names})");
    let is_named: Vec<String> = versions.iter().map(is_named).collect();
    let arguments = [rows.platform, rows.table.key()]
        .map(text_literal)
        .join(", ");
    format!(
        "CREATE TRIGGER {} AFTER {event} ON {on} FOR EACH ROW WHEN ({}) EXECUTE FUNCTION \"record_change\"({arguments})",
        quote_ident(&trigger),
        is_named.join(" OR ")
    )
}

fn drop(rows: &RecordedRows<'_>, event: &str, _versions: &[&str]) -> String {
    let trigger = quote_ident(&trigger_name(rows, event));
    format!("DROP TRIGGER {trigger} ON {}", quote_ident(rows.table.name))
}

/// Returns the statements for the triggers of all events.
fn each(
    rows: &RecordedRows<'_>,
    statement: impl Fn(&RecordedRows<'_>, &str, &[&str]) -> String,
) -> String {
    let statements = EVENTS.map(|(event, versions)| statement(rows, event, versions));
    statements.join("; ")
}

/// Returns the changes of a table that enable or disable all triggers.
fn alter(rows: &RecordedRows<'_>, verb: &str) -> String {
    let trigger = |event| quote_ident(&trigger_name(rows, event));
    let changes = EVENTS.map(|(event, _)| format!("{verb} TRIGGER {}", trigger(event)));
    changes.join(", ")
}

/// Returns a condition that the triggers exist.
fn exists(rows: &RecordedRows<'_>) -> String {
    let relation = text_literal(&quote_ident(rows.table.name));
    let first = text_literal(&trigger_name(rows, EVENTS[0].0));
    format!(
        "EXISTS (SELECT 1 FROM pg_trigger WHERE tgrelid = {relation}::regclass AND tgname = {first})"
    )
}

/// Returns the name of a trigger.
fn trigger_name(rows: &RecordedRows<'_>, event: &str) -> String {
    let id = match rows.platform.len() {
        ..=MAX_NAMED_ID => rows.platform.to_owned(),
        _ => hex(&Sha256::digest(rows.platform)[..MAX_NAMED_ID / 2]),
    };
    format!("record_{}_{id}", event.to_lowercase())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cells::tables::HIDDEN;

    #[test]
    fn triggers_of_long_ids_have_different_names_within_the_limit() {
        let [one, other] = ["1", "2"].map(|end| {
            let platform = "p".repeat(127) + end;
            let rows = RecordedRows {
                platform: &platform,
                table: &HIDDEN,
                column: "id",
                names: &[],
            };
            trigger_name(&rows, "INSERT")
        });
        assert!(one != other && one.len() <= 63);
    }
}
