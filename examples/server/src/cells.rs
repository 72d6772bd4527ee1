//! The commands that show cells and move platforms between them.

use std::io::IsTerminal;
use std::time::Duration;

use core_suite::{CellState, CellUse, MoveOptions, MovePlatformError, MoveProgress, MoveReport};

use crate::config::Config;
use crate::run::builder;

/// Why a command did not succeed.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Error {
    #[error(transparent)]
    Cells(#[from] MovePlatformError),
    #[error(transparent)]
    Runtime(std::io::Error),
}

/// Prints what each cell has, and why it cannot be removed.
#[expect(
    clippy::print_stdout,
    reason = "the cells are the output of this command"
)]
pub(crate) fn show(config: &Config) -> Result<(), Error> {
    for state in run(builder(config).cell_states())? {
        println!("{}", line(&state));
    }
    Ok(())
}

/// Returns the line of a cell in the output.
fn line(state: &CellState) -> String {
    let CellState {
        name, platforms, ..
    } = state;
    let removal = match state.uses.as_slice() {
        [] => "can be removed".to_owned(),
        [CellUse::Home] => "cannot be removed: it is the home cell".to_owned(),
        uses => format!("cannot be removed: {}", reasons(uses).join(", ")),
    };
    let taking = match state.takes_new_platforms {
        true => "takes new platforms, ",
        false => "",
    };
    format!("{name}: {platforms} platforms, {taking}{removal}")
}

/// Returns the uses as text. Rows are only named if no platform explains them.
fn reasons(uses: &[CellUse]) -> Vec<String> {
    let has_platforms = uses.contains(&CellUse::Platforms);
    let reason = |reason: &CellUse| match reason {
        CellUse::NewPlatforms => Some("new platforms are assigned to it".to_owned()),
        CellUse::Platforms => Some("it has platforms".to_owned()),
        CellUse::Moves => Some("a platform is moving".to_owned()),
        CellUse::Units => Some("changes are being committed".to_owned()),
        CellUse::Rows(table) if !has_platforms => Some(format!("it has {table}")),
        _ => None,
    };
    uses.iter().filter_map(reason).collect()
}

/// Moves a platform to a cell, with a maximum pause in milliseconds.
pub(crate) fn move_platform(
    config: &Config,
    platform: &str,
    to: &str,
    max_pause: u64,
) -> Result<(), Error> {
    let options = options(max_pause);
    let mut show = show_progress;
    print(&run(
        builder(config).move_platform(platform, to, &options, &mut show)
    )?);
    Ok(())
}

/// Moves all platforms of a cell to another one, each with a maximum pause in milliseconds.
#[expect(
    clippy::print_stdout,
    reason = "the summary is the output of this command"
)]
pub(crate) fn move_all(config: &Config, from: &str, to: &str, max_pause: u64) -> Result<(), Error> {
    let options = options(max_pause);
    let mut show = show_progress;
    let mut show_start = |platform: &str| println!("moving platform {platform}");
    let moved = builder(config).move_all_platforms(from, to, &options, &mut show, &mut show_start);
    println!("moved {} platforms to {to}", run(moved)?);
    Ok(())
}

/// Cancels the move of a platform.
#[expect(
    clippy::print_stdout,
    reason = "the summary is the output of this command"
)]
pub(crate) fn cancel_move(config: &Config, platform: &str) -> Result<(), Error> {
    let removed = run(builder(config).cancel_move(platform))?;
    println!("cancelled: {removed} records were removed from the other cell");
    Ok(())
}

/// Runs a command of the suite to its end.
fn run<T>(command: impl Future<Output = Result<T, MovePlatformError>>) -> Result<T, Error> {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()
        .map_err(Error::Runtime)?;
    Ok(runtime.block_on(command)?)
}

fn options(max_pause: u64) -> MoveOptions {
    MoveOptions {
        max_pause: Duration::from_millis(max_pause),
        ..MoveOptions::default()
    }
}

/// Prints the progress to standard error.
fn show_progress(progress: MoveProgress) {
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
