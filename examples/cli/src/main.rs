//! The command-line client of the Platform Control API.

mod args;
mod auth;
mod command;
mod config;
mod context;
mod failure;
mod inputs;
#[cfg(test)]
mod limits;
mod output;
mod progress;
mod site;
mod text;
mod usage;

use std::process::ExitCode;

use clap::Parser;

use crate::args::{Command, CommandLine, GlobalArgs};
use crate::context::Context;
use crate::failure::{Failure, Result};
use crate::output::Output;

fn main() -> ExitCode {
    let line = match CommandLine::try_parse() {
        Ok(line) => line,
        Err(error) => return usage::report(&error),
    };
    let output = Output::new(line.global.output);
    match run(line.global, line.command, output) {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            output.failure(&failure);
            failure.exit_code()
        }
    }
}

fn run(global: GlobalArgs, command: Command, output: Output) -> Result<()> {
    if let Command::Completions { shell } = command {
        return command::completions::print(shell);
    }
    let context = Context::new(global, output)?;
    // One thread suffices: files are read on threads of their own.
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build();
    let runtime = runtime.map_err(|error| Failure::io("start", &error))?;
    let result = runtime.block_on(command::run(&context, command));
    // A thread may still wait for a lock or a terminal.
    runtime.shutdown_background();
    result
}
