//! Uploads in constant memory: the body is written by a function on a thread of its own, piece by piece.

use std::fmt;
use std::fs::File;
use std::io::{self, Write};
use std::path::Path;
use std::pin::Pin;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll};

use bytes::{Bytes, BytesMut};
use http_body::{Body, Frame, SizeHint};
use tokio::sync::mpsc;
use tokio::task::spawn_blocking;

/// Size in bytes of the pieces in which an upload is sent.
const PIECE_BYTES: usize = 64 * 1024;

/// Number of pieces that are written ahead.
const PIECES_AHEAD: usize = 4;

/// A function that writes the body of an upload. It is called once per attempt and must write the same bytes each time.
type WriteBody = dyn Fn(&mut dyn Write) -> io::Result<()> + Send + Sync;

/// The body of an upload. It is written while it is sent, so that its size is not limited by the memory.
#[derive(Clone)]
pub struct Upload {
    content_type: &'static str,
    length: Option<u64>,
    write: Arc<WriteBody>,
}

impl fmt::Debug for Upload {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Upload")
            .field("content_type", &self.content_type)
            .field("length", &self.length)
            .finish_non_exhaustive()
    }
}

impl Upload {
    /// Creates an upload whose body is written by a function on a thread for blocking work.
    ///
    /// The function is called again if the upload is repeated, and must write the same bytes each time. `content_type` is
    /// the format of the body, such as `application/gzip`.
    pub fn from_writer(
        content_type: &'static str,
        write: impl Fn(&mut dyn Write) -> io::Result<()> + Send + Sync + 'static,
    ) -> Self {
        Self {
            content_type,
            length: None,
            write: Arc::new(write),
        }
    }

    /// Creates an upload of a file.
    ///
    /// # Errors
    /// That of the system if the file cannot be read.
    pub fn from_file(content_type: &'static str, path: &Path) -> io::Result<Self> {
        let length = File::open(path)?.metadata()?.len();
        let path = path.to_owned();
        let write = move |body: &mut dyn Write| io::copy(&mut File::open(&path)?, body).map(drop);
        Ok(Self {
            content_type,
            length: Some(length),
            write: Arc::new(write),
        })
    }

    pub(crate) fn content_type(&self) -> &'static str {
        self.content_type
    }

    /// Starts to write the body. The monitor reports its progress.
    pub(crate) fn open(&self) -> (UploadBody, UploadMonitor) {
        let (sender, pieces) = mpsc::channel(PIECES_AHEAD);
        let monitor = UploadMonitor::default();
        let (write, failure) = (Arc::clone(&self.write), monitor.clone());
        spawn_blocking(move || {
            let mut writer = PieceWriter {
                sender,
                piece: BytesMut::with_capacity(PIECE_BYTES),
            };
            if let Err(error) = write(&mut writer).and_then(|()| writer.flush()) {
                failure.set_failure(&error);
                let _ = writer.sender.blocking_send(Err(error));
            }
        });
        let body = UploadBody {
            pieces,
            remaining: self.length,
            monitor: monitor.clone(),
        };
        (body, monitor)
    }
}

/// Collects written bytes into pieces.
struct PieceWriter {
    sender: mpsc::Sender<io::Result<Bytes>>,
    piece: BytesMut,
}

impl PieceWriter {
    fn send(&mut self) -> io::Result<()> {
        let piece = self.piece.split().freeze();
        self.piece.reserve(PIECE_BYTES);
        let ended = |_| io::Error::from(io::ErrorKind::BrokenPipe);
        self.sender.blocking_send(Ok(piece)).map_err(ended)
    }
}

impl Write for PieceWriter {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let length = bytes.len().min(PIECE_BYTES - self.piece.len());
        self.piece.extend_from_slice(&bytes[..length]);
        if self.piece.len() == PIECE_BYTES {
            self.send()?;
        }
        Ok(length)
    }

    fn flush(&mut self) -> io::Result<()> {
        if self.piece.is_empty() {
            return Ok(());
        }
        self.send()
    }
}

/// The progress of an upload.
#[derive(Clone, Debug, Default)]
pub(crate) struct UploadMonitor {
    bytes: Arc<AtomicU64>,
    failure: Arc<Mutex<Option<io::Error>>>,
}

impl UploadMonitor {
    /// Returns the number of bytes that were handed to the connection.
    pub(crate) fn bytes(&self) -> u64 {
        self.bytes.load(Ordering::Relaxed)
    }

    /// Keeps the reason why the body could not be written. An ended connection is no such reason.
    fn set_failure(&self, error: &io::Error) {
        if error.kind() != io::ErrorKind::BrokenPipe {
            let copy = io::Error::new(error.kind(), error.to_string());
            *self.failure.lock().unwrap_or_else(PoisonError::into_inner) = Some(copy);
        }
    }

    /// Returns the reason why the body could not be written, if that happened.
    pub(crate) fn take_failure(&self) -> Option<io::Error> {
        self.failure
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .take()
    }
}

/// The body of an upload while it is sent.
#[derive(Debug)]
pub(crate) struct UploadBody {
    pieces: mpsc::Receiver<io::Result<Bytes>>,
    remaining: Option<u64>,
    monitor: UploadMonitor,
}

impl Body for UploadBody {
    type Data = Bytes;
    type Error = io::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<io::Result<Frame<Bytes>>>> {
        self.pieces.poll_recv(cx).map(|piece| {
            piece.map(|piece| {
                let piece = piece?;
                let length = piece.len() as u64;
                self.monitor.bytes.fetch_add(length, Ordering::Relaxed);
                self.remaining = self.remaining.map(|left| left.saturating_sub(length));
                Ok(Frame::data(piece))
            })
        })
    }

    fn size_hint(&self) -> SizeHint {
        self.remaining
            .map_or_else(SizeHint::default, SizeHint::with_exact)
    }
}

#[cfg(test)]
mod tests {
    use http_body_util::BodyExt;

    use super::*;

    #[tokio::test]
    async fn a_written_body_arrives_in_pieces_and_complete() {
        let upload = Upload::from_writer("application/x-tar", |body| {
            (0..100_u8).try_for_each(|byte| body.write_all(&[byte; 3000]))
        });
        let (mut body, monitor) = upload.open();
        let mut bytes = Vec::new();
        while let Some(frame) = body.frame().await {
            let piece = frame.unwrap().into_data().unwrap();
            assert!(piece.len() <= PIECE_BYTES);
            bytes.extend_from_slice(&piece);
        }
        assert_eq!((bytes.len(), monitor.bytes()), (300_000, 300_000));
        assert_eq!(bytes[299_999], 99);
    }

    #[tokio::test]
    async fn a_failed_writer_breaks_the_body_and_states_the_reason() {
        let upload = Upload::from_writer("application/x-tar", |_| Err(io::Error::other("gone")));
        let (body, monitor) = upload.open();
        assert!(body.collect().await.is_err());
        assert_eq!(monitor.take_failure().unwrap().to_string(), "gone");
    }

    #[tokio::test]
    async fn a_file_is_sent_with_its_length() {
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), vec![7; 200_000]).unwrap();
        let upload = Upload::from_file("application/zip", file.path()).unwrap();
        let (body, _) = upload.open();
        assert_eq!(body.size_hint().exact(), Some(200_000));
        assert_eq!(body.collect().await.unwrap().to_bytes().len(), 200_000);
    }
}
