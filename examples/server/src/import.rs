//! Imports users from a file.

use std::fs::File;
use std::io::Read;
use std::path::Path;

use core_suite::{ImportError, SuiteError};

use crate::config::{Config, Database};
use crate::run::builder;

/// Why an import did not start, or was aborted.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Error {
    #[error("{0}: {1}")]
    File(String, #[source] std::io::Error),
    #[error("users cannot be imported into the in-memory database; set --database-url")]
    Memory,
    /// A SQLite file can be opened by one process only.
    #[error("the database cannot be opened; if a server uses it, stop the server first")]
    InUse(#[source] ImportError),
    #[error(transparent)]
    Import(#[from] ImportError),
    #[error(transparent)]
    Runtime(std::io::Error),
}

/// Imports the users. Returns whether every row was valid.
#[expect(
    clippy::print_stdout,
    reason = "the summary is the output of this command"
)]
pub(crate) fn run(config: &Config, file: &Path, dry_run: bool) -> Result<bool, Error> {
    if config.database == Database::Memory {
        return Err(Error::Memory);
    }
    let source: Box<dyn Read + Send> = if file == Path::new("-") {
        Box::new(std::io::stdin())
    } else {
        let opened = File::open(file);
        Box::new(opened.map_err(|error| Error::File(file.display().to_string(), error))?)
    };
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()
        .map_err(Error::Runtime)?;
    let report = |problem| eprintln!("{problem}");
    let imported = runtime.block_on(builder(config).import_users(source, dry_run, report));
    let summary = imported.map_err(|error| explain_error(config, error))?;
    let verb = if dry_run { "would be" } else { "were" };
    println!(
        "{} users {verb} imported; {} already exist; {} rows are invalid",
        summary.imported, summary.existing, summary.invalid
    );
    Ok(summary.invalid == 0)
}

fn explain_error(config: &Config, error: ImportError) -> Error {
    let is_sqlite = matches!(config.database, Database::Sqlite(_));
    match error {
        ImportError::Suite(SuiteError::Store(_)) if is_sqlite => Error::InUse(error),
        error => Error::Import(error),
    }
}
