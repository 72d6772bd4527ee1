//! The origins whose web pages may call the API.

/// The methods that a web page may use, as sent in the response to a preflight request.
pub const PREFLIGHT_METHODS: &str = "GET, POST, PUT, PATCH, DELETE, OPTIONS";

/// The origin of a web page: scheme, host, and the port unless it is the default port of the scheme.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Origin(String);

/// The refusal of a text that is not an origin.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0:?} is not an origin such as https://app.example.com or http://localhost:3000")]
pub struct OriginError(String);

fn is_host(host: &str) -> bool {
    let inner = host.strip_prefix('[').and_then(|h| h.strip_suffix(']'));
    if let Some(address) = inner {
        return address.parse::<std::net::Ipv6Addr>().is_ok();
    }
    !host.is_empty()
        && host
            .bytes()
            .all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || matches!(b, b'.' | b'-'))
}

impl Origin {
    /// Parses an origin in the exact form that browsers send: lower case, without a path and without a default port.
    ///
    /// # Errors
    /// [`OriginError`] for every other text, including `*` and `null`.
    pub fn parse(text: &str) -> Result<Self, OriginError> {
        let wrong = || OriginError(text.to_owned());
        let (scheme, authority) = text.split_once("://").ok_or_else(wrong)?;
        let default_port = match scheme {
            "https" => 443,
            "http" => 80,
            _ => return Err(wrong()),
        };
        let (host, port) = match authority.rsplit_once(':') {
            Some((host, port)) if !port.ends_with(']') => (host, Some(port)),
            _ => (authority, None),
        };
        if !is_host(host) {
            return Err(wrong());
        }
        if let Some(port) = port {
            let number: u16 = port.parse().map_err(|_| wrong())?;
            if number == default_port || number.to_string() != port {
                return Err(wrong());
            }
        }
        Ok(Self(text.to_owned()))
    }

    /// Returns the origin in the form that browsers send.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

/// The origins whose web pages may call the API. Default: none.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Origins(Vec<Origin>);

impl Origins {
    /// Parses the list of allowed origins.
    ///
    /// # Errors
    /// [`OriginError`] with the first entry that is not an origin.
    pub fn parse(entries: impl IntoIterator<Item = impl AsRef<str>>) -> Result<Self, OriginError> {
        entries
            .into_iter()
            .map(|entry| Origin::parse(entry.as_ref()))
            .collect::<Result<Vec<_>, _>>()
            .map(Self)
    }

    /// Returns the allowed origin that equals the `Origin` header byte for byte.
    #[must_use]
    pub fn find(&self, header: &[u8]) -> Option<&Origin> {
        self.0.iter().find(|origin| origin.0.as_bytes() == header)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn line_19_only_exactly_equal_origins_are_allowed() {
        let origins = Origins::parse(["https://app.example.com", "http://localhost:3000"]).unwrap();
        assert!(origins.find(b"https://app.example.com").is_some());
        for other in [
            "https://app.example.com.evil.test",
            "https://evil.test?https://app.example.com",
            "http://app.example.com",
            "https://app.example.com:8443",
            "https://APP.example.com",
            "https://xapp.example.com",
            "http://localhost",
            "null",
            "*",
            "",
        ] {
            assert!(origins.find(other.as_bytes()).is_none(), "{other}");
        }
    }

    #[test]
    fn line_19_entries_that_could_never_match_are_refused() {
        for bad in [
            "*",
            "null",
            "app.example.com",
            "https://app.example.com/",
            "https://App.example.com",
            "https://app.example.com:443",
            "http://localhost:080",
            "http://localhost:",
            "https://*.example.com",
            "ftp://example.com",
            "https://[::1",
        ] {
            assert!(Origin::parse(bad).is_err(), "{bad}");
        }
        for good in ["http://[::1]:3000", "http://[::1]", "http://127.0.0.1:3000"] {
            assert!(Origin::parse(good).is_ok(), "{good}");
        }
    }

    proptest! {
        #[test]
        fn an_empty_list_allows_no_origin(header in ".{0,40}") {
            prop_assert!(Origins::default().find(header.as_bytes()).is_none());
        }

        #[test]
        fn line_45_parsing_an_origin_never_panics(text in ".{0,40}") {
            let _ = Origin::parse(&text);
        }
    }
}
