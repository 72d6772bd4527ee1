//! The console lines of workers: the worker host process sends them to the server over a Unix socket, one JSON object
//! per line. If the server is too slow, lines are omitted and counted; a worker never waits.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use core_domain::cli::{LogLevel, MAX_LOG_TEXT_BYTES};
use serde::{Deserialize, Serialize};
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::{UnixListener, UnixStream};
use tokio::sync::mpsc;

use crate::logs::ConsoleSink;

/// Maximum number of lines that wait to be sent.
const MAX_WAITING: usize = 1_024;
/// Maximum length of a frame, in bytes. Escapes can need six bytes for one.
const MAX_FRAME_BYTES: u64 = 64 * 1024;

/// A line, or a number of omitted lines.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
enum Frame {
    Line {
        worker: String,
        level: LogLevel,
        text: String,
    },
    Omission {
        worker: String,
        count: u64,
    },
}

/// The logs of the server, reached over its socket.
#[derive(Debug)]
pub(super) struct RemoteLogs {
    waiting: mpsc::Sender<Frame>,
    omissions: Arc<Omissions>,
}

/// The numbers of lines that were omitted because too many lines waited, by worker.
#[derive(Debug, Default)]
struct Omissions(Mutex<BTreeMap<String, u64>>);

impl Omissions {
    /// Adds to the number of a worker. Returns `true` if it is the first since the last call of [`Self::take`].
    fn add(&self, worker: &str, count: u64) -> bool {
        let mut counts = self.lock();
        let is_first = counts.is_empty();
        let number = counts.entry(worker.to_owned()).or_default();
        *number = number.saturating_add(count);
        is_first
    }

