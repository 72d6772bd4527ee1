//! The response to a request, with faults, rate limit and journal.

use std::io;
use std::sync::Arc;

use core_fake_kit::Shared;
use core_fake_kit::fault::FaultQueue;
use core_fake_kit::response::{Body, Outcome, RenderedResponse, Timing, complete_body};
use http::Response;
use http_body_util::BodyExt;
use hyper::body::Incoming;
use tokio::time::Instant;

use crate::envelope::{Answer, Payload, Refusal};
use crate::fault::Fault;
use crate::journal::{Exchange, Journal, RecordedRequest};
use crate::limit::{Limiter, Verdict};
use crate::request::Request;
use crate::router;
use crate::state::State;
use crate::state::tail::Tail;
use crate::tail;

const TOO_MANY: Refusal = Refusal::new(429, 10429, "Too many requests");
const SUCCESS_FALSE: Refusal = Refusal::new(200, 10001, "The request was not carried out");
const CHALLENGE: &str =
    "<!DOCTYPE html><html><head><title>Just a moment...</title></head><body></body></html>";

/// The state that the lock protects.
pub(crate) struct Inner {
    pub(crate) state: State,
    pub(crate) faults: FaultQueue<Fault>,
    pub(crate) limiter: Limiter,
    pub(crate) journal: Journal,
}

/// The state that all connections share.
pub(crate) type SharedInner = Shared<Inner>;

/// Responds to a request.
pub(crate) async fn answer(
    request: http::Request<Incoming>,
    shared: Arc<SharedInner>,
) -> io::Result<Response<Body>> {
    if let Some(id) = tail::socket_id(&request) {
        let messages = shared.lock().state.tail(&id).map(Tail::connect);
        let response = tail::open_socket(messages, request)?;
        return Ok(response.map(complete_body));
    }
    let (head, body) = request.into_parts();
    let body = body.collect().await.map_err(io::Error::other)?.to_bytes();
    let request = Request::new(&head, body);
    let outcome = shared.lock().outcome(&request);
    outcome.into_http().await
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
            Some(seconds) => Outcome::Send(rate_limited(Some(seconds)), Timing::AtOnce),
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
            return Outcome::Send(self.handle(request), Timing::AtOnce);
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
            Fault::SlowBody(pace) => {
                return Outcome::Send(self.handle(request), Timing::Paced(pace));
            }
            Fault::SuccessFalseWith200 => render(SUCCESS_FALSE.answer()),
            Fault::HtmlBody => {
                RenderedResponse::html(403, CHALLENGE).header("cf-mitigated", Some("challenge"))
            }
            Fault::EmptyBody204 => {
                self.handle(request);
                RenderedResponse::new(204, "", "")
            }
        };
        Outcome::Send(rendered, Timing::AtOnce)
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
        let sent = outcome.response();
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
                response_type: sent.content_type.clone().into_owned(),
                response: sent.body.clone(),
            });
        }
        self.journal.requests.push(recorded);
    }
}

fn render(answer: Answer) -> RenderedResponse {
    match answer.payload {
        Payload::Json(json) => {
            RenderedResponse::new(answer.status, "application/json", json.to_string())
        }
        Payload::Raw(content_type, bytes) => {
            RenderedResponse::new(answer.status, content_type, bytes)
        }
    }
}

fn rate_limited(retry_after: Option<u64>) -> RenderedResponse {
    render(TOO_MANY.answer()).header("retry-after", retry_after)
}

/// Returns an error of a gateway, which does not have the envelope of the API.
fn gateway_error(status: u16, retry_after: Option<u64>) -> RenderedResponse {
    let body = format!("error code: {status}");
    RenderedResponse::new(status, "text/plain; charset=UTF-8", body)
        .header("retry-after", retry_after)
}
