//! The headers that every response has, whichever component produced it. They belong to steps 1 (security), 3 (request
//! id), 7 (CORS) and 8 (trace id).
//!
//! A 429 needs CORS headers as well: without them, a browser reports a network error to its page instead of the reason.
//!
//! The connection of a chunked request is closed after the response, because hyper does not show whether the request
//! also had a `Content-Length`. A proxy in front that used this length would treat the remaining bytes as the request
//! of another client.

use http::header::{
    CACHE_CONTROL, CONNECTION, ORIGIN, REFERRER_POLICY, TRANSFER_ENCODING, X_CONTENT_TYPE_OPTIONS,
    X_FRAME_OPTIONS,
};
use http::{HeaderMap, HeaderValue, Request};

use super::cors;
use crate::gateway::config::Settings;
use crate::gateway::exchange::{Exchange, single};
use crate::kernel::request::header_names;
use crate::kernel::{Body, own_value};

/// Maximum number of headers that a gateway adds to a response.
const MAX_ADDED_HEADERS: usize = 16;

/// The properties of the request that the headers of its response depend on.
#[derive(Debug)]
pub(super) struct CommonHeaders {
    /// The `Origin` of the request; `None` if it is not an allowed origin.
    origin: Option<HeaderValue>,
    chunked: bool,
}

impl CommonHeaders {
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
        headers.reserve(MAX_ADDED_HEADERS);
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

/// Sets the security headers. They replace those of an upstream.
fn security_headers(exchange: &Exchange, settings: &Settings, headers: &mut HeaderMap) {
    headers.insert(X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    headers.insert(X_FRAME_OPTIONS, settings.frame_options.clone());
    headers.insert(REFERRER_POLICY, settings.referrer_policy.clone());
    // An invalid path was most likely meant for the API.
    if exchange.is_api() || exchange.destination.is_err() {
        headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
    }
}
