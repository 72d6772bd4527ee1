//! The HTTP/1.1 server: an accept loop and its connections.

mod activity;
mod connections;
mod incoming_body;
mod options;
mod refusal;
mod unread;

use std::convert::Infallible;
use std::future::{Future, pending, poll_fn};
use std::io;
use std::net::SocketAddr;
use std::pin::pin;
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;

use bytes::Bytes;
use futures_util::future::BoxFuture;
use http::header::{CONNECTION, EXPECT};
use http::{HeaderValue, Request, Response};
use http_body_util::BodyExt;
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use hyper_util::server::graceful::GracefulShutdown;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio::time::Instant;
use tower::{Service, ServiceExt};

pub use incoming_body::IncomingBody;
pub use options::ServeOptions;

use self::activity::{Activity, AnswerGuard, Observed, UnreadGuard};
use self::connections::Connections;
use self::refusal::Refusals;
use self::unread::UnreadBytes;
use crate::kernel::{Body, BoxError, Draining, PeerAddr, Stopping};

/// A type-erased service. Each connection has its own. Because of it, the code for connections is compiled once in this
/// crate, and not again for every service in every crate that serves one.
type BoxService = Box<dyn Fn(Request<IncomingBody>) -> BoxFuture<'static, Response<Body>> + Send>;

fn answerer<S, B>(service: S) -> BoxService
where
    S: Service<Request<IncomingBody>, Response = Response<B>, Error = Infallible>
        + Clone
        + Send
        + 'static,
    S::Future: Send,
    B: http_body::Body<Data: Send, Error: Into<BoxError>> + Send + 'static,
{
    Box::new(move |request| {
        let answered = service.clone().oneshot(request);
        Box::pin(async move {
            let Ok(response) = answered.await;
            response.map(Body::from_buffers)
        })
    })
}

/// The pause after a failed accept, for example because there is no free file descriptor.
const ACCEPT_PAUSE: Duration = Duration::from_millis(50);

/// Serves HTTP/1.1 connections until `shutdown` completes, then shuts down gracefully and returns.
///
/// The shutdown has three phases. The server first accepts connections for the drain delay, while `/readyz` fails. It
/// then accepts no more connections and waits for requests in progress for the drain time. Finally it closes the
/// remaining connections.
///
/// Requests have three extensions. [`PeerAddr`] is the peer of the connection. [`Stopping`] tells whether the shutdown
/// has begun. [`Draining`] tells responses without an end, such as event streams, when they must end.
///
/// If a service leaves a small part of a body unread, the server discards that part so that the connection can be
/// reused. Otherwise the response announces that the connection closes.
///
/// A client cannot block others with its connections: see [`ServeOptions::max_connections`] and
/// [`ServeOptions::max_connections_per_client`].
///
/// # Errors
/// Returns an error if the listener has no local address.
pub async fn serve<S, B>(
    listener: TcpListener,
    service: S,
    shutdown: impl Future<Output = ()>,
    options: ServeOptions,
) -> io::Result<()>
where
    S: Service<Request<IncomingBody>, Response = Response<B>, Error = Infallible>
        + Clone
        + Send
        + 'static,
    S::Future: Send,
    B: http_body::Body<Data: Send, Error: Into<BoxError>> + Send + 'static,
{
    listener.local_addr()?;
    let options = Arc::new(options);
    let graceful = GracefulShutdown::new();
    let (stop, stopping) = watch::channel(false);
    let (drain, draining) = watch::channel(false);
    let unread = UnreadBytes::new(options.max_unread_bytes);
    let mut connections = Connections::new(Arc::clone(&options), Arc::clone(&unread));
    let mut refusals = Refusals::default();
    let mut shutdown = pin!(async {
        shutdown.await;
        stop.send_replace(true);
        tokio::time::sleep(options.drain_delay).await;
    });
    loop {
        let accepted = tokio::select! {
            biased;
            () = &mut shutdown => break,
            () = connections.join_next() => continue,
            accepted = listener.accept() => accepted,
        };
        let (stream, peer) = match accepted {
            Ok(accepted) => accepted,
            Err(error) => {
                tracing::warn!(target: "core::serve", %error, "a connection was not accepted");
                connections.free_descriptor();
                tokio::time::sleep(ACCEPT_PAUSE).await;
                continue;
            }
        };
        if let Err(reason) = connections.make_room(peer.ip()) {
            refusals.refuse(stream, peer.ip(), reason, &options);
            continue;
        }
        let activity = Arc::new(Activity::new(Arc::clone(&unread)));
        let shared = ConnectionContext {
            activity: Arc::clone(&activity),
            options: Arc::clone(&options),
            stopping: Stopping::new(stopping.clone()),
            draining: Draining::new(draining.clone()),
        };
        let connection = answer(stream, peer, answerer(service.clone()), shared, &graceful);
        connections.spawn(peer.ip(), activity, connection);
    }
    drop(listener);
    drain.send_replace(true);
    if tokio::time::timeout(options.drain, graceful.shutdown())
        .await
        .is_err()
    {
        tracing::warn!(target: "core::serve", "connections were closed: their requests exceeded the drain time");
    }
    Ok(())
}

