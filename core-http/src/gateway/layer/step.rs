//! A step as a tower layer.

use std::future::Future;
use std::sync::Arc;
use std::task::{Context, Poll};

use futures_util::future::BoxFuture;
use http::Response;
use tower::{Layer, Service};

use crate::gateway::exchange::{Inbound, Outcome};
use crate::gateway::refusal::Refusal;
use crate::kernel::Body;

/// The service inside a step.
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

/// One step: inspects the request, answers it or passes it on, and inspects the answer.
pub(crate) trait Step: Send + Sync + 'static {
    fn run<S: Next>(&self, inbound: Inbound, next: S) -> impl Future<Output = Outcome> + Send;
}

/// A step as a tower layer.
#[derive(Clone, Debug)]
pub(crate) struct StepLayer<T>(pub(super) T);

impl<T: Clone, S> Layer<S> for StepLayer<T> {
    type Service = StepService<T, S>;

    fn layer(&self, next: S) -> Self::Service {
        StepService(Arc::new((self.0.clone(), next)))
    }
}

/// A step with the service inside it. Cloning is one reference count.
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

    // Each step polls the service inside it with `oneshot`.
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
