//! Cross-origin requests of browsers.
//!
//! A browser sends the requests of a web page to any address that it can reach, including this machine. Where no
//! credential is required, only headers that browsers add distinguish such a request from that of a program.

use std::net::IpAddr;

/// The headers by which browsers describe the web page that sent a request. Programs do not send them.
#[derive(Clone, Copy, Debug, Default)]
pub struct BrowserRequest<'r> {
    /// The value of the `Origin` header.
    pub origin: Option<&'r [u8]>,
    /// The value of the `Sec-Fetch-Site` header.
    pub fetch_site: Option<&'r [u8]>,
    /// Whether the request is a top-level navigation: `GET` or `HEAD` with `Sec-Fetch-Mode: navigate` and
    /// `Sec-Fetch-Dest: document`. The page with the link cannot read the response.
    pub is_navigation: bool,
    /// The host that the request was sent to, with its port, in the spelling of the client.
    pub host: Option<&'r str>,
}

impl BrowserRequest<'_> {
    /// Returns whether the request comes from a web page whose origin is neither the host's own nor allowed.
    ///
    /// The host is trusted only if it is an IP address or `localhost`, or if its origin is allowed. The owner of any
    /// other name could let it resolve to this machine (DNS rebinding).
    #[must_use]
    pub fn is_cross_origin(&self, is_allowed: impl Fn(&[u8]) -> bool) -> bool {
        let sent_by_browser = self.origin.is_some() || self.fetch_site.is_some();
        if !sent_by_browser {
            return false;
        }
        if let Some(origin) = self.origin {
            let own_page = self.is_same_origin(origin) && self.is_local();
            return !(is_allowed(origin) || own_page);
        }
        let known_host =
            self.is_local() || self.origins_of_host().any(|o| is_allowed(o.as_bytes()));
        let same_origin = matches!(self.fetch_site, Some(b"same-origin" | b"none"));
        !known_host || !(same_origin || self.is_navigation)
    }

    fn origins_of_host(&self) -> impl Iterator<Item = String> {
        let host = self.host;
        ["http", "https"]
            .into_iter()
            .filter_map(move |scheme| Some(format!("{scheme}://{}", host?)))
    }

    fn is_same_origin(&self, origin: &[u8]) -> bool {
        self.origins_of_host()
            .any(|own| origin.eq_ignore_ascii_case(own.as_bytes()))
    }

    fn is_local(&self) -> bool {
        self.host
            .is_some_and(|host| is_local_name(without_port(host)))
    }
}

fn without_port(host: &str) -> &str {
    match host.rsplit_once(':') {
        Some((name, port)) if port.bytes().all(|b| b.is_ascii_digit()) => name,
        _ => host,
    }
}

/// Returns whether a host is resolved without a name service.
fn is_local_name(host: &str) -> bool {
    let bracketed = host.strip_prefix('[').and_then(|h| h.strip_suffix(']'));
    let host = host.to_ascii_lowercase();
    bracketed.unwrap_or(&host).parse::<IpAddr>().is_ok()
        || host == "localhost"
        || host.ends_with(".localhost")
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const LISTED: &[u8] = b"https://app.example.com";

    fn cross_origin(request: BrowserRequest<'_>) -> bool {
        request.is_cross_origin(|origin| origin == LISTED)
    }

    fn to(host: &str) -> BrowserRequest<'_> {
        BrowserRequest {
            host: Some(host),
            ..BrowserRequest::default()
        }
    }

    #[test]
    fn requests_without_browser_headers_are_not_cross_origin() {
        for host in [Some("127.0.0.1:8080"), Some("any.example"), None] {
            assert!(!cross_origin(BrowserRequest {
                host,
                ..BrowserRequest::default()
            }));
        }
    }

    #[test]
    fn an_origin_is_same_origin_allowed_or_cross_origin() {
        for (origin, host, expected) in [
            ("http://evil.test", "127.0.0.1:8080", true),
            ("null", "127.0.0.1:8080", true),
            ("", "127.0.0.1:8080", true),
            ("http://127.0.0.1:3000", "127.0.0.1:8080", true),
            ("http://127.0.0.1:8080", "127.0.0.1:8080", false),
            ("http://localhost:8080", "localhost:8080", false),
            ("http://[::1]:8080", "[::1]:8080", false),
            ("https://app.example.com", "127.0.0.1:8080", false),
            ("https://app.example.com", "api.example.com", false),
        ] {
            let request = BrowserRequest {
                origin: Some(origin.as_bytes()),
                ..to(host)
            };
            assert_eq!(cross_origin(request), expected, "{origin} to {host}");
        }
    }

    #[test]
    fn a_name_rebound_to_this_machine_is_cross_origin_to_itself() {
        let origin = Some(&b"http://evil.test:8080"[..]);
        let posted = BrowserRequest {
            origin,
            fetch_site: Some(b"same-origin"),
            ..to("evil.test:8080")
        };
        let got = BrowserRequest {
            origin: None,
            ..posted
        };
        assert!(cross_origin(posted) && cross_origin(got));
    }

    #[test]
    fn without_an_origin_the_fetch_metadata_decide() {
        for (site, is_navigation, host, expected) in [
            ("cross-site", false, "127.0.0.1", true),
            ("same-site", false, "127.0.0.1", true),
            ("anything-new", false, "127.0.0.1", true),
            ("same-origin", false, "127.0.0.1", false),
            ("none", false, "127.0.0.1", false),
            ("cross-site", true, "127.0.0.1", false),
            ("cross-site", true, "evil.test", true),
            ("none", true, "app.example.com", false),
        ] {
            let request = BrowserRequest {
                fetch_site: Some(site.as_bytes()),
                is_navigation,
                ..to(host)
            };
            assert_eq!(cross_origin(request), expected, "{site} to {host}");
        }
    }

    #[test]
    fn only_ip_addresses_and_localhost_are_local_names() {
        for host in ["127.0.0.1", "10.1.2.3", "[::1]", "localhost", "a.LOCALHOST"] {
            assert!(is_local_name(host), "{host}");
        }
        for host in ["", "localhost.evil.test", "127.0.0.1.nip.io", "[x]", "evil"] {
            assert!(!is_local_name(host), "{host}");
        }
    }

    proptest! {
        #[test]
        fn an_origin_that_is_neither_allowed_nor_the_host_is_cross_origin(
            origin in "(https?://)?[a-z0-9.:]{0,20}", host in "[a-z0-9.:]{0,20}",
        ) {
            let own = [format!("http://{host}"), format!("https://{host}")];
            prop_assume!(origin.as_bytes() != LISTED && !own.contains(&origin));
            let request = BrowserRequest { origin: Some(origin.as_bytes()), ..to(&host) };
            prop_assert!(cross_origin(request));
        }
    }
}
