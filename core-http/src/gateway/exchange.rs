//! A request inside the gateway, and the state that its layers share.

use std::net::{IpAddr, SocketAddr};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use bytes::Bytes;
use core_domain::gateway::{
    Destination, PathError, TraceContext, TrustedProxies, client_address, find_route,
};
use core_domain::kernel::Entropy;
use http::{HeaderMap, Method, Request, Response};
use http_body_util::BodyExt;
use tokio::time::Instant;

use super::identity::Identity;
use super::refusal::Refusal;
use crate::kernel::{Body, BoxError};

/// The header of W3C trace context that names the trace.
const TRACEPARENT: &str = "traceparent";

/// Boxes any body.
pub(crate) fn boxed<B>(body: B) -> Body
where
    B: http_body::Body<Data = Bytes> + Send + 'static,
    B::Error: Into<BoxError>,
{
    Body::new(body.map_err(Into::into))
}

/// The result of handling a request.
pub(crate) type Outcome = Result<Response<Body>, Refusal>;

/// A request inside the gateway.
#[derive(Debug)]
pub(crate) struct Inbound {
    pub(crate) request: Request<Body>,
    pub(crate) exchange: Arc<Exchange>,
    /// Set by authentication.
    pub(crate) identity: Option<Identity>,
}

/// The state of one request and its answer. Shared, so that the outer layers see what the inner ones set.
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
    pub(crate) request_id: OnceLock<String>,
    /// Who called, for the log.
    pub(crate) actor: OnceLock<String>,
    /// How long the upstream took to its answer's head.
    pub(crate) upstream_time: OnceLock<Duration>,
    /// How long everything up to the answer's head took.
    pub(crate) head_time: OnceLock<Duration>,
}

/// The text of a header that stands on exactly one line.
pub(crate) fn single<'h>(headers: &'h HeaderMap, name: &str) -> Option<&'h [u8]> {
    let mut lines = headers.get_all(name).iter();
    match (lines.next(), lines.next()) {
        (Some(line), None) => Some(line.as_bytes()),
        _ => None,
    }
}

/// The same as text.
pub(crate) fn single_text<'h>(headers: &'h HeaderMap, name: &str) -> Option<&'h str> {
    single(headers, name).and_then(|line| std::str::from_utf8(line).ok())
}

fn client(headers: &HeaderMap, peer: IpAddr, trusted: &TrustedProxies) -> IpAddr {
    let lines = headers.get_all("x-forwarded-for").iter();
    // A line that is not text is not an address either: it ends the search.
    client_address(peer, lines.map(|line| line.to_str().unwrap_or("")), trusted)
}

impl Exchange {
    /// Reads what the layers need from a request that has just arrived.
    pub(crate) fn begin(
        request: &Request<Body>,
        peer: Option<SocketAddr>,
        trusted: &TrustedProxies,
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
            trace: TraceContext::begin(single_text(headers, TRACEPARENT), entropy),
            request_id: OnceLock::new(),
            actor: OnceLock::new(),
            upstream_time: OnceLock::new(),
            head_time: OnceLock::new(),
        }
    }

    /// The request id; empty only before the step that decides it.
    pub(crate) fn request_id(&self) -> &str {
        self.request_id.get().map_or("", String::as_str)
    }

    /// Tells whether the request asks for something under `/api/`, or could be meant to.
    pub(crate) fn is_api(&self) -> bool {
        self.destination.as_ref().is_ok_and(Destination::is_api)
    }

    /// Tells whether the request asks for the gateway's own health.
    pub(crate) fn is_health(&self) -> bool {
        matches!(self.destination, Ok(Destination::Health))
    }

    /// The prefix of the route, for the log: never the client's text.
    pub(crate) fn route_name(&self) -> &'static str {
        match &self.destination {
            Ok(Destination::Service(route)) if route.prefix.is_empty() => route.service.as_str(),
            Ok(Destination::Service(route)) => route.prefix,
            Ok(Destination::Health) => "/health",
            Ok(_) => "unknown",
            Err(_) => "refused",
        }
    }
}

/// The headers of an outcome, be it an answer or a refusal.
pub(crate) fn headers_of(outcome: &mut Outcome) -> &mut HeaderMap {
    match outcome {
        Ok(response) => response.headers_mut(),
        Err(refusal) => &mut refusal.headers,
    }
}
