//! Refuses cross-origin browser requests if no service key is configured, because then no credential is required.
//! Requests of allowed origins pass.

use http::Request;
use http::header::HOST;

use crate::gateway::config::Settings;
use crate::gateway::exchange::{Exchange, single_text};
use crate::gateway::refusal::Refusal;
use crate::kernel::admission::cors::is_cross_origin;
use crate::kernel::request::header_names;
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
    let forwarded = single_text(headers, &header_names::FORWARDED_HOST);
    let forwarded = forwarded.filter(|_| exchange.from_proxy);
    let host = forwarded
        .or_else(|| single_text(headers, &HOST))
        .or_else(|| {
            let authority = request.uri().authority()?;
            Some(authority.as_str())
        });
    let is_allowed = |origin: &[u8]| settings.origins.find(origin).is_some();
    if is_cross_origin(request.method(), headers, host, is_allowed) {
        return Err(Refusal::from(cross_origin_error()));
    }
    Ok(())
}
