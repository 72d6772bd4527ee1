//! Clients that read their responses slowly or not at all.

use std::convert::Infallible;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use bytes::Bytes;
use core_http::kernel::{Body, BoxError, bytes_body};
use core_http::{IncomingBody, ServeOptions};
use http::{Request, Response};
use http_body::Frame;
use http_body_util::StreamBody;
use tokio::io::AsyncReadExt;
use tokio::sync::{Notify, mpsc};
use tower::service_fn;

use crate::world::server::{Server, echo_length, get, options};

const SHORT: Duration = Duration::from_millis(200);
const PIECE: &[u8] = &[b'x'; 64 * 1024];

/// Sends a message when it is dropped.
struct DropNotifier(mpsc::UnboundedSender<()>);

impl Drop for DropNotifier {
    fn drop(&mut self) {
        let _ = self.0.send(());
    }
}

/// Returns a response body of this many pieces.
fn large(pieces: usize, dropped: DropNotifier) -> Body {
    let stream = futures_util::stream::unfold((0, dropped), move |(n, dropped)| async move {
        let frame = Ok::<_, BoxError>(Frame::data(Bytes::from_static(PIECE)));
        (n < pieces).then_some((frame, (n + 1, dropped)))
    });
    Body::new(StreamBody::new(Box::pin(stream)))
}

#[tokio::test]
async fn line_46_a_client_that_never_reads_is_disconnected_while_others_are_served() {
    let options = ServeOptions {
        write_idle_timeout: SHORT,
        ..options()
    };
    let (sender, mut dropped) = mpsc::unbounded_channel();
    let service = service_fn(move |request: Request<IncomingBody>| {
        let sender = sender.clone();
        async move {
            match request.uri().path() {
                "/large" => Ok(Response::new(large(4_096, DropNotifier(sender)))),
                _ => echo_length(request).await,
            }
        }
    });
    let server = Server::start(service, options).await;
    let mut client = server.connect().await;
    client.write(&get("/large")).await;
    server.assert_serves_others().await;
    let cut = tokio::time::timeout(Duration::from_secs(20), dropped.recv()).await;
    assert_eq!(cut, Ok(Some(())));
    let received = client.read_to_close().await.len();
    assert!(received < 4_096 * PIECE.len(), "{received}");
    server.assert_serves_others().await;
}

#[tokio::test]
async fn line_49_a_client_that_reads_slowly_gets_its_complete_response() {
    let options = ServeOptions {
        write_idle_timeout: SHORT * 8,
        ..options()
    };
    let pieces = 512;
    let (sender, _dropped) = mpsc::unbounded_channel();
    let service = service_fn(move |_: Request<IncomingBody>| {
        let body = large(pieces, DropNotifier(sender.clone()));
        async move { Ok::<_, Infallible>(Response::new(body)) }
    });
    let server = Server::start(service, options).await;
    let mut client = server.connect().await;
    client
        .write("GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n")
        .await;
    let mut received = 0;
    let mut buffer = vec![0; 512 * 1024];
    loop {
        // The total time exceeds the time limit, but the time between two reads does not.
        tokio::time::sleep(SHORT / 5).await;
        match client.0.read(&mut buffer).await.unwrap() {
            0 => break,
            length => received += length,
        }
    }
    assert!(received >= pieces * PIECE.len(), "{received}");
}

#[tokio::test]
async fn line_49_a_stream_that_pauses_is_not_aborted() {
    let options = ServeOptions {
        header_timeout: SHORT,
        keep_alive_timeout: SHORT,
        write_idle_timeout: SHORT,
        ..options()
    };
    let (more, asked) = (Arc::new(Notify::new()), Arc::new(AtomicUsize::new(0)));
    let (wait, count) = (Arc::clone(&more), Arc::clone(&asked));
    let service = service_fn(move |_: Request<IncomingBody>| {
        count.fetch_add(1, Ordering::SeqCst);
        let wait = Arc::clone(&wait);
        let stream = futures_util::stream::unfold(0, move |n| {
            let wait = Arc::clone(&wait);
            async move {
                if n > 0 {
                    wait.notified().await;
                }
                let piece = Bytes::from(format!("piece {n}"));
                (n < 2).then(|| (Ok::<_, BoxError>(Frame::data(piece)), n + 1))
            }
        });
        let body = Body::new(StreamBody::new(Box::pin(stream)));
        async move { Ok::<_, Infallible>(Response::new(body)) }
    });
    let server = Server::start(service, options).await;
    let mut client = server.connect().await;
    client.write(&get("/")).await;
    // The test needs real time, because it tests timeouts on a real socket.
    tokio::time::sleep(SHORT * 4).await;
    more.notify_one();
    tokio::time::sleep(SHORT * 2).await;
    more.notify_one();
    let received = client.read_to_close().await;
    assert!(received.contains("piece 0") && received.contains("piece 1"));
    assert!(received.ends_with("0\r\n\r\n"), "{received}");
    assert_eq!(asked.load(Ordering::SeqCst), 1);
}

