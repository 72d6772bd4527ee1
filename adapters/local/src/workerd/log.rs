//! What a process says: the end of it is the reason when the process ends. Secrets and the paths of this machine are taken
//! out before anybody sees it.

use std::collections::VecDeque;

use tokio::io::{AsyncBufReadExt, AsyncRead, AsyncReadExt, BufReader};

use super::capnp::SERVICE;

/// How much of a line is read at once, in bytes.
const LINE: u64 = 8 * 1024;
/// How many lines are remembered.
const LINES: usize = 12;
/// A shorter text is no secret, and would be found everywhere.
const SHORTEST: usize = 4;

/// The last lines a process has written.
#[derive(Debug, Default)]
pub(super) struct Tail {
    lines: VecDeque<String>,
    /// What is taken out of them.
    hidden: Vec<String>,
}

impl Tail {
    /// Takes these texts out, each line of them.
    pub(super) fn hiding<'a>(texts: impl IntoIterator<Item = &'a str>) -> Self {
        let lines = texts.into_iter().flat_map(str::lines);
        let hidden = lines.filter(|line| line.len() >= SHORTEST);
        let mut hidden: Vec<String> = hidden.map(str::to_owned).collect();
        // The longest first: one may be a part of another.
        hidden.sort_by_key(|text| std::cmp::Reverse(text.len()));
        Self {
            lines: VecDeque::new(),
            hidden,
        }
    }

    /// Reads until the other end closes.
    pub(super) async fn follow(&mut self, worker: &str, output: impl AsyncRead + Unpin) {
        let mut output = BufReader::new(output);
        let mut line = Vec::new();
        loop {
            line.clear();
            match (&mut output).take(LINE).read_until(b'\n', &mut line).await {
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
        if self.lines.len() == LINES {
            self.lines.pop_front();
        }
        self.lines.push_back(line);
    }

    /// The lines as one text.
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
    async fn the_last_lines_are_known_without_what_is_hidden() {
        let mut tail = Tail::hiding(["open sesame\nsecond line", "open", "x"]);
        let output = format!(
            "{}service worker: Uncaught: open sesame, opening\nx second line\n",
            "early\n".repeat(LINES)
        );
        tail.follow("a", output.as_bytes()).await;
        let text = tail.text();
        assert!(
            text.ends_with("early\nUncaught: ***, ***ing\nx ***"),
            "{text}"
        );
        assert_eq!(text.lines().count(), LINES);
    }
}
