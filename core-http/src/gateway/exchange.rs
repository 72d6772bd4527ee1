//! The state of a request that the gateway is handling.

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
use crate::kernel::request::header_names;
use crate::kernel::{Body, own_value};

/// The W3C trace context header that identifies the trace.
pub(crate) static TRACEPARENT: HeaderName = HeaderName::from_static("traceparent");

/// The response to a request, or the reason for its refusal.
pub(crate) type Outcome = Result<Response<Body>, Refusal>;

/// The facts about one request and its response that the steps of the gateway share.
#[derive(Debug)]
pub(crate) struct Exchange {
    pub(crate) arrived: Instant,
    pub(crate) method: Method,
    /// The peer of the connection; `None` if the request did not arrive over a connection.
    pub(crate) peer: Option<SocketAddr>,
    /// Whether the peer is a trusted proxy, whose forwarding headers are used.
    pub(crate) from_proxy: bool,
    /// The address of the client; `None` if the request did not arrive over a connection.
    pub(crate) client: Option<IpAddr>,
    pub(crate) destination: Result<Destination, PathError>,
    pub(crate) trace: TraceContext,
    /// The request id as a header value; always text.
    pub(crate) request_id: HeaderValue,
    /// The caller; `None` before authentication.
    pub(crate) caller: Option<Arc<Caller>>,
    /// The time from the forwarding of the request to the head of the upstream response.
    pub(crate) upstream_time: OnceLock<Duration>,
    /// The time from the arrival of the request to the head of the response.
    pub(crate) head_time: Option<Duration>,
}

/// Returns the value of a header that occurs exactly once; otherwise `None`.
pub(crate) fn single<'h>(headers: &'h HeaderMap, name: &HeaderName) -> Option<&'h HeaderValue> {
    let mut lines = headers.get_all(name).iter();
    match (lines.next(), lines.next()) {
        (Some(line), None) => Some(line),
        _ => None,
    }
}

/// Returns the text of a header that occurs exactly once; otherwise `None`. A value that is not UTF-8 is `None` as
/// well.
pub(crate) fn single_text<'h>(headers: &'h HeaderMap, name: &HeaderName) -> Option<&'h str> {
    single(headers, name).and_then(|line| std::str::from_utf8(line.as_bytes()).ok())
}

fn client(headers: &HeaderMap, peer: IpAddr, trusted: &TrustedProxies) -> IpAddr {
    let lines = headers.get_all(&header_names::FORWARDED_FOR).iter();
    // A line that is not text becomes an invalid address, which ends the search.
    client_address(peer, lines.map(|line| line.to_str().unwrap_or("")), trusted)
}

/// Returns the request id of the client if it is valid, otherwise a new one.
fn request_id(headers: &HeaderMap, clock: &dyn Clock, entropy: &dyn Entropy) -> HeaderValue {
    let presented = single(headers, &header_names::REQUEST_ID);
    if let Some(id) = presented.filter(|id| is_request_id(id.as_bytes())) {
        return id.clone();
    }
    own_value(new_uuid(clock.now(), entropy))
}

impl Exchange {
    /// Reads the facts that the steps need from a request that has just arrived.
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

    /// Returns the request id as text.
    pub(crate) fn request_id(&self) -> &str {
        self.request_id.to_str().unwrap_or("")
    }

    /// Returns whether the path is below `/api/`. Invalid paths are not.
    pub(crate) fn is_api(&self) -> bool {
        self.destination.as_ref().is_ok_and(Destination::is_api)
    }

    /// Returns whether the request is for the health or readiness of the gateway itself.
    pub(crate) fn is_health(&self) -> bool {
        matches!(
            self.destination,
            Ok(Destination::Health | Destination::Readiness)
        )
    }

    /// Returns the name of the route for the log. It never contains text of the client.
    pub(crate) fn route_name(&self) -> &'static str {
        match &self.destination {
            Ok(Destination::Service(route)) if route.prefix.is_empty() => route.service.as_str(),
            Ok(Destination::Service(route)) => route.prefix,
            Ok(Destination::Health) => "/health",
            Ok(Destination::Readiness) => "/readyz",
            Ok(Destination::Reference) => "/docs",
            Ok(_) => "unknown",
            Err(_) => "refused",
        }
    }
}
