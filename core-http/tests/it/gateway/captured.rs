//! What a test logged.
//!
//! One subscriber for the whole process, set before the gateway logs for the first time, because a log statement that is
//! first reached where nobody listens may stay silent for everybody. Each test has a thread of its own, and reads that
//! thread's lines.

use std::cell::RefCell;
use std::io::Write;
use std::sync::Once;

thread_local! {
    static LINES: RefCell<Vec<u8>> = const { RefCell::new(Vec::new()) };
}

struct ThisThread;

impl Write for ThisThread {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        LINES.with_borrow_mut(|lines| lines.extend_from_slice(bytes));
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

/// Listens from now on.
pub(super) fn start() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        let subscriber = tracing_subscriber::fmt()
            .json()
            .with_writer(|| ThisThread)
            .finish();
        tracing::subscriber::set_global_default(subscriber).unwrap();
    });
}

/// Everything this test logged, a JSON object a line.
pub(super) fn captured_log() -> String {
    LINES.with_borrow(|lines| String::from_utf8(lines.clone()).unwrap())
}
