//! Prints the SQL of described tables: `cargo run -p core-storage --features sqlite --example ddl -- sqlite stack_`.
//! The text is what a new migration begins with; the second word picks tables by the beginning of their names.

use std::io::Write;

use core_storage::sql::ddl::{Dialect, create};
use core_storage::tables;

fn main() -> std::io::Result<()> {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let dialect = match words.first().map(String::as_str) {
        Some("postgres") => Dialect::Postgres,
        _ => Dialect::Sqlite,
    };
    let prefixes = words.get(1..).unwrap_or_default();
    let wanted = |name: &str| prefixes.is_empty() || prefixes.iter().any(|p| name.starts_with(p));
    let mut out = std::io::stdout().lock();
    for table in tables::all() {
        if wanted(table.name) {
            writeln!(out, "{}", create(table, dialect, false))?;
        }
    }
    Ok(())
}
