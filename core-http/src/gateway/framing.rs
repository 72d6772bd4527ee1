//! Refuses requests with ambiguous framing (request smuggling) and closes their connections.

use core_domain::gateway::Destination;
use http::header::{CONTENT_LENGTH, HOST, TRANSFER_ENCODING};
use http::{Method, Request, Version};

use super::exchange::Exchange;
use super::refusal::Refusal;
use crate::kernel::Body;

/// Maximum length of a request target, in bytes.
const MAX_TARGET: usize = 8 * 1024;

/// The methods that services may support.
const METHODS: &str = "GET, HEAD, POST, PUT, PATCH, DELETE, OPTIONS";

/// Checks the method, the target, the body length and the host of a request. Runs before authentication.
pub(crate) fn check(request: &Request<Body>, exchange: &Exchange) -> Result<(), Refusal> {
    if matches!(*request.method(), Method::CONNECT | Method::TRACE) {
        return Err(Refusal::method_not_allowed(METHODS).closing());
    }
    check_target(request, exchange)?;
    check_body_length(request).map_err(Refusal::closing)?;
    check_host(request, exchange.peer.is_some()).map_err(Refusal::closing)
}

fn check_target(request: &Request<Body>, exchange: &Exchange) -> Result<(), Refusal> {
    let uri = request.uri();
    let length = uri
        .path_and_query()
        .map_or(0, |target| target.as_str().len());
    if length > MAX_TARGET {
        return Err(Refusal::new(
            core_domain::kernel::Code::UriTooLong,
            "The request target is longer than 8 KiB.",
        ));
    }
    match &exchange.destination {
        Err(_) if uri.path() == "*" && request.method() == Method::OPTIONS => {
            Err(Refusal::not_found())
        }
        Err(error) => Err((*error).into()),
        Ok(Destination::Health | Destination::Readiness)
            if !matches!(*request.method(), Method::GET | Method::HEAD) =>
        {
            Err(Refusal::method_not_allowed("GET, HEAD"))
        }
        Ok(_) => Ok(()),
    }
}

fn check_body_length(request: &Request<Body>) -> Result<(), Refusal> {
    let headers = request.headers();
    let lengths = headers.get_all(CONTENT_LENGTH).iter().count();
    let mut codings = headers.get_all(TRANSFER_ENCODING).iter();
    let (first, second) = (codings.next(), codings.next());
    let Some(first) = first else {
        return if lengths > 1 {
            Err(Refusal::bad_request(
                "There is more than one Content-Length.",
            ))
        } else {
            Ok(())
        };
    };
    if lengths > 0 {
        return Err(Refusal::bad_request(
            "A request must not have both Content-Length and Transfer-Encoding.",
        ));
    }
    if second.is_some() || !first.as_bytes().eq_ignore_ascii_case(b"chunked") {
        return Err(Refusal::bad_request(
            "The only supported Transfer-Encoding is a single chunked.",
        ));
    }
    Ok(())
}

/// Checks that the request names exactly one host. Only a request made in process, without a connection, may have no
/// `Host`.
fn check_host(request: &Request<Body>, from_connection: bool) -> Result<(), Refusal> {
    let mut hosts = request.headers().get_all(HOST).iter();
    let (host, second) = (hosts.next(), hosts.next());
    if second.is_some() {
        return Err(Refusal::bad_request("There is more than one Host."));
    }
    let authority = request.uri().authority();
    match (host, authority) {
        (Some(host), Some(authority))
            if !host
                .as_bytes()
                .eq_ignore_ascii_case(authority.as_str().as_bytes()) =>
        {
            Err(Refusal::bad_request(
                "The target and Host name different hosts.",
            ))
        }
        (None, None) if from_connection && request.version() == Version::HTTP_11 => {
            Err(Refusal::bad_request("Host is missing."))
        }
        _ => Ok(()),
    }
}
