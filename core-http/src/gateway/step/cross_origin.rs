//! Refuses cross-origin browser requests if no service key is configured, because then no credential is required.
//! Requests of allowed origins pass.

use http::Request;

use crate::gateway::config::Settings;
use crate::gateway::exchange::Exchange;
use crate::gateway::refusal::Refusal;
use crate::kernel::admission::cors::is_cross_origin;
use crate::kernel::request::client::host;
use crate::kernel::{Body, cross_origin_error};

pub(super) fn check(
    request: &Request<Body>,
    exchange: &Exchange,
    settings: &Settings,
) -> Result<(), Refusal> {
    if settings.service_key.is_some() || exchange.is_health() {
        return Ok(());
    }
    let headers = request.headers();
    let host = host(headers, request.uri(), exchange.from_proxy);
    let is_allowed = |origin: &[u8]| settings.cors.allows(origin);
    if is_cross_origin(request.method(), headers, host, is_allowed) {
        return Err(Refusal::from(cross_origin_error()));
    }
    Ok(())
}
