//! The process that hosts workers.

use std::sync::Arc;

use clap::ValueEnum;
use core_suite::{SuiteError, SystemClock, WorkerHostCommand, run_worker_host};

use crate::config::Config;
use crate::run_error::RunError;

/// Settings of the allocator, mimalloc. By default it reserves one gibibyte at once, which is the process's memory
/// limit.
const ALLOCATOR: [(&str, &str); 2] = [
    ("MIMALLOC_ARENA_EAGER_COMMIT", "0"),
    // The unit is KiB.
    ("MIMALLOC_ARENA_RESERVE", "65536"),
];

/// Returns the command that starts this program as the process that hosts workers; `None` if the path of the program is
/// unknown.
pub(crate) fn command(config: &Config) -> Option<WorkerHostCommand> {
    let program = match std::env::current_exe() {
        Ok(program) => program,
        Err(error) => {
            tracing::warn!(%error, "the path of this program is unknown, so the server hosts workers in its own process");
            return None;
        }
    };
    let log_form = config.options.log_form.to_possible_value()?;
    let args = [
        "--log-level",
        &config.options.log_level,
        "--log-form",
        log_form.get_name(),
        "workers",
    ];
    Some(WorkerHostCommand {
        program,
        args: args.map(str::to_owned).to_vec(),
        env: ALLOCATOR
            .map(|(name, value)| (name.to_owned(), value.to_owned()))
            .to_vec(),
    })
}

/// Hosts workers until the server that started this process ends.
///
/// # Errors
/// [`RunError`] if no server started this process, or if the data folder cannot be opened.
pub(crate) fn run() -> Result<(), RunError> {
    tokio::runtime::Builder::new_multi_thread()
        // Thread stacks count towards the memory limit.
        .max_blocking_threads(32)
        .enable_all()
        .build()?
        .block_on(run_worker_host(Arc::new(SystemClock)))
        .map_err(SuiteError::from)?;
    Ok(())
}
