//! The services behind the gateway.

use std::collections::HashMap;
use std::convert::Infallible;
use std::sync::Arc;

use async_trait::async_trait;
use core_domain::gateway::{Route, ServiceName};
use futures_util::TryFutureExt;
use futures_util::future::BoxFuture;
use http::{Method, Request, Response};
use tower::{Service, ServiceExt};

use super::routes::{RouteClass, RouteClasses};
use crate::kernel::{self, Body};

/// Why there is no answer of an upstream. An answer of any status is not an error. The texts are for the log.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum UpstreamError {
    /// It could not be reached, or closed the connection before it answered: 502.
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
/// its extensions the `Arc<`[`Caller`](core_domain::kernel::Caller)`>`, the [`ForwardedPrefix`](crate::kernel::ForwardedPrefix),
/// the [`ClientIp`](crate::kernel::ClientIp) and [`ViaGateway`](crate::kernel::ViaGateway).
#[async_trait]
pub trait Upstream: Send + Sync + std::fmt::Debug {
    /// Sends a request and returns the head of the answer; both bodies stream.
    ///
    /// # Errors
    /// [`UpstreamError`] when there is no answer.
    async fn send(&self, request: Request<Body>) -> Result<Response<Body>, UpstreamError>;

    /// The service's routes, when they are known. Otherwise each of its paths is counted by itself, as one of the default
    /// class.
    fn routes(&self) -> Option<&dyn RouteClasses> {
        None
    }
}

/// A service in this process, called directly.
#[derive(Clone)]
pub struct InProcess {
    call: Arc<Call>,
    routes: Option<Arc<dyn RouteClasses>>,
}

type Answered = BoxFuture<'static, Result<Response<Body>, UpstreamError>>;
type Call = dyn Fn(Request<Body>) -> Answered + Send + Sync;

impl InProcess {
    /// Calls a service of this crate; its endpoint table has the rate classes.
    #[must_use]
    pub fn service(service: kernel::Service) -> Self {
        let routes = Arc::new(service.clone());
        let call = move |request| -> Answered {
            let service = service.clone();
            Box::pin(async move { Ok(service.answer(request).await) })
        };
        Self {
            call: Arc::new(call),
            routes: Some(routes),
        }
    }

    /// Sets the routes of the service.
    #[must_use]
    pub fn with_routes(mut self, routes: Arc<dyn RouteClasses>) -> Self {
        self.routes = Some(routes);
        self
    }

    /// Calls any service; its routes are unknown.
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
        let call = move |request| -> Answered {
            let answered = service.clone().oneshot(request);
            Box::pin(answered.map_err(|never| match never {}))
        };
        Self {
            call: Arc::new(call),
            routes: None,
        }
    }
}

impl std::fmt::Debug for InProcess {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("InProcess")
            .field("routes", &self.routes)
            .finish_non_exhaustive()
    }
}

// Written out, so that the service's future is not boxed twice.
impl Upstream for InProcess {
    fn send<'s, 'f>(
        &'s self,
        request: Request<Body>,
    ) -> BoxFuture<'f, Result<Response<Body>, UpstreamError>>
    where
        's: 'f,
        Self: 'f,
    {
        (self.call)(request)
    }

    fn routes(&self) -> Option<&dyn RouteClasses> {
        self.routes.as_deref()
    }
}

/// What is known of the route a request is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum KnownRoute<'r> {
    /// The service has it.
    Listed(RouteClass<'r>),
    /// The routes of the service are unknown.
    Unlisted,
    /// The service does not have it.
    Unknown,
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

    /// Adds a service, or replaces it.
    #[must_use]
    pub fn with(mut self, name: ServiceName, upstream: impl Upstream + 'static) -> Self {
        self.0.insert(name, Arc::new(upstream));
        self
    }

    /// What is known of the route.
    pub(crate) fn route(&self, method: &Method, route: &Route) -> KnownRoute<'_> {
        let Some(upstream) = self.get(route.service) else {
            return KnownRoute::Unknown;
        };
        let Some(routes) = upstream.routes() else {
            return KnownRoute::Unlisted;
        };
        routes
            .class(method, route)
            .map_or(KnownRoute::Unknown, KnownRoute::Listed)
    }

    pub(crate) fn get(&self, name: ServiceName) -> Option<&Arc<dyn Upstream>> {
        self.0.get(&name)
    }
}
