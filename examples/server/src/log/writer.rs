//! A log writer that writes on its own thread, many lines at once.

use std::io::{self, Write};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

use tracing_subscriber::fmt::MakeWriter;

/// Maximum number of bytes that wait to be written.
const CAPACITY: usize = 1024 * 1024;

/// How long lines are collected before they are written.
const BATCH: Duration = Duration::from_millis(2);

/// The handling of a line that does not fit into the buffer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum WhenFull {
    /// The logging thread waits.
    Wait,
    /// The line is dropped and counted.
    Drop,
}

/// The writer that events are logged to. Clones share one buffer.
#[derive(Clone)]
pub(super) struct LogWriter(Arc<Shared>);

struct Shared {
    state: Mutex<State>,
    /// Signalled when the buffer has lines to write, or when the log ends.
    filled: Condvar,
    /// Signalled when the buffer has room again.
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

    /// Moves the waiting lines to `batch`. An empty batch means that the log has ended.
    fn take(&self, batch: &mut Vec<u8>) {
        let wait = |state: &mut State| state.lines.is_empty() && !state.ended;
        let state = self.filled.wait_while(self.state(), wait);
        let state = state.unwrap_or_else(PoisonError::into_inner);
        // More lines usually follow soon.
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
    /// Returns whether a line fits into the buffer. A line longer than the buffer fits if the buffer is empty.
    fn has_room(&self, length: usize) -> bool {
        self.ended || self.lines.is_empty() || self.lines.len() + length <= CAPACITY
    }
}

impl LogWriter {
    /// Starts the thread that writes to `output`.
    ///
    /// # Errors
    /// The thread could not be started.
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
        // An error of the log's own output cannot be reported anywhere.
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

/// Ends the log when it is dropped: all lines are written, and the number of dropped lines is printed.
pub(crate) struct LogGuard {
    shared: Arc<Shared>,
    thread: Option<JoinHandle<()>>,
}

impl LogGuard {
    /// Writes the waiting lines. Returns the number of lines that were dropped.
    fn end(&mut self) -> u64 {
        self.shared.state().ended = true;
        self.shared.filled.notify_all();
        self.shared.drained.notify_all();
        if let Some(thread) = self.thread.take() {
            // The thread does not panic, and after a panic there would be nothing left to write.
            let _ = thread.join();
        }
        self.shared.state().dropped
    }
}

impl Drop for LogGuard {
    fn drop(&mut self) {
        let dropped = self.end();
        if dropped > 0 {
            eprintln!("core-server: {dropped} log lines were dropped");
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc::{Receiver, Sender, channel};

    use super::*;

    /// An output that reports every write, and performs it only after a permission.
    struct Gated {
        begun: Sender<()>,
        open: Receiver<()>,
        written: Arc<Mutex<Vec<u8>>>,
    }

    impl Write for Gated {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            let _ = self.begun.send(());
            // A closed channel permits all writes.
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
    fn all_lines_are_written_in_order_when_the_log_ends() {
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
    fn waiting_lines_are_written_together() {
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
    fn a_full_log_drops_and_counts_lines_if_configured_to() {
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
    fn a_full_log_blocks_the_logging_thread_and_loses_nothing() {
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
