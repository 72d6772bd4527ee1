//! The address of the client behind a request.

use std::net::{IpAddr, SocketAddr};

use core_domain::gateway::client_address;
use http::request::Parts;

use super::header_names;
use super::identify::holds_service_key;
use super::service::Inner;

/// The client's address as a gateway in the same process knows it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClientIp(pub String);

/// The peer of the connection a request came over: an extension of the request, set by whoever accepts connections.
/// Without it a gateway counts requests as coming from one client of no address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PeerAddr(pub SocketAddr);

/// The client's address: as the gateway of this process knows it, as a holder of the service key tells it, or the peer
/// of the connection unless that is a trusted proxy. What anybody else says about addresses is not believed.
pub(super) fn client_ip(service: &Inner, parts: &Parts) -> Option<String> {
    if let Some(known) = parts.extensions.get::<ClientIp>() {
        return Some(known.0.clone());
    }
    let told = told_client(parts).filter(|_| holds_service_key(&service.app, parts));
    let known = told.or_else(|| forwarded_client(service, parts));
    known.map(|ip| ip.to_canonical().to_string())
}

/// The peer of the connection, or whoever a proxy we trust vouches for.
fn forwarded_client(service: &Inner, parts: &Parts) -> Option<IpAddr> {
    let peer = parts.extensions.get::<PeerAddr>()?.0.ip();
    let lines = parts.headers.get_all("x-forwarded-for").iter();
    let lines = lines.map(|line| line.to_str().unwrap_or(""));
    Some(client_address(peer, lines, &service.proxies))
}

/// The address in the header of our gateway, or what the caller itself wrote into `X-Forwarded-For`: the last entry. Those
/// before it are what others told the caller, the client among them.
fn told_client(parts: &Parts) -> Option<IpAddr> {
    if let Some(told) = parts.headers.get(header_names::CLIENT_IP) {
        return told.to_str().ok()?.parse().ok();
    }
    let told = parts
        .headers
        .get_all("x-forwarded-for")
        .iter()
        .next_back()?;
    told.to_str().ok()?.rsplit(',').next()?.trim().parse().ok()
}
