//! The address of the client: the peer of the connection, or the client for which a trusted proxy forwards the request.

use std::net::{IpAddr, Ipv6Addr, SocketAddr};

use ipnet::IpNet;

/// Parses a range of addresses such as `10.0.0.0/8`, or a single address. An IPv4 address that is mapped into IPv6 counts
/// as IPv4.
fn parse_network(text: &str) -> Result<IpNet, String> {
    let network = text.parse::<IpNet>().or_else(|_| {
        text.parse::<IpAddr>()
            .map(|address| address.to_canonical().into())
    });
    network.map_err(|_| format!("{text:?} is neither an address nor a range such as 10.0.0.0/8"))
}

/// The proxies whose `X-Forwarded-For` is trusted. Default: none.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TrustedProxies(Vec<IpNet>);

impl TrustedProxies {
    /// Parses a list of addresses and ranges.
    ///
    /// # Errors
    /// A message with the first entry that is neither an address nor a range.
    pub fn parse(entries: impl IntoIterator<Item = impl AsRef<str>>) -> Result<Self, String> {
        entries
            .into_iter()
            .map(|entry| parse_network(entry.as_ref().trim()))
            .collect::<Result<Vec<_>, _>>()
            .map(Self)
    }

    /// Returns whether the address belongs to a trusted proxy.
    #[must_use]
    pub fn contains(&self, address: IpAddr) -> bool {
        let address = address.to_canonical();
        self.0.iter().any(|network| network.contains(&address))
    }
}

/// Parses an entry of `X-Forwarded-For`: an address with or without a port.
fn parse_hop(entry: &str) -> Option<IpAddr> {
    let entry = entry.trim();
    if let Ok(address) = entry.parse::<IpAddr>() {
        return Some(address.to_canonical());
    }
    if let Ok(address) = entry.parse::<SocketAddr>() {
        return Some(address.ip().to_canonical());
    }
    let bracketed = entry.strip_prefix('[')?.strip_suffix(']')?;
    let address = bracketed.parse::<Ipv6Addr>().ok()?;
    Some(IpAddr::V6(address).to_canonical())
}

/// Returns the address of the client.
///
/// This is the peer, unless the peer is a trusted proxy. In that case, `forwarded_for` (the lines of `X-Forwarded-For`
/// in their order of arrival) is read from right to left. The client is the first address that is not a trusted proxy.
/// Entries to the left of it are written by the client and ignored. An invalid entry ends the search, and the last
/// valid address counts.
#[must_use]
pub fn client_address<'a>(
    peer: IpAddr,
    forwarded_for: impl DoubleEndedIterator<Item = &'a str>,
    trusted: &TrustedProxies,
) -> IpAddr {
    let mut client = peer.to_canonical();
    for entry in forwarded_for.rev().flat_map(|line| line.rsplit(',')) {
        if !trusted.contains(client) {
            return client;
        }
        let Some(next) = parse_hop(entry) else {
            return client;
        };
        client = next;
    }
    client
}

