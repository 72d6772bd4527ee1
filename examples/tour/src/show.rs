//! What the person sees: bars on a terminal, plain lines elsewhere.

use std::io::IsTerminal;

use indicatif::{ProgressBar, ProgressStyle};

/// Writes the tour's story.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Show {
    terminal: bool,
}

/// Something that gets done bit by bit.
#[derive(Debug)]
pub(crate) struct Progress {
    bar: Option<ProgressBar>,
    last: String,
}

impl Show {
    /// For this process's standard error and output.
    pub(crate) fn new() -> Self {
        Self {
            terminal: std::io::stderr().is_terminal(),
        }
    }

    /// Begins a chapter.
    #[expect(
        clippy::print_stdout,
        reason = "the story is the output of this program"
    )]
    pub(crate) fn chapter(self, title: &str) {
        println!("\n-- {title}");
    }

    /// Tells one thing.
    #[expect(
        clippy::print_stdout,
        reason = "the story is the output of this program"
    )]
    pub(crate) fn line(self, text: &str) {
        println!("   {text}");
    }

    /// Begins something that takes `length` steps.
    pub(crate) fn steps(self, length: u64) -> Progress {
        self.progress(length, "   [{bar:30}] {pos}/{len} {msg}")
    }

    /// Begins something that takes `length` bytes.
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
    /// The bar itself, for updates from elsewhere; `None` where there is no terminal.
    pub(crate) fn bar(&self) -> Option<ProgressBar> {
        self.bar.clone()
    }

    /// Shows how far it is.
    #[expect(
        clippy::print_stdout,
        reason = "the story is the output of this program"
    )]
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

    /// Ends it.
    pub(crate) fn end(self) {
        if let Some(bar) = self.bar {
            bar.finish();
        }
    }
}
