//! The services behind the gateway.

use std::collections::HashMap;
use std::convert::Infallible;
use std::sync::Arc;

use async_trait::async_trait;
use core_domain::gateway::ServiceName;
use futures_util::future::BoxFuture;
use http::{Request, Response};
use tower::util::BoxCloneSyncService;
use tower::{Service, ServiceExt};

use crate::kernel::Body;

/// Why an upstream gave no answer. An answer it did give, whatever its status, is no error. The texts are for the log.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum UpstreamError {
    /// It could not be reached, or broke off before it answered: 502.
    #[error("the upstream broke off: {0}")]
    Broken(String),
    /// It did not answer in time: 504.
    #[error("the upstream did not answer in time: {0}")]
    Timeout(String),
    /// It cannot take requests at the moment: 503.
    #[error("the upstream takes no requests: {0}")]
    Unavailable(String),
}

/// A service behind the gateway.
///
/// The request it gets is the service's own: the path without the prefix, only the headers a service may see, and in
/// its extensions the [`Caller`](core_domain::kernel::Caller), the [`ForwardedPrefix`](crate::kernel::ForwardedPrefix) and
/// the [`ClientIp`](crate::kernel::ClientIp).
#[async_trait]
pub trait Upstream: Send + Sync + std::fmt::Debug {
    /// Sends a request and gives back the head of the answer; both bodies stream.
    ///
    /// # Errors
    /// [`UpstreamError`] when there is no answer.
    async fn send(&self, request: Request<Body>) -> Result<Response<Body>, UpstreamError>;
}

/// A service in this process, called directly.
#[derive(Clone, Debug)]
pub struct InProcess(BoxCloneSyncService<Request<Body>, Response<Body>, Infallible>);

impl InProcess {
    /// Calls this service.
    #[must_use]
    pub fn new<S>(service: S) -> Self
    where
        S: Service<Request<Body>, Response = Response<Body>, Error = Infallible>
            + Clone
            + Send
            + Sync
            + 'static,
        S::Future: Send + 'static,
    {
        Self(BoxCloneSyncService::new(service))
    }

    // Boxed here: inside an async block the compiler loses track of the body's error type and no longer sees `Send`.
    fn call(
        &self,
        request: Request<Body>,
    ) -> BoxFuture<'static, Result<Response<Body>, Infallible>> {
        Box::pin(self.0.clone().oneshot(request))
    }
}

#[async_trait]
impl Upstream for InProcess {
    async fn send(&self, request: Request<Body>) -> Result<Response<Body>, UpstreamError> {
        match self.call(request).await {
            Ok(response) => Ok(response),
            Err(never) => match never {},
        }
    }
}

/// Which service is where. A service that is missing answers 503.
#[derive(Clone, Debug, Default)]
pub struct Upstreams(HashMap<ServiceName, Arc<dyn Upstream>>);

impl Upstreams {
    /// No services yet.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a service, or puts another one in its place.
    #[must_use]
    pub fn with(mut self, name: ServiceName, upstream: impl Upstream + 'static) -> Self {
        self.0.insert(name, Arc::new(upstream));
        self
    }

    pub(crate) fn get(&self, name: ServiceName) -> Option<&Arc<dyn Upstream>> {
        self.0.get(&name)
    }
}
