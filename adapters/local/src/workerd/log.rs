//! The output of a worker process. Its last lines are the reason when the process ends. Secrets and paths of this
//! machine are removed first.

use std::collections::VecDeque;

use tokio::io::{AsyncBufReadExt, AsyncRead, AsyncReadExt, BufReader};

use super::capnp::SERVICE;

/// Maximum number of bytes of a line that are read at once.
const MAX_LINE_BYTES: u64 = 8 * 1024;
/// Maximum number of lines that are kept.
const MAX_LINES: usize = 12;
/// Minimum length of a hidden text, in bytes. A shorter text is not secret and would match everywhere.
const MIN_HIDDEN_BYTES: usize = 4;

/// The last lines of a process's output.
#[derive(Debug, Default)]
pub(super) struct Tail {
    lines: VecDeque<String>,
    /// The texts that are replaced by `***`.
    hidden: Vec<String>,
}

impl Tail {
    /// Creates an empty tail that hides each line of these texts.
    pub(super) fn with_hidden<'a>(texts: impl IntoIterator<Item = &'a str>) -> Self {
        let lines = texts.into_iter().flat_map(str::lines);
        let hidden = lines.filter(|line| line.len() >= MIN_HIDDEN_BYTES);
        let mut hidden: Vec<String> = hidden.map(str::to_owned).collect();
        // The longest texts come first, because one may contain another.
        hidden.sort_by_key(|text| std::cmp::Reverse(text.len()));
        Self {
            lines: VecDeque::new(),
            hidden,
        }
    }

    /// Reads the output until it closes.
    pub(super) async fn read_from(&mut self, worker: &str, output: impl AsyncRead + Unpin) {
        let mut output = BufReader::new(output);
        let mut line = Vec::new();
        loop {
            line.clear();
            match (&mut output)
                .take(MAX_LINE_BYTES)
                .read_until(b'\n', &mut line)
                .await
            {
                Ok(0) | Err(_) => return,
                Ok(_) => self.push(worker, &String::from_utf8_lossy(&line)),
            }
        }
    }

    fn push(&mut self, worker: &str, line: &str) {
        let mut line = line.trim_end().to_owned();
        for text in &self.hidden {
            line = line.replace(text, "***");
        }
        tracing::debug!(worker, "{line}");
        if self.lines.len() == MAX_LINES {
            self.lines.pop_front();
        }
        self.lines.push_back(line);
    }

    /// Returns the lines as one text, without the service prefix of `workerd`.
    pub(super) fn text(&self) -> String {
        let prefix = format!("service {SERVICE}: ");
        let lines = self.lines.iter();
        let lines = lines.map(|line| line.strip_prefix(&prefix).unwrap_or(line));
        lines.collect::<Vec<_>>().join("\n")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn last_lines_are_kept_without_hidden_texts() {
        let mut tail = Tail::with_hidden(["open sesame\nsecond line", "open", "x"]);
        let output = format!(
            "{}service worker: Uncaught: open sesame, opening\nx second line\n",
            "early\n".repeat(MAX_LINES)
        );
        tail.read_from("a", output.as_bytes()).await;
        let text = tail.text();
        assert!(
            text.ends_with("early\nUncaught: ***, ***ing\nx ***"),
            "{text}"
        );
        assert_eq!(text.lines().count(), MAX_LINES);
    }
}
