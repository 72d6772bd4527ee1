//! The output of commands: results on standard output, everything else on standard error.

use std::io::{self, IsTerminal, Write};

use console::{Style, Term, measure_text_width};
use serde::Serialize;

use crate::args::OutputFormat;
use crate::failure::{Failure, FailureKind, Result};
use crate::text::plain;

/// The output of a command.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Output {
    format: OutputFormat,
    /// True if standard error is a terminal, on which progress bars are drawn.
    is_interactive: bool,
}

impl Output {
    pub(crate) fn new(format: OutputFormat) -> Self {
        let has_no_color = std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty());
        let has_color =
            |is_terminal: bool| is_terminal && !has_no_color && format == OutputFormat::Table;
        console::set_colors_enabled(has_color(io::stdout().is_terminal()));
        console::set_colors_enabled_stderr(has_color(io::stderr().is_terminal()));
        Self {
            format,
            is_interactive: format == OutputFormat::Table && io::stderr().is_terminal(),
        }
    }

    pub(crate) fn is_json(self) -> bool {
        self.format == OutputFormat::Json
    }

    /// Returns whether progress bars may be drawn.
    pub(crate) fn is_interactive(self) -> bool {
        self.is_interactive
    }

    /// Prints the result: as JSON, or as the text of a function.
    pub(crate) fn result<T: Serialize>(
        self,
        value: &T,
        text: impl FnOnce(&T) -> String,
    ) -> Result<()> {
        match self.format {
            OutputFormat::Json => print_line(&to_json(value)?),
            OutputFormat::Table => print_line(text(value).trim_end_matches('\n')),
        }
    }

    /// Prints a list: as JSON, or as a table.
    pub(crate) fn list<T: Serialize>(
        self,
        records: &[T],
        header: &[&str],
        row: impl Fn(&T) -> Vec<String>,
    ) -> Result<()> {
        if self.is_json() {
            return print_line(&to_json(&records)?);
        }
        let rows: Vec<_> = records.iter().map(row).collect();
        if rows.is_empty() {
            self.note("There are none.");
            return Ok(());
        }
        print_line(&table(header, &rows))
    }

    /// Prints a message for people on standard error.
    pub(crate) fn note(self, text: &str) {
        // Without a reader of the messages, the command still does its work.
        let _ = writeln!(io::stderr(), "{text}");
    }

    /// Prints the failure of a command on standard error.
    pub(crate) fn failure(self, failure: &Failure) {
        if failure.kind == FailureKind::ClosedOutput {
            return;
        }
        if self.is_json() {
            self.note(&failure.to_json().to_string());
        } else {
            let label = Style::new().for_stderr().red().bold().apply_to("error:");
            self.note(&format!("{label} {failure}"));
        }
    }
}

/// Prints a line on standard output.
pub(crate) fn print_line(text: &str) -> Result<()> {
    print_text(&format!("{text}\n"))
}

/// Prints a text on standard output.
pub(crate) fn print_text(text: &str) -> Result<()> {
    let mut stdout = io::stdout().lock();
    let written = stdout
        .write_all(text.as_bytes())
        .and_then(|()| stdout.flush());
    written.map_err(|error| match error.kind() {
        io::ErrorKind::BrokenPipe => Failure::new(FailureKind::ClosedOutput, String::new()),
        _ => Failure::io("write the output", &error),
    })
}

/// Returns a value as indented JSON.
fn to_json(value: &impl Serialize) -> Result<String> {
    serde_json::to_string_pretty(value).map_err(|error| Failure::other(error.to_string()))
}

/// Returns rows in aligned columns, without characters that control a terminal.
pub(crate) fn table(header: &[&str], rows: &[Vec<String>]) -> String {
    let bold = Style::new().bold();
    let header = header
        .iter()
        .map(|title| bold.apply_to(title).to_string())
        .collect();
    let rows: Vec<Vec<String>> = rows
        .iter()
        .map(|row| row.iter().map(|cell| plain(cell)).collect())
        .collect();
    let lines: Vec<&Vec<String>> = std::iter::once(&header).chain(&rows).collect();
    let columns = header.len();
    let width = |column: usize| {
        lines
            .iter()
            .map(|line| measure_text_width(&line[column]))
            .max()
            .unwrap_or(0)
    };
    let widths: Vec<_> = (0..columns).map(width).collect();
    let mut text = String::new();
    for line in &lines {
        let start = text.len();
        for (cell, width) in line.iter().zip(&widths) {
            text.push_str(cell);
            text.extend(std::iter::repeat_n(
                ' ',
                width + 2 - measure_text_width(cell),
            ));
        }
        text.truncate(start + text[start..].trim_end().len());
        text.push('\n');
    }
    text.pop();
    text
}

/// Asks a question on the terminal. Without a terminal, `--yes` is required.
pub(crate) fn confirm(yes: bool, question: &str) -> Result<()> {
    if yes {
        return Ok(());
    }
    let answer = ask(&format!("{question} [y/N] "))?;
    if matches!(answer.trim().to_lowercase().as_str(), "y" | "yes") {
        return Ok(());
    }
    Err(Failure::other("Nothing was changed."))
}

/// Asks for a line on the terminal.
pub(crate) fn ask(question: &str) -> Result<String> {
    let terminal = terminal()?;
    let answer = terminal
        .write_str(question)
        .and_then(|()| terminal.read_line());
    answer.map_err(|error| Failure::io("read the answer", &error))
}

/// Asks for a line on the terminal that is not shown.
pub(crate) fn ask_secretly(question: &str) -> Result<String> {
    let terminal = terminal()?;
    let answer = terminal
        .write_str(question)
        .and_then(|()| terminal.read_secure_line());
    answer.map_err(|error| Failure::io("read the value", &error))
}

fn terminal() -> Result<Term> {
    if io::stdin().is_terminal() && io::stderr().is_terminal() {
        return Ok(Term::stderr());
    }
    Err(
        Failure::usage("This needs a confirmation, and there is no terminal to ask.")
            .hint("Pass --yes."),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_are_aligned_by_their_width_on_screen() {
        console::set_colors_enabled(false);
        let rows = [
            vec!["caf\u{e9}".to_owned(), "x".to_owned()],
            vec!["\u{6f22}".to_owned(), "-".to_owned()],
        ];
        assert_eq!(
            table(&["NAME", "B"], &rows),
            "NAME  B\ncaf\u{e9}  x\n\u{6f22}    -"
        );
    }
}