/// Returns the address by which a client is counted: an IPv4 address itself, or the /64 network of an IPv6 address. A
/// client usually controls its whole /64 network.
#[must_use]
pub fn client_network(client: IpAddr) -> IpAddr {
    match client.to_canonical() {
        IpAddr::V6(v6) => IpAddr::V6(Ipv6Addr::from_bits(v6.to_bits() >> 64 << 64)),
        v4 @ IpAddr::V4(_) => v4,
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn ip(text: &str) -> IpAddr {
        text.parse().unwrap()
    }

    fn trusted_proxies() -> TrustedProxies {
        TrustedProxies::parse(["10.0.0.0/8", "fd00::/8", "192.0.2.1"]).unwrap()
    }

    fn client(peer: &str, lines: &[&str]) -> IpAddr {
        client_address(ip(peer), lines.iter().copied(), &trusted_proxies())
    }

    #[test]
    fn line_10_the_header_of_an_untrusted_peer_is_ignored() {
        assert_eq!(client("203.0.113.9", &["1.2.3.4"]), ip("203.0.113.9"));
        let nobody = TrustedProxies::default();
        let lines = ["1.2.3.4"];
        assert_eq!(
            client_address(ip("10.0.0.1"), lines.into_iter(), &nobody),
            ip("10.0.0.1")
        );
    }

    #[test]
    fn line_10_the_rightmost_untrusted_address_is_the_client() {
        assert_eq!(
            client("10.0.0.1", &["6.6.6.6, 203.0.113.9, 10.9.9.9"]),
            ip("203.0.113.9")
        );
        assert_eq!(
            client(
                "10.0.0.1",
                &["6.6.6.6", "203.0.113.9", "10.9.9.9,192.0.2.1"]
            ),
            ip("203.0.113.9")
        );
    }

    #[test]
    fn line_10_an_invalid_entry_ends_the_search_at_the_last_valid_address() {
        assert_eq!(
            client("10.0.0.1", &["203.0.113.9, nonsense, 10.2.2.2"]),
            ip("10.2.2.2")
        );
        assert_eq!(client("10.0.0.1", &[""]), ip("10.0.0.1"));
    }

    #[test]
    fn forwarded_addresses_may_have_ports_and_brackets() {
        assert_eq!(client("10.0.0.1", &["203.0.113.9:4711"]), ip("203.0.113.9"));
        assert_eq!(client("10.0.0.1", &["[2001:db8::1]:80"]), ip("2001:db8::1"));
        assert_eq!(client("10.0.0.1", &["[2001:db8::1]"]), ip("2001:db8::1"));
    }

    #[test]
    fn line_11_mapped_ipv6_addresses_count_as_ipv4() {
        assert_eq!(client("::ffff:10.0.0.1", &["1.2.3.4"]), ip("1.2.3.4"));
        assert_eq!(client_network(ip("::ffff:1.2.3.4")), ip("1.2.3.4"));
    }

    #[test]
    fn line_11_ipv6_clients_are_counted_by_their_64_bit_network() {
        assert_eq!(
            client_network(ip("2001:db8:1:2:3:4:5:6")),
            client_network(ip("2001:db8:1:2::"))
        );
        assert_ne!(
            client_network(ip("2001:db8:1:3::")),
            client_network(ip("2001:db8:1:2::"))
        );
    }

    #[test]
    fn line_10_invalid_proxy_lists_are_refused() {
        for bad in [
            "",
            "*",
            "10.0.0.0/33",
            "10.0.0.0/",
            "fd00::/129",
            "localhost",
        ] {
            assert!(TrustedProxies::parse([bad]).is_err(), "{bad}");
        }
    }

    #[test]
    fn ranges_with_prefix_zero_and_full_prefix_work() {
        let all = TrustedProxies::parse(["0.0.0.0/0"]).unwrap();
        assert!(all.contains(ip("255.1.2.3")) && !all.contains(ip("::1")));
        let one = TrustedProxies::parse(["::1/128"]).unwrap();
        assert!(one.contains(ip("::1")) && !one.contains(ip("::2")));
    }

    proptest! {
        #[test]
        fn line_10_a_client_cannot_forge_its_address_with_the_header(
            forged in proptest::collection::vec(".{0,40}", 0..4),
            client_bits in any::<[u8; 4]>(),
        ) {
            let client = IpAddr::from(client_bits);
            prop_assume!(!trusted_proxies().contains(client));
            // The proxy appends the address that it saw. Everything before is the client's text.
            let seen = client.to_string();
            let lines: Vec<&str> = forged.iter().map(String::as_str).chain([seen.as_str()]).collect();
            let found = client_address(ip("10.0.0.1"), lines.into_iter(), &trusted_proxies());
            prop_assert_eq!(found, client);
        }
    }
}
