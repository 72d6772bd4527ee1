//! URLs of webhooks, and the check that they lead to the public internet.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use ipnet::{Ipv4Net, Ipv6Net};

use crate::kernel::{Error, Result, TextError, text};

/// Maximum length of a URL in characters.
const MAX_URL_CHARS: usize = 2048;

/// The pattern of a URL. The host is a name whose last label starts with a letter, or an IP address. There is no user,
/// no fragment and no port 0.
const PATTERN: &str = r#"^https?://(([A-Za-z0-9_-]{1,63}\.)*[A-Za-z][A-Za-z0-9-]{0,62}|[0-9]{1,3}(\.[0-9]{1,3}){3}|\[[0-9A-Fa-f:.]{2,45}\])(:[1-9][0-9]{0,4})?(/[!"$-\[\]-~]*)?$"#;

text! {
    /// The URL of a webhook: `http` or `https`, without user and fragment, at most 2,048 characters.
    WebhookUrl, url, {
        "type": "string", "minLength": 8, "maxLength": MAX_URL_CHARS, "format": "uri", "pattern": PATTERN,
        "examples": ["https://hooks.example.org/core"],
    }
}

fn url(text: &str) -> Result<String, TextError> {
    match text.len() {
        ..8 => Err(TextError::TooShort),
        length if length > MAX_URL_CHARS => Err(TextError::TooLong),
        _ => {
            let known = parts(text).map(|_| text.to_owned());
            known.ok_or(TextError::Malformed)
        }
    }
}

/// The parts of a [`WebhookUrl`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct UrlTarget<'u> {
    /// Whether the scheme is `https`.
    pub is_https: bool,
    /// Host and port as written, for the header `Host`.
    pub authority: &'u str,
    /// The host. An IPv6 address has no brackets.
    pub host: &'u str,
    /// The IP address, if the host is one.
    pub address: Option<IpAddr>,
    /// The port. Default: that of the scheme.
    pub port: u16,
    /// Path and query, at least `/`.
    pub path: &'u str,
}

impl WebhookUrl {
    /// Returns the parts of the URL.
    #[must_use]
    pub fn target(&self) -> UrlTarget<'_> {
        // The URL was validated when it was created, so it has these parts.
        parts(&self.0).unwrap_or_default()
    }

    /// Returns scheme, host and port. Unlike the rest of the URL, which may contain a secret, these may be shown to
    /// everyone.
    #[must_use]
    pub fn origin(&self) -> &str {
        let target = self.target();
        let scheme = if target.is_https {
            "https://"
        } else {
            "http://"
        };
        let length = scheme.len() + target.authority.len();
        self.0.get(..length).unwrap_or_default()
    }
}

fn parts(text: &str) -> Option<UrlTarget<'_>> {
    let (is_https, rest) = match text.strip_prefix("https://") {
        Some(rest) => (true, rest),
        None => (false, text.strip_prefix("http://")?),
    };
    let fits = |b: u8| b.is_ascii_graphic() && b != b'#' && b != b'\\';
    if !rest.bytes().all(fits) {
        return None;
    }
    let (authority, path) = match rest.find('/') {
        Some(at) => rest.split_at(at),
        None => (rest, "/"),
    };
    let (host, port) = match authority.strip_prefix('[') {
        Some(bracketed) => bracketed.split_once(']')?,
        None => authority.split_at(authority.find(':').unwrap_or(authority.len())),
    };
    let address = match authority.starts_with('[') {
        true => Some(IpAddr::V6(host.parse::<Ipv6Addr>().ok()?)),
        false => name_or_address(host)?,
    };
    let port = match port.strip_prefix(':') {
        Some(digits) if digits.starts_with(|c: char| ('1'..='9').contains(&c)) => {
            digits.parse().ok()?
        }
        None if port.is_empty() => [80, 443][usize::from(is_https)],
        _ => return None,
    };
    Some(UrlTarget {
        is_https,
        authority,
        host,
        address,
        port,
        path,
    })
}

/// Parses a host. The result is `Some(Some(..))` for an IP address, `Some(None)` for a name and `None` for anything
/// else. Hosts whose last label starts with a digit must be IPv4 addresses in decimal notation, because resolvers also
/// accept forms such as `0x7f.1`, which attackers use.
fn name_or_address(host: &str) -> Option<Option<IpAddr>> {
    let last = host.rsplit('.').next()?;
    if last.starts_with(|c: char| c.is_ascii_digit()) {
        return Some(Some(IpAddr::V4(host.parse::<Ipv4Addr>().ok()?)));
    }
    let fits = |b: u8| b.is_ascii_alphanumeric() || b == b'-' || b == b'_';
    let is_label = |label: &str| (1..=63).contains(&label.len()) && label.bytes().all(fits);
    let is_name = host.len() <= 253
        && host.split('.').all(is_label)
        && last.starts_with(|c: char| c.is_ascii_alphabetic())
        && !last.contains('_');
    is_name.then_some(None)
}

