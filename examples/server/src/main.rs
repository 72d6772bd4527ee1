//! The server program: every service of the suite in one process, on consecutive ports.
//!
//! When the server is ready, it prints one line `ready {json}` with all addresses to standard output. Logs go to
//! standard error. After SIGTERM or Ctrl-C the server drains and exits with status 0; a second signal stops it
//! immediately.

mod accounting;
mod archive;
mod backup;
mod cells;
mod config;
mod doctor;
mod import;
mod journal_writer;
mod listeners;
mod log;
mod migrations;
mod plans;
mod run;
mod run_error;
mod service;
mod service_manager;
mod welcome;
mod workers;

use std::error::Error;
use std::process::ExitCode;
use std::time::Duration;

use clap::{CommandFactory, FromArgMatches};
use core_suite::accounting::JournalRange;

use crate::config::{Cli, Command, Config};

/// Requests make many short-lived allocations. This allocator saves a tenth to a quarter of a request's cost.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    let matches = Cli::command().get_matches();
    let cli = Cli::from_arg_matches(&matches).unwrap_or_else(|error| error.exit());
    // Variables that are not valid text are ignored.
    let environment = std::env::vars_os()
        .filter_map(|(name, value)| Some((name.into_string().ok()?, value.into_string().ok()?)));
    let config = match Config::load(&cli, &matches, environment) {
        Ok(config) => config,
        Err(error) => {
            eprintln!("core-server: {}", chain(&error));
            return ExitCode::from(2);
        }
    };
    if let Some(Command::CheckConfig) = cli.command {
        return check(&config);
    }
    // Writes all waiting lines when it is dropped.
    let _log = log::start(&config);
    match &cli.command {
        Some(Command::ImportUsers { file, dry_run }) => {
            exit_code(import::run(&config, file, *dry_run))
        }
        Some(Command::ExportJournal {
            from,
            to,
            format,
            output,
        }) => {
            let range = match JournalRange::new(*from, *to) {
                Ok(range) => range,
                Err(error) => {
                    eprintln!("core-server: --from and --to: {error}");
                    return ExitCode::from(2);
                }
            };
            let exported = accounting::export(&config, range, *format, output.as_deref());
            exit_code(exported.map(|()| true))
        }
        Some(Command::Backup { output }) => {
            exit_code(backup::back_up(&config, output).map(|()| true))
        }
        Some(Command::Restore { input, resume }) => {
            exit_code(backup::restore(&config, input, *resume).map(|()| true))
        }
        Some(Command::Copy { from, to, resume }) => {
            exit_code(backup::copy(&config, [from, to], *resume).map(|()| true))
        }
        Some(Command::Cells) => exit_code(cells::show(&config).map(|()| true)),
        Some(Command::MovePlatform {
            platform,
            all_of,
            to,
            max_pause,
            ..
        }) => {
            let platform = platform.as_deref().unwrap_or_default();
            let moved = match (all_of, to) {
                (Some(cell), Some(to)) => cells::move_all(&config, cell, to, *max_pause),
                (None, Some(to)) => cells::move_platform(&config, platform, to, *max_pause),
                (_, None) => cells::cancel_move(&config, platform),
            };
            exit_code(moved.map(|()| true))
        }
        Some(Command::Doctor) => exit_code(doctor::run(&config)),
        Some(Command::VerifyArchive { file, keys }) => {
            exit_code(archive::run(file, keys).map(|()| true))
        }
        Some(Command::VerifyJournal) => exit_code(accounting::verify(&config)),
        Some(Command::MigratePlan { from, to }) => {
            exit_code(plans::migrate(&config, *from, *to).map(|()| true))
        }
        Some(Command::Migrate {
            plan: true, sql, ..
        }) => exit_code(migrations::plan(&config, *sql).map(|()| true)),
        Some(Command::Migrate { all_stopped, .. }) => {
            exit_code(migrations::apply(&config, *all_stopped).map(|()| true))
        }
        Some(Command::Workers) => exit_code(workers::run().map(|()| true)),
        _ => exit_code(serve(config).map(|()| true)),
    }
}

/// Returns the exit status of a command, which is 0 only if it found nothing wrong. Prints its error.
fn exit_code<E: Error>(outcome: Result<bool, E>) -> ExitCode {
    match outcome {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("core-server: {}", chain(&error));
            ExitCode::FAILURE
        }
    }
}

#[expect(
    clippy::print_stdout,
    reason = "the configuration is the output of this command"
)]
fn check(config: &Config) -> ExitCode {
    if let Err(error) = run::check(config) {
        eprintln!("core-server: {}", chain(&error));
        return ExitCode::from(2);
    }
    let uncompared = match plans::compare(config) {
        Ok(reason) => reason,
        Err(error) => {
            eprintln!("core-server: {}", chain(&error));
            return ExitCode::from(2);
        }
    };
    println!("{}", config.effective);
    if let Some(reason) = uncompared {
        let reason = chain(&reason);
        eprintln!("core-server: the plans were not compared with the database: {reason}");
    }
    eprintln!("{}", welcome::workers(config));
    let contradictions = run::contradictions(config);
    for contradiction in &contradictions {
        eprintln!("core-server: {contradiction}");
    }
    match contradictions.len() {
        0 => eprintln!("core-server: the configuration is valid"),
        count => eprintln!("core-server: the configuration is valid, with {count} contradictions"),
    }
    ExitCode::SUCCESS
}

/// Returns the text of an error with all its causes.
fn chain(error: &dyn Error) -> String {
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(error) = source {
        let cause = error.to_string();
        if !text.contains(&cause) {
            text = format!("{text}: {cause}");
        }
        source = error.source();
    }
    text
}

/// How long blocking calls, such as a DNS lookup, may delay the end of the process.
const BLOCKING_TIMEOUT: Duration = Duration::from_secs(1);

fn serve(config: Config) -> Result<(), run_error::RunError> {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()?;
    let outcome = runtime.block_on(run::run(config));
    runtime.shutdown_timeout(BLOCKING_TIMEOUT);
    outcome
}
