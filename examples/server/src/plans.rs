//! The commands for the versions of plans: their comparison with the database, and the move of subscriptions.

use std::io;

use core_suite::plans::PlanVersionName;
use core_suite::{SuiteError, units};
use tokio::runtime::Runtime;

use crate::config::{Config, Database};
use crate::run::builder;

/// Why a command did not start, or was aborted.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Error {
    #[error("the in-memory database has no subscriptions; set --database-url")]
    Memory,
    /// A SQLite file can be opened by one process only.
    #[error("the database cannot be opened; if a server uses it, stop the server first")]
    InUse(#[source] SuiteError),
    #[error(transparent)]
    Suite(SuiteError),
    #[error("the subscriptions cannot be moved: {0:?}")]
    Move(#[from] units::Error),
    #[error(transparent)]
    Runtime(#[from] io::Error),
}

/// Plans the move of all subscriptions of a version of a plan to another version.
#[expect(
    clippy::print_stdout,
    reason = "the summary is the output of this command"
)]
pub(crate) fn migrate(
    config: &Config,
    from: PlanVersionName,
    to: PlanVersionName,
) -> Result<(), Error> {
    if config.database == Database::Memory {
        return Err(Error::Memory);
    }
    let is_sqlite = matches!(config.database, Database::Sqlite(_));
    runtime()?.block_on(async {
        let opened = builder(config).open_plans().await;
        let plans = opened.map_err(|error| match error {
            SuiteError::Store(_) if is_sqlite => Error::InUse(error),
            error => Error::Suite(error),
        })?;
        let summary = plans.migrate(from, to).await?;
        println!(
            "{} subscriptions will move from {from} to {to}, 30 days or more after the mail to the customer; {} were planned before",
            summary.planned, summary.known
        );
        Ok(())
    })
}

/// Compares the configured plans with their versions in the database. Returns the error if they cannot be compared.
///
/// # Errors
/// [`SuiteError::Setting`] if the terms of a plan have changed under the same version.
pub(crate) fn compare(config: &Config) -> Result<Option<SuiteError>, SuiteError> {
    if config.database == Database::Memory {
        return Ok(None);
    }
    let compared = runtime()?.block_on(builder(config).compare_plans());
    match compared {
        Ok(()) => Ok(None),
        Err(error @ SuiteError::Setting(_)) => Err(error),
        Err(error) => Ok(Some(error)),
    }
}

fn runtime() -> io::Result<Runtime> {
    tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()
}
