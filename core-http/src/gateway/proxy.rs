//! The innermost service of the gateway. It responds to health checks and forwards requests to the services.

use std::sync::Arc;
use std::time::Duration;

use core_domain::gateway::{Destination, Route};
use core_domain::kernel::{Caller, Code, Error, SuiteService};
use http::header::{CONTENT_LENGTH, CONTENT_TYPE, HOST};
use http::uri::PathAndQuery;
use http::{Extensions, HeaderMap, HeaderName, HeaderValue, Request, Response, StatusCode, Uri};
use http_body::Body as _;

use super::config::Settings;
use super::exchange::{Exchange, Outcome};
use super::guarded_body::GuardedBody;
use super::headers::{clean_response, is_forwarding_header, remove_if};
use super::identity::Identity;
use super::refusal::Refusal;
use super::resource_metadata;
use super::step::errors::catch_panic;
use super::timeouts::Timeouts;
use super::upload::{Progress, TimedOut, Upload, UploadEnd};
use super::upstream::{Upstream, UpstreamError, Upstreams};
use crate::kernel::request::header_names;
use crate::kernel::{
    Body, BodyTimes, ClientIp, ForwardedPrefix, Stopping, StoreCheck, TimedBody, ViaGateway, Wait,
    bytes_body, own_value,
};

/// Maximum number of headers that a gateway adds to a request.
const MAX_ADDED_HEADERS: usize = 8;

/// Forwards requests to the services.
#[derive(Debug)]
pub(crate) struct Proxy {
    pub(crate) settings: Arc<Settings>,
    pub(crate) upstreams: Upstreams,
    pub(crate) store_check: Option<StoreCheck>,
}

impl Proxy {
    /// Returns the response of the service that the path belongs to. `identity` is `None` if the path needs no
    /// credential.
    pub(crate) async fn answer(
        &self,
        request: Request<Body>,
        identity: Option<Identity>,
        exchange: &Exchange,
    ) -> Outcome {
        match &exchange.destination {
            Ok(Destination::Service(_)) if self.settings.is_hidden(request.uri().path()) => {
                Err(Refusal::not_found())
            }
            Ok(Destination::Service(route)) => {
                self.forward(request, identity, exchange, route).await
            }
            Ok(Destination::Health) => Ok(plain("ok")),
            Ok(Destination::Readiness) => Ok(self.readiness(request.extensions()).await),
            Ok(Destination::Reference) => self.reference(request, exchange).await,
            Ok(Destination::ResourceMetadata) => resource_metadata::answer(
                self.settings.resource_metadata.as_ref(),
                request.method(),
            ),
            Ok(Destination::Unknown | Destination::UnknownApi) => Err(Refusal::not_found()),
            Err(error) => Err((*error).into()),
        }
    }

    /// Returns the readiness of the gateway: 503 if its server is about to stop or the store of this process fails, otherwise
    /// 200. It does not depend on services in other processes.
    async fn readiness(&self, extensions: &Extensions) -> Response<Body> {
        let problem = match &self.store_check {
            _ if Stopping::is_in(extensions) => "stopping",
            Some(check) if !check.is_healthy().await => "the store fails",
            _ => return plain("ok"),
        };
        let mut response = plain(problem);
        *response.status_mut() = StatusCode::SERVICE_UNAVAILABLE;
        response
    }

    /// Sends a request to a service, with the identity of its caller.
    pub(super) async fn forward(
        &self,
        request: Request<Body>,
        identity: Option<Identity>,
        exchange: &Exchange,
        route: &Route,
    ) -> Outcome {
        let Some(upstream) = self.upstreams.get(route.service) else {
            let cause = format!("no upstream is configured for {}", route.service);
            return Err(Refusal::unavailable(cause));
        };
        let limit = self.settings.body_limit(route.service);
        if announced_length(request.headers()).is_some_and(|length| length > limit) {
            return Err(too_large());
        }
        let mut timeouts = *self.settings.timeouts(route.service);
        timeouts.response += requested_wait(request.uri());
        let identity = identity.unwrap_or_else(Identity::anonymous);
        let (request, progress) = self.upstream_request(request, identity, exchange, route)?;
        let began = tokio::time::Instant::now();
        let answer = send(upstream, request, &progress, timeouts).await;
        let _ = exchange.upstream_time.set(began.elapsed());
        if progress.is_too_large() {
            return Err(too_large());
        }
        if answer.is_err() && progress.is_broken() {
            return Err(Refusal::bad_request("The request body is incomplete.").closing());
        }
        let mut response = answer?;
        if response.status().is_informational() {
            let cause = format!("the upstream responded only with {}", response.status());
            return Err(Error::Upstream(cause).into());
        }
        clean_response(response.headers_mut());
        let response = response.map(|body| limit_pauses(body, timeouts.response_idle));
        if !progress.is_open() {
            return Ok(response);
        }
        Ok(response.map(|body| Body::new(GuardedBody::new(body, UploadEnd(progress)))))
    }

