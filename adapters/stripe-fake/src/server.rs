//! The HTTP server: connections, faults, rate limit and journal.

use std::convert::Infallible;
use std::io;
use std::sync::Arc;
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

use crate::envelope::Refusal;
use crate::fault::{Fault, Pace, Silence};
use crate::journal::{Exchange, RecordedRequest};
use crate::request::Request;
use crate::router::{self, Answer};
use crate::settings::API_VERSION;
use crate::shared::{Inner, SharedInner};
use crate::webhook;

/// Number of pieces of a slow body.
const PIECES: usize = 8;
const PROXY_PAGE: &str =
    "<!DOCTYPE html><html><head><title>502 Bad Gateway</title></head><body></body></html>";

type Body = UnsyncBoxBody<Bytes, Infallible>;

/// A response that is ready to be sent.
struct RenderedResponse {
    status: u16,
    headers: Vec<(&'static str, String)>,
    content_type: &'static str,
    body: Bytes,
}

/// The time of a response.
#[derive(Clone, Copy)]
enum Timing {
    AtOnce,
    After(Duration),
    Paced(Pace),
}

/// The action for a request.
enum Outcome {
    Send(RenderedResponse, Timing),
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
    let _ = server.serve_connection(TokioIo::new(stream), service).await;
}

async fn answer(
    request: http::Request<Incoming>,
    shared: Arc<SharedInner>,
) -> io::Result<Response<Body>> {
    let (head, body) = request.into_parts();
    let body = body.collect().await.map_err(io::Error::other)?.to_bytes();
    let request = Request::new(&head, body);
    let outcome = shared.lock().outcome(&request);
    webhook::send_new(&shared);
    match outcome {
        Outcome::Send(rendered, Timing::After(delay)) => {
            tokio::time::sleep(delay).await;
            send(rendered, Timing::AtOnce)
        }
        Outcome::Send(rendered, timing) => send(rendered, timing),
        Outcome::Silent(Silence::Close) => Err(io::Error::other("closed by a fault")),
        Outcome::Silent(Silence::Hang) => std::future::pending().await,
    }
}

impl Inner {
    fn outcome(&mut self, request: &Request) -> Outcome {
        let limited = self.limiter.count(&request.endpoint(), Instant::now());
        let fault = match limited {
            Some(_) => None,
            None => self.faults.next(request.method.as_str(), &request.path),
        };
        let is_fault = fault.is_some();
        let mut outcome = match limited {
            Some(reason) => Outcome::Send(rate_limited(reason), Timing::AtOnce),
            None => self.apply_fault(request, fault),
        };
        if let Outcome::Send(rendered, _) = &mut outcome {
            self.add_headers(request, rendered);
        }
        self.record(request, &outcome, is_fault);
        outcome
    }

    fn handle(&mut self, request: &Request) -> RenderedResponse {
        render(&router::handle(&mut self.state, request))
    }

    fn apply_fault(&mut self, request: &Request, fault: Option<Fault>) -> Outcome {
        let Some(fault) = fault else {
            return Outcome::Send(self.handle(request), Timing::AtOnce);
        };
        let rendered = match fault {
            Fault::TimeoutBeforeEffect(silence) => return Outcome::Silent(silence),
            Fault::TimeoutAfterEffect(silence) => {
                self.handle(request);
                return Outcome::Silent(silence);
            }
            Fault::Status {
                status,
                retry_after,
                should_retry,
            } => {
                let mut rendered = failure(status);
                let wait = retry_after.map(|seconds| ("retry-after", seconds.to_string()));
                let retry = should_retry.map(|retry| ("stripe-should-retry", retry.to_string()));
                rendered.headers.extend(wait.into_iter().chain(retry));
                rendered
            }
            Fault::StatusAfterEffect(status) => {
                self.handle(request);
                failure(status)
            }
            Fault::KeptServerError { has_effect } => self.fail_kept(request, has_effect),
            Fault::Refusal {
                status,
                kind,
                error_code,
            } => {
                let refusal = Refusal::new(status, kind, "Refused by a fault").code(error_code);
                refused(&refusal)
            }
            Fault::DuplicateRequest => {
                self.handle(request);
                self.handle(request)
            }
            Fault::Delay(delay) => {
                let rendered = self.handle(request);
                if let Some(key) = request.idempotency_key() {
                    self.state.keys.delay(key, delay);
                }
                return Outcome::Send(rendered, Timing::After(delay));
            }
            Fault::SlowBody(pace) => {
                return Outcome::Send(self.handle(request), Timing::Paced(pace));
            }
            Fault::HtmlBody => RenderedResponse {
                status: 502,
                headers: Vec::new(),
                content_type: "text/html; charset=UTF-8",
                body: Bytes::from_static(PROXY_PAGE.as_bytes()),
            },
        };
        Outcome::Send(rendered, Timing::AtOnce)
    }

