//! The steps every request passes, in the interface's order; the first is the outermost.
//!
//! A step is a tower layer over a service that takes an [`Inbound`] and ends in an answer or a [`Refusal`]. Refusals travel
//! outward as errors, gathering headers as answers do, until the errors step makes envelopes of them.

mod authenticate;
mod cors;
mod decorate;
pub(crate) mod errors;
mod guard;
mod log;
mod rate_limit;
mod request_id;
mod security_headers;
mod suspension;
mod timing;
mod trace;

use std::future::Future;
use std::sync::Arc;
use std::task::{Context, Poll};

use core_domain::kernel::{Clock, Entropy};
use futures_util::future::BoxFuture;
use http::Response;
use tower::{Layer, Service, ServiceBuilder};

use super::config::Settings;
use super::exchange::{Inbound, Outcome};
use super::limiter::{Limiter, MemoryLimiter};
use super::proxy::Proxy;
use super::refusal::Refusal;
use super::session_cache::SessionCache;
use crate::kernel::Body;

/// What is inside of a step.
pub(crate) trait Next:
    Service<Inbound, Response = Response<Body>, Error = Refusal, Future: Send>
    + Clone
    + Send
    + Sync
    + 'static
{
}

impl<S> Next for S where
    S: Service<Inbound, Response = Response<Body>, Error = Refusal, Future: Send>
        + Clone
        + Send
        + Sync
        + 'static
{
}

/// One step: may look at the request, answer it by itself or pass it on, and look at what comes back.
pub(crate) trait Step: Send + Sync + 'static {
    fn run<S: Next>(&self, inbound: Inbound, next: S) -> impl Future<Output = Outcome> + Send;
}

/// A step as a tower layer.
#[derive(Clone, Debug)]
pub(crate) struct StepLayer<T>(T);

impl<T: Clone, S> Layer<S> for StepLayer<T> {
    type Service = StepService<T, S>;

    fn layer(&self, next: S) -> Self::Service {
        StepService(Arc::new((self.0.clone(), next)))
    }
}

/// A step with what is inside of it. Cloning costs one counter, however deep it is.
#[derive(Debug)]
pub(crate) struct StepService<T, S>(Arc<(T, S)>);

impl<T, S> Clone for StepService<T, S> {
    fn clone(&self) -> Self {
        Self(Arc::clone(&self.0))
    }
}

impl<T: Step, S: Next> Service<Inbound> for StepService<T, S> {
    type Response = Response<Body>;
    type Error = Refusal;
    type Future = BoxFuture<'static, Outcome>;

    // Each step asks the service inside of it when it passes the request on.
    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Refusal>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, inbound: Inbound) -> Self::Future {
        let this = Arc::clone(&self.0);
        Box::pin(async move {
            let (step, next) = &*this;
            step.run(inbound, next.clone()).await
        })
    }
}

/// What the steps share.
#[derive(Clone, Debug)]
pub(crate) struct Parts {
    pub(crate) settings: Arc<Settings>,
    pub(crate) limiter: Arc<dyn Limiter>,
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) entropy: Arc<dyn Entropy>,
    pub(crate) sessions: Arc<SessionCache>,
}

/// All steps around the proxy.
pub(crate) fn stack(parts: Parts, proxy: Proxy) -> impl Next {
    let Parts {
        settings,
        limiter,
        clock,
        entropy,
        sessions,
    } = parts;
    let rate_limit = rate_limit::RateLimit {
        settings: Arc::clone(&settings),
        limiter,
        fallback: Arc::new(MemoryLimiter::new()),
        clock: Arc::clone(&clock),
    };
    ServiceBuilder::new()
        .layer(StepLayer(security_headers::SecurityHeaders(Arc::clone(
            &settings,
        ))))
        .layer(StepLayer(decorate::Decorate(Arc::clone(&settings))))
        .layer(StepLayer(errors::Errors))
        .layer(StepLayer(request_id::RequestId { clock, entropy }))
        .layer(StepLayer(log::Log))
        .layer(StepLayer(timing::Timing(Arc::clone(&settings))))
        .layer(StepLayer(rate_limit))
        .layer(StepLayer(cors::Cors(Arc::clone(&settings))))
        .layer(StepLayer(trace::Trace))
        .layer(StepLayer(guard::Guard))
        .layer(StepLayer(authenticate::Authenticate { settings, sessions }))
        .layer(StepLayer(suspension::Suspension))
        .service(proxy)
}
