//! The innermost service: health, "not found", or a service's answer.

use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use core_domain::gateway::{Destination, Route};
use core_domain::kernel::{Code, Error};
use futures_util::future::BoxFuture;
use http::header::{AUTHORIZATION, CONTENT_LENGTH, CONTENT_TYPE, COOKIE, HOST};
use http::uri::PathAndQuery;
use http::{HeaderMap, HeaderName, HeaderValue, Request, Response, StatusCode, Uri};
use tower::Service;

use super::config::Settings;
use super::exchange::{Exchange, Inbound, Outcome, boxed};
use super::headers::{DEPLOY_BRANCH, FORWARDING, clean_response};
use super::identity::Identity;
use super::layer::errors::caught;
use super::refusal::Refusal;
use super::upload::{Progress, TimedOut, Upload};
use super::upstream::{Upstream, UpstreamError, Upstreams};
use crate::kernel::{
    Body, BodyTimes, ClientIp, ForwardedPrefix, TimedBody, ViaGateway, Wait, bytes_body,
    header_names,
};

const TRACEPARENT: HeaderName = HeaderName::from_static("traceparent");
const TRACESTATE: HeaderName = HeaderName::from_static("tracestate");

/// The innermost service of the gateway.
#[derive(Clone, Debug)]
pub(crate) struct Proxy {
    pub(crate) settings: Arc<Settings>,
    pub(crate) upstreams: Arc<Upstreams>,
}

impl Service<Inbound> for Proxy {
    type Response = Response<Body>;
    type Error = Refusal;
    type Future = BoxFuture<'static, Outcome>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Refusal>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, inbound: Inbound) -> Self::Future {
        let proxy = self.clone();
        Box::pin(async move { proxy.answer(inbound).await })
    }
}

impl Proxy {
    async fn answer(&self, inbound: Inbound) -> Outcome {
        let exchange = Arc::clone(&inbound.exchange);
        match &exchange.destination {
            Ok(Destination::Service(route)) => self.forward(inbound, route).await,
            Ok(Destination::Health) => Ok(health()),
            Ok(Destination::Unknown | Destination::UnknownApi) => Err(Refusal::not_found()),
            Err(error) => Err((*error).into()),
        }
    }

    async fn forward(&self, inbound: Inbound, route: &Route) -> Outcome {
        let Some(upstream) = self.upstreams.get(route.service) else {
            let cause = format!("no upstream is configured for {}", route.service);
            return Err(Refusal::unavailable(cause));
        };
        let limit = self.settings.body_limit(route.service);
        if announced_length(inbound.request.headers()).is_some_and(|length| length > limit) {
            return Err(too_large());
        }
        let exchange = Arc::clone(&inbound.exchange);
        let wait = requested_wait(inbound.request.uri());
        let (request, progress) = self.upstream_request(inbound, route, limit)?;
        let began = tokio::time::Instant::now();
        let answer = self.send(upstream, request, &progress, wait).await;
        let _ = exchange.upstream_time.set(began.elapsed());
        if progress.is_too_large() {
            return Err(too_large());
        }
        if answer.is_err() && progress.is_broken() {
            return Err(Refusal::bad_request("The request body did not arrive whole.").closing());
        }
        let mut response = answer?;
        if response.status().is_informational() {
            let cause = format!("the upstream ended with {}", response.status());
            return Err(Error::Upstream(cause).into());
        }
        clean_response(response.headers_mut());
        let times = BodyTimes {
            idle: self.settings.response_idle_timeout,
            total: Duration::MAX,
        };
        Ok(response.map(|body| boxed(TimedBody::new(body, times))))
    }

    async fn send(
        &self,
        upstream: &Arc<dyn Upstream>,
        request: Request<Body>,
        progress: &Progress,
        wait: Duration,
    ) -> Outcome {
        let settings = &self.settings;
        let response_timeout = settings.response_timeout + wait;
        let answered = caught(async { upstream.send(request).await.map_err(refusal) });
        tokio::select! {
            biased;
            outcome = answered => outcome,
            timed_out = progress.timed_out(settings.upload_idle_timeout, response_timeout) => Err(match timed_out {
                TimedOut::Upstream => Refusal::new(
                    Code::UpstreamTimeout,
                    "The service behind the gateway did not answer in time.",
                ),
                TimedOut::Client => {
                    Refusal::bad_request("The request body did not arrive in time.").closing()
                }
            }),
        }
    }

