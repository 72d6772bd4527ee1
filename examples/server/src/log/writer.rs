//! A writer that leaves the writing to a thread of its own, many lines at once.

use std::io::{self, Write};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

use tracing_subscriber::fmt::MakeWriter;

/// How many bytes wait to be written, at most.
const CAPACITY: usize = 1024 * 1024;

/// How long lines are collected before they are written.
const BATCH: Duration = Duration::from_millis(2);

/// What happens to a line for which there is no room.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum WhenFull {
    /// Whoever logs it waits.
    Wait,
    /// It is dropped and counted.
    Drop,
}

/// Takes lines. Clones share everything.
#[derive(Clone)]
pub(super) struct LogWriter(Arc<Shared>);

struct Shared {
    state: Mutex<State>,
    /// There is something to write, or the log ends.
    filled: Condvar,
    /// There is room again.
    drained: Condvar,
    when_full: WhenFull,
}

#[derive(Default)]
struct State {
    lines: Vec<u8>,
    dropped: u64,
    ended: bool,
}

impl Shared {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn push(&self, line: &[u8]) {
        let mut state = self.state();
        while !state.has_room(line.len()) {
            if self.when_full == WhenFull::Drop {
                state.dropped += 1;
                return;
            }
            self.filled.notify_one();
            state = self
                .drained
                .wait(state)
                .unwrap_or_else(PoisonError::into_inner);
        }
        let was_empty = state.lines.is_empty();
        state.lines.extend_from_slice(line);
        if was_empty {
            self.filled.notify_one();
        }
    }

    /// Moves the next lines to `batch`, which is empty when the log has ended.
    fn take(&self, batch: &mut Vec<u8>) {
        let wait = |state: &mut State| state.lines.is_empty() && !state.ended;
        let state = self.filled.wait_while(self.state(), wait);
        let state = state.unwrap_or_else(PoisonError::into_inner);
        // More lines are about to come, as a rule.
        let more = |state: &mut State| !state.ended && state.lines.len() < CAPACITY / 2;
        let (mut state, _) = self
            .filled
            .wait_timeout_while(state, BATCH, more)
            .unwrap_or_else(PoisonError::into_inner);
        std::mem::swap(&mut state.lines, batch);
        self.drained.notify_all();
    }
}

impl State {
    /// A line that is longer than everything else may be has room when nothing else waits.
    fn has_room(&self, length: usize) -> bool {
        self.ended || self.lines.is_empty() || self.lines.len() + length <= CAPACITY
    }
}

impl LogWriter {
    /// Starts the thread that writes to `output`.
    ///
    /// # Errors
    /// When there is no thread to be had.
    pub(super) fn start(
        output: impl Write + Send + 'static,
        when_full: WhenFull,
    ) -> io::Result<(Self, LogGuard)> {
        let shared = Arc::new(Shared {
            state: Mutex::default(),
            filled: Condvar::new(),
            drained: Condvar::new(),
            when_full,
        });
        let of_thread = Arc::clone(&shared);
        let thread = std::thread::Builder::new()
            .name("log".to_owned())
            .spawn(move || write_all(&of_thread, output))?;
        let guard = LogGuard {
            shared: Arc::clone(&shared),
            thread: Some(thread),
        };
        Ok((Self(shared), guard))
    }
}

fn write_all(shared: &Shared, mut output: impl Write) {
    let mut batch = Vec::new();
    loop {
        shared.take(&mut batch);
        if batch.is_empty() {
            return;
        }
        // Where the log cannot be written there is nowhere to say so.
        let _ = output.write_all(&batch).and_then(|()| output.flush());
        batch.clear();
    }
}

