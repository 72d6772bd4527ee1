//! Completions of shells.

use clap::CommandFactory;
use clap_complete::Shell;

use crate::args::CommandLine;
use crate::failure::Result;
use crate::output::print_text;

/// Prints the completions for a shell.
pub(crate) fn print(shell: Shell) -> Result<()> {
    let mut script = Vec::new();
    let mut command = CommandLine::command();
    clap_complete::generate(shell, &mut command, "core-cli", &mut script);
    print_text(&String::from_utf8_lossy(&script))
}
