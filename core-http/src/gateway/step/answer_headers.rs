//! The headers that every answer has, whoever made it: of the steps 1 (security), 3 (request id), 7 (CORS) and 8 (trace id).
//! Without CORS headers on a 429, a browser would report a network error to its page instead of the reason.
//!
//! The connection of a chunked request ends with its answer: hyper does not show whether there was a `Content-Length`
//! as well, and a proxy in front that used it would take the rest for another client's request.

use http::header::{
    CACHE_CONTROL, CONNECTION, ORIGIN, REFERRER_POLICY, TRANSFER_ENCODING, X_CONTENT_TYPE_OPTIONS,
    X_FRAME_OPTIONS,
};
use http::{HeaderMap, HeaderValue, Request};

use super::cors;
use crate::gateway::config::Settings;
use crate::gateway::exchange::{Exchange, single};
use crate::kernel::{Body, header_names, own_value};

/// How many headers a gateway adds to an answer, at most.
const ADDED: usize = 16;

/// What the headers of an answer need of the request.
#[derive(Debug)]
pub(super) struct AnswerHeaders {
    /// The origin of the page, if it is allowed.
    origin: Option<HeaderValue>,
    chunked: bool,
}

impl AnswerHeaders {
    pub(super) fn of(request: &Request<Body>, settings: &Settings) -> Self {
        let origin = single(request.headers(), &ORIGIN);
        Self {
            origin: origin
                .filter(|origin| settings.origins.find(origin.as_bytes()).is_some())
                .cloned(),
            chunked: request.headers().contains_key(TRANSFER_ENCODING),
        }
    }

    pub(super) fn write(self, exchange: &Exchange, settings: &Settings, headers: &mut HeaderMap) {
        headers.reserve(ADDED);
        headers.insert(
            header_names::REQUEST_ID.clone(),
            exchange.request_id.clone(),
        );
        let trace_id = own_value(exchange.trace.trace_id().to_owned());
        headers.insert(header_names::TRACE_ID.clone(), trace_id);
        cors::expose(headers, self.origin, settings);
        if self.chunked {
            headers.insert(CONNECTION, HeaderValue::from_static("close"));
        }
        security_headers(exchange, settings, headers);
    }
}

/// The security headers replace those of an upstream.
fn security_headers(exchange: &Exchange, settings: &Settings, headers: &mut HeaderMap) {
    headers.insert(X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    headers.insert(X_FRAME_OPTIONS, settings.frame_options.clone());
    headers.insert(REFERRER_POLICY, settings.referrer_policy.clone());
    // A path that is refused was most likely meant for the API.
    if exchange.is_api() || exchange.destination.is_err() {
        headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
    }
}