const MIB: usize = 1024 * 1024;

/// The size of a response that exceeds all socket buffers, in bytes.
const HUGE: usize = 16 * MIB;

/// The memory of a huge response. All responses share one buffer, so that the test itself needs little memory.
struct HugeAnswer {
    bytes: Arc<Vec<u8>>,
    live: Arc<AtomicUsize>,
    dropped: mpsc::UnboundedSender<()>,
}

impl AsRef<[u8]> for HugeAnswer {
    fn as_ref(&self) -> &[u8] {
        &self.bytes
    }
}

impl Drop for HugeAnswer {
    fn drop(&mut self) {
        self.live.fetch_sub(1, Ordering::SeqCst);
        let _ = self.dropped.send(());
    }
}

/// A server that counts its responses to `/huge` while they are in memory.
struct HugeAnswers {
    server: Server,
    live: Arc<AtomicUsize>,
    asked: mpsc::UnboundedReceiver<()>,
    dropped: mpsc::UnboundedReceiver<()>,
}

impl HugeAnswers {
    async fn start(options: ServeOptions) -> Self {
        let bytes = Arc::new(vec![b'x'; HUGE]);
        let live = Arc::new(AtomicUsize::new(0));
        let (ask, asked) = mpsc::unbounded_channel();
        let (drop, dropped) = mpsc::unbounded_channel();
        let count = Arc::clone(&live);
        let service = service_fn(move |request: Request<IncomingBody>| {
            let (bytes, live) = (Arc::clone(&bytes), Arc::clone(&count));
            let (ask, dropped) = (ask.clone(), drop.clone());
            async move {
                if request.uri().path() != "/huge" {
                    return echo_length(request).await;
                }
                live.fetch_add(1, Ordering::SeqCst);
                let answer = HugeAnswer {
                    bytes,
                    live,
                    dropped,
                };
                let _ = ask.send(());
                Ok(Response::new(bytes_body(Bytes::from_owner(answer))))
            }
        });
        let server = Server::start(service, options).await;
        Self {
            server,
            live,
            asked,
            dropped,
        }
    }
}

async fn within_20_seconds<T>(work: impl Future<Output = Option<T>>) -> Option<T> {
    let done = tokio::time::timeout(Duration::from_secs(20), work).await;
    done.ok().flatten()
}

#[tokio::test]
async fn unread_responses_above_the_limit_of_the_listener_are_dropped() {
    let options = ServeOptions {
        max_unread_bytes: 4 * HUGE,
        ..options()
    };
    let mut answers = HugeAnswers::start(options).await;
    let mut clients = Vec::new();
    for _ in 0..20 {
        let mut client = answers.server.connect().await;
        client.write(&get("/huge")).await;
        clients.push(client);
        assert!(within_20_seconds(answers.asked.recv()).await.is_some());
    }
    for _ in 0..16 {
        assert!(within_20_seconds(answers.dropped.recv()).await.is_some());
    }
    assert_eq!(answers.live.load(Ordering::SeqCst), 4);
    answers.server.assert_serves_others().await;
    // The most recent responses are still sent.
    let mut last = clients.pop().unwrap();
    assert_eq!(last.answer().await.len(), "200 ".len() + HUGE);
}

#[tokio::test]
async fn a_connection_has_at_most_two_pending_responses_for_any_number_of_requests() {
    let answers = HugeAnswers::start(options()).await;
    let mut client = answers.server.connect().await;
    client.write(&get("/huge").repeat(64)).await;
    let (mut received, mut buffer) = (0, vec![0; MIB]);
    while received < 5 * HUGE {
        let read = within_20_seconds(async { client.0.read(&mut buffer).await.ok() }).await;
        received += read.unwrap();
        let live = answers.live.load(Ordering::SeqCst);
        assert!(live <= 2, "{live} responses are pending");
    }
}
