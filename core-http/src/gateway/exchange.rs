//! The state of a request that the gateway is handling.

use std::net::{IpAddr, SocketAddr};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use core_domain::gateway::{Destination, PathError, TraceContext, TrustedProxies, find_route};
use core_domain::kernel::{Caller, Clock, Entropy, SuiteService};
use http::{HeaderValue, Method, Request, Response};
use tokio::time::Instant;

use super::refusal::Refusal;
use crate::kernel::Body;
use crate::kernel::request::client::{client_address_of, request_id_in};
use crate::kernel::request::header_lines::single_text;
use crate::kernel::request::header_names;

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
            client: peer_ip.map(|ip| client_address_of(ip, headers, trusted)),
            destination: find_route(request.uri().path()),
            trace: TraceContext::begin(single_text(headers, &header_names::TRACEPARENT), entropy),
            request_id: request_id_in(headers, &[&header_names::REQUEST_ID], clock, entropy),
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

    /// Returns the service that the path belongs to. Returns `None` if the gateway itself responds.
    pub(crate) const fn service(&self) -> Option<SuiteService> {
        match &self.destination {
            Ok(Destination::Service(route)) => Some(route.service),
            _ => None,
        }
    }

    /// Returns the name of the route for the log. It never contains text of the client.
    pub(crate) fn route_name(&self) -> &'static str {
        match &self.destination {
            Ok(Destination::Service(route)) if route.prefix.is_empty() => route.service.as_str(),
            Ok(Destination::Service(route)) => route.prefix,
            Ok(Destination::Health) => "/health",
            Ok(Destination::Readiness) => "/readyz",
            Ok(Destination::Reference) => "/docs",
            Ok(Destination::ResourceMetadata) => "/.well-known/oauth-protected-resource",
            Ok(_) => "unknown",
            Err(_) => "refused",
        }
    }
}
