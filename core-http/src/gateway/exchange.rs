//! A request inside the gateway, and what is known of it.

use std::net::{IpAddr, SocketAddr};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use core_domain::gateway::{
    Destination, PathError, TraceContext, TrustedProxies, client_address, find_route, is_request_id,
};
use core_domain::kernel::{Caller, Clock, Entropy, new_uuid};
use http::{HeaderMap, HeaderName, HeaderValue, Method, Request, Response};
use tokio::time::Instant;

use super::refusal::Refusal;
use crate::kernel::{Body, header_names, own_value};

/// The header of W3C trace context that names the trace.
pub(crate) static TRACEPARENT: HeaderName = HeaderName::from_static("traceparent");

/// The result of handling a request.
pub(crate) type Outcome = Result<Response<Body>, Refusal>;

/// What is known of one request and its answer.
#[derive(Debug)]
pub(crate) struct Exchange {
    pub(crate) arrived: Instant,
    pub(crate) method: Method,
    /// The peer of the connection; none when the request did not come over one.
    pub(crate) peer: Option<SocketAddr>,
    /// Whether the peer is a proxy whose forwarding headers are believed.
    pub(crate) from_proxy: bool,
    /// The client's address, as far as it is known.
    pub(crate) client: Option<IpAddr>,
    pub(crate) destination: Result<Destination, PathError>,
    pub(crate) trace: TraceContext,
    /// The request id as a header value; always text.
    pub(crate) request_id: HeaderValue,
    /// Who called, once that is known.
    pub(crate) caller: Option<Arc<Caller>>,
    /// How long the upstream took to its answer's head.
    pub(crate) upstream_time: OnceLock<Duration>,
    /// How long everything up to the answer's head took.
    pub(crate) head_time: Option<Duration>,
}

/// The value of a header that stands on exactly one line.
pub(crate) fn single<'h>(headers: &'h HeaderMap, name: &HeaderName) -> Option<&'h HeaderValue> {
    let mut lines = headers.get_all(name).iter();
    match (lines.next(), lines.next()) {
        (Some(line), None) => Some(line),
        _ => None,
    }
}

/// The same as text.
pub(crate) fn single_text<'h>(headers: &'h HeaderMap, name: &HeaderName) -> Option<&'h str> {
    single(headers, name).and_then(|line| std::str::from_utf8(line.as_bytes()).ok())
}

fn client(headers: &HeaderMap, peer: IpAddr, trusted: &TrustedProxies) -> IpAddr {
    let lines = headers.get_all(&header_names::FORWARDED_FOR).iter();
    // A line that is not text is not an address either: it ends the search.
    client_address(peer, lines.map(|line| line.to_str().unwrap_or("")), trusted)
}

/// The client's request id, or a new one.
fn request_id(headers: &HeaderMap, clock: &dyn Clock, entropy: &dyn Entropy) -> HeaderValue {
    let presented = single(headers, &header_names::REQUEST_ID);
    if let Some(id) = presented.filter(|id| is_request_id(id.as_bytes())) {
        return id.clone();
    }
    own_value(new_uuid(clock.now(), entropy))
}

impl Exchange {
    /// Reads what the steps need from a request that has just arrived.
    pub(crate) fn begin(
        request: &Request<Body>,
        peer: Option<SocketAddr>,
        trusted: &TrustedProxies,
        clock: &dyn Clock,
        entropy: &dyn Entropy,
    ) -> Self {
        let headers = request.headers();
        let peer_ip = peer.map(|peer| peer.ip());
        Self {
            arrived: Instant::now(),
            method: request.method().clone(),
            peer,
            from_proxy: peer_ip.is_some_and(|ip| trusted.contains(ip)),
            client: peer_ip.map(|ip| client(headers, ip, trusted)),
            destination: find_route(request.uri().path()),
            trace: TraceContext::begin(single_text(headers, &TRACEPARENT), entropy),
            request_id: request_id(headers, clock, entropy),
            caller: None,
            upstream_time: OnceLock::new(),
            head_time: None,
        }
    }

    /// The request id.
    pub(crate) fn request_id(&self) -> &str {
        self.request_id.to_str().unwrap_or("")
    }

    /// Tells whether the request asks for something under `/api/`, or could be meant to.
    pub(crate) fn is_api(&self) -> bool {
        self.destination.as_ref().is_ok_and(Destination::is_api)
    }

    /// Tells whether the request asks for the gateway's own health or readiness.
    pub(crate) fn is_health(&self) -> bool {
        matches!(
            self.destination,
            Ok(Destination::Health | Destination::Readiness)
        )
    }

    /// The prefix of the route, for the log: never the client's text.
    pub(crate) fn route_name(&self) -> &'static str {
        match &self.destination {
            Ok(Destination::Service(route)) if route.prefix.is_empty() => route.service.as_str(),
            Ok(Destination::Service(route)) => route.prefix,
            Ok(Destination::Health) => "/health",
            Ok(Destination::Readiness) => "/readyz",
            Ok(_) => "unknown",
            Err(_) => "refused",
        }
    }
}
