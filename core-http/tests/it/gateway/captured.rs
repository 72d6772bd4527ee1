//! Captures the log of a test.
//!
//! The process has one subscriber, installed before the gateway first logs: a log statement that is first reached
//! without a subscriber may stay disabled. Each test runs on its own thread and reads the lines of that thread.

use std::cell::RefCell;
use std::io::Write;
use std::sync::Once;

thread_local! {
    static LINES: RefCell<Vec<u8>> = const { RefCell::new(Vec::new()) };
}

struct ThreadLogWriter;

impl Write for ThreadLogWriter {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        LINES.with_borrow_mut(|lines| lines.extend_from_slice(bytes));
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

/// Installs the subscriber on the first call.
pub(super) fn start() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        let subscriber = tracing_subscriber::fmt()
            .json()
            .with_writer(|| ThreadLogWriter)
            .finish();
        tracing::subscriber::set_global_default(subscriber).unwrap();
    });
}

/// Returns everything that this test logged, one JSON object per line.
pub(super) fn captured_log() -> String {
    LINES.with_borrow(|lines| String::from_utf8(lines.clone()).unwrap())
}
