//! Answering connections: one loop for every service.

use std::convert::Infallible;
use std::future::Future;
use std::io;
use std::net::SocketAddr;
use std::time::Duration;

use http::{Request, Response};
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::server::graceful::GracefulShutdown;
use tokio::net::{TcpListener, TcpStream};
use tower::{Service, ServiceExt};

use crate::kernel::BoxError;
use crate::kernel::PeerAddr;

/// The largest head of a request, in bytes; a larger one is answered with 431.
const MAX_HEAD: usize = 16 * 1024;

/// The most header lines of a request; more are answered with 431.
const MAX_HEADERS: usize = 100;

/// How long a head may take, and how long a connection may wait for its next request: hyper measures both with one timer.
const HEAD_TIMEOUT: Duration = Duration::from_secs(30);

/// The pause after an accept that failed, because no file descriptor was free, say.
const ACCEPT_PAUSE: Duration = Duration::from_millis(50);

/// Answers HTTP/1.1 connections with the service until `shutdown` is ready; then accepts no more, lets what runs finish
/// for up to `drain`, and returns. The service finds the peer as the extension [`PeerAddr`].
///
/// # Errors
/// When the listener has no address any more.
pub async fn serve<S, B>(
    listener: TcpListener,
    service: S,
    shutdown: impl Future<Output = ()>,
    drain: Duration,
) -> io::Result<()>
where
    S: Service<Request<Incoming>, Response = Response<B>, Error = Infallible>
        + Clone
        + Send
        + 'static,
    S::Future: Send,
    B: http_body::Body<Data: Send, Error: Into<BoxError>> + Send + 'static,
{
    listener.local_addr()?;
    let graceful = GracefulShutdown::new();
    let mut shutdown = std::pin::pin!(shutdown);
    loop {
        let accepted = tokio::select! {
            biased;
            () = &mut shutdown => break,
            accepted = listener.accept() => accepted,
        };
        match accepted {
            Ok((stream, peer)) => answer(stream, peer, service.clone(), &graceful),
            Err(error) => {
                tracing::warn!(target: "core::serve", %error, "a connection was not accepted");
                tokio::time::sleep(ACCEPT_PAUSE).await;
            }
        }
    }
    drop(listener);
    if tokio::time::timeout(drain, graceful.shutdown())
        .await
        .is_err()
    {
        tracing::warn!(target: "core::serve", "requests were cut off: they outlasted the shutdown");
    }
    Ok(())
}

fn answer<S, B>(stream: TcpStream, peer: SocketAddr, service: S, graceful: &GracefulShutdown)
where
    S: Service<Request<Incoming>, Response = Response<B>, Error = Infallible>
        + Clone
        + Send
        + 'static,
    S::Future: Send,
    B: http_body::Body<Data: Send, Error: Into<BoxError>> + Send + 'static,
{
    // Small answers must not wait for the peer's acknowledgement; a socket that refuses the option still works.
    let _ = stream.set_nodelay(true);
    let handler = service_fn(move |mut request: Request<Incoming>| {
        request.extensions_mut().insert(PeerAddr(peer));
        service.clone().oneshot(request)
    });
    let connection = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(HEAD_TIMEOUT)
        .max_buf_size(MAX_HEAD)
        .max_headers(MAX_HEADERS)
        .serve_connection(TokioIo::new(stream), handler);
    let connection = graceful.watch(connection);
    tokio::spawn(async move {
        if let Err(error) = connection.await {
            tracing::debug!(target: "core::serve", %error, "a connection ended early");
        }
    });
}
