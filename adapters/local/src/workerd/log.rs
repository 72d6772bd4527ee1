//! The output of a worker process. Its lines go to the log of the worker, and the last ones are the reason when the
//! process ends. Secrets and paths of this machine are removed first.

use std::collections::VecDeque;
use std::io;
use std::sync::Arc;
use std::time::Duration;

use core_domain::cli::{LogLevel, MAX_LOG_TEXT_BYTES};
use tokio::io::{AsyncBufRead, AsyncBufReadExt, AsyncRead, BufReader};

use tokio::time::{Instant, timeout_at};

use super::console::ConsoleParser;
use crate::logs::ConsoleSink;

/// Maximum number of bytes of a line that are kept. The text of a console line can need six bytes for one.
const MAX_LINE_BYTES: usize = 64 * 1024;
/// Maximum length of a line that can be the reason for the end, in bytes.
const MAX_REASON_BYTES: usize = 8 * 1024;
/// Maximum number of lines that are kept.
const MAX_LINES: usize = 12;
/// The interval to which the following limits apply.
const RATE_INTERVAL: Duration = Duration::from_secs(1);
/// Maximum number of lines that a worker adds to its log in one interval.
const MAX_RATE_LINES: u64 = 1_000;
/// Maximum length of their texts, in bytes.
const MAX_RATE_BYTES: usize = 1024 * 1024;
/// Minimum length of a hidden text, in bytes. A shorter text is not secret and would match everywhere.
const MIN_HIDDEN_BYTES: usize = 4;

/// The last lines of a process's output.
#[derive(Debug)]
pub(super) struct Tail {
    lines: VecDeque<String>,
    /// The texts that are replaced by `***`.
    hidden: Vec<String>,
    parser: ConsoleParser,
    console: Arc<dyn ConsoleSink>,
    rate: LineRate,
}

/// The console lines of the current interval.
#[derive(Debug)]
struct LineRate {
    ends_at: Instant,
    lines: u64,
    bytes: usize,
    /// Number of lines that exceeded a limit.
    omitted: u64,
}

impl Tail {
    /// Creates an empty tail that hides each line of these texts, and passes console lines on.
    pub(super) fn with_hidden<'a>(
        texts: impl IntoIterator<Item = &'a str>,
        console: Arc<dyn ConsoleSink>,
    ) -> Self {
        let lines = texts.into_iter().flat_map(str::lines);
        let hidden = lines.filter(|line| line.len() >= MIN_HIDDEN_BYTES);
        let mut hidden: Vec<String> = hidden.map(str::to_owned).collect();
        // The longest texts come first, because one may contain another.
        hidden.sort_by_key(|text| std::cmp::Reverse(text.len()));
        Self {
            lines: VecDeque::new(),
            hidden,
            parser: ConsoleParser::default(),
            console,
            rate: LineRate::starting_now(),
        }
    }

    /// Reads the output until it closes.
    pub(super) async fn read_from(&mut self, worker: &str, output: impl AsyncRead + Unpin) {
        let mut output = BufReader::new(output);
        let mut line = Vec::new();
        loop {
            if self.rate.omitted > 0 && !has_output(&mut output, self.rate.ends_at).await {
                self.start_interval(worker);
            }
            match read_line(&mut output, &mut line).await {
                Ok(Some(is_cut)) => self.push(worker, &line, is_cut),
                Ok(None) | Err(_) => return self.start_interval(worker),
            }
        }
    }

    /// Reports the omitted lines of the last interval, and starts the next one.
    fn start_interval(&mut self, worker: &str) {
        let last = std::mem::replace(&mut self.rate, LineRate::starting_now());
        if last.omitted > 0 {
            self.console.omit(worker, last.omitted);
        }
    }

    /// Adds a line to the log of the worker, unless the worker writes too many.
    fn write(&mut self, worker: &str, level: LogLevel, text: &str) {
        if Instant::now() >= self.rate.ends_at {
            self.start_interval(worker);
        }
        if self.rate.lines >= MAX_RATE_LINES || self.rate.bytes >= MAX_RATE_BYTES {
            self.rate.omitted += 1;
            return;
        }
        self.rate.lines += 1;
        self.rate.bytes += text.len().min(MAX_LOG_TEXT_BYTES);
        self.console.write(worker, level, text);
    }

    fn push(&mut self, worker: &str, line: &[u8], is_cut: bool) {
        let mut line = self.parser.parse(line, is_cut);
        for text in &self.hidden {
            if line.text.contains(text.as_str()) {
                line.text = line.text.replace(text, "***");
            }
        }
        tracing::debug!(worker, "{}", line.text);
        if let Some(level) = line.level {
            self.write(worker, level, &line.text);
        }
        if !line.is_reason {
            return;
        }
        if self.lines.len() == MAX_LINES {
            self.lines.pop_front();
        }
        let end = line.text.floor_char_boundary(MAX_REASON_BYTES);
        line.text.truncate(end);
        self.lines.push_back(line.text);
    }

    /// Returns the lines as one text.
    pub(super) fn text(&self) -> String {
        let lines = self.lines.iter().map(String::as_str);
        lines.collect::<Vec<_>>().join("\n")
    }
}

