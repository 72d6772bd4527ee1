//! The steps that every request passes, in the order of the interface.
//!
//! The part of a step that runs before the proxy is in [`Steps::before_authentication`] and
//! [`Steps::authenticate_and_proxy`], in that order. The part that runs on the response is in [`Steps::answer`], in
//! reverse order. It applies to every response, whichever component produced it. A step that refuses a request returns
//! a [`Refusal`], which the errors step turns into an envelope.
//!
//! | step | before the proxy | on the response |
//! |---|---|---|
//! | 1 security headers | | [`answer_headers`] |
//! | 2 errors | | [`errors`]: panics and refusals become envelopes |
//! | 3 request id | [`Exchange::begin`] | [`answer_headers`] |
//! | 4 log, metering, [`metrics`] | [`access_log`]: an entry, written when it is dropped | counts the bytes of the body |
//! | 5 time | [`Exchange::begin`] | [`timing`] |
//! | 6 rate limit | [`rate_limit`] | [`rate_limit`] |
//! | 7 CORS | [`CorsPolicy`](crate::kernel::admission::cors::CorsPolicy): responds to preflights | [`answer_headers`] |
//! | 8 tracing | [`trace`]: a span around the remaining steps | [`answer_headers`] |
//! | | [`framing`] and [`headers`]: refuse ambiguous requests and remove forbidden headers | |
//! | | [`cross_origin`] | |
//! | 9 authentication | [`authenticate`] | |
//! | 10 suspension, quota | [`Steps::authenticate_and_proxy`] | |

mod access_log;
mod answer_headers;
mod authenticate;
mod cross_origin;
pub(super) mod errors;
pub(super) mod metrics;
mod rate_limit;
mod timing;
mod trace;

use std::sync::Arc;

use core_domain::billing::Metric;
use core_domain::gateway::Destination;
use core_domain::kernel::{Caller, Clock, Code, Entropy, Error, SuiteService};
use core_domain::port::SpanKind;
use http::{Request, Response};
use serde_json::json;
use tracing::Instrument;

use self::access_log::AccessLogEntry;
use self::answer_headers::CommonHeaders;
use self::metrics::GatewayMetrics;
use super::config::Settings;
use super::event_stream::{self, Lifetime};
use super::exchange::{Exchange, Outcome};
use super::proxy::Proxy;
use super::refusal::Refusal;
use super::session_cache::SessionCache;
use super::upstream::KnownRoute;
use super::usage_meter::UsageMeter;
use super::{framing, headers};
use crate::kernel::admission::rate_limit::{RateDecision, RateLimits};
use crate::kernel::{
    Body, CurrentTrace, Draining, OpenSpan, PeerAddr, Stopping, Tracer, shown_method, shown_path,
    with_trace,
};

/// All steps around the proxy, with the state that they share.
#[derive(Debug)]
pub(crate) struct Steps {
    pub(crate) settings: Arc<Settings>,
    pub(crate) rates: RateLimits,
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) entropy: Arc<dyn Entropy>,
    pub(crate) meter: Option<Arc<dyn UsageMeter>>,
    pub(crate) metrics: Arc<GatewayMetrics>,
    pub(crate) sessions: Arc<SessionCache>,
    pub(crate) tracer: Option<Arc<Tracer>>,
    pub(crate) proxy: Proxy,
}

impl Steps {
    /// Responds to a request.
    pub(crate) async fn answer(&self, mut request: Request<Body>) -> Response<Body> {
        let (meter, metrics) = (self.meter.clone(), Arc::clone(&self.metrics));
        let exchange = self.exchange(&request);
        let span = self.start_span(&request, &exchange);
        let mut entry = AccessLogEntry::begin(exchange, meter, metrics, span);
        let answer_headers = CommonHeaders::of(&request, &self.settings);
        // Services trust the extensions of a request. All of them are removed, except those about the shutdown of the
        // server.
        let extensions = request.extensions_mut();
        let stopping = extensions.remove::<Stopping>();
        let draining = extensions.remove::<Draining>();
        extensions.clear();
        if let Some(stopping) = stopping {
            extensions.insert(stopping);
        }
        if let Some(draining) = draining {
            extensions.insert(draining);
        }

        let mut counted = None;
        let tracer = self.tracer.as_ref();
        let current = tracer.map(|tracer| CurrentTrace::new(tracer, &entry.exchange.trace));
        let passed = self.before_authentication(request, &mut entry.exchange, &mut counted);
        let passed = with_trace(current, errors::catch_panic(passed));
        let outcome = passed.await;

        let refused = outcome.is_err();
        let exchange = &mut entry.exchange;
        let mut response = outcome.unwrap_or_else(|mut refusal| {
            self.metrics.count_error(refusal.error.code());
            entry.error = Some(refusal.error.code());
            if let Some(metadata) = &self.settings.resource_metadata {
                refusal.name_metadata(&metadata.challenge);
            }
            errors::envelope(&exchange.method, exchange.request_id(), refusal)
        });
        let headers = response.headers_mut();
        if let Some(counted) = &counted {
            rate_limit::write(counted, &self.settings, headers);
        }
        timing::write(exchange, &self.settings, headers);
        answer_headers.write(exchange, &self.settings, headers);
        entry.into_logged_response(response, refused)
    }

