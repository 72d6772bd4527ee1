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

/// A type-erased service: connections are compiled here once, and not again for every service in every crate that
/// serves one. Each connection has one of its own.
type Answerer = Box<dyn Fn(Request<IncomingBody>) -> BoxFuture<'static, Response<Body>> + Send>;

fn answerer<S, B>(service: S) -> Answerer
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

/// The pause after a failed accept, for example without a free file descriptor.
const ACCEPT_PAUSE: Duration = Duration::from_millis(50);

/// Serves HTTP/1.1 connections until `shutdown` is ready; goes on for the drain delay; then accepts no more, waits for
/// requests in flight for the drain time, closes the remaining connections, and returns. Requests have the peer as the
/// extension [`PeerAddr`]; as [`Stopping`] whether the shutdown has begun, so that `/readyz` fails first; and as [`Draining`]
/// what tells answers without an end that it is time to end. What a service leaves unread of a small body is read and
/// forgotten, so that the connection goes on; behind any other the answer announces that the connection closes.
///
/// A client cannot keep others out: see [`ServeOptions::max_connections`] and [`ServeOptions::max_connections_per_client`].
///
/// # Errors
/// When the listener has no address any more.
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
            () = connections.ended() => continue,
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
        let shared = Shared {
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

/// What a connection shares with its listener.
struct Shared {
    activity: Arc<Activity>,
    options: Arc<ServeOptions>,
    stopping: Stopping,
    draining: Draining,
}

fn answer(
    stream: TcpStream,
    peer: SocketAddr,
    answerer: Answerer,
    shared: Shared,
    graceful: &GracefulShutdown,
) -> impl Future<Output = ()> + Send + 'static + use<> {
    let Shared {
        activity,
        options,
        stopping,
        draining,
    } = shared;
    // Small answers must not wait for the peer's acknowledgement (Nagle); a socket without the option still works.
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
                // The connection is about to be closed, and the request has no effect.
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
                && !unread.discarded(is_held_back).await
            {
                let close = HeaderValue::from_static("close");
                response.headers_mut().insert(CONNECTION, close);
                observed.linger();
            }
            Ok::<_, Infallible>(response.map(|body| guarded(body, guard)))
        }
    });
    let connection = http1::Builder::new()
        // `Activity` measures it, and distinguishes a slow head from an idle connection.
        .header_read_timeout(None)
        .max_buf_size(options.head_buffer())
        .max_headers(options.max_header_lines)
        .serve_connection(TokioIo::new(stream), handler);
    let connection = graceful.watch(connection);
    async move {
        let _unread = UnreadGuard(Arc::clone(&activity));
        if let Err(error) = supervised(connection, &activity, &options).await {
            tracing::debug!(target: "core::serve", %error, "a connection ended early");
        }
    }
}

/// The length of a body whose bytes are all there.
fn length(body: &Body) -> usize {
    let length = http_body::Body::size_hint(body).lower();
    usize::try_from(length).unwrap_or(usize::MAX)
}

/// The body, with the guard dropped together with it.
fn guarded(body: Body, guard: AnswerGuard) -> impl http_body::Body<Data = Bytes, Error = BoxError> {
    body.map_err(move |error| {
        let _kept = &guard;
        error
    })
}

/// Polls the connection until it ends or exceeds a time limit.
async fn supervised(
    connection: impl Future<Output = hyper::Result<()>>,
    activity: &Activity,
    options: &ServeOptions,
) -> Result<(), BoxError> {
    let mut connection = pin!(connection);
    let mut timer = pin!(tokio::time::sleep(Duration::ZERO));
    // When the timer fires. It is not reset for a later deadline, which is checked when it fires: resets are rare.
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
