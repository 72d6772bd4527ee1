//! The HTTP server: connections, faults, rate limit and journal.

use std::convert::Infallible;
use std::io;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use bytes::Bytes;
use futures_util::stream;
use http::Response;
use http_body_util::combinators::UnsyncBoxBody;
use http_body_util::{BodyExt, Full, StreamBody};
use hyper::body::{Frame, Incoming};
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinSet;
use tokio::time::Instant;

use crate::envelope::{Answer, Payload, Refusal};
use crate::fault::{Fault, FaultQueue, Pace, Silence};
use crate::journal::{Exchange, Journal, RecordedRequest};
use crate::limit::{Limiter, Verdict};
use crate::request::Request;
use crate::router;
use crate::state::State;
use crate::state::tail::Tail;
use crate::tail;

const TOO_MANY: Refusal = Refusal::new(429, 10429, "Too many requests");
const SUCCESS_FALSE: Refusal = Refusal::new(200, 10001, "The request was not carried out");
/// Number of pieces of a slow body.
const PIECES: usize = 8;
const CHALLENGE: &str =
    "<!DOCTYPE html><html><head><title>Just a moment...</title></head><body></body></html>";

type Body = UnsyncBoxBody<Bytes, Infallible>;

/// The state that the lock protects.
pub(crate) struct Inner {
    pub(crate) state: State,
    pub(crate) faults: FaultQueue,
    pub(crate) limiter: Limiter,
    pub(crate) journal: Journal,
}

/// The state that all connections share.
pub(crate) struct SharedInner(Mutex<Inner>);

impl SharedInner {
    pub(crate) const fn new(inner: Inner) -> Self {
        Self(Mutex::new(inner))
    }

    pub(crate) fn lock(&self) -> MutexGuard<'_, Inner> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A response that is ready to be sent.
struct RenderedResponse {
    status: u16,
    headers: Vec<(&'static str, String)>,
    content_type: String,
    body: Bytes,
}

/// The action for a request.
enum Outcome {
    Send(RenderedResponse, Option<Pace>),
    Silent(Silence),
}

/// Accepts connections until the future is dropped, which also closes them.
pub(crate) async fn serve(listener: TcpListener, shared: Arc<SharedInner>) {
    let mut connections = JoinSet::new();
    loop {
        if let Ok((stream, _)) = listener.accept().await {
            connections.spawn(connection(stream, Arc::clone(&shared)));
        }
        while connections.try_join_next().is_some() {}
    }
}

async fn connection(stream: TcpStream, shared: Arc<SharedInner>) {
    let service = service_fn(|request| answer(request, Arc::clone(&shared)));
    let server = hyper::server::conn::http1::Builder::new();
    // An error means that the client disconnected, or that a fault closes the connection.
    let connection = server.serve_connection(TokioIo::new(stream), service);
    let _ = connection.with_upgrades().await;
}

async fn answer(
    request: http::Request<Incoming>,
    shared: Arc<SharedInner>,
) -> io::Result<Response<Body>> {
    if let Some(id) = tail::socket_id(&request) {
        let messages = shared.lock().state.tail(&id).map(Tail::connect);
        let response = tail::open_socket(messages, request)?;
        return Ok(response.map(|body| Full::new(body).boxed_unsync()));
    }
    let (head, body) = request.into_parts();
    let body = body.collect().await.map_err(io::Error::other)?.to_bytes();
    let request = Request::new(&head, body);
    let outcome = shared.lock().outcome(&request);
    match outcome {
        Outcome::Send(rendered, pace) => send(rendered, pace),
        Outcome::Silent(Silence::Close) => Err(io::Error::other("closed by a fault")),
        Outcome::Silent(Silence::Hang) => std::future::pending().await,
    }
}

impl Inner {
    fn outcome(&mut self, request: &Request) -> Outcome {
        let verdict = self.limiter.count(Instant::now());
        let fault = match verdict.retry_after {
            Some(_) => None,
            None => self.faults.next(request.method.as_str(), &request.path),
        };
        let is_fault = fault.is_some();
        let mut outcome = match verdict.retry_after {
            Some(seconds) => Outcome::Send(rate_limited(Some(seconds)), None),
            None => self.apply_fault(request, fault),
        };
        if let Outcome::Send(rendered, _) = &mut outcome {
            self.add_headers(rendered, &verdict);
        }
        self.record(request, &outcome, is_fault);
        outcome
    }

    fn handle(&mut self, request: &Request) -> RenderedResponse {
        let reply = router::handle(&mut self.state, request);
        render(reply.unwrap_or_else(|refusal| refusal.answer()))
    }