    /// Fails a request with a response that is stored under its key.
    fn fail_kept(&mut self, request: &Request, has_effect: bool) -> RenderedResponse {
        if has_effect {
            self.handle(request);
        }
        let now = self.state.clock.now();
        let refusal = Refusal::new(500, "api_error", "An unknown error occurred");
        self.state.keys.store(request, 500, &refusal.body(), now);
        refused(&refusal)
    }

    fn add_headers(&mut self, request: &Request, rendered: &mut RenderedResponse) {
        let version = request.header("stripe-version").unwrap_or(API_VERSION);
        let key = request.idempotency_key();
        rendered.headers.extend([
            ("request-id", self.state.ids.next("req")),
            ("stripe-version", version.to_owned()),
        ]);
        let key = key.map(|key| ("idempotency-key", key.to_owned()));
        rendered.headers.extend(key);
    }

    fn record(&mut self, request: &Request, outcome: &Outcome, is_fault: bool) {
        let sent = match outcome {
            Outcome::Send(rendered, _) => Some(rendered),
            Outcome::Silent(_) => None,
        };
        let recorded = RecordedRequest {
            method: request.method.to_string(),
            path: request.path.clone(),
            idempotency_key: request.idempotency_key().map(str::to_owned),
            status: sent.map(|sent| sent.status),
        };
        if let (true, Some(sent)) = (self.state.settings.record_exchanges, sent) {
            self.journal.exchanges.push(Exchange {
                recorded: recorded.clone(),
                query: request.query.clone(),
                is_fault,
                request_type: request.header("content-type").map(str::to_owned),
                request: request.body.clone(),
                response_type: sent.content_type.to_owned(),
                response: sent.body.clone(),
            });
        }
        self.journal.requests.push(recorded);
    }
}

fn render(answer: &Answer) -> RenderedResponse {
    let replayed = answer
        .is_replayed
        .then(|| ("idempotent-replayed", "true".to_owned()));
    RenderedResponse {
        status: answer.status,
        headers: replayed.into_iter().collect(),
        content_type: "application/json",
        body: Bytes::from(answer.body.to_string()),
    }
}

fn refused(refusal: &Refusal) -> RenderedResponse {
    render(&Answer {
        status: refusal.status,
        body: refusal.body(),
        is_replayed: false,
    })
}

fn rate_limited(reason: &'static str) -> RenderedResponse {
    let mut rendered = failure(429);
    rendered
        .headers
        .push(("stripe-rate-limited-reason", reason.to_owned()));
    rendered
}

/// Returns an error without effect.
fn failure(status: u16) -> RenderedResponse {
    let (kind, code) = match status {
        429 => ("invalid_request_error", Some("rate_limit")),
        409 => ("invalid_request_error", Some("lock_timeout")),
        400..=499 => ("invalid_request_error", None),
        _ => ("api_error", None),
    };
    let refusal = Refusal::new(status, kind, "The request failed");
    refused(&match code {
        Some(code) => refusal.code(code),
        None => refusal,
    })
}

fn send(rendered: RenderedResponse, timing: Timing) -> io::Result<Response<Body>> {
    let mut response = Response::builder()
        .status(rendered.status)
        .header("content-type", rendered.content_type);
    for (name, value) in rendered.headers {
        response = response.header(name, value);
    }
    let body = match timing {
        Timing::Paced(Pace::Drip(pause)) => paced_body(rendered.body, PIECES, PIECES, pause),
        Timing::Paced(Pace::Stall) => paced_body(rendered.body, 2, 1, Duration::ZERO),
        Timing::AtOnce | Timing::After(_) => Full::new(rendered.body).boxed_unsync(),
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
