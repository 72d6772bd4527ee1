//! The log: one line per event, on standard error.

mod json;

use std::io::{self, BufWriter, Write};

use tracing_appender::non_blocking::{ErrorCounter, NonBlocking, NonBlockingBuilder, WorkerGuard};
use tracing_subscriber::EnvFilter;

use self::json::{JsonEvent, JsonMembers};
use crate::config::{Config, LogForm};

/// The maximum number of lines that wait to be written.
const MAX_WAITING_LINES: usize = 16 * 1024;

/// Starts the log. When the guard is dropped, the waiting lines are written and the log ends.
pub(crate) fn start(config: &Config) -> LogGuard {
    let (writer, guard) = start_writer(io::stderr(), config.options.log_lossy, MAX_WAITING_LINES);
    let log = tracing_subscriber::fmt()
        .with_env_filter(EnvFilter::new(&config.options.log_level))
        .with_writer(writer);
    match config.options.log_form {
        LogForm::Json => log.event_format(JsonEvent).fmt_fields(JsonMembers).init(),
        LogForm::Text => log.init(),
    }
    guard
}

/// Starts the thread that writes to `output`, many lines at once. If `max_lines` lines wait, a lossy log drops and counts
/// further lines; otherwise the logging thread waits.
fn start_writer(
    output: impl Write + Send + 'static,
    is_lossy: bool,
    max_lines: usize,
) -> (NonBlocking, LogGuard) {
    let (writer, worker) = NonBlockingBuilder::default()
        .lossy(is_lossy)
        .buffered_lines_limit(max_lines)
        .thread_name("log")
        .finish(BufWriter::new(output));
    let guard = LogGuard {
        dropped_lines: writer.error_counter(),
        worker: Some(worker),
    };
    (writer, guard)
}

/// Ends the log when it is dropped: the waiting lines are written within a second, and the number of dropped lines is
/// printed.
pub(crate) struct LogGuard {
    dropped_lines: ErrorCounter,
    worker: Option<WorkerGuard>,
}

impl LogGuard {
    /// Writes the waiting lines. Returns the number of lines that were dropped.
    fn end(&mut self) -> usize {
        drop(self.worker.take());
        self.dropped_lines.dropped_lines()
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
    use std::sync::{Arc, Mutex};

    use super::*;

    /// An output that waits until the other end of its channel is dropped.
    struct GatedOutput {
        opened: Receiver<()>,
        written: Arc<Mutex<Vec<u8>>>,
    }

    impl Write for GatedOutput {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            let _ = self.opened.recv();
            self.written.lock().unwrap().extend_from_slice(bytes);
            Ok(bytes.len())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    fn gated_output() -> (GatedOutput, Sender<()>, Arc<Mutex<Vec<u8>>>) {
        let (gate, opened) = channel();
        let written = Arc::default();
        let output = GatedOutput {
            opened,
            written: Arc::clone(&written),
        };
        (output, gate, written)
    }

    fn write_lines(writer: &mut NonBlocking, count: usize) {
        for number in 0..count {
            writer
                .write_all(format!("line {number}\n").as_bytes())
                .unwrap();
        }
    }

    #[test]
    fn a_log_that_waits_writes_all_lines_in_order() {
        let (output, gate, written) = gated_output();
        let (mut writer, mut guard) = start_writer(output, false, 10);
        let logging = std::thread::spawn(move || write_lines(&mut writer, 10_000));
        drop(gate);
        logging.join().unwrap();
        assert_eq!(guard.end(), 0);
        let expected: String = (0..10_000)
            .map(|number| format!("line {number}\n"))
            .collect();
        assert!(*written.lock().unwrap() == expected.into_bytes());
    }

    #[test]
    fn a_full_lossy_log_drops_and_counts_lines() {
        let (output, gate, written) = gated_output();
        let (mut writer, mut guard) = start_writer(output, true, 10);
        write_lines(&mut writer, 10_000);
        drop(gate);
        let dropped = guard.end();
        assert!(dropped > 0, "ten lines wait at most");
        let lines = written
            .lock()
            .unwrap()
            .iter()
            .filter(|byte| **byte == b'\n')
            .count();
        assert_eq!(lines + dropped, 10_000);
    }
}
