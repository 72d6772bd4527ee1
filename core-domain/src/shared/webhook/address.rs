//! Which addresses are public: where a request that somebody else has named the receiver of may go.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// Ranges of IPv4 that are not public, by their first address and the length of their prefix.
const NOT_PUBLIC_V4: [([u8; 4], u32); 15] = [
    ([0, 0, 0, 0], 8),       // this network; unspecified
    ([10, 0, 0, 0], 8),      // private
    ([100, 64, 0, 0], 10),   // behind a carrier's NAT
    ([127, 0, 0, 0], 8),     // loopback
    ([169, 254, 0, 0], 16),  // link-local, where clouds keep credentials
    ([172, 16, 0, 0], 12),   // private
    ([192, 0, 0, 0], 24),    // protocol assignments
    ([192, 0, 2, 0], 24),    // documentation
    ([192, 88, 99, 0], 24),  // 6to4 relays
    ([192, 168, 0, 0], 16),  // private
    ([198, 18, 0, 0], 15),   // benchmarks
    ([198, 51, 100, 0], 24), // documentation
    ([203, 0, 113, 0], 24),  // documentation
    ([224, 0, 0, 0], 4),     // multicast
    ([240, 0, 0, 0], 4),     // reserved; broadcast
];

/// Public addresses of IPv6 are in this range.
const GLOBAL_UNICAST: ([u16; 2], u32) = ([0x2000, 0], 3);

/// Ranges within [`GLOBAL_UNICAST`] that are not public, by the first two groups and the length of their prefix.
const NOT_PUBLIC_V6: [([u16; 2], u32); 4] = [
    ([0x2001, 0], 23),     // protocol assignments, Teredo among them
    ([0x2001, 0xdb8], 32), // documentation
    ([0x2002, 0], 16),     // 6to4
    ([0x3fff, 0], 20),     // documentation
];

/// The well-known prefix of NAT64; the IPv4 address is the last 32 bits.
const NAT64: [u16; 6] = [0x64, 0xff9b, 0, 0, 0, 0];

/// Tells whether an address is one of the public internet: neither this machine, nor its network, nor several machines,
/// nor one that leads to an IPv4 address which is one of these.
#[must_use]
pub fn is_public(address: IpAddr) -> bool {
    match address {
        IpAddr::V4(address) => is_public_v4(address),
        IpAddr::V6(address) => {
            embedded_v4(address).map_or_else(|| is_public_v6(address), is_public_v4)
        }
    }
}

fn is_public_v4(address: Ipv4Addr) -> bool {
    let within = |(first, length): &([u8; 4], u32)| {
        shares_prefix(address.to_bits(), u32::from_be_bytes(*first), *length)
    };
    !NOT_PUBLIC_V4.iter().any(within)
}

fn is_public_v6(address: Ipv6Addr) -> bool {
    // The first 32 bits tell: no prefix is longer.
    let [first, second, ..] = address.segments();
    let within = |(range, length): &([u16; 2], u32)| {
        shares_prefix(joined(first, second), joined(range[0], range[1]), *length)
    };
    within(&GLOBAL_UNICAST) && !NOT_PUBLIC_V6.iter().any(within)
}

/// The IPv4 address that packets to this one reach: of one that is mapped, or behind NAT64.
fn embedded_v4(address: Ipv6Addr) -> Option<Ipv4Addr> {
    let [a, b, c, d, e, f, high, low] = address.segments();
    if [a, b, c, d, e, f] == NAT64 {
        return Some(Ipv4Addr::from_bits(joined(high, low)));
    }
    address.to_ipv4_mapped()
}

fn joined(high: u16, low: u16) -> u32 {
    u32::from(high) << 16 | u32::from(low)
}

/// Whether the first `length` bits are the same; 1 to 32.
fn shares_prefix(one: u32, other: u32, length: u32) -> bool {
    (one ^ other) >> (32 - length) == 0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_ends_of_every_range_that_is_not_public_are_refused_and_their_neighbours_are_not() {
        for (refused, public) in [
            ("0.0.0.0 0.255.255.255", "1.0.0.0"),
            ("10.0.0.0 10.255.255.255", "9.255.255.255 11.0.0.0"),
            ("100.64.0.0 100.127.255.255", "100.63.255.255 100.128.0.0"),
            ("127.0.0.1 127.255.255.255", "126.255.255.255 128.0.0.0"),
            (
                "169.254.0.0 169.254.169.254 169.254.255.255",
                "169.253.255.255 169.255.0.0",
            ),
            ("172.16.0.0 172.31.255.255", "172.15.255.255 172.32.0.0"),
            (
                "192.0.0.0 192.0.0.255 192.0.2.0 192.0.2.255",
                "192.0.1.0 192.0.3.0",
            ),
            ("192.88.99.1", "192.88.98.255 192.88.100.0"),
            ("192.168.0.0 192.168.255.255", "192.167.255.255 192.169.0.0"),
            ("198.18.0.0 198.19.255.255", "198.17.255.255 198.20.0.0"),
            ("198.51.100.1 203.0.113.255", "198.51.101.0 203.0.112.255"),
            (
                "224.0.0.1 239.255.255.255 240.0.0.0 255.255.255.255",
                "223.255.255.255 8.8.8.8",
            ),
            (
                ":: ::1 fe80::1 fec0::1 fc00::1 fdff::1 ff02::1 100::1 5f00::1",
                "2606:4700::1111",
            ),
            (
                "::127.0.0.1 ::8.8.8.8 ::ffff:10.0.0.1 ::ffff:7f00:1 ::ffff:0:8.8.8.8",
                "::ffff:8.8.8.8",
            ),
            (
                "64:ff9b::10.0.0.1 64:ff9b::7f00:1 64:ff9b:1::8.8.8.8",
                "64:ff9b::8.8.8.8",
            ),
            (
                "2001:: 2001:1ff::1 2001:db8::1 2001:db8:ffff::1",
                "2001:200::1 2001:db7::1 2001:db9::1",
            ),
            (
                "2002:808:808::1 2002:7f00:1::1 3fff::1 3fff:fff::1",
                "2003::1 3fff:1000::1 2a00::1",
            ),
            ("1fff::1 4000::1", "2000::1 3ffe::1"),
        ] {
            for (texts, wanted) in [(refused, false), (public, true)] {
                for text in texts.split(' ') {
                    let address = text.parse().unwrap();
                    assert_eq!(is_public(address), wanted, "{text}");
                }
            }
        }
    }
}
