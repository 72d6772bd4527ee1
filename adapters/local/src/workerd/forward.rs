//! Requests and answers as they are handed on: without what holds for one connection alone (RFC 9110, section 7.6.1).

use std::error::Error;

use bytes::Bytes;
use http::header::{self, HeaderName};
use http::uri::PathAndQuery;
use http::{HeaderMap, HeaderValue, Request, Response, Uri, Version};
use http_body::Body;
use http_body_util::BodyExt;
use http_body_util::combinators::UnsyncBoxBody;

/// The body of a request to a worker, streamed.
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

/// A request for the same host and path, with any body.
pub(crate) fn request<B>(request: Request<B>) -> Request<WorkerBody>
where
    B: Body<Data = Bytes> + Send + 'static,
    B::Error: Into<Box<dyn Error + Send + Sync>>,
{
    let (mut head, body) = request.into_parts();
    strip(&mut head.headers);
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

/// The answer as it goes on to another connection.
pub(super) fn answer<B>(mut answer: Response<B>) -> Response<B> {
    strip(answer.headers_mut());
    answer
}

fn strip(headers: &mut HeaderMap) {
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
    fn what_holds_for_one_connection_is_not_handed_on() {
        let asked = Request::get("http://a.localhost:8090/x?y")
            .header("connection", "close, X-Private")
            .header("x-private", "1")
            .header("transfer-encoding", "chunked")
            .header("accept", "*/*")
            .body(Empty::new())
            .unwrap();
        let handed = request(asked);
        assert_eq!(handed.uri(), "/x?y");
        let names: Vec<_> = handed.headers().keys().map(HeaderName::as_str).collect();
        assert_eq!(names, ["accept", "host"]);
        assert_eq!(handed.headers()["host"], "a.localhost:8090");
    }
}
