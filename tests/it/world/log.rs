//! The log of a process, read while it is written.

use std::time::Duration;

use tokio::io::{AsyncBufReadExt, BufReader};
use tokio::process::ChildStderr;
use tokio::sync::watch;

/// Much longer than any operation in these tests takes.
const WAIT_TIMEOUT: Duration = Duration::from_secs(30);

/// The log of a process.
#[derive(Debug)]
pub(crate) struct Log {
    text: watch::Receiver<String>,
}

impl Log {
    /// Reads the complete log in the background, because a full pipe would block the process.
    pub(super) fn of(stderr: ChildStderr) -> Self {
        let (sender, text) = watch::channel(String::new());
        tokio::spawn(async move {
            let (mut stderr, mut line) = (BufReader::new(stderr), Vec::new());
            while stderr.read_until(b'\n', &mut line).await.unwrap() > 0 {
                let read = String::from_utf8_lossy(&line);
                sender.send_modify(|text| text.push_str(&read));
                line.clear();
            }
        });
        Self { text }
    }

    /// Waits until the process has ended. Returns its complete log.
    pub(crate) async fn whole(&self) -> String {
        let mut text = self.text.clone();
        while text.changed().await.is_ok() {}
        text.borrow().clone()
    }

    /// Waits until a message was logged.
    pub(crate) async fn until_logged(&self, message: &str) {
        self.retry_when_logged(message, || {
            self.text.borrow().contains(message).then_some(())
        })
        .await;
    }

    /// Tries an operation at once, and again whenever a message was logged, until it returns a value.
    pub(crate) async fn retry_when_logged<T>(
        &self,
        message: &str,
        mut attempt: impl FnMut() -> Option<T>,
    ) -> T {
        let mut text = self.text.clone();
        let attempts = async {
            let (mut read, mut due) = (0, true);
            loop {
                if due && let Some(value) = attempt() {
                    return value;
                }
                assert!(text.changed().await.is_ok(), "the process has ended");
                let text = text.borrow_and_update();
                due = text[read..].contains(message);
                read = text.len();
            }
        };
        let value = tokio::time::timeout(WAIT_TIMEOUT, attempts).await;
        value.unwrap_or_else(|_| panic!("the message was not logged in time: {message}"))
    }
}