impl LineRate {
    fn starting_now() -> Self {
        Self {
            ends_at: Instant::now() + RATE_INTERVAL,
            lines: 0,
            bytes: 0,
            omitted: 0,
        }
    }
}

/// Waits for output until a time. Returns `false` if there is none.
async fn has_output(output: &mut (impl AsyncBufRead + Unpin), until: Instant) -> bool {
    timeout_at(until, output.fill_buf()).await.is_ok()
}

/// Reads a line without its line break into the buffer. Returns whether its end was dropped because it is too long, and
/// `None` at the end of the output.
async fn read_line(
    output: &mut (impl AsyncBufRead + Unpin),
    line: &mut Vec<u8>,
) -> io::Result<Option<bool>> {
    line.clear();
    let mut length = 0;
    loop {
        let available = output.fill_buf().await?;
        if available.is_empty() {
            return Ok((length > 0).then_some(length > line.len()));
        }
        let end = available.iter().position(|byte| *byte == b'\n');
        let content = &available[..end.unwrap_or(available.len())];
        let room = MAX_LINE_BYTES.saturating_sub(line.len());
        line.extend_from_slice(&content[..content.len().min(room)]);
        length += content.len();
        let used = end.map_or(available.len(), |end| end + 1);
        output.consume(used);
        if end.is_some() {
            return Ok(Some(length > line.len()));
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;

    use tokio::io::{AsyncWriteExt, duplex};

    use super::*;

    #[derive(Debug, Default)]
    struct ConsoleLines(Mutex<Vec<(LogLevel, String)>>);

    impl ConsoleSink for ConsoleLines {
        fn write(&self, _: &str, level: LogLevel, text: &str) {
            self.0.lock().unwrap().push((level, text.to_owned()));
        }

        fn omit(&self, _: &str, count: u64) {
            let line = (LogLevel::Warn, format!("omitted {count}"));
            self.0.lock().unwrap().push(line);
        }
    }

    fn console(text: &str) -> String {
        let message = serde_json::Value::from(text);
        format!("{{\"timestamp\":1,\"level\":\"error\",\"message\":{message}}}\n")
    }

    async fn read(output: &str) -> (String, Vec<(LogLevel, String)>) {
        let lines = Arc::new(ConsoleLines::default());
        let hidden = ["open sesame\nsecond line", "open", "x"];
        let mut tail = Tail::with_hidden(hidden, Arc::clone(&lines) as _);
        tail.read_from("a", output.as_bytes()).await;
        let lines = lines.0.lock().unwrap().clone();
        (tail.text(), lines)
    }

    #[tokio::test]
    async fn last_lines_are_kept_without_hidden_texts() {
        let output = format!(
            "{}{}x second line\n",
            "early\n".repeat(MAX_LINES),
            console("Uncaught: open sesame, opening")
        );
        let (text, _) = read(&output).await;
        assert!(
            text.ends_with("early\nUncaught: ***, ***ing\nx ***"),
            "{text}"
        );
        assert_eq!(text.lines().count(), MAX_LINES);
    }

    #[tokio::test]
    async fn console_lines_are_passed_on_without_hidden_texts() {
        let output = console("a\nopen sesame") + "raw\n" + &console("");
        let (_, lines) = read(&output).await;
        let error = |text: &str| (LogLevel::Error, text.to_owned());
        assert_eq!(lines, [error("a\n***"), error("")]);
    }

    #[tokio::test]
    async fn start_of_a_very_long_line_is_passed_on() {
        let output = console(&"y".repeat(3 * MAX_LINE_BYTES)) + &console("next");
        let (_, lines) = read(&output).await;
        let long = &lines[0].1;
        assert!(long.len() > MAX_LINE_BYTES - 100 && long.len() < MAX_LINE_BYTES);
        assert_eq!(lines[1].1, "next");
    }

    #[tokio::test(start_paused = true)]
    async fn lines_above_the_rate_are_counted_and_reported_after_the_interval() {
        let lines = Arc::new(ConsoleLines::default());
        let count = || lines.0.lock().unwrap().len() as u64;
        let mut tail = Tail::with_hidden([], Arc::clone(&lines) as _);
        let (output, mut process) = duplex(1024 * 1024);
        let flood = console("y").repeat(usize::try_from(MAX_RATE_LINES).unwrap() + 5);
        process.write_all(flood.as_bytes()).await.unwrap();
        let write = async {
            // The clock moves on when the reader waits.
            tokio::time::sleep(3 * RATE_INTERVAL).await;
            assert_eq!(count(), MAX_RATE_LINES + 1);
            let omission = (LogLevel::Warn, "omitted 5".to_owned());
            assert_eq!(lines.0.lock().unwrap().last(), Some(&omission));
            process.write_all(console("next").as_bytes()).await.unwrap();
            drop(process);
        };
        tokio::join!(tail.read_from("a", output), write);
        assert_eq!(count(), MAX_RATE_LINES + 2);
    }
}
