//! The gateway as a tower service.

use std::convert::Infallible;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use bytes::Bytes;
use core_domain::kernel::{Clock, Entropy};
use core_domain::port::RateLimiter;
use http::{Request, Response};
use tower::Service;

use super::authority::Authority;
use super::config::{ConfigError, GatewayConfig, Settings};
use super::invalidate::Invalidate;
use super::proxy::Proxy;
use super::session_cache::SessionCache;
use super::step::Steps;
use super::step::metrics::GatewayMetrics;
use super::upstream::Upstreams;
use super::upstream_metrics::UpstreamMetrics;
use super::usage_meter::UsageMeter;
use crate::kernel::admission::rate_limit::RateLimits;
use crate::kernel::metrics::Metrics;
use crate::kernel::{Body, BoxError, StoreCheck, Tracer};

/// The ports that a gateway needs.
#[derive(Clone, Debug)]
pub struct Ports {
    /// Resolves session tokens and API keys.
    pub authority: Arc<dyn Authority>,
    /// The services that the gateway forwards requests to.
    pub upstreams: Upstreams,
    /// Counts requests. Share it with the services of the same process.
    pub limiter: Arc<dyn RateLimiter>,
    /// The source of the current time.
    pub clock: Arc<dyn Clock>,
    /// The source of randomness for request ids and span ids.
    pub entropy: Arc<dyn Entropy>,
    /// Counts the requests and bytes of platforms. `None` if nothing is metered.
    pub meter: Option<Arc<dyn UsageMeter>>,
    /// The health check of the store that the gateway or a service in this process uses. If the store fails, `/readyz` responds
    /// with 503. Share it with the services of the same process. `None` if all services are in other processes.
    pub store_check: Option<StoreCheck>,
    /// The metrics of the suite. Share them with the services of the same process.
    pub metrics: Metrics,
    /// Creates the spans of requests. `None` if no traces are exported.
    pub tracer: Option<Arc<Tracer>>,
}

/// The gateway: a service that accepts any request body and never fails. Clones share all state.
#[derive(Clone, Debug)]
pub struct Gateway(Arc<Steps>);

impl Gateway {
    /// Creates a gateway with this configuration.
    ///
    /// # Errors
    /// [`ConfigError`] for the first setting that is invalid.
    pub fn new(config: GatewayConfig, ports: Ports) -> Result<Self, ConfigError> {
        let settings = Arc::new(Settings::try_from(config)?);
        UpstreamMetrics::register(&ports.metrics);
        if settings.service_key.is_none() {
            tracing::warn!(
                target: "core::gateway",
                "no service key is configured: every request passes without authentication"
            );
        }
        let sessions = SessionCache::new(
            ports.authority,
            Arc::clone(&ports.clock),
            settings.session_cache,
            settings.authority_timeout,
            &ports.metrics,
        );
        let rates = RateLimits::new(
            settings.rates.clone(),
            ports.limiter,
            settings.limiter_timeout,
            Arc::clone(&ports.clock),
            (&ports.metrics, GatewayMetrics::SERVICE),
        );
        Ok(Self(Arc::new(Steps {
            rates,
            clock: ports.clock,
            entropy: ports.entropy,
            meter: ports.meter,
            tracer: ports.tracer,
            metrics: Arc::new(GatewayMetrics::new(&ports.metrics)),
            sessions: Arc::new(sessions),
            proxy: Proxy {
                settings: Arc::clone(&settings),
                upstreams: ports.upstreams,
                store_check: ports.store_check,
            },
            settings,
        })))
    }

    /// Returns a handle that invalidates the session cache of this gateway.
    #[must_use]
    pub fn invalidate(&self) -> Invalidate {
        self.0.sessions.invalidate()
    }

    /// Returns whether requests pass without authentication because no service key is configured. Such a gateway must
    /// listen on loopback addresses only.
    #[must_use]
    pub fn is_open(&self) -> bool {
        self.0.settings.service_key.is_none()
    }

    /// Responds to a request. Not generic, so that the code for a request is compiled in this crate, and not again in
    /// every crate that calls a gateway.
    fn answer(&self, request: Request<Body>) -> GatewayFuture {
        let steps = Arc::clone(&self.0);
        GatewayFuture(Box::pin(async move { steps.answer(request).await }))
    }
}

impl<B> Service<Request<B>> for Gateway
where
    B: http_body::Body<Data = Bytes> + Send + 'static,
    B::Error: Into<BoxError>,
{
    type Response = Response<Body>;
    type Error = Infallible;
    type Future = GatewayFuture;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<B>) -> Self::Future {
        self.answer(request.map(Body::unless_empty))
    }
}

/// The future of a response of [`Gateway`].
#[must_use = "futures do nothing unless polled"]
pub struct GatewayFuture(Pin<Box<dyn Future<Output = Response<Body>> + Send>>);

impl Future for GatewayFuture {
    type Output = Result<Response<Body>, Infallible>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        self.0.as_mut().poll(cx).map(Ok)
    }
}

impl std::fmt::Debug for GatewayFuture {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("GatewayFuture(..)")
    }
}
