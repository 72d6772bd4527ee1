//! The commands that copy the data of an installation: backup, restore, copy.

use std::io::IsTerminal;
use std::path::Path;

use core_suite::SuiteBuilder;
use core_suite::backup::{BackupError, BackupSummary, CopyProgress, CopyStart};

use crate::config::{Config, ConfigError, Database, parse_database};
use crate::run::{builder, with_database};

/// Why a command did not start, or was aborted.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Error {
    #[error("the in-memory database has no records of another process; set --database-url")]
    Memory,
    #[error("{0}: {1}")]
    Url(&'static str, #[source] ConfigError),
    #[error("--from and --to are the same database")]
    SameDatabase,
    #[error(transparent)]
    Backup(#[from] BackupError),
    #[error(transparent)]
    Runtime(std::io::Error),
}

/// Writes a backup to a folder.
pub(crate) fn back_up(config: &Config, folder: &Path) -> Result<(), Error> {
    let builder = stored_records(config)?;
    let mut progress = Progress::default();
    let written = block_on(builder.back_up(folder, &mut |now| progress.show(now)))?;
    print("backed up", &written);
    Ok(())
}

/// Restores a backup from a folder.
pub(crate) fn restore(config: &Config, folder: &Path, resume: bool) -> Result<(), Error> {
    let builder = stored_records(config)?;
    let mut progress = Progress::default();
    let mut show = |now| progress.show(now);
    let restored = block_on(builder.restore(folder, start(resume), &mut show))?;
    print("restored and verified", &restored);
    Ok(())
}

/// Copies all records from one database to another.
#[expect(
    clippy::print_stdout,
    reason = "the summary is the output of this command"
)]
pub(crate) fn copy(config: &Config, [from, to]: [&str; 2], resume: bool) -> Result<(), Error> {
    if from == to {
        return Err(Error::SameDatabase);
    }
    let [from, to] = [("--from", from), ("--to", to)].map(|(option, url)| {
        let database = parse_database(url).map_err(|error| Error::Url(option, error))?;
        match database {
            Database::Memory => Err(Error::Memory),
            database => Ok(with_database(builder(config), &database)),
        }
    });
    let mut progress = Progress::default();
    let mut show = |now| progress.show(now);
    let copied = block_on(from?.copy_records(to?, start(resume), &mut show))?;
    let records: u64 = copied.iter().map(|table| table.rows).sum();
    println!(
        "copied and verified: {records} records in {} tables",
        copied.len()
    );
    Ok(())
}

const fn start(resume: bool) -> CopyStart {
    if resume {
        CopyStart::Resumed
    } else {
        CopyStart::Empty
    }
}

fn stored_records(config: &Config) -> Result<SuiteBuilder, Error> {
    match config.database {
        Database::Memory => Err(Error::Memory),
        _ => Ok(builder(config)),
    }
}

fn block_on<T>(work: impl Future<Output = Result<T, BackupError>>) -> Result<T, Error> {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()
        .map_err(Error::Runtime)?;
    Ok(runtime.block_on(work)?)
}

#[expect(
    clippy::print_stdout,
    reason = "the summary is the output of this command"
)]
fn print(done: &str, summary: &BackupSummary) {
    println!(
        "{done}: {} records in {} tables, {} files with {} bytes",
        summary.records(),
        summary.tables.len(),
        summary.files,
        summary.bytes
    );
    if summary.blobs > 0 {
        let (blobs, bytes) = (summary.blobs, summary.blob_bytes);
        println!("{done}: {blobs} uploads of the bucket with {bytes} bytes");
    }
}

/// Prints the progress to standard error: one line per table, and on a terminal also within tables.
#[derive(Debug, Default)]
struct Progress {
    table: Option<CopyProgress>,
}

impl Progress {
    fn show(&mut self, now: CopyProgress) {
        let is_terminal = std::io::stderr().is_terminal();
        let last = self.table.replace(now);
        if let Some(last) = last.filter(|last| last.table != now.table && last.rows > 0) {
            let start = if is_terminal { "\r" } else { "" };
            let (at, all) = (last.complete_tables + 1, last.tables);
            eprintln!("{start}{at}/{all} {}: {} records", last.table, last.rows);
        }
        if is_terminal && now.rows > 0 {
            eprint!("\r{}: {} records", now.table, now.rows);
        }
    }
}