/// The receivers that an installation allows.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct WebhookTargets {
    /// `true` if receivers without TLS are allowed.
    pub allow_http: bool,
    /// `true` if receivers at non-public addresses are allowed, see [`is_public`].
    pub allow_private_addresses: bool,
}

impl WebhookTargets {
    /// Checks whether the URL is allowed. The addresses that a host name resolves to are checked when a message is
    /// sent.
    ///
    /// # Errors
    /// `VALIDATION_ERROR` if the URL has no TLS or a non-public host and the installation does not allow this.
    pub fn check(self, url: &WebhookUrl) -> Result<()> {
        let target = url.target();
        if !target.is_https && !self.allow_http {
            return Err(Error::invalid(
                "url",
                "not_https",
                "must begin with https://",
            ));
        }
        let is_allowed = match target.address {
            Some(address) => self.allows(address),
            None => self.allow_private_addresses || !is_local_name(target.host),
        };
        if is_allowed {
            return Ok(());
        }
        Err(Error::invalid(
            "url",
            "private_address",
            "must be an address of the public internet",
        ))
    }

    /// Returns whether a message may be sent to this IP address.
    #[must_use]
    pub fn allows(self, address: IpAddr) -> bool {
        self.allow_private_addresses || is_public(address)
    }
}

/// Returns whether the name always refers to the local machine.
fn is_local_name(host: &str) -> bool {
    let host = host.to_ascii_lowercase();
    host == "localhost" || host.ends_with(".localhost")
}

/// Non-public IPv4 ranges.
const NOT_PUBLIC_V4: [Ipv4Net; 15] = [
    v4([0, 0, 0, 0], 8),       // this network; unspecified
    v4([10, 0, 0, 0], 8),      // private
    v4([100, 64, 0, 0], 10),   // behind a carrier's NAT
    v4([127, 0, 0, 0], 8),     // loopback
    v4([169, 254, 0, 0], 16),  // link-local, where clouds keep credentials
    v4([172, 16, 0, 0], 12),   // private
    v4([192, 0, 0, 0], 24),    // protocol assignments
    v4([192, 0, 2, 0], 24),    // documentation
    v4([192, 88, 99, 0], 24),  // 6to4 relays
    v4([192, 168, 0, 0], 16),  // private
    v4([198, 18, 0, 0], 15),   // benchmarks
    v4([198, 51, 100, 0], 24), // documentation
    v4([203, 0, 113, 0], 24),  // documentation
    v4([224, 0, 0, 0], 4),     // multicast
    v4([240, 0, 0, 0], 4),     // reserved; broadcast
];

/// The range that contains all public IPv6 addresses.
const GLOBAL_UNICAST: Ipv6Net = v6([0x2000, 0], 3);

/// Non-public ranges within [`GLOBAL_UNICAST`].
const NOT_PUBLIC_V6: [Ipv6Net; 4] = [
    v6([0x2001, 0], 23),     // protocol assignments, Teredo among them
    v6([0x2001, 0xdb8], 32), // documentation
    v6([0x2002, 0], 16),     // 6to4
    v6([0x3fff, 0], 20),     // documentation
];

/// The well-known prefix of NAT64. The last 32 bits of such an address are an IPv4 address.
const NAT64: Ipv6Net = v6([0x64, 0xff9b], 96);

const fn v4([a, b, c, d]: [u8; 4], prefix: u8) -> Ipv4Net {
    Ipv4Net::new_assert(Ipv4Addr::new(a, b, c, d), prefix)
}

const fn v6([first, second]: [u16; 2], prefix: u8) -> Ipv6Net {
    Ipv6Net::new_assert(Ipv6Addr::new(first, second, 0, 0, 0, 0, 0, 0), prefix)
}

/// Returns whether an address belongs to the public internet. Addresses of this machine, of private networks and of
/// multicast groups do not. An IPv6 address that embeds an IPv4 address is judged by the latter.
#[must_use]
pub fn is_public(address: IpAddr) -> bool {
    let is_public_v4 = |address| !NOT_PUBLIC_V4.iter().any(|range| range.contains(&address));
    match address {
        IpAddr::V4(address) => is_public_v4(address),
        IpAddr::V6(address) => match embedded_v4(address) {
            Some(embedded) => is_public_v4(embedded),
            None => {
                GLOBAL_UNICAST.contains(&address)
                    && !NOT_PUBLIC_V6.iter().any(|range| range.contains(&address))
            }
        },
    }
}