    /// The request as the service gets it.
    fn upstream_request(
        &self,
        inbound: Inbound,
        route: &Route,
        limit: u64,
    ) -> Result<(Request<Body>, Arc<Progress>), Refusal> {
        let exchange = inbound.exchange;
        let identity = inbound.identity.unwrap_or_else(Identity::anonymous);
        let (mut parts, body) = inbound.request.into_parts();
        forwarding_headers(&mut parts.headers, &parts.uri, &exchange, route);
        own_headers(&mut parts.headers, &exchange)?;
        parts.headers.remove(header_names::API_KEY);
        if !identity.session || !self.settings.shows_session_to(route.service) {
            parts.headers.remove(AUTHORIZATION);
            parts.headers.remove(COOKIE);
        }
        if route.service != core_domain::gateway::ServiceName::Cli {
            parts.headers.remove(DEPLOY_BRANCH);
        }
        parts.uri = upstream_uri(&parts.uri, route)?;
        parts.extensions.insert(ViaGateway);
        parts.extensions.insert(identity.caller);
        if let Some(client) = exchange.client {
            parts.extensions.insert(ClientIp(client.to_string()));
        }
        if !route.prefix.is_empty() {
            let prefix = ForwardedPrefix(route.prefix.to_owned());
            parts.extensions.insert(prefix);
        }
        let (upload, progress) = Upload::new(body, limit);
        Ok((Request::from_parts(parts, boxed(upload)), progress))
    }
}

fn refusal(error: UpstreamError) -> Refusal {
    match error {
        UpstreamError::Broken(cause) => Error::Upstream(cause).into(),
        UpstreamError::Timeout(_) => Refusal::new(
            Code::UpstreamTimeout,
            "The service behind the gateway did not answer in time.",
        ),
        UpstreamError::Unavailable(cause) => Refusal::unavailable(cause),
    }
}

fn too_large() -> Refusal {
    Refusal::new(Code::PayloadTooLarge, "The request body is too large.").closing()
}

fn health() -> Response<Body> {
    let mut response = Response::new(bytes_body("ok"));
    *response.status_mut() = StatusCode::OK;
    let plain = HeaderValue::from_static("text/plain; charset=utf-8");
    response.headers_mut().insert(CONTENT_TYPE, plain);
    response
}

fn announced_length(headers: &HeaderMap) -> Option<u64> {
    headers.get(CONTENT_LENGTH)?.to_str().ok()?.parse().ok()
}

/// How long a long poll (`wait=<seconds>`) may take on top of the response timeout.
fn requested_wait(uri: &Uri) -> Duration {
    let query = uri.query().unwrap_or("");
    let wait = query.split('&').find_map(|pair| pair.strip_prefix("wait="));
    let seconds: u64 = wait.and_then(|text| text.parse().ok()).unwrap_or(0);
    Duration::from_secs(seconds.min(Wait::MAX_SECONDS))
}

/// The rest of the path with the query, both byte for byte as the client wrote them.
fn upstream_uri(uri: &Uri, route: &Route) -> Result<Uri, Refusal> {
    let target = match uri.query() {
        Some(query) => format!("{}?{query}", route.rest),
        None => route.rest.clone(),
    };
    PathAndQuery::try_from(target)
        .map(Uri::from)
        .map_err(|_| Refusal::bad_request("The request target cannot be forwarded."))
}

/// Writes the forwarding headers. Those of the client are believed only from a trusted proxy.
fn forwarding_headers(headers: &mut HeaderMap, uri: &Uri, exchange: &Exchange, route: &Route) {
    let before: Vec<String> = headers
        .get_all("x-forwarded-for")
        .iter()
        .filter_map(|line| line.to_str().ok().map(str::to_owned))
        .collect();
    let forwarded = |name: &str| headers.get(name).cloned().filter(|_| exchange.from_proxy);
    let proto = forwarded("x-forwarded-proto")
        .filter(|proto| proto == "http" || proto == "https")
        .unwrap_or_else(|| {
            HeaderValue::from_static(if uri.scheme_str() == Some("https") {
                "https"
            } else {
                "http"
            })
        });
    let host = forwarded("x-forwarded-host").or_else(|| headers.get(HOST).cloned());
    for name in FORWARDING {
        headers.remove(*name);
    }
    headers.insert("x-forwarded-proto", proto);
    if let Some(host) = host {
        headers.insert("x-forwarded-host", host);
    }
    if !route.prefix.is_empty() {
        let prefix = HeaderValue::from_static(route.prefix);
        headers.insert(header_names::FORWARDED_PREFIX, prefix);
    }
    let Some(peer) = exchange.peer else {
        return;
    };
    let peer = peer.ip().to_canonical().to_string();
    let hops: Vec<String> = if exchange.from_proxy {
        before.into_iter().chain([peer]).collect()
    } else {
        vec![peer]
    };
    if let Ok(hops) = HeaderValue::try_from(hops.join(", ")) {
        headers.insert("x-forwarded-for", hops);
    }
}

/// The request id and the trace.
fn own_headers(headers: &mut HeaderMap, exchange: &Exchange) -> Result<(), Refusal> {
    let value = |text: &str| {
        HeaderValue::from_str(text)
            .map_err(|_| Refusal::from(Error::Internal(format!("not a header value: {text:?}"))))
    };
    headers.insert(header_names::CORE_REQUEST_ID, value(exchange.request_id())?);
    headers.insert(header_names::TRACE_ID, value(&exchange.trace.trace_id)?);
    headers.insert(TRACEPARENT, value(&exchange.trace.traceparent())?);
    if !exchange.trace.continued {
        headers.remove(TRACESTATE);
    }
    headers.remove(header_names::REQUEST_ID);
    Ok(())
}