/// The state that a connection shares with its listener.
struct ConnectionContext {
    activity: Arc<Activity>,
    options: Arc<ServeOptions>,
    stopping: Stopping,
    draining: Draining,
}

fn answer(
    stream: TcpStream,
    peer: SocketAddr,
    answerer: BoxService,
    shared: ConnectionContext,
    graceful: &GracefulShutdown,
) -> impl Future<Output = ()> + Send + 'static + use<> {
    let ConnectionContext {
        activity,
        options,
        stopping,
        draining,
    } = shared;
    // Small responses must not wait for the acknowledgement of the peer (Nagle). A socket without this option still
    // works.
    let _ = stream.set_nodelay(true);
    let stream = Observed::new(stream, Arc::clone(&activity));
    let (observed, times) = (Arc::clone(&activity), options.body_times);
    let handler = service_fn(move |request: Request<Incoming>| {
        let may_begin = observed.begin_request();
        let is_stopping = stopping.has_begun();
        let guard = AnswerGuard(Arc::clone(&observed));
        let (parts, body) = request.into_parts();
        let is_held_back = parts.headers.contains_key(EXPECT);
        let (body, unread) = IncomingBody::new(body, times);
        let mut request = Request::from_parts(parts, body);
        request.extensions_mut().insert(PeerAddr(peer));
        request.extensions_mut().insert(stopping.clone());
        request.extensions_mut().insert(draining.clone());
        let answered = may_begin.then(|| answerer(request));
        let observed = Arc::clone(&observed);
        async move {
            let Some(answered) = answered else {
                // The connection is about to be closed, so the request has no effect.
                return pending().await;
            };
            let mut response = answered.await;
            if is_stopping {
                let close = HeaderValue::from_static("close");
                response.headers_mut().insert(CONNECTION, close);
            }
            if response.body().is_whole() {
                observed.unread().hold(length(response.body()));
            }
            if let Some(unread) = unread
                && !unread.discard(is_held_back).await
            {
                let close = HeaderValue::from_static("close");
                response.headers_mut().insert(CONNECTION, close);
                observed.linger();
            }
            Ok::<_, Infallible>(response.map(|body| with_guard(body, guard)))
        }
    });
    let connection = http1::Builder::new()
        // `Activity` measures this time. It distinguishes a slow head from an idle connection.
        .header_read_timeout(None)
        .max_buf_size(options.head_buffer())
        .max_headers(options.max_header_lines)
        .serve_connection(TokioIo::new(stream), handler);
    let connection = graceful.watch(connection);
    async move {
        let _unread = UnreadGuard(Arc::clone(&activity));
        if let Err(error) = supervise(connection, &activity, &options).await {
            tracing::debug!(target: "core::serve", %error, "a connection ended early");
        }
    }
}

/// Returns the length of a body that is completely in memory.
fn length(body: &Body) -> usize {
    let length = http_body::Body::size_hint(body).lower();
    usize::try_from(length).unwrap_or(usize::MAX)
}

/// Returns a body that drops the guard when it is dropped.
fn with_guard(
    body: Body,
    guard: AnswerGuard,
) -> impl http_body::Body<Data = Bytes, Error = BoxError> {
    body.map_err(move |error| {
        let _kept = &guard;
        error
    })
}

/// Polls the connection until it ends or exceeds a time limit.
async fn supervise(
    connection: impl Future<Output = hyper::Result<()>>,
    activity: &Activity,
    options: &ServeOptions,
) -> Result<(), BoxError> {
    let mut connection = pin!(connection);
    let mut timer = pin!(tokio::time::sleep(Duration::ZERO));
    // The time at which the timer fires. It is not reset for a later deadline; instead the deadline is checked when it
    // fires. This makes resets rare.
    let mut armed: Option<Instant> = None;
    poll_fn(|cx| {
        if let Poll::Ready(ended) = connection.as_mut().poll(cx) {
            return Poll::Ready(ended.map_err(Into::into));
        }
        loop {
            let Some(deadline) = activity.deadline(options) else {
                return Poll::Pending;
            };
            if armed.is_none_or(|armed| deadline < armed) {
                timer.as_mut().reset(deadline);
                armed = Some(deadline);
            }
            std::task::ready!(timer.as_mut().poll(cx));
            if Instant::now() >= deadline {
                return Poll::Ready(Err("a time limit was exceeded".into()));
            }
            armed = None;
        }
    })
    .await
}