/// Returns the IPv4 address that is embedded in a mapped or NAT64 address.
fn embedded_v4(address: Ipv6Addr) -> Option<Ipv4Addr> {
    if NAT64.contains(&address) {
        let [.., a, b, c, d] = address.octets();
        return Some(Ipv4Addr::new(a, b, c, d));
    }
    address.to_ipv4_mapped()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn url_is_split_into_its_parts_as_written() {
        let url = WebhookUrl::parse("https://Hooks.example.org:8443/a/b?c=d@e:f").unwrap();
        let wanted = UrlTarget {
            is_https: true,
            authority: "Hooks.example.org:8443",
            host: "Hooks.example.org",
            address: None,
            port: 8443,
            path: "/a/b?c=d@e:f",
        };
        assert_eq!(url.target(), wanted);
        assert_eq!(url.origin(), "https://Hooks.example.org:8443");
        for (text, host, port, path) in [
            ("http://[2606:4700::1111]", "2606:4700::1111", 80, "/"),
            ("https://[::1]:1/", "::1", 1, "/"),
            ("https://8.8.8.8/x", "8.8.8.8", 443, "/x"),
        ] {
            let url = WebhookUrl::parse(text).unwrap();
            let target = url.target();
            assert_eq!(
                (target.host, target.port, target.path),
                (host, port, path),
                "{text}"
            );
            assert_eq!(target.address, Some(host.parse().unwrap()));
        }
    }

    #[test]
    fn urls_with_a_hidden_or_missing_host_are_invalid() {
        for text in [
            "https://user@example.org/",
            "https://user:pw@example.org/",
            "https://@example.org/",
            "https://example.org:0/",
            "https://example.org:65536/",
            "https://example.org:080/",
            "https://example.org:/",
            "https://example.org:x/",
            "https://example.org/#x",
            "https://example.org\\@evil.org/",
            "https://example.org/a b",
            "https://example.org?x=y",
            "https://127.1/",
            "https://2130706433/",
            "https://0x7f000001/",
            "https://0177.0.0.1/",
            "https://1.2.3.256/",
            "https://example.0x1/",
            "https://[::1/",
            "https://[::1]x/",
            "https://[fe80::1%25eth0]/",
            "https://exa..mple.org/",
            "https:///path",
            "https://:80/path",
            "ftp://example.org/",
            "HTTPS://example.org/",
            "https://exämple.org/",
            "https://example.org./",
            "javascript://x",
        ] {
            assert!(WebhookUrl::parse(text).is_err(), "{text}");
        }
    }

    #[test]
    fn only_public_receivers_with_tls_are_allowed_by_default() {
        let everything = WebhookTargets {
            allow_http: true,
            allow_private_addresses: true,
        };
        for (text, code) in [
            ("http://example.org/", "not_https"),
            ("https://127.0.0.1/", "private_address"),
            ("https://[::ffff:10.0.0.1]/", "private_address"),
            ("https://Localhost:8080/", "private_address"),
            ("https://a.localhost/", "private_address"),
        ] {
            let url = WebhookUrl::parse(text).unwrap();
            let refused = WebhookTargets::default().check(&url).unwrap_err();
            assert_eq!(refused.details()["issues"][0]["code"], code, "{text}");
            assert!(everything.check(&url).is_ok());
        }
        for text in ["https://example.org/", "https://8.8.8.8/"] {
            assert!(
                WebhookTargets::default()
                    .check(&WebhookUrl::parse(text).unwrap())
                    .is_ok()
            );
        }
    }

    proptest! {
        #[test]
        fn parsing_any_text_does_not_panic(text in "https?://\\PC{0,40}") {
            let _ = WebhookUrl::parse(&text);
        }

        #[test]
        fn origin_is_scheme_host_and_port(
            origin in "https?://([a-z0-9_-]{1,9}\\.){0,3}[a-z]{2,9}(:[1-9][0-9]{0,3})?", path in "(/[!-\\[\\]-~&&[^#]]{0,20})?",
        ) {
            let url = WebhookUrl::parse(&format!("{origin}{path}")).unwrap();
            prop_assert_eq!(url.origin(), origin);
        }
    }

    #[test]
    fn bounds_of_non_public_ranges_are_not_public_and_their_neighbours_are() {
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
