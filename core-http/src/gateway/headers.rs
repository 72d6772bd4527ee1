//! Filters the headers of requests and responses.

use http::header::{CONNECTION, TE};
use http::{HeaderMap, HeaderName, HeaderValue};

use super::refusal::Refusal;
use crate::kernel::request::header_names::DEPLOY_BRANCH;

/// The prefix of headers that only the gateway may set. Those of a client are removed.
const GATEWAY_PREFIX: &str = "x-core-";

/// Returns the names of the headers that `Connection` lists, in lower case.
fn connection_names(headers: &HeaderMap) -> Vec<String> {
    headers
        .get_all(CONNECTION)
        .iter()
        .flat_map(|line| line.as_bytes().split(|b| *b == b','))
        .map(|name| String::from_utf8_lossy(name).trim().to_ascii_lowercase())
        .filter(|name| !name.is_empty())
        .collect()
}

/// Returns whether this is an end-to-end header that authentication or framing relies on. `Connection` must not remove
/// it.
fn is_end_to_end(name: &str) -> bool {
    name.starts_with(GATEWAY_PREFIX)
        || matches!(
            name,
            "authorization" | "host" | "content-length" | "cookie" | "x-api-key"
        )
}

/// Returns whether this is a hop-by-hop header other than `TE`. `Transfer-Encoding` is one as well, because hyper has
/// decoded it.
fn is_hop_by_hop(name: &str) -> bool {
    matches!(
        name,
        "connection"
            | "proxy-authenticate"
            | "proxy-authorization"
            | "trailer"
            | "transfer-encoding"
            | "upgrade"
            | "keep-alive"
            | "proxy-connection"
            | "http2-settings"
    )
}

/// Returns whether this is a header in which a proxy describes the client.
pub(super) fn is_forwarding_header(name: &str) -> bool {
    matches!(
        name,
        "forwarded"
            | "x-real-ip"
            | "x-forwarded-for"
            | "x-forwarded-host"
            | "x-forwarded-port"
            | "x-forwarded-prefix"
            | "x-forwarded-proto"
            | "x-forwarded-server"
    )
}

/// Removes the headers whose names fulfil the condition. One check for each existing header is cheaper than one look-up
/// for each possible header.
pub(super) fn remove_if(headers: &mut HeaderMap, condition: impl Fn(&str) -> bool) {
    let unwanted: Vec<HeaderName> = headers
        .keys()
        .filter(|name| condition(name.as_str()))
        .cloned()
        .collect();
    for name in unwanted {
        headers.remove(name);
    }
}

/// Removes the headers that a client must not set.
///
/// These are the headers with the prefix of the gateway, the hop-by-hop headers, and headers with an underscore in the
/// name. Many servers treat an underscore as a dash.
///
/// # Errors
/// `BAD_REQUEST` if `Connection` names an end-to-end header.
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
    remove_if(headers, |name| {
        is_forbidden(name)
            || is_hop_by_hop(name)
            || matches!(name, "expect" | "te")
            || named.iter().any(|named| named == name)
    });
    if trailers {
        headers.insert(TE, HeaderValue::from_static("trailers"));
    }
    Ok(())
}

fn is_forbidden(name: &str) -> bool {
    name.contains('_') || (name.starts_with(GATEWAY_PREFIX) && name != DEPLOY_BRANCH.as_str())
}

/// Removes the hop-by-hop headers from an upstream response, and the headers that the gateway sets itself.
pub(crate) fn clean_response(headers: &mut HeaderMap) {
    let named = connection_names(headers);
    let set_by_gateway = |name: &str| {
        [GATEWAY_PREFIX, "access-control-", "ratelimit"]
            .iter()
            .any(|ours| name.starts_with(ours))
    };
    remove_if(headers, |name| {
        set_by_gateway(name)
            || is_hop_by_hop(name)
            || name == "server"
            || (name != "content-length" && named.iter().any(|named| named == name))
    });
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

    fn clean_headers(lines: &[(&'static str, &'static str)]) -> HeaderMap {
        let mut headers = map(lines);
        clean_request(&mut headers).unwrap();
        headers
    }

    #[test]
    fn line_28_core_headers_are_removed_in_every_case_and_with_underscores() {
        let headers = clean_headers(&[
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
    fn line_29_hop_by_hop_headers_are_removed() {
        let headers = clean_headers(&[
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
    fn line_29_connection_cannot_remove_end_to_end_headers() {
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
    fn line_34_responses_keep_all_cookies_and_lose_the_headers_of_the_gateway() {
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
