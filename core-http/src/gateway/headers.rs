//! Header filtering, of requests and of answers.

use http::header::{
    CONNECTION, CONTENT_LENGTH, COOKIE, EXPECT, HOST, PROXY_AUTHENTICATE, PROXY_AUTHORIZATION,
    SERVER, TE, TRAILER, TRANSFER_ENCODING, UPGRADE,
};
use http::{HeaderMap, HeaderName, HeaderValue};

use super::refusal::Refusal;
use crate::kernel::header_names;

/// The prefix of the headers that the gateway alone sets. A client's are removed.
const OURS: &str = "x-core-";

/// The one header with that prefix that a client may send: the branch a deployment was built from.
pub(crate) const DEPLOY_BRANCH: HeaderName = HeaderName::from_static(header_names::DEPLOY_BRANCH);

/// The hop-by-hop headers. `Transfer-Encoding` is one as well: hyper has decoded it.
const HOP_BY_HOP: [HeaderName; 9] = [
    CONNECTION,
    PROXY_AUTHENTICATE,
    PROXY_AUTHORIZATION,
    TRAILER,
    TRANSFER_ENCODING,
    UPGRADE,
    HeaderName::from_static("keep-alive"),
    HeaderName::from_static("proxy-connection"),
    HeaderName::from_static("http2-settings"),
];

/// The headers in which proxies describe the client.
pub(crate) const FORWARDING: &[&str] = &[
    "forwarded",
    "x-real-ip",
    "x-forwarded-for",
    "x-forwarded-host",
    "x-forwarded-port",
    header_names::FORWARDED_PREFIX,
    "x-forwarded-proto",
    "x-forwarded-server",
];

/// The headers `Connection` names.
fn connection_names(headers: &HeaderMap) -> Vec<String> {
    headers
        .get_all(CONNECTION)
        .iter()
        .flat_map(|line| line.as_bytes().split(|b| *b == b','))
        .map(|name| String::from_utf8_lossy(name).trim().to_ascii_lowercase())
        .filter(|name| !name.is_empty())
        .collect()
}

/// Tells whether this is an end-to-end header that authentication or framing relies on, which `Connection` must not remove.
fn is_end_to_end(name: &str) -> bool {
    let relied_on = [
        http::header::AUTHORIZATION,
        HOST,
        CONTENT_LENGTH,
        COOKIE,
        HeaderName::from_static(header_names::API_KEY),
    ];
    name.starts_with(OURS) || relied_on.iter().any(|header| header.as_str() == name)
}

fn remove_hop_by_hop(headers: &mut HeaderMap, named: &[String]) {
    for name in named {
        headers.remove(name.as_str());
    }
    for name in &HOP_BY_HOP {
        headers.remove(name);
    }
}

/// Removes the headers that a client must not set: those with our prefix, those with an underscore (which many servers read
/// as a dash), and the hop-by-hop headers.
///
/// # Errors
/// A 400 when `Connection` names an end-to-end header.
pub(crate) fn clean_request(headers: &mut HeaderMap) -> Result<(), Refusal> {
    let named = connection_names(headers);
    if named.iter().any(|name| is_end_to_end(name)) {
        return Err(Refusal::bad_request("Connection names an end-to-end header.").closing());
    }
    let trailers = headers
        .get_all(TE)
        .iter()
        .flat_map(|line| line.as_bytes().split(|b| *b == b','))
        .any(|coding| coding.trim_ascii().eq_ignore_ascii_case(b"trailers"));
    let forbidden: Vec<HeaderName> = headers
        .keys()
        .filter(|name| is_forbidden(name))
        .cloned()
        .collect();
    for name in forbidden {
        headers.remove(name);
    }
    remove_hop_by_hop(headers, &named);
    headers.remove(EXPECT);
    headers.remove(TE);
    if trailers {
        headers.insert(TE, HeaderValue::from_static("trailers"));
    }
    Ok(())
}