    fn take(&self) -> BTreeMap<String, u64> {
        std::mem::take(&mut self.lock())
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<String, u64>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl RemoteLogs {
    /// Starts the task that sends lines to this socket. Must be called in a Tokio runtime.
    pub(super) fn at(socket: PathBuf) -> Self {
        let (waiting, lines) = mpsc::channel(MAX_WAITING);
        let omissions = Arc::new(Omissions::default());
        tokio::spawn(send_lines(socket, lines, Arc::clone(&omissions)));
        Self { waiting, omissions }
    }
}

impl ConsoleSink for RemoteLogs {
    fn write(&self, worker: &str, level: LogLevel, text: &str) {
        let end = text.floor_char_boundary(MAX_LOG_TEXT_BYTES + 1);
        let frame = Frame::Line {
            worker: worker.to_owned(),
            level,
            text: text[..end].to_owned(),
        };
        if self.waiting.try_send(frame).is_err() {
            self.omit(worker, 1);
        }
    }

    fn omit(&self, worker: &str, count: u64) {
        if self.omissions.add(worker, count) {
            // Wakes the task. If the queue is full, the task runs anyway.
            let worker = worker.to_owned();
            let _ = self.waiting.try_send(Frame::Omission { worker, count: 0 });
        }
    }
}

/// Sends lines until the sender is dropped. Ends at an error, because the server has then ended.
async fn send_lines(
    socket: PathBuf,
    mut lines: mpsc::Receiver<Frame>,
    omissions: Arc<Omissions>,
) -> std::io::Result<()> {
    let mut stream = UnixStream::connect(socket).await?;
    let mut frames = Vec::new();
    let mut buffer = Vec::new();
    while lines.recv_many(&mut frames, MAX_WAITING).await > 0 {
        let omitted = omissions.take().into_iter();
        frames.extend(omitted.map(|(worker, count)| Frame::Omission { worker, count }));
        for frame in frames.drain(..) {
            if matches!(frame, Frame::Omission { count: 0, .. }) {
                continue;
            }
            buffer.clear();
            serde_json::to_writer(&mut buffer, &frame)?;
            buffer.push(b'\n');
            stream.write_all(&buffer).await?;
        }
    }
    Ok(())
}

/// Receives the lines of one [`RemoteLogs`] until its process ends.
pub(super) async fn receive_logs(listener: UnixListener, console: Arc<dyn ConsoleSink>) {
    loop {
        match listener.accept().await {
            Ok((stream, _)) => return receive_lines(stream, console.as_ref()).await,
            // The process may lack file descriptors until others are closed.
            Err(_) => tokio::time::sleep(Duration::from_millis(100)).await,
        }
    }
}

/// Receives the lines of a connection until it closes or a frame is invalid.
async fn receive_lines(stream: UnixStream, console: &dyn ConsoleSink) {
    let mut input = BufReader::new(stream);
    let mut frame = Vec::new();
    loop {
        frame.clear();
        let mut limited = (&mut input).take(MAX_FRAME_BYTES);
        let read = limited.read_until(b'\n', &mut frame).await;
        if !matches!(read, Ok(length) if length > 0) {
            return;
        }
        match serde_json::from_slice(&frame) {
            Ok(Frame::Line {
                worker,
                level,
                text,
            }) => console.write(&worker, level, &text),
            Ok(Frame::Omission { worker, count }) => console.omit(&worker, count),
            Err(_) => return,
        }
    }
}

#[cfg(test)]
mod tests {
    use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};

    use super::*;

    #[derive(Debug)]
    struct ReceivedLines(UnboundedSender<(String, String)>);

    impl ConsoleSink for ReceivedLines {
        fn write(&self, worker: &str, level: LogLevel, text: &str) {
            let line = (worker.to_owned(), format!("{level} {text}"));
            self.0.send(line).unwrap();
        }

        fn omit(&self, worker: &str, count: u64) {
            let line = (worker.to_owned(), format!("omitted {count}"));
            self.0.send(line).unwrap();
        }
    }

    fn console() -> (Arc<dyn ConsoleSink>, UnboundedReceiver<(String, String)>) {
        let (sender, lines) = unbounded_channel();
        (Arc::new(ReceivedLines(sender)), lines)
    }

    #[tokio::test]
    async fn lines_reach_the_server_in_order_over_the_socket() {
        let folder = tempfile::tempdir().unwrap();
        let socket = folder.path().join("logs");
        let listener = UnixListener::bind(&socket).unwrap();
        let (sink, mut lines) = console();
        let server = tokio::spawn(receive_logs(listener, sink));
        let remote = RemoteLogs::at(socket);
        let long = "\u{1}".repeat(2 * MAX_LOG_TEXT_BYTES);
        for text in ["one\ntwo", &long, "three"] {
            remote.write("acme-api", LogLevel::Warn, text);
        }
        let mut texts = Vec::new();
        for _ in 0..3 {
            let (worker, text) = lines.recv().await.unwrap();
            assert_eq!(worker, "acme-api");
            texts.push(text);
        }
        assert_eq!((&*texts[0], &*texts[2]), ("warn one\ntwo", "warn three"));
        // The server sees that the text is too long and cuts it.
        assert_eq!(texts[1].len(), "warn ".len() + MAX_LOG_TEXT_BYTES + 1);
        drop(remote);
        server.await.unwrap();
    }

    #[tokio::test]
    async fn lines_beyond_the_queue_are_counted() {
        let folder = tempfile::tempdir().unwrap();
        let socket = folder.path().join("logs");
        let listener = UnixListener::bind(&socket).unwrap();
        let remote = RemoteLogs::at(socket);
        // The task that sends lines does not run between these calls.
        for _ in 0..MAX_WAITING + 5 {
            remote.write("acme-api", LogLevel::Log, "text");
        }
        let (sink, mut lines) = console();
        let server = tokio::spawn(receive_logs(listener, sink));
        for _ in 0..MAX_WAITING {
            assert_eq!(lines.recv().await.unwrap().1, "log text");
        }
        assert_eq!(lines.recv().await.unwrap().1, "omitted 5");
        drop(remote);
        server.await.unwrap();
    }
}
