//! The stand-alone server: every service of the suite in one process, on a block of ports.
//!
//! Ready = one line `ready {json}` with all addresses on standard output. Logs go to standard error. SIGTERM and Ctrl-C
//! drain and end with status 0; a second signal ends at once.

mod config;
mod import;
mod listeners;
mod log;
mod run;
mod run_error;
mod service;
mod welcome;
mod workers;

use std::error::Error;
use std::path::Path;
use std::process::ExitCode;
use std::time::Duration;

use clap::Parser;

use crate::config::{Cli, Command, Config};

/// Requests allocate a lot that lives briefly; this takes a tenth to a quarter off what one costs.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    let cli = Cli::parse();
    // Variables that are not text are none of ours.
    let environment = std::env::vars_os()
        .filter_map(|(name, value)| Some((name.into_string().ok()?, value.into_string().ok()?)));
    let config = match Config::load(&cli, environment) {
        Ok(config) => config,
        Err(error) => {
            eprintln!("core-server: {}", chain(&error));
            return ExitCode::from(2);
        }
    };
    if let Some(Command::CheckConfig) = cli.command {
        return check(&config);
    }
    // Every line is written when this ends.
    let _log = match log::start(&config) {
        Ok(log) => log,
        Err(error) => {
            eprintln!("core-server: {}", chain(&error));
            return ExitCode::FAILURE;
        }
    };
    if let Some(Command::ImportUsers { file, dry_run }) = &cli.command {
        return import_users(&config, file, *dry_run);
    }
    let ended = match &cli.command {
        Some(Command::Workers) => workers::run(),
        _ => serve(config),
    };
    match ended {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("core-server: {}", chain(&error));
            ExitCode::FAILURE
        }
    }
}

#[expect(
    clippy::print_stdout,
    reason = "the configuration is what was asked for"
)]
fn check(config: &Config) -> ExitCode {
    if let Err(error) = run::check(config) {
        eprintln!("core-server: {}", chain(&error));
        return ExitCode::from(2);
    }
    println!("{}", config.effective);
    eprintln!("{}", welcome::workers(config));
    let contradictions = run::contradictions(config);
    for contradiction in &contradictions {
        eprintln!("core-server: {contradiction}");
    }
    match contradictions.len() {
        0 => eprintln!("core-server: the configuration is good"),
        count => eprintln!("core-server: the configuration works, with contradictions: {count}"),
    }
    ExitCode::SUCCESS
}

/// Ends with 0 when every row made sense.
fn import_users(config: &Config, file: &Path, dry_run: bool) -> ExitCode {
    match import::run(config, file, dry_run) {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("core-server: {}", chain(&error));
            ExitCode::FAILURE
        }
    }
}

/// An error with everything that led to it.
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

/// How long blocking calls, such as a look-up of a name, may delay the end of the process.
const BLOCKING_TIMEOUT: Duration = Duration::from_secs(1);

fn serve(config: Config) -> Result<(), run_error::RunError> {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()?;
    let outcome = runtime.block_on(run::run(config));
    runtime.shutdown_timeout(BLOCKING_TIMEOUT);
    outcome
}
