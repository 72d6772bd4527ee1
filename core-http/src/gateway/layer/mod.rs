//! The steps every request passes, in the interface's order; the first is the outermost.
//!
//! A step is a tower layer over a service that takes an [`Inbound`] and ends in an answer or a [`Refusal`]. Refusals are
//! returned as errors, and get the same headers as answers, until the errors step turns them into envelopes.

mod access_log;
mod authenticate;
mod cors;
mod cross_origin;
pub(crate) mod errors;
mod rate_limit;
mod request_id;
mod request_sanitizer;
mod response_headers;
mod security_headers;
mod step;
mod suspension;
mod timing;
mod trace;

use std::sync::Arc;

use core_domain::kernel::{Clock, Entropy};
use tower::ServiceBuilder;

use self::step::{Next, Step, StepLayer};
use super::config::Settings;
use super::proxy::Proxy;
use super::session_cache::SessionCache;
use super::upstream::Upstreams;
use crate::kernel::rate_limit::RateLimits;

/// The state that the steps share.
#[derive(Clone, Debug)]
pub(crate) struct Parts {
    pub(crate) settings: Arc<Settings>,
    pub(crate) rates: Arc<RateLimits>,
    pub(crate) upstreams: Arc<Upstreams>,
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) entropy: Arc<dyn Entropy>,
    pub(crate) sessions: Arc<SessionCache>,
}

/// All steps around the proxy.
pub(crate) fn stack(parts: Parts, proxy: Proxy) -> impl Next {
    let Parts {
        settings,
        rates,
        upstreams,
        clock,
        entropy,
        sessions,
    } = parts;
    let rate_limit = rate_limit::RateLimit {
        settings: Arc::clone(&settings),
        upstreams,
        rates: Arc::clone(&rates),
    };
    let authenticate = authenticate::Authenticate {
        settings: Arc::clone(&settings),
        sessions,
        rates,
    };
    ServiceBuilder::new()
        .layer(StepLayer(security_headers::SecurityHeaders(Arc::clone(
            &settings,
        ))))
        .layer(StepLayer(response_headers::ResponseHeaders(Arc::clone(
            &settings,
        ))))
        .layer(StepLayer(errors::Errors))
        .layer(StepLayer(request_id::RequestId { clock, entropy }))
        .layer(StepLayer(access_log::AccessLog))
        .layer(StepLayer(timing::Timing(Arc::clone(&settings))))
        .layer(StepLayer(rate_limit))
        .layer(StepLayer(cors::Cors(Arc::clone(&settings))))
        .layer(StepLayer(trace::Trace))
        .layer(StepLayer(request_sanitizer::RequestSanitizer))
        .layer(StepLayer(cross_origin::CrossOrigin(settings)))
        .layer(StepLayer(authenticate))
        .layer(StepLayer(suspension::Suspension))
        .service(proxy)
}