fn is_forbidden(name: &HeaderName) -> bool {
    let text = name.as_str();
    text.contains('_') || (text.starts_with(OURS) && *name != DEPLOY_BRANCH)
}

/// Removes from an upstream's answer the headers that the gateway sets itself, and the hop-by-hop headers.
pub(crate) fn clean_response(headers: &mut HeaderMap) {
    let named = connection_names(headers);
    let named: Vec<String> = named
        .into_iter()
        .filter(|name| name != CONTENT_LENGTH.as_str())
        .collect();
    remove_hop_by_hop(headers, &named);
    headers.remove(SERVER);
    let ours: Vec<HeaderName> = headers
        .keys()
        .filter(|name| {
            [OURS, "access-control-", "ratelimit"]
                .iter()
                .any(|ours| name.as_str().starts_with(ours))
        })
        .cloned()
        .collect();
    for name in ours {
        headers.remove(name);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn map(lines: &[(&'static str, &'static str)]) -> HeaderMap {
        let mut headers = HeaderMap::new();
        for (name, value) in lines {
            headers.append(*name, HeaderValue::from_static(value));
        }
        headers
    }

    fn cleaned(lines: &[(&'static str, &'static str)]) -> HeaderMap {
        let mut headers = map(lines);
        clean_request(&mut headers).unwrap();
        headers
    }

    #[test]
    fn core_headers_are_removed_in_every_case_and_with_underscores() {
        let headers = cleaned(&[
            ("x-core-user-id", "forged"),
            ("x_core_user_id", "forged"),
            ("x-core_role", "forged"),
            ("x-core-anything-new", "forged"),
            ("x-core-deploy-branch", "main"),
            ("idempotency-key", "k"),
            ("x-other", "kept"),
        ]);
        let mut names: Vec<&str> = headers.keys().map(HeaderName::as_str).collect();
        names.sort_unstable();
        assert_eq!(
            names,
            ["idempotency-key", "x-core-deploy-branch", "x-other"]
        );
    }

    #[test]
    fn hop_by_hop_headers_are_removed() {
        let headers = cleaned(&[
            ("connection", "keep-alive, X-Private"),
            ("x-private", "1"),
            ("keep-alive", "timeout=5"),
            ("proxy-authorization", "x"),
            ("proxy-connection", "x"),
            ("transfer-encoding", "chunked"),
            ("upgrade", "h2c"),
            ("http2-settings", "x"),
            ("trailer", "x"),
            ("te", "gzip, trailers"),
            ("expect", "100-continue"),
        ]);
        assert_eq!(headers.len(), 1);
        assert_eq!(headers[TE], "trailers");
    }

    #[test]
    fn connection_cannot_remove_end_to_end_headers() {
        for name in [
            "Authorization",
            "X-Core-User-Id",
            "host",
            "content-length",
            "Cookie",
            "x-api-key",
        ] {
            let mut headers = HeaderMap::new();
            let value = HeaderValue::from_str(&format!("close, {name}")).unwrap();
            headers.insert(CONNECTION, value);
            assert!(clean_request(&mut headers).is_err(), "{name}");
        }
    }

    #[test]
    fn answers_keep_every_cookie_and_lose_the_headers_the_gateway_sets() {
        let mut headers = map(&[
            ("set-cookie", "a=1"),
            ("set-cookie", "b=2"),
            ("server", "x"),
            ("x-core-user-id", "u"),
            ("x-core-role", "r"),
            ("access-control-allow-origin", "*"),
            ("ratelimit", "x"),
            ("ratelimit-policy", "x"),
            ("connection", "x-hop, content-length"),
            ("x-hop", "1"),
            ("content-length", "3"),
            ("etag", "\"1\""),
        ]);
        clean_response(&mut headers);
        assert_eq!(headers.get_all("set-cookie").iter().count(), 2);
        assert_eq!(headers.keys_len(), 3);
        assert!(headers.contains_key("etag") && headers.contains_key("content-length"));
    }
}
