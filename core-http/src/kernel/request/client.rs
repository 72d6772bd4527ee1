//! The client of a request: its address, the trusted forwarding headers, and the request id.

use std::net::{IpAddr, SocketAddr};

use bytes::Bytes;
use core_domain::gateway::{TrustedProxies, client_address, is_request_id};
use core_domain::kernel::new_uuid;
use http::request::Parts;
use http::{HeaderMap, HeaderName, HeaderValue};

use super::header_names;
use crate::kernel::admission::identify::is_trusted_hop;
use crate::kernel::endpoint::context::ForwardedPrefix;
use crate::kernel::endpoint::service::App;

/// The client's IP address as text. An extension of requests from a gateway in the same process.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClientIp(pub String);

/// The peer address of the connection. An extension of requests that the server sets, as `core_http::serve` does.
///
/// Without it, clients cannot be distinguished. A gateway then applies its limits per path to all such requests
/// together, and a service does not limit them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PeerAddr(pub SocketAddr);

/// Marks requests from a gateway in the same process. An extension of requests. The gateway has applied rate limits,
/// cross-origin policy and authentication, so a service does not apply them again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ViaGateway;

/// Returns whether a gateway or another holder of the service key sent the request.
pub(crate) fn is_via_gateway(app: &App, parts: &Parts) -> bool {
    parts.extensions.get::<ViaGateway>().is_some() || is_trusted_hop(app, parts)
}

/// Returns the client's address, if it is known. Sources, in this order:
/// - the gateway of this process ([`ClientIp`]),
/// - the forwarding headers of a holder of the service key,
/// - the peer of the connection, or the client for which a trusted proxy forwards.
///
/// Forwarding headers of other senders are ignored.
pub(crate) fn client_ip(app: &App, proxies: &TrustedProxies, parts: &Parts) -> Option<String> {
    if let Some(known) = parts.extensions.get::<ClientIp>() {
        return Some(known.0.clone());
    }
    let forwarded = if is_trusted_hop(app, parts) {
        forwarded_client_ip(&parts.headers)
    } else {
        None
    };
    let known = forwarded.or_else(|| peer_client(parts, proxies));
    known.map(|ip| ip.to_canonical().to_string())
}

/// Returns the peer of the connection, or the client for which a trusted proxy forwards.
pub(crate) fn peer_client(parts: &Parts, proxies: &TrustedProxies) -> Option<IpAddr> {
    let peer = parts.extensions.get::<PeerAddr>()?.0.ip();
    let lines = parts.headers.get_all(&header_names::FORWARDED_FOR).iter();
    let lines = lines.map(|line| line.to_str().unwrap_or(""));
    Some(client_address(peer, lines, proxies))
}

/// Returns whether the peer of the connection is a trusted proxy.
pub(crate) fn is_from_proxy(parts: &Parts, proxies: &TrustedProxies) -> bool {
    let peer = parts.extensions.get::<PeerAddr>();
    peer.is_some_and(|peer| proxies.contains(peer.0.ip()))
}

/// Returns the prefix that was removed from the path, if there is one. It is set by a gateway in this process, or by
/// the header of a holder of the service key or of a trusted proxy. It selects the route, so the header of other
/// senders is ignored.
pub(crate) fn forwarded_prefix<'p>(
    app: &App,
    proxies: &TrustedProxies,
    parts: &'p Parts,
) -> Option<&'p str> {
    if let Some(ForwardedPrefix(prefix)) = parts.extensions.get::<ForwardedPrefix>() {
        return Some(prefix);
    }
    let value = parts.headers.get(&header_names::FORWARDED_PREFIX)?;
    let trusted = is_trusted_hop(app, parts) || is_from_proxy(parts, proxies);
    trusted.then_some(value)?.to_str().ok()
}

/// Returns the address in the gateway's header, or the last entry of `X-Forwarded-For`, which the trusted sender has
/// added. Earlier entries can be written by the client.
fn forwarded_client_ip(headers: &HeaderMap) -> Option<IpAddr> {
    if let Some(address) = headers.get(&header_names::CLIENT_IP) {
        return address.to_str().ok()?.parse().ok();
    }
    let last = headers
        .get_all(&header_names::FORWARDED_FOR)
        .iter()
        .next_back()?;
    last.to_str().ok()?.rsplit(',').next()?.trim().parse().ok()
}

/// Returns the id of a request, as a header value that is always text. It is the id that the gateway or the client has
/// sent, if it is acceptable, or a new UUID.
#[must_use]
pub fn request_id(app: &App, headers: &HeaderMap) -> HeaderValue {
    [&header_names::CORE_REQUEST_ID, &header_names::REQUEST_ID]
        .into_iter()
        .find_map(|name| presented(headers, name))
        .unwrap_or_else(|| own_value(new_uuid(app.clock.now(), app.entropy.as_ref())))
}

/// Creates a header value from text of the program, without a copy. Text that is not a valid header value, which does
/// not occur, becomes an empty value.
pub(crate) fn own_value(text: impl Into<Bytes>) -> HeaderValue {
    HeaderValue::from_maybe_shared(text.into()).unwrap_or_else(|_| HeaderValue::from_static(""))
}

/// Returns the value of a header, if it occurs exactly once and is an acceptable request id.
fn presented(headers: &HeaderMap, name: &HeaderName) -> Option<HeaderValue> {
    let mut values = headers.get_all(name).iter();
    let value = values.next()?;
    if values.next().is_some() || !is_request_id(value.as_bytes()) {
        return None;
    }
    Some(value.clone())
}
