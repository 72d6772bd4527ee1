//! The client of a request: its address, the trusted forwarding headers, and the request id.

use std::borrow::Cow;
use std::net::{IpAddr, SocketAddr};

use bytes::Bytes;
use core_domain::gateway::{TrustedProxies, client_address, is_request_id};
use core_domain::kernel::{Clock, Entropy, new_uuid};
use http::header::HOST;
use http::request::Parts;
use http::uri::Authority;
use http::{HeaderMap, HeaderName, HeaderValue, Uri};

use super::credentials::is_trusted_hop;
use super::header_lines::{single, single_text};
use super::header_names;
use crate::kernel::process::app::App;

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

/// The prefix that a gateway in the same process has removed from the path. Equivalent to the header
/// `X-Forwarded-Prefix`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ForwardedPrefix(pub Cow<'static, str>);

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
    Some(client_address_of(peer, &parts.headers, proxies))
}

/// Returns the peer of a connection, or the client for which a trusted proxy forwards.
pub(crate) fn client_address_of(
    peer: IpAddr,
    headers: &HeaderMap,
    proxies: &TrustedProxies,
) -> IpAddr {
    let lines = headers.get_all(&header_names::FORWARDED_FOR).iter();
    // A line that is not text becomes an invalid address, which ends the search.
    client_address(peer, lines.map(|line| line.to_str().unwrap_or("")), proxies)
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
    let names = [&header_names::CORE_REQUEST_ID, &header_names::REQUEST_ID];
    request_id_in(headers, &names, app.clock.as_ref(), app.entropy.as_ref())
}

/// Returns the first acceptable request id in the headers of these names, or a new UUID. A header that occurs more than
/// once is ignored.
pub(crate) fn request_id_in(
    headers: &HeaderMap,
    names: &[&HeaderName],
    clock: &dyn Clock,
    entropy: &dyn Entropy,
) -> HeaderValue {
    let values = names.iter().filter_map(|name| single(headers, name));
    let mut acceptable = values.filter(|value| is_request_id(value.as_bytes()));
    let presented = acceptable.next().cloned();
    presented.unwrap_or_else(|| own_value(new_uuid(clock.now(), entropy)))
}

/// Returns the host to which the client sent a request: `Host`, or `X-Forwarded-Host` if a trusted proxy has forwarded
/// the request. A header that occurs more than once is ignored.
pub(crate) fn host<'r>(headers: &'r HeaderMap, uri: &'r Uri, from_proxy: bool) -> Option<&'r str> {
    let forwarded = single_text(headers, &header_names::FORWARDED_HOST).filter(|_| from_proxy);
    forwarded
        .or_else(|| single_text(headers, &HOST))
        .or_else(|| uri.authority().map(Authority::as_str))
}

/// Creates a header value from text of the program, without a copy. Text that is not a valid header value, which does
/// not occur, becomes an empty value.
pub(crate) fn own_value(text: impl Into<Bytes>) -> HeaderValue {
    HeaderValue::from_maybe_shared(text.into()).unwrap_or_else(|_| HeaderValue::from_static(""))
}
