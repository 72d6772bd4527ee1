//! The lines that wait for a reader. If it is too slow, lines are omitted and counted.

use std::collections::{BTreeMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use core_domain::cli::{LogContent, LogId, LogLine};
use core_domain::kernel::Timestamp;
use core_domain::port::{LogBatch, LogListener};

/// Maximum number of lines that wait.
const MAX_LINES: usize = 1_000;
/// Maximum length of the texts of the lines that wait, in bytes.
const MAX_BYTES: usize = 2 * 1024 * 1024;
/// Maximum number of lines of one read.
const MAX_BATCH: usize = 200;
/// Number of ids for each millisecond of the clock.
const IDS_PER_MILLISECOND: u64 = 1_000;

/// The waiting lines of all tails of a reader.
#[derive(Debug, Default)]
pub(super) struct Lines {
    state: Mutex<LinesState>,
    listener: Option<Arc<dyn LogListener>>,
}

#[derive(Debug, Default)]
struct LinesState {
    waiting: VecDeque<LogLine>,
    bytes: usize,
    /// The numbers of omitted lines after the waiting ones, by resource.
    omitted: BTreeMap<String, u64>,
    last_id: u64,
}

impl Lines {
    pub(super) fn new(listener: Option<Arc<dyn LogListener>>) -> Self {
        Self {
            state: Mutex::default(),
            listener,
        }
    }

    /// Adds lines of a resource with their times. `now` determines the ids.
    pub(super) fn push(&self, resource: &str, lines: Vec<(Timestamp, LogContent)>, now: Timestamp) {
        let mut state = self.state();
        for (at, content) in lines {
            state.push(resource, at, content, now);
        }
        drop(state);
        if let Some(listener) = &self.listener {
            listener.on_lines();
        }
    }

    /// Removes the next lines.
    pub(super) fn take(&self, now: Timestamp) -> LogBatch {
        let mut state = self.state();
        if state.waiting.len() <= MAX_BATCH {
            for (resource, count) in std::mem::take(&mut state.omitted) {
                let line = state.line(&resource, now, LogContent::omission(count), now);
                state.waiting.push_back(line);
            }
        }
        let count = state.waiting.len().min(MAX_BATCH);
        let lines: Vec<_> = state.waiting.drain(..count).collect();
        let bytes: usize = lines.iter().map(|line| line.content.text_bytes()).sum();
        state.bytes = state.bytes.saturating_sub(bytes);
        let has_more = !state.waiting.is_empty();
        LogBatch { lines, has_more }
    }

    fn state(&self) -> MutexGuard<'_, LinesState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl LinesState {
    fn push(&mut self, resource: &str, at: Timestamp, content: LogContent, now: Timestamp) {
        // After an omission all lines are omitted until the reader has caught up, so that the number has one place.
        let is_full = self.waiting.len() >= MAX_LINES || self.bytes >= MAX_BYTES;
        if is_full || !self.omitted.is_empty() {
            *self.omitted.entry(resource.to_owned()).or_default() += 1;
            return;
        }
        self.bytes += content.text_bytes();
        let line = self.line(resource, at, content, now);
        self.waiting.push_back(line);
    }

    fn line(
        &mut self,
        resource: &str,
        at: Timestamp,
        content: LogContent,
        now: Timestamp,
    ) -> LogLine {
        let by_time = u64::try_from(now.millis()).unwrap_or(0) * IDS_PER_MILLISECOND;
        self.last_id = by_time.max(self.last_id + 1);
        LogLine {
            id: LogId(self.last_id),
            at,
            resource: resource.to_owned(),
            content,
        }
    }
}

#[cfg(test)]
mod tests {
    use core_domain::cli::LogLevel;

    use super::*;

    #[test]
    fn slow_reader_gets_the_number_of_lines_that_were_left_out() {
        let (lines, now) = (Lines::default(), Timestamp::from_millis(3));
        let line = (now, LogContent::console(LogLevel::Log, "text"));
        for _ in 0..MAX_LINES + 7 {
            lines.push("acme-api", vec![line.clone()], now);
        }
        let mut read = Vec::new();
        loop {
            let batch = lines.take(now);
            assert!(batch.lines.len() <= MAX_BATCH + 1);
            read.extend(batch.lines);
            if !batch.has_more {
                break;
            }
        }
        assert_eq!(read.len(), MAX_LINES + 1);
        assert_eq!(read[MAX_LINES].content, LogContent::omission(7));
        assert_eq!(read[0].id, LogId(3_000));
        assert!(read.is_sorted_by(|one, next| one.id < next.id));
        lines.push("acme-api", vec![line], now);
        assert_eq!(lines.take(now).lines.len(), 1);
    }
}