    fn exchange(&self, request: &Request<Body>) -> Exchange {
        let peer = request.extensions().get::<PeerAddr>().map(|peer| peer.0);
        let trusted = &self.settings.trusted_proxies;
        let mut exchange = Exchange::begin(request, peer, trusted, &*self.clock, &*self.entropy);
        if let Some(tracer) = &self.tracer {
            exchange.trace = tracer.sample(exchange.trace, exchange.from_proxy);
        }
        exchange
    }

    /// Starts the span of a request. Returns `None` if its trace is not sampled, and for health checks.
    fn start_span(&self, request: &Request<Body>, exchange: &Exchange) -> Option<OpenSpan> {
        let tracer = self.tracer.as_ref().filter(|_| !exchange.is_health())?;
        let method = shown_method(&exchange.method);
        let mut span = tracer.start(&exchange.trace, SpanKind::Server, method)?;
        span.add("http.request.method", method);
        span.add("core.service", GatewayMetrics::SERVICE);
        span.add("core.request_id", exchange.request_id());
        if let Some(route) = self.route_template(exchange) {
            span.rename(format!("{method} {route}"));
            span.add("url.path", shown_path(request.uri().path(), route));
            span.add("http.route", route);
        }
        Some(span)
    }

    /// Returns the path of the route of a request, with parameters instead of ids. `None` if there is no such route.
    fn route_template(&self, exchange: &Exchange) -> Option<&str> {
        let Ok(Destination::Service(route)) = &exchange.destination else {
            let name = exchange.route_name();
            return name.starts_with('/').then_some(name);
        };
        match self.proxy.upstreams.route(&exchange.method, route) {
            KnownRoute::Listed(listed) => listed.template,
            KnownRoute::NoTable | KnownRoute::Unknown => None,
        }
    }

    /// Runs the steps before authentication, then the remaining ones.
    async fn before_authentication<'s>(
        &'s self,
        mut request: Request<Body>,
        exchange: &mut Exchange,
        counted: &mut Option<RateDecision<'s>>,
    ) -> Outcome {
        let settings = &self.settings;
        let preflight =
            |request: &Request<Body>| settings.cors.preflight(request.method(), request.headers());
        let is_counted = settings.count_preflights || preflight(&request).is_none();
        if is_counted && !exchange.is_health() {
            let subject = rate_limit::subject(settings, &self.proxy.upstreams, &request, exchange);
            let count = rate_limit::count(&self.rates, exchange.client, subject);
            if let Some(error) = counted.insert(count.await).refusal() {
                return Err(Refusal::from(error));
            }
        }
        if let Some(answer) = preflight(&request) {
            return Ok(answer);
        }
        let span = trace::span(exchange);
        let rest = async {
            framing::check(&request, exchange)?;
            headers::clean_request(request.headers_mut())?;
            cross_origin::check(&request, exchange, &self.settings)?;
            self.authenticate_and_proxy(request, exchange).await
        };
        rest.instrument(span).await
    }

    /// Runs authentication, the suspension check, and the proxy.
    async fn authenticate_and_proxy(
        &self,
        request: Request<Body>,
        exchange: &mut Exchange,
    ) -> Outcome {
        if !exchange.is_api() {
            return self.proxy.answer(request, None, exchange).await;
        }
        let identify = self.identify(
            request.method(),
            request.uri(),
            request.headers(),
            exchange.client,
        );
        let mut identity = identify.await?;
        exchange.caller = Some(Arc::clone(&identity.caller));
        // Applies to every route. The service key belongs to no platform and is never suspended.
        if identity.suspended {
            return Err(Refusal::new(
                Code::PlatformSuspended,
                "This platform has been suspended.",
            ));
        }
        self.ensure_not_exhausted(&identity.caller, exchange)?;
        let draining = request.extensions().get::<Draining>().cloned();
        let (caller, presented) = (Arc::clone(&identity.caller), identity.credential.take());
        let answered = self.proxy.answer(request, Some(identity), exchange);
        let response = answered.await?;
        if !event_stream::is_event_stream(&response) {
            return Ok(response);
        }
        let lifetime = Lifetime {
            draining,
            sessions: Arc::clone(&self.sessions),
            presented,
            caller,
        };
        Ok(response.map(|body| event_stream::limit_lifetime(body, lifetime)))
    }

    /// Refuses a request of a platform whose plan includes no more requests. Requests to IAM and billing always pass, so
    /// that people can sign in and choose a plan.
    fn ensure_not_exhausted(&self, caller: &Caller, exchange: &Exchange) -> Result<(), Refusal> {
        let exempt = [SuiteService::Iam, SuiteService::Billing];
        if exchange
            .service()
            .is_some_and(|service| exempt.contains(&service))
        {
            return Ok(());
        }
        let (Some(meter), Some(platform)) = (&self.meter, caller.platform_id()) else {
            return Ok(());
        };
        let Some(exhausted) = meter.find_exhausted(platform) else {
            return Ok(());
        };
        let details = json!({
            "metric": Metric::Requests.as_str(), "used": exhausted.used, "limit": exhausted.limit,
        });
        Err(Refusal::from(Error::Refused {
            code: Code::QuotaExceeded,
            message: "The plan includes no more requests in this period. Choose a higher plan."
                .to_owned(),
            details,
        }))
    }
}
