//! Writes the migration that leads from the migrations that exist to the tables as they are described:
//!
//! ```text
//! cargo run -p core-storage --features sqlite --bin write-migration -- add_seats --default entities.seats=1
//! ```
//!
//! It runs all migrations on a SQLite database in memory, compares its schema with [`core_storage::tables::all`], and
//! writes the difference as the next file for every dialect. The text for SQLite is run as well before it is written; the
//! tests run both texts. What the file does can be read and edited before it is committed; once released it never
//! changes.

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
  <name>      what the migration does: small letters, digits and _
  --default   what existing rows get in a column that must not be NULL; a boolean gets false without it
  --folder    the folder of the migrations, if it is not that of the sources";

/// The command line.
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
                    return Err(usage(format!("there is no option {option}")));
                }
                _ if name.is_some() => return Err(usage(format!("one name too many: {word}"))),
                _ => name = Some(word),
            }
        }
        let name = name.ok_or_else(|| usage("the name is missing".to_owned()))?;
        if !files::is_name(&name) {
            return Err(usage(format!(
                "{name} is no name: 1 to 60 small letters, digits and _"
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

/// Writes the files; answers what to tell.
fn write_migration(args: Args) -> Result<String, WriteError> {
    let database = write::migrated(&args.folder)?;
    let plan = write::plan(&database, &tables::all(), args.decisions)?;
    let Some(plan) = plan else {
        return Ok("migrations and tables agree: nothing is written".to_owned());
    };
    let files = write::write(&args.folder, &args.name, &plan)?;
    let mut report: Vec<String> = plan.changes.iter().map(ToString::to_string).collect();
    for lost in plan.changes.iter().flat_map(diff::Change::lost) {
        report.push(format!("deletes {lost}; to rename instead, edit the files"));
    }
    report.extend(files.iter().map(|file| format!("wrote {}", file.display())));
    Ok(report.join("\n"))
}
