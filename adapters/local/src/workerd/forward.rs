//! Forwarding of requests and responses. Removes hop-by-hop headers (RFC 9110, section 7.6.1) and the cookies of IAM,
//! which workers must neither read nor set.

use std::error::Error;

use bytes::Bytes;
use core_domain::iam::is_iam_cookie;
use http::header::{self, HeaderName};
use http::uri::PathAndQuery;
use http::{HeaderMap, HeaderValue, Request, Response, Uri, Version};
use http_body::Body;
use http_body_util::BodyExt;
use http_body_util::combinators::UnsyncBoxBody;

/// The streamed body of a request to a worker.
pub(crate) type WorkerBody = UnsyncBoxBody<Bytes, Box<dyn Error + Send + Sync>>;

const HOP_BY_HOP: [HeaderName; 8] = [
    header::CONNECTION,
    HeaderName::from_static("keep-alive"),
    HeaderName::from_static("proxy-connection"),
    header::PROXY_AUTHENTICATE,
    header::PROXY_AUTHORIZATION,
    header::TE,
    header::TRANSFER_ENCODING,
    header::UPGRADE,
];

/// Prepares a request for forwarding: keeps host and path, and removes hop-by-hop headers and the cookies of IAM.
pub(crate) fn prepare_request<B>(request: Request<B>) -> Request<WorkerBody>
where
    B: Body<Data = Bytes> + Send + 'static,
    B::Error: Into<Box<dyn Error + Send + Sync>>,
{
    let (mut head, body) = request.into_parts();
    remove_hop_by_hop(&mut head.headers);
    remove_iam_cookies(&mut head.headers);
    if !head.headers.contains_key(header::HOST)
        && let Some(host) = head.uri.authority()
        && let Ok(host) = HeaderValue::from_str(host.as_str())
    {
        head.headers.insert(header::HOST, host);
    }
    let path = head.uri.path_and_query().cloned();
    head.uri = Uri::from(path.unwrap_or(PathAndQuery::from_static("/")));
    head.version = Version::HTTP_11;
    Request::from_parts(head, body.map_err(Into::into).boxed_unsync())
}

/// Prepares a response for forwarding. Cookies with names of IAM are removed.
pub(super) fn answer<B>(mut answer: Response<B>) -> Response<B> {
    remove_hop_by_hop(answer.headers_mut());
    remove_set_iam_cookies(answer.headers_mut());
    answer
}

/// Removes the cookies of IAM from the request headers of a browser.
fn remove_iam_cookies(headers: &mut HeaderMap) {
    let header::Entry::Occupied(sent) = headers.entry(header::COOKIE) else {
        return;
    };
    let (_, values) = sent.remove_entry_mult();
    let values: Vec<HeaderValue> = values
        .filter_map(|value| without_iam_cookies(&value))
        .collect();
    for value in values {
        headers.append(header::COOKIE, value);
    }
}

/// Returns the value of a `Cookie` header without the cookies of IAM; `None` if no cookie is left.
fn without_iam_cookies(value: &HeaderValue) -> Option<HeaderValue> {
    let pairs = value.as_bytes().split(|byte| *byte == b';');
    let others = pairs.filter(|pair| !is_of_iam(pair));
    let others: Vec<&[u8]> = others.map(<[u8]>::trim_ascii).collect();
    let others = others.join(&b"; "[..]);
    HeaderValue::from_bytes(&others)
        .ok()
        .filter(|value| !value.is_empty())
}

/// Removes `Set-Cookie` headers with the cookie names of IAM.
fn remove_set_iam_cookies(headers: &mut HeaderMap) {
    let header::Entry::Occupied(set) = headers.entry(header::SET_COOKIE) else {
        return;
    };
    let (_, values) = set.remove_entry_mult();
    let others: Vec<HeaderValue> = values
        .filter(|value| !is_of_iam(value.as_bytes()))
        .collect();
    for value in others {
        headers.append(header::SET_COOKIE, value);
    }
}

/// Returns whether `name=value..` is a cookie of IAM.
fn is_of_iam(cookie: &[u8]) -> bool {
    let name = cookie.split(|byte| matches!(byte, b'=' | b';')).next();
    name.is_some_and(|name| is_iam_cookie(&String::from_utf8_lossy(name)))
}

fn remove_hop_by_hop(headers: &mut HeaderMap) {
    let named: Vec<HeaderName> = headers
        .get_all(header::CONNECTION)
        .iter()
        .filter_map(|value| value.to_str().ok())
        .flat_map(|value| value.split(','))
        .filter_map(|name| name.trim().parse().ok())
        .collect();
    for name in HOP_BY_HOP.into_iter().chain(named) {
        headers.remove(name);
    }
}

#[cfg(test)]
mod tests {
    use http_body_util::Empty;

    use super::*;

    #[test]
    fn hop_by_hop_headers_are_not_forwarded() {
        let asked = Request::get("http://a.localhost:8090/x?y")
            .header("connection", "close, X-Private")
            .header("x-private", "1")
            .header("transfer-encoding", "chunked")
            .header("accept", "*/*")
            .body(Empty::new())
            .unwrap();
        let handed = prepare_request(asked);
        assert_eq!(handed.uri(), "/x?y");
        let names: Vec<_> = handed.headers().keys().map(HeaderName::as_str).collect();
        assert_eq!(names, ["accept", "host"]);
        assert_eq!(handed.headers()["host"], "a.localhost:8090");
    }

    #[test]
    fn iam_cookies_are_not_forwarded_in_either_direction() {
        let asked = Request::get("/")
            .header(
                "cookie",
                "theme=dark; better-auth.session_token=a.b=;lang=de",
            )
            .header("cookie", "__Secure-core.device=x")
            .body(Empty::new())
            .unwrap();
        let handed = prepare_request(asked);
        let cookies: Vec<_> = handed.headers().get_all("cookie").iter().collect();
        assert_eq!(cookies, ["theme=dark; lang=de"]);

        let set = Response::builder()
            .header("set-cookie", "theme=dark; Path=/")
            .header(
                "set-cookie",
                "better-auth.session_token=planted; Domain=example.org",
            )
            .header("set-cookie", "better-auth.two_factor; Path=/")
            .body(())
            .unwrap();
        let answered = answer(set);
        let cookies: Vec<_> = answered.headers().get_all("set-cookie").iter().collect();
        assert_eq!(cookies, ["theme=dark; Path=/"]);
    }
}
