//! The output of the tour: progress bars on a terminal, plain lines elsewhere.

use std::io::IsTerminal;

use indicatif::{ProgressBar, ProgressStyle};

/// Writes the output of the tour.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Show {
    terminal: bool,
}

/// The progress of one operation.
#[derive(Debug)]
pub(crate) struct Progress {
    bar: Option<ProgressBar>,
    last: String,
}

impl Show {
    /// Creates the output for this process's standard output and error.
    pub(crate) fn new() -> Self {
        Self {
            terminal: std::io::stderr().is_terminal(),
        }
    }

    /// Prints the heading of a chapter.
    #[expect(clippy::print_stdout, reason = "the tour prints to standard output")]
    pub(crate) fn chapter(self, title: &str) {
        println!("\n-- {title}");
    }

    /// Prints one line.
    #[expect(clippy::print_stdout, reason = "the tour prints to standard output")]
    pub(crate) fn line(self, text: &str) {
        println!("   {text}");
    }

    /// Starts the progress of an operation with `length` steps.
    pub(crate) fn steps(self, length: u64) -> Progress {
        self.progress(length, "   [{bar:30}] {pos}/{len} {msg}")
    }

    /// Starts the progress of an operation with `length` bytes.
    pub(crate) fn bytes(self, length: u64) -> Progress {
        self.progress(length, "   [{bar:30}] {bytes}/{total_bytes} {msg}")
    }

    fn progress(self, length: u64, template: &str) -> Progress {
        let bar = self.terminal.then(|| {
            let style = ProgressStyle::with_template(template)
                .unwrap_or_else(|_| ProgressStyle::default_bar());
            ProgressBar::new(length).with_style(style.progress_chars("=> "))
        });
        Progress {
            bar,
            last: String::new(),
        }
    }
}

impl Progress {
    /// Returns the progress bar, so that other code can update it; `None` without a terminal.
    pub(crate) fn bar(&self) -> Option<ProgressBar> {
        self.bar.clone()
    }

    /// Shows the current progress.
    #[expect(clippy::print_stdout, reason = "the tour prints to standard output")]
    pub(crate) fn at(&mut self, done: u64, of: u64, text: &str) {
        if let Some(bar) = &self.bar {
            bar.set_length(of);
            bar.set_position(done);
            bar.set_message(text.to_owned());
            return;
        }
        let line = format!("   {done}/{of} {text}");
        if line != self.last {
            println!("{line}");
            self.last = line;
        }
    }

    /// Finishes the progress bar.
    pub(crate) fn end(self) {
        if let Some(bar) = self.bar {
            bar.finish();
        }
    }
}
