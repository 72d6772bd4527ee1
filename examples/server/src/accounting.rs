//! The commands for accountants: the export and the verification of the journal.

use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::Path;

use core_suite::SuiteError;
use core_suite::accounting::{Accounting, JournalRange};
use core_suite::units;

use crate::config::{Config, Database, JournalFormat};
use crate::journal_writer::JournalWriter;
use crate::run::builder;

/// Why a command did not start, or was aborted.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Error {
    #[error("the in-memory database has no journal to read; set --database-url")]
    Memory,
    #[error(transparent)]
    Suite(#[from] SuiteError),
    #[error("the journal cannot be read: {0:?}")]
    Read(#[from] units::Error),
    #[error("the export cannot be written to {0}")]
    Write(String, #[source] std::io::Error),
    #[error(transparent)]
    Runtime(std::io::Error),
}

/// Writes the journal to a file, or to standard output.
pub(crate) fn export(
    config: &Config,
    range: JournalRange,
    format: JournalFormat,
    output: Option<&Path>,
) -> Result<(), Error> {
    run(config, async |accounting| {
        let failed = |error| {
            let output = output.map(|path| path.display().to_string());
            Error::Write(
                output.unwrap_or_else(|| "standard output".to_owned()),
                error,
            )
        };
        let output: Box<dyn Write> = match output {
            Some(path) => Box::new(File::create(path).map_err(failed)?),
            None => Box::new(std::io::stdout()),
        };
        let mut writer = JournalWriter::new(format, BufWriter::new(output)).map_err(failed)?;
        let mut export = accounting.export(range);
        while let Some(lines) = export.next_page().await? {
            for line in &lines {
                writer.write_line(line).map_err(failed)?;
            }
        }
        for (currency, sums) in export.trial_balance() {
            writer.write_trial_balance(currency, sums).map_err(failed)?;
        }
        writer.finish().map_err(failed)
    })
}

/// Verifies the journal. Returns whether nothing differs.
#[expect(
    clippy::print_stdout,
    reason = "the report is the output of this command"
)]
pub(crate) fn verify(config: &Config) -> Result<bool, Error> {
    run(config, async |accounting| {
        let report = |difference| println!("{difference}");
        let summary = accounting.verify(report).await?;
        for (currency, sums) in summary.sums.turnovers() {
            println!("{currency}: debit {}, credit {}", sums.debit, sums.credit);
        }
        println!(
            "verified: {} entries, {} customers, {} invoices, {} credits; differences: {}",
            summary.entries,
            summary.customers,
            summary.invoices,
            summary.credits,
            summary.differences
        );
        Ok(summary.differences == 0)
    })
}

/// Opens the journal and runs a command on it.
fn run<T>(
    config: &Config,
    command: impl AsyncFnOnce(Accounting) -> Result<T, Error>,
) -> Result<T, Error> {
    if config.database == Database::Memory {
        return Err(Error::Memory);
    }
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()
        .map_err(Error::Runtime)?;
    runtime.block_on(async {
        let accounting = builder(config).open_accounting().await?;
        command(accounting).await
    })
}