    /// Builds the request that the service receives.
    fn upstream_request(
        &self,
        request: Request<Body>,
        identity: Identity,
        exchange: &Exchange,
        route: &Route,
    ) -> Result<(Request<Body>, Arc<Progress>), Refusal> {
        let (mut parts, body) = request.into_parts();
        let headers = &mut parts.headers;
        headers.reserve(MAX_ADDED_HEADERS);
        let forwarded = ForwardingHeaders::of(headers, &parts.uri, exchange);
        let shows_session = identity.session && self.settings.shows_session_to(route.service);
        remove_if(headers, |name| {
            is_forwarding_header(name)
                || match name {
                    "x-api-key" | "x-request-id" => true,
                    "authorization" | "cookie" => !shows_session,
                    "x-core-deploy-branch" => route.service != SuiteService::Cli,
                    "tracestate" => !exchange.trace.is_continued,
                    _ => false,
                }
        });
        forwarded.write(headers, route);
        own_headers(headers, exchange);
        parts.uri = upstream_uri(&parts.uri, route)?;
        parts.extensions.insert(ViaGateway);
        parts.extensions.insert::<Arc<Caller>>(identity.caller);
        if let Some(client) = exchange.client {
            parts.extensions.insert(ClientIp(client.to_string()));
        }
        if !route.prefix.is_empty() {
            parts
                .extensions
                .insert(ForwardedPrefix(route.prefix.into()));
        }
        let limit = self.settings.body_limit(route.service);
        let (body, progress) = limit_size(body, limit);
        Ok((Request::from_parts(parts, body), progress))
    }
}

/// Limits the pauses of a response body. A body that is already complete needs no limit.
fn limit_pauses(body: Body, idle: Duration) -> Body {
    if body.is_whole() {
        return body;
    }
    let total = Duration::MAX;
    Body::new(TimedBody::new(body, BodyTimes { idle, total }))
}

/// Sends a request to a service and waits for the head of the response.
async fn send(
    upstream: &Arc<dyn Upstream>,
    request: Request<Body>,
    progress: &Progress,
    timeouts: Timeouts,
) -> Outcome {
    let answered = catch_panic(async { upstream.send(request).await.map_err(refusal) });
    tokio::select! {
        biased;
        outcome = answered => outcome,
        timed_out = progress.timed_out(timeouts.upload_idle, timeouts.response) => Err(match timed_out {
            TimedOut::Upstream => {
                upstream.report_timeout();
                too_late()
            }
            TimedOut::Client => {
                Refusal::bad_request("The request body did not arrive in time.").closing()
            }
        }),
    }
}

/// Limits the size of a request body. An empty body is returned unchanged.
fn limit_size(body: Body, limit: u64) -> (Body, Arc<Progress>) {
    if body.is_end_stream() {
        return (body, Arc::default());
    }
    let (upload, progress) = Upload::new(body, limit);
    (Body::new(upload), progress)
}

fn refusal(error: UpstreamError) -> Refusal {
    match error {
        UpstreamError::Broken(cause) => Error::Upstream(cause).into(),
        UpstreamError::Timeout(_) => too_late(),
        UpstreamError::Unavailable(cause) => Refusal::unavailable(cause),
    }
}

fn too_late() -> Refusal {
    Refusal::new(
        Code::UpstreamTimeout,
        "The service behind the gateway did not answer in time.",
    )
}

fn too_large() -> Refusal {
    Refusal::new(Code::PayloadTooLarge, "The request body is too large.").closing()
}

