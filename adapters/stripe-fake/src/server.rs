//! The response to a request, with faults, rate limit and journal.

use std::io;
use std::sync::Arc;

use core_fake_kit::response::{Body, Outcome, RenderedResponse, Timing};
use http::Response;
use http_body_util::BodyExt;
use hyper::body::Incoming;
use tokio::time::Instant;

use crate::envelope::Refusal;
use crate::fault::Fault;
use crate::journal::{Exchange, RecordedRequest};
use crate::request::Request;
use crate::router::{self, Answer};
use crate::settings::API_VERSION;
use crate::shared::{Inner, SharedInner};
use crate::webhook;

const PROXY_PAGE: &str =
    "<!DOCTYPE html><html><head><title>502 Bad Gateway</title></head><body></body></html>";

/// Responds to a request, and sends the webhooks of its events.
pub(crate) async fn answer(
    request: http::Request<Incoming>,
    shared: Arc<SharedInner>,
) -> io::Result<Response<Body>> {
    let (head, body) = request.into_parts();
    let body = body.collect().await.map_err(io::Error::other)?.to_bytes();
    let request = Request::new(&head, body);
    let outcome = shared.lock().outcome(&request);
    webhook::send_new(&shared);
    outcome.into_http().await
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
            } => failure(status)
                .header("retry-after", retry_after)
                .header("stripe-should-retry", should_retry),
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
            Fault::HtmlBody => RenderedResponse::html(502, PROXY_PAGE),
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
            ("request-id", self.state.ids.with_prefix("req")),
            ("stripe-version", version.to_owned()),
        ]);
        let key = key.map(|key| ("idempotency-key", key.to_owned()));
        rendered.headers.extend(key);
    }

    fn record(&mut self, request: &Request, outcome: &Outcome, is_fault: bool) {
        let sent = outcome.response();
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
                response_type: sent.content_type.clone().into_owned(),
                response: sent.body.clone(),
            });
        }
        self.journal.requests.push(recorded);
    }
}

fn render(answer: &Answer) -> RenderedResponse {
    RenderedResponse::new(answer.status, "application/json", answer.body.to_string())
        .header("idempotent-replayed", answer.is_replayed.then_some(true))
}

fn refused(refusal: &Refusal) -> RenderedResponse {
    render(&Answer {
        status: refusal.status,
        body: refusal.body(),
        is_replayed: false,
    })
}

fn rate_limited(reason: &'static str) -> RenderedResponse {
    failure(429).header("stripe-rate-limited-reason", Some(reason))
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
