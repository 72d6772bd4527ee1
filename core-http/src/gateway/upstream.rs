//! The services that a gateway forwards requests to.

use core_domain::kernel::SuiteService;
use std::collections::HashMap;
use std::convert::Infallible;
use std::sync::Arc;

use async_trait::async_trait;
use core_domain::gateway::Route;
use futures_util::TryFutureExt;
use futures_util::future::BoxFuture;
use http::{Method, Request, Response};
use tower::{Service, ServiceExt};

use super::routes::{RouteClass, RouteClasses};
use crate::kernel::{self, Body};

/// The reason why an upstream sent no response. A response of any status is not an error. The texts are for the log.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum UpstreamError {
    /// The upstream could not be reached, or closed the connection before it responded: 502.
    #[error("the upstream could not be reached, or closed the connection: {0}")]
    Broken(String),
    /// The upstream did not respond in time: 504.
    #[error("the upstream did not respond in time: {0}")]
    Timeout(String),
    /// The upstream cannot accept requests at the moment: 503.
    #[error("the upstream accepts no requests: {0}")]
    Unavailable(String),
}

/// A service that a gateway forwards requests to.
///
/// The request has the path without the gateway's prefix, and only headers that a service may receive. Its extensions
/// are the `Arc<`[`Caller`](core_domain::kernel::Caller)`>`, the [`ForwardedPrefix`](crate::kernel::ForwardedPrefix),
/// the [`ClientIp`](crate::kernel::ClientIp) and [`ViaGateway`](crate::kernel::ViaGateway).
#[async_trait]
pub trait Upstream: Send + Sync + std::fmt::Debug {
    /// Sends a request and returns the response as soon as its head has arrived. Both bodies are streamed.
    ///
    /// # Errors
    /// [`UpstreamError`] if there is no response.
    async fn send(&self, request: Request<Body>) -> Result<Response<Body>, UpstreamError>;

    /// Reports that the gateway has given up waiting for a response to [`Self::send`]. The default does nothing.
    fn report_timeout(&self) {}

    /// Returns the routes of the service, if they are known. Otherwise each path is counted separately, in the default
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

type ResponseFuture = BoxFuture<'static, Result<Response<Body>, UpstreamError>>;
type Call = dyn Fn(Request<Body>) -> ResponseFuture + Send + Sync;

impl InProcess {
    /// Creates an upstream from a service of this crate. Its endpoint table defines the rate classes.
    #[must_use]
    pub fn service(service: kernel::Service) -> Self {
        let routes = Arc::new(service.clone());
        let call = move |request| -> ResponseFuture {
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

    /// Creates an upstream from any tower service. Its routes are unknown.
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
        let call = move |request| -> ResponseFuture {
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

// Without the `async_trait` macro, so that the future of the service is not boxed twice.
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

/// The result of looking up the route of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum KnownRoute<'r> {
    /// The service has this route.
    Listed(RouteClass<'r>),
    /// The routes of the service are unknown.
    NoTable,
    /// The service does not have such a route.
    Unknown,
}

/// The services by name. Requests to a service that is missing get 503.
#[derive(Clone, Debug, Default)]
pub struct Upstreams(HashMap<SuiteService, Arc<dyn Upstream>>);

impl Upstreams {
    /// Creates an empty collection.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a service, or replaces the service with the same name.
    #[must_use]
    pub fn with(mut self, name: SuiteService, upstream: impl Upstream + 'static) -> Self {
        self.0.insert(name, Arc::new(upstream));
        self
    }

    /// Looks up the route of a request.
    pub(crate) fn route(&self, method: &Method, route: &Route) -> KnownRoute<'_> {
        let Some(upstream) = self.get(route.service) else {
            return KnownRoute::Unknown;
        };
        let Some(routes) = upstream.routes() else {
            return KnownRoute::NoTable;
        };
        routes
            .class(method, route)
            .map_or(KnownRoute::Unknown, KnownRoute::Listed)
    }

    /// Returns the names of the services, in the order of the interface.
    pub(crate) fn names(&self) -> impl Iterator<Item = SuiteService> {
        let names = SuiteService::ALL.iter().copied();
        names.filter(|name| self.0.contains_key(name))
    }

    pub(crate) fn get(&self, name: SuiteService) -> Option<&Arc<dyn Upstream>> {
        self.0.get(&name)
    }
}
