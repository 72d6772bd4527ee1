//! The admission of requests to a service.
//!
//! 1. A client with too many rejected credentials is refused before its credential is checked.
//! 2. The service key and service tokens are checked.
//! 3. Requests that did not come through a gateway are counted for rate limits and checked by the cross-origin policy.
//! 4. The body of every request gets time limits.

use core_domain::gateway::{RateKind, RateSubject};
use core_domain::kernel::Error;
use futures_util::future::BoxFuture;
use http::request::Parts;
use http::{Request, Response, StatusCode};
use http_body::Body as _;

use super::authenticate::locked_out;
use super::compiled::CompiledService;
use super::definition::Endpoint;
use super::measurement::Measurement;
use super::service_span::ServiceSpan;
use super::{health, pipeline};
use crate::kernel::ViaGateway;
use crate::kernel::admission::cors::{cross_origin_error, intended_method, is_cross_origin};
use crate::kernel::admission::rate_limit::RateDecision;
use crate::kernel::process::request_effects::with_effects;
use crate::kernel::request::body::{Body, TimedBody};
use crate::kernel::request::client::{host, is_from_proxy, is_via_gateway, peer_client};
use crate::kernel::request::credentials::check_service_key;

/// Returns the response to a request that has just arrived at the service, or its refusal.
pub(crate) async fn answer(service: &CompiledService, request: Request<Body>) -> Response<Body> {
    let span = ServiceSpan::start(service.app.tracer.as_ref(), service.name, &request);
    let mut measured = service.metrics.begin(span);
    let response = admit(service, request, &mut measured).await;
    measured.set_status(response.status());
    response
}

/// Returns the response to a request, or its refusal.
async fn admit(
    service: &CompiledService,
    request: Request<Body>,
    measured: &mut Measurement<'_>,
) -> Response<Body> {
    let (mut parts, body) = request.into_parts();
    if let Some(counted) = locked_out(service, &parts) {
        let request = Request::from_parts(parts, body);
        let refusal = Some(counted.error());
        let mut response = pipeline::answer(service, request, refusal, measured).await;
        counted.write(response.headers_mut());
        return response;
    }
    check_service_key(&service.app, service.name, &mut parts).await;
    if is_via_gateway(&service.app, &parts) {
        if let Some(span) = measured.span() {
            span.sample(true);
        }
        let body = with_time_limits(service, &parts, body);
        let is_in_process = parts.extensions.get::<ViaGateway>().is_some();
        let request = Request::from_parts(parts, body);
        if is_in_process {
            return pipeline::answer(service, request, None, measured).await;
        }
        return answer_gateway(service, request, measured).await;
    }
    let counted = count(service, &parts).await;
    let refusal = counted
        .as_ref()
        .and_then(RateDecision::refusal)
        .or_else(|| cross_origin(service, &parts));
    let body = with_time_limits(service, &parts, body);
    let request = Request::from_parts(parts, body);
    let mut response = pipeline::answer(service, request, refusal, measured).await;
    if let Some(counted) = counted {
        // A 429 of the handler has the `Retry-After` of another policy.
        let refused_by_handler = response.status() == StatusCode::TOO_MANY_REQUESTS;
        if !counted.usage.is_allowed || !refused_by_handler {
            counted.write(response.headers_mut());
        }
    }
    response
}

/// Returns the response to a request of a gateway in another process, with the effects of the request. Boxed in a function
/// of its own, so that the future and the stack of every other request stay small.
fn answer_gateway<'r>(
    service: &'r CompiledService,
    request: Request<Body>,
    measured: &'r mut Measurement<'_>,
) -> BoxFuture<'r, Response<Body>> {
    Box::pin(with_effects(pipeline::answer(
        service, request, None, measured,
    )))
}

/// Returns the endpoint of a request. For a preflight, it is the endpoint of the intended request.
fn endpoint_of<'s>(service: &'s CompiledService, parts: &Parts) -> Option<&'s Endpoint> {
    let route = service.route(parts)?;
    let method = intended_method(&parts.method, &parts.headers);
    let (_, endpoint) = service.endpoint(&route, &method)?;
    Some(endpoint)
}

/// Adds the time limits of the service to a body. Uploads have other limits, see
/// [`ServeOptions::body_times`](crate::ServeOptions::body_times).
fn with_time_limits(service: &CompiledService, parts: &Parts, body: Body) -> Body {
    if body.is_whole()
        || body.is_end_stream()
        || endpoint_of(service, parts).is_some_and(Endpoint::takes_uploads)
    {
        return body;
    }
    Body::new(TimedBody::new(body, service.app.options.body_times))
}

/// Counts a request for rate limits. `None` for health checks, and if the client's address is unknown.
async fn count<'s>(service: &'s CompiledService, parts: &Parts) -> Option<RateDecision<'s>> {
    if health::is_probe(parts.uri.path()) {
        return None;
    }
    let client = peer_client(parts, &service.proxies)?;
    let (kind, subject) = match endpoint_of(service, parts) {
        Some(endpoint) => {
            let subject = RateSubject::Endpoint {
                service: service.name,
                endpoint: endpoint.operation(),
            };
            (RateKind::from(endpoint.rate_class()), subject)
        }
        None => (RateKind::Default, RateSubject::UnknownRoutes),
    };
    Some(service.rates.count(client, kind, subject).await)
}

/// Returns the refusal of a cross-origin request, if no service key is configured. No credential is then required, so
/// without this check any web page could send requests through a browser on this machine.
fn cross_origin(service: &CompiledService, parts: &Parts) -> Option<Error> {
    if service.app.service_key.is_some() || health::is_probe(parts.uri.path()) {
        return None;
    }
    let options = &service.app.options;
    let allowed = |origin: &[u8]| {
        let cors = service.cors.as_ref();
        cors.is_some_and(|cors| cors.allows(origin))
            || options.allowed_origins.find(origin).is_some()
    };
    let from_proxy = is_from_proxy(parts, &service.proxies);
    let host = host(&parts.headers, &parts.uri, from_proxy);
    is_cross_origin(&parts.method, &parts.headers, host, allowed).then(cross_origin_error)
}
