//! Progress bars on standard error. Without a terminal there are none.

use std::sync::Arc;
use std::time::Duration;

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

use crate::output::Output;
use crate::text::size;

/// The interval at which a spinner moves.
const TICK: Duration = Duration::from_millis(100);

/// A step of a command that takes time.
#[derive(Clone, Debug)]
pub(crate) struct Progress {
    bar: ProgressBar,
    output: Output,
}

impl Progress {
    /// Creates a bar for a number of bytes.
    pub(crate) fn bytes(output: Output, label: &str, total: u64) -> Self {
        let template = "{prefix:>10} [{bar:30}] {binary_bytes}/{binary_total_bytes} {eta}";
        Self::new(output, ProgressBar::new(total), template, label)
    }

    /// Creates a spinner.
    pub(crate) fn spinner(output: Output, label: &str) -> Self {
        let progress = Self::new(
            output,
            ProgressBar::new_spinner(),
            "{prefix:>10} {spinner} {msg}",
            label,
        );
        if output.is_interactive() {
            progress.bar.enable_steady_tick(TICK);
        }
        progress
    }

    fn new(output: Output, bar: ProgressBar, template: &str, label: &str) -> Self {
        let is_hidden = !output.is_interactive();
        bar.set_draw_target(if is_hidden {
            ProgressDrawTarget::hidden()
        } else {
            ProgressDrawTarget::stderr()
        });
        if let Ok(style) = ProgressStyle::with_template(template) {
            bar.set_style(style.progress_chars("=> "));
        }
        bar.set_prefix(label.to_owned());
        Self { bar, output }
    }

    /// Returns a function that moves the bar.
    pub(crate) fn counter(&self) -> Arc<dyn Fn(u64) + Send + Sync> {
        let bar = self.bar.clone();
        Arc::new(move |bytes| bar.inc(bytes))
    }

    /// Sets the text beside the spinner. Without a terminal, the text is a line of its own.
    pub(crate) fn set_message(&self, text: &str) {
        if self.output.is_interactive() {
            self.bar.set_message(text.to_owned());
        } else if !self.output.is_json() {
            self.output.note(text);
        }
    }

    /// Removes the bar and prints a line in its place.
    pub(crate) fn finish(self, text: &str) {
        self.bar.finish_and_clear();
        if !self.output.is_json() {
            self.output.note(text);
        }
    }

    /// Removes the bar.
    pub(crate) fn clear(self) {
        self.bar.finish_and_clear();
    }
}

/// Returns the number of files and their size as text.
pub(crate) fn amount(files: usize, bytes: u64) -> String {
    let noun = if files == 1 { "file" } else { "files" };
    format!("{files} {noun}, {}", size(bytes))
}