fn plain(text: &'static str) -> Response<Body> {
    let mut response = Response::new(bytes_body(text));
    let plain = HeaderValue::from_static("text/plain; charset=utf-8");
    response.headers_mut().insert(CONTENT_TYPE, plain);
    response
}

fn announced_length(headers: &HeaderMap) -> Option<u64> {
    headers.get(CONTENT_LENGTH)?.to_str().ok()?.parse().ok()
}

/// Returns the wait time of a long poll (`wait=<seconds>`), which is added to the response timeout.
fn requested_wait(uri: &Uri) -> Duration {
    let query = uri.query().unwrap_or("");
    let wait = query.split('&').find_map(|pair| pair.strip_prefix("wait="));
    let seconds: u64 = wait.and_then(|text| text.parse().ok()).unwrap_or(0);
    Duration::from_secs(seconds.min(Wait::MAX_SECONDS))
}

/// Returns the path after the prefix, with the query, both byte for byte as the client sent them.
fn upstream_uri(uri: &Uri, route: &Route) -> Result<Uri, Refusal> {
    let target = match uri.query() {
        Some(query) => format!("{}?{query}", route.forwarded_path),
        None => route.forwarded_path.clone(),
    };
    PathAndQuery::try_from(target)
        .map(Uri::from)
        .map_err(|_| Refusal::bad_request("The request target cannot be forwarded."))
}

/// The forwarding headers. Those of the request are used only if a trusted proxy sent them.
struct ForwardingHeaders {
    proto: HeaderValue,
    host: Option<HeaderValue>,
    hops: Option<HeaderValue>,
}

impl ForwardingHeaders {
    fn of(headers: &HeaderMap, uri: &Uri, exchange: &Exchange) -> Self {
        let forwarded = |name: &HeaderName| {
            let value = headers.get(name).filter(|_| exchange.from_proxy);
            value.cloned()
        };
        let https = uri.scheme_str() == Some("https");
        let own_proto = HeaderValue::from_static(if https { "https" } else { "http" });
        let proto = forwarded(&header_names::FORWARDED_PROTO)
            .filter(|proto| proto == "http" || proto == "https");
        let host = forwarded(&header_names::FORWARDED_HOST);
        Self {
            proto: proto.unwrap_or(own_proto),
            host: host.or_else(|| headers.get(HOST).cloned()),
            hops: forwarded_for(headers, exchange),
        }
    }

    fn write(self, headers: &mut HeaderMap, route: &Route) {
        headers.insert(header_names::FORWARDED_PROTO.clone(), self.proto);
        if let Some(host) = self.host {
            headers.insert(header_names::FORWARDED_HOST.clone(), host);
        }
        if !route.prefix.is_empty() {
            let prefix = HeaderValue::from_static(route.prefix);
            headers.insert(header_names::FORWARDED_PREFIX.clone(), prefix);
        }
        if let Some(hops) = self.hops {
            headers.insert(header_names::FORWARDED_FOR.clone(), hops);
        }
    }
}

/// Returns the addresses through which the request came. The peer is last, after the addresses that a trusted proxy
/// forwarded.
fn forwarded_for(headers: &HeaderMap, exchange: &Exchange) -> Option<HeaderValue> {
    let peer = exchange.peer?.ip().to_canonical().to_string();
    if !exchange.from_proxy {
        return Some(own_value(peer));
    }
    let lines = headers.get_all(&header_names::FORWARDED_FOR).iter();
    let before = lines.filter_map(|line| line.to_str().ok());
    let hops: Vec<&str> = before.chain([peer.as_str()]).collect();
    HeaderValue::try_from(hops.join(", ")).ok()
}

/// Sets the headers with the request id and the trace.
fn own_headers(headers: &mut HeaderMap, exchange: &Exchange) {
    let trace = &exchange.trace;
    let values = [
        (&header_names::CORE_REQUEST_ID, exchange.request_id.clone()),
        (
            &header_names::TRACE_ID,
            own_value(trace.trace_id().to_owned()),
        ),
        (
            &header_names::TRACEPARENT,
            own_value(trace.traceparent().to_owned()),
        ),
    ];
    for (name, value) in values {
        headers.insert(name.clone(), value);
    }
}
