//! Writes the migration from the existing migrations to the described tables:
//!
//! ```text
//! cargo run -p core-storage --features sqlite --bin write-migration -- add_seats --default entities.seats=1
//! ```
//!
//! The command runs all migrations on a SQLite database in memory, and compares its schema with
//! [`core_storage::tables::all`]. It writes the difference as the next file for every dialect, and the indexes of tables
//! that exist as a further one. It also runs the new SQLite text before it writes the files; the tests run both texts.
//! Review and edit the files before you commit them. A released file must never change.

mod decisions;
mod diff;
mod error;
mod files;
mod render;
mod schema;
#[cfg(all(test, feature = "conformance", feature = "postgres"))]
mod tests;
mod write;

use std::io::Write;
use std::path::PathBuf;
use std::process::ExitCode;

use core_storage::tables;

use crate::decisions::Decisions;
use crate::error::WriteError;

const USAGE: &str = "\
usage: write-migration <name> [--default <table>.<column>=<value>]... [--folder <migrations>]
  <name>      the name of the migration: 1 to 60 lower-case letters, digits and _
  --default   the value of existing rows in a column that must not be NULL; booleans default to false
  --folder    the folder of the migrations; defaults to the one in the sources of this crate";

/// The arguments of the command line.
#[derive(Debug)]
struct Args {
    name: String,
    decisions: Decisions,
    folder: PathBuf,
}

impl Args {
    fn parse(mut words: impl Iterator<Item = String>) -> Result<Self, WriteError> {
        let usage = |problem: String| WriteError::Usage(format!("{problem}\n{USAGE}"));
        let mut name = None;
        let mut decisions = Decisions::default();
        let mut folder = PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/migrations"));
        while let Some(word) = words.next() {
            let mut value = || {
                let missing = || usage(format!("{word} needs a value"));
                words.next().ok_or_else(missing)
            };
            match word.as_str() {
                "--default" => decisions.add_default(&value()?)?,
                "--folder" => folder = PathBuf::from(value()?),
                option if option.starts_with('-') => {
                    return Err(usage(format!("unknown option {option}")));
                }
                _ if name.is_some() => return Err(usage(format!("unexpected argument: {word}"))),
                _ => name = Some(word),
            }
        }
        let name = name.ok_or_else(|| usage("the name is missing".to_owned()))?;
        if !files::is_name(&name) {
            return Err(usage(format!(
                "{name} is not a valid name: use 1 to 60 lower-case letters, digits and _"
            )));
        }
        Ok(Self {
            name,
            decisions,
            folder,
        })
    }
}

fn main() -> ExitCode {
    let outcome = match Args::parse(std::env::args().skip(1)) {
        Ok(args) => write_migration(args),
        Err(error) => Err(error),
    };
    match outcome {
        Ok(report) => {
            let _ = writeln!(std::io::stdout(), "{report}");
            ExitCode::SUCCESS
        }
        Err(error) => {
            let _ = writeln!(std::io::stderr(), "write-migration: {error}");
            match error {
                WriteError::Usage(_) => ExitCode::from(2),
                _ => ExitCode::FAILURE,
            }
        }
    }
}

/// Writes the files. Returns the report for the user.
fn write_migration(args: Args) -> Result<String, WriteError> {
    let database = write::migrate(&args.folder)?;
    let plan = write::plan(&database, &tables::all(), args.decisions)?;
    let Some(plan) = plan else {
        return Ok("migrations and tables agree: nothing is written".to_owned());
    };
    let files = write::write(&args.folder, &args.name, &plan)?;
    let mut report: Vec<String> = plan.changes.iter().map(ToString::to_string).collect();
    for lost in plan.changes.iter().flat_map(diff::Change::deleted_data) {
        report.push(format!("deletes {lost}; to rename instead, edit the files"));
    }
    report.extend(files.iter().map(|file| format!("wrote {}", file.display())));
    Ok(report.join("\n"))
}
