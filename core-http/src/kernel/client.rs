//! The client behind a request, and which forwarding headers are trusted.

use std::net::{IpAddr, SocketAddr};

use core_domain::gateway::{TrustedProxies, client_address};
use http::HeaderMap;
use http::request::Parts;

use super::app::App;
use super::context::ForwardedPrefix;
use super::header_names;
use super::identify::is_trusted_hop;

/// The client's address, set by a gateway in the same process.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClientIp(pub String);

/// The peer of the connection a request came over: an extension of the request that the server sets, as
/// `core_http::serve` does. Without it clients cannot be distinguished: a gateway applies its limits per path to all such
/// requests together, and a service does not limit them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PeerAddr(pub SocketAddr);

/// An extension of requests from a gateway in the same process: rate limits, cross-origin policy and authentication have been
/// applied already, and a service does not apply them again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ViaGateway;

/// Whether a gateway or another holder of the service key sent the request.
pub(super) fn is_via_gateway(app: &App, parts: &Parts) -> bool {
    parts.extensions.get::<ViaGateway>().is_some() || is_trusted_hop(app, parts)
}

/// The client's address: set by the gateway of this process, or forwarded by a holder of the service key, or the peer of the
/// connection unless that is a trusted proxy. Forwarding headers of others are ignored.
pub(super) fn client_ip(app: &App, proxies: &TrustedProxies, parts: &Parts) -> Option<String> {
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

/// The peer of the connection, or the client that a trusted proxy forwards for.
pub(super) fn peer_client(parts: &Parts, proxies: &TrustedProxies) -> Option<IpAddr> {
    let peer = parts.extensions.get::<PeerAddr>()?.0.ip();
    let lines = parts.headers.get_all(&header_names::FORWARDED_FOR).iter();
    let lines = lines.map(|line| line.to_str().unwrap_or(""));
    Some(client_address(peer, lines, proxies))
}

/// Whether the peer of the connection is a trusted proxy.
pub(super) fn is_from_proxy(parts: &Parts, proxies: &TrustedProxies) -> bool {
    let peer = parts.extensions.get::<PeerAddr>();
    peer.is_some_and(|peer| proxies.contains(peer.0.ip()))
}

/// The prefix that was stripped from the path: set by a gateway in this process, or in the header of a holder of the service
/// key or of a trusted proxy. It selects the route, so the header of others is ignored.
pub(super) fn forwarded_prefix<'p>(
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

/// The address in the gateway's header, or the last entry of `X-Forwarded-For`, which the sender itself added. The entries
/// before it may be the client's own text.
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