impl Write for LogWriter {
    fn write(&mut self, line: &[u8]) -> io::Result<usize> {
        self.0.push(line);
        Ok(line.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl<'w> MakeWriter<'w> for LogWriter {
    type Writer = Self;

    fn make_writer(&'w self) -> Self {
        self.clone()
    }
}

/// Ends the log when it is dropped: every line is written, and how many were dropped is said.
pub(crate) struct LogGuard {
    shared: Arc<Shared>,
    thread: Option<JoinHandle<()>>,
}

impl LogGuard {
    /// Writes what waits, and tells how many lines were dropped.
    fn end(&mut self) -> u64 {
        self.shared.state().ended = true;
        self.shared.filled.notify_all();
        self.shared.drained.notify_all();
        if let Some(thread) = self.thread.take() {
            // It does not panic; and if it did, there would be nothing left to write.
            let _ = thread.join();
        }
        self.shared.state().dropped
    }
}

impl Drop for LogGuard {
    fn drop(&mut self) {
        let dropped = self.end();
        if dropped > 0 {
            eprintln!("core-server: {dropped} lines of the log were dropped");
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc::{Receiver, Sender, channel};

    use super::*;

    /// An output that tells what is written, and writes only when it is let.
    struct Gated {
        begun: Sender<()>,
        open: Receiver<()>,
        written: Arc<Mutex<Vec<u8>>>,
    }

    impl Write for Gated {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            let _ = self.begun.send(());
            // An end that is gone lets everything through.
            let _ = self.open.recv();
            self.written.lock().unwrap().extend_from_slice(bytes);
            Ok(bytes.len())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    struct Log {
        writer: LogWriter,
        guard: LogGuard,
        begun: Receiver<()>,
        open: Sender<()>,
        written: Arc<Mutex<Vec<u8>>>,
    }

    fn log(when_full: WhenFull) -> Log {
        let ((begin, begun), (open, opened)) = (channel(), channel());
        let written = Arc::default();
        let output = Gated {
            begun: begin,
            open: opened,
            written: Arc::clone(&written),
        };
        let (writer, guard) = LogWriter::start(output, when_full).unwrap();
        Log {
            writer,
            guard,
            begun,
            open,
            written,
        }
    }

    fn lines(numbers: std::ops::Range<usize>) -> String {
        numbers.map(|number| format!("line {number}\n")).collect()
    }

    #[test]
    fn every_line_is_written_in_its_order_when_the_log_ends() {
        let mut log = log(WhenFull::Wait);
        drop(log.open);
        for number in 0..10_000 {
            log.writer
                .write_all(format!("line {number}\n").as_bytes())
                .unwrap();
        }
        assert_eq!(log.guard.end(), 0);
        let written = String::from_utf8(log.written.lock().unwrap().clone()).unwrap();
        assert!(written == lines(0..10_000));
    }

    #[test]
    fn lines_that_wait_are_written_at_once() {
        let mut log = log(WhenFull::Wait);
        log.writer.write_all(lines(0..1).as_bytes()).unwrap();
        log.begun.recv().unwrap();
        for number in 1..100 {
            log.writer
                .write_all(lines(number..number + 1).as_bytes())
                .unwrap();
        }
        drop(log.open);
        assert_eq!(log.guard.end(), 0);
        assert_eq!(log.begun.iter().count(), 1, "one write for 99 lines");
        assert_eq!(
            log.written.lock().unwrap().as_slice(),
            lines(0..100).as_bytes()
        );
    }

    #[test]
    fn a_full_log_drops_and_counts_lines_only_when_told_to() {
        let line = vec![b'x'; CAPACITY / 4];
        let mut log = log(WhenFull::Drop);
        log.writer.write_all(&line).unwrap();
        log.begun.recv().unwrap();
        for _ in 0..7 {
            log.writer.write_all(&line).unwrap();
        }
        drop(log.open);
        assert_eq!(log.guard.end(), 3);
        assert_eq!(log.written.lock().unwrap().len(), 5 * line.len());
    }

    #[test]
    fn a_full_log_keeps_who_logs_waiting_and_loses_nothing() {
        let line = vec![b'x'; CAPACITY / 4];
        let mut log = log(WhenFull::Wait);
        let mut writer = log.writer.clone();
        let logging = std::thread::spawn({
            let line = line.clone();
            move || (0..40).for_each(|_| writer.write_all(&line).unwrap())
        });
        log.begun.recv().unwrap();
        drop(log.open);
        logging.join().unwrap();
        assert_eq!(log.guard.end(), 0);
        assert_eq!(log.written.lock().unwrap().len(), 40 * line.len());
    }
}