    fn apply_fault(&mut self, request: &Request, fault: Option<Fault>) -> Outcome {
        let Some(fault) = fault else {
            return Outcome::Send(self.handle(request), None);
        };
        let rendered = match fault {
            Fault::TimeoutBeforeEffect(silence) => return Outcome::Silent(silence),
            Fault::TimeoutAfterEffect(silence) => {
                self.handle(request);
                return Outcome::Silent(silence);
            }
            Fault::Status {
                status: 429,
                retry_after,
            } => rate_limited(retry_after),
            Fault::Status {
                status,
                retry_after,
            } => gateway_error(status, retry_after),
            Fault::StatusAfterEffect(status) => {
                self.handle(request);
                gateway_error(status, None)
            }
            Fault::Refusal { status, code } => {
                render(Refusal::new(status, code, "Refused by a fault").answer())
            }
            Fault::TokenExpired => {
                let token = request.bearer().unwrap_or_default();
                self.state.pages_assets.revoke(token);
                self.handle(request)
            }
            Fault::DuplicateRequest => {
                self.handle(request);
                self.handle(request)
            }
            Fault::SlowBody(pace) => return Outcome::Send(self.handle(request), Some(pace)),
            Fault::SuccessFalseWith200 => render(SUCCESS_FALSE.answer()),
            Fault::HtmlBody => RenderedResponse {
                status: 403,
                headers: vec![("cf-mitigated", "challenge".to_owned())],
                content_type: "text/html; charset=UTF-8".to_owned(),
                body: Bytes::from_static(CHALLENGE.as_bytes()),
            },
            Fault::EmptyBody204 => {
                self.handle(request);
                RenderedResponse {
                    status: 204,
                    headers: Vec::new(),
                    content_type: String::new(),
                    body: Bytes::new(),
                }
            }
        };
        Outcome::Send(rendered, None)
    }

    fn add_headers(&mut self, rendered: &mut RenderedResponse, verdict: &Verdict) {
        let limit = self.limiter.limit();
        let (remaining, reset) = (verdict.remaining, verdict.reset);
        let (quota, window) = (limit.requests, limit.window.as_secs());
        rendered.headers.extend([
            ("ratelimit", format!("\"default\";r={remaining};t={reset}")),
            (
                "ratelimit-policy",
                format!("\"burst\";q={quota};w={window}"),
            ),
            ("cf-ray", format!("{}-FAKE", &self.state.ids.hex()[..16])),
        ]);
    }

    fn record(&mut self, request: &Request, outcome: &Outcome, is_fault: bool) {
        let sent = match outcome {
            Outcome::Send(rendered, _) => Some(rendered),
            Outcome::Silent(_) => None,
        };
        let recorded = RecordedRequest {
            method: request.method.to_string(),
            path: request.path.clone(),
            status: sent.map(|sent| sent.status),
        };
        if let (true, Some(sent)) = (self.state.settings.record_exchanges, sent) {
            self.journal.exchanges.push(Exchange {
                recorded: recorded.clone(),
                query: request.query.clone(),
                is_fault,
                request_type: request.header("content-type").map(str::to_owned),
                request: request.body.clone(),
                response_type: sent.content_type.clone(),
                response: sent.body.clone(),
            });
        }
        self.journal.requests.push(recorded);
    }
}

fn render(answer: Answer) -> RenderedResponse {
    let (content_type, body) = match answer.payload {
        Payload::Json(json) => ("application/json".to_owned(), Bytes::from(json.to_string())),
        Payload::Raw(content_type, bytes) => (content_type, bytes),
    };
    RenderedResponse {
        status: answer.status,
        headers: Vec::new(),
        content_type,
        body,
    }
}

fn rate_limited(retry_after: Option<u64>) -> RenderedResponse {
    let mut rendered = render(TOO_MANY.answer());
    rendered
        .headers
        .extend(retry_after.map(|seconds| ("retry-after", seconds.to_string())));
    rendered
}

/// Returns an error of a gateway, which does not have the envelope of the API.
fn gateway_error(status: u16, retry_after: Option<u64>) -> RenderedResponse {
    let body = format!("error code: {status}");
    RenderedResponse {
        status,
        headers: retry_after
            .map(|seconds| ("retry-after", seconds.to_string()))
            .into_iter()
            .collect(),
        content_type: "text/plain; charset=UTF-8".to_owned(),
        body: Bytes::from(body),
    }
}

fn send(rendered: RenderedResponse, pace: Option<Pace>) -> io::Result<Response<Body>> {
    let mut response = Response::builder().status(rendered.status);
    for (name, value) in rendered.headers {
        response = response.header(name, value);
    }
    if !rendered.content_type.is_empty() {
        response = response.header("content-type", rendered.content_type);
    }
    let body = match pace {
        None => Full::new(rendered.body).boxed_unsync(),
        Some(Pace::Drip(pause)) => paced_body(rendered.body, PIECES, PIECES, pause),
        Some(Pace::Stall) => paced_body(rendered.body, 2, 1, Duration::ZERO),
    };
    response.body(body).map_err(io::Error::other)
}

/// Returns a body in pieces, with a pause before each. After `sent` pieces the body stalls.
fn paced_body(body: Bytes, pieces: usize, sent: usize, pause: Duration) -> Body {
    let size = body.len().div_ceil(pieces).max(1);
    let start = (body, 0);
    let frames = stream::unfold(start, move |(mut rest, at)| async move {
        if rest.is_empty() {
            return None;
        }
        if at == sent {
            std::future::pending::<()>().await;
        }
        tokio::time::sleep(pause).await;
        let piece = rest.split_to(size.min(rest.len()));
        Some((Ok(Frame::data(piece)), (rest, at + 1)))
    });
    StreamBody::new(frames).boxed_unsync()
}
