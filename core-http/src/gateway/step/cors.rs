//! Step 7: responds to preflights without authentication, and sets the CORS headers of every response.

use http::header::{
    ACCESS_CONTROL_ALLOW_CREDENTIALS, ACCESS_CONTROL_ALLOW_ORIGIN, ACCESS_CONTROL_EXPOSE_HEADERS,
    ORIGIN,
};
use http::{HeaderMap, HeaderValue, Request, Response};

use crate::gateway::config::Settings;
use crate::gateway::exchange::single;
use crate::kernel::Body;
use crate::kernel::admission::cors::{EXPOSED_HEADERS, is_preflight, preflight, vary_by_origin};

/// Returns the response to a preflight; `None` for any other request.
pub(super) fn preflight_answer(
    request: &Request<Body>,
    settings: &Settings,
) -> Option<Response<Body>> {
    if !is_preflight(request.method(), request.headers()) {
        return None;
    }
    let origin = single(request.headers(), &ORIGIN);
    let allowed = origin.and_then(|origin| settings.origins.find(origin.as_bytes()));
    Some(preflight(allowed.map(|_| settings.cors_headers.clone())))
}

/// Sets the CORS headers that let a page of an allowed origin read the response.
pub(super) fn expose(headers: &mut HeaderMap, origin: Option<HeaderValue>, settings: &Settings) {
    vary_by_origin(headers);
    let Some(origin) = origin else {
        return;
    };
    headers.insert(ACCESS_CONTROL_ALLOW_ORIGIN, origin);
    headers.insert(ACCESS_CONTROL_EXPOSE_HEADERS, EXPOSED_HEADERS);
    if settings.cors_credentials {
        let yes = HeaderValue::from_static("true");
        headers.insert(ACCESS_CONTROL_ALLOW_CREDENTIALS, yes);
    }
}
