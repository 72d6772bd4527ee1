//! The command that moves a platform to another cell.

use std::io::IsTerminal;
use std::time::Duration;

use core_suite::{MoveOptions, MovePlatformError, MoveProgress, MoveReport};

use crate::config::Config;
use crate::run::builder;

/// Why the command did not succeed.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Error {
    #[error(transparent)]
    Move(#[from] MovePlatformError),
    #[error(transparent)]
    Runtime(std::io::Error),
}

/// Moves a platform to a cell, with a maximum pause in milliseconds. Without a cell, cancels a move.
#[expect(
    clippy::print_stdout,
    reason = "the summary is the output of this command"
)]
pub(crate) fn run(
    config: &Config,
    platform: &str,
    to: Option<&str>,
    max_pause: u64,
) -> Result<(), Error> {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()
        .map_err(Error::Runtime)?;
    let builder = builder(config);
    let Some(to) = to else {
        let removed = runtime.block_on(builder.cancel_move(platform))?;
        println!("cancelled: {removed} records were removed from the other cell");
        return Ok(());
    };
    let options = MoveOptions {
        max_pause: Duration::from_millis(max_pause),
        ..MoveOptions::default()
    };
    let mut show = show;
    let moved = builder.move_platform(platform, to, &options, &mut show);
    print(&runtime.block_on(moved)?);
    Ok(())
}

/// Prints the progress to standard error.
fn show(progress: MoveProgress) {
    match progress {
        MoveProgress::Announced => eprintln!("announced: all servers are noticing the move"),
        MoveProgress::Copying { table, rows } if std::io::stderr().is_terminal() => {
            eprint!("\r{rows} records compared, at {table}\x1b[K");
        }
        MoveProgress::Copied { rows, changed } => {
            let start = if std::io::stderr().is_terminal() {
                "\r"
            } else {
                ""
            };
            eprintln!("{start}copied: {rows} records compared, {changed} written");
        }
        MoveProgress::CaughtUp { changes } => {
            eprintln!("caught up: {changes} changes copied");
        }
        MoveProgress::TooSlow => {
            eprintln!("the last changes needed too long; trying again");
        }
        MoveProgress::Switched { pause } => {
            let millis = pause.as_millis();
            eprintln!("switched: changes waited for {millis} ms; removing the old records");
        }
        _ => {}
    }
}

#[expect(
    clippy::print_stdout,
    reason = "the summary is the output of this command"
)]
fn print(report: &MoveReport) {
    let records: u64 = report.tables.iter().map(|(_, rows)| rows).sum();
    if report.pause.is_some() {
        let tables = report.tables.len();
        println!("moved and verified: {records} records in {tables} tables");
    }
    println!("removed from the old cell: {} records", report.removed);
}
