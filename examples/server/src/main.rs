//! The stand-alone server: every service of the suite in one process, on a block of ports.
//!
//! Ready = one line `ready {json}` with all addresses on standard output. Logs go to standard error. SIGTERM and Ctrl-C
//! drain and end with status 0; a second signal ends at once.

mod config;
mod listeners;
mod run;
mod service;
mod welcome;

use std::process::ExitCode;

use clap::Parser;
use tracing_subscriber::EnvFilter;

use crate::config::{Cli, Command, Config};

fn main() -> ExitCode {
    let cli = Cli::parse();
    let config = match Config::load(&cli) {
        Ok(config) => config,
        Err(error) => {
            eprintln!("core-server: {error}");
            return ExitCode::from(2);
        }
    };
    if let Some(Command::CheckConfig) = cli.command {
        eprintln!("core-server: the configuration is good");
        return ExitCode::SUCCESS;
    }
    let filter = EnvFilter::try_from_default_env().unwrap_or_else(|_| EnvFilter::new("info"));
    tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_writer(std::io::stderr)
        .json()
        .init();
    match serve(config) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("core-server: {error}");
            ExitCode::FAILURE
        }
    }
}

fn serve(config: Config) -> Result<(), run::RunError> {
    tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()?
        .block_on(run::run(config))
}
