//! Services: a table of endpoints, compiled into a `tower::Service`.
//!
//! [`ServiceBuilder`] checks and compiles the table. [`Service`] is the handle that is called.

use std::collections::BTreeSet;
use std::convert::Infallible;
use std::sync::{Arc, OnceLock};
use std::task::{Context as TaskContext, Poll};

use bytes::{Buf, Bytes};
use core_domain::gateway::TrustedProxies;
use futures_util::future::BoxFuture;
use http::{Method, Request, Response};
use http_body_util::BodyExt;

use super::compiled::CompiledService;
use super::definition::Endpoint;
use super::measurement::ServiceMetrics;
use super::openapi::{OpenApi, Tag};
use super::router::{Mount, Router};
use super::service_error::ServiceError;
use super::{health, policy};
use crate::kernel::admission::cors::CorsPolicy;
use crate::kernel::admission::identify::{Identify, ServiceKeyOnly};
use crate::kernel::admission::rate_limit::RateLimits;
use crate::kernel::answer::envelope::ErrorPages;
use crate::kernel::process::app::App;
use crate::kernel::request::body::{Body, BoxError};

/// A service. It can be called directly, or served by any server for tower services. Cheap to clone.
#[derive(Clone, Debug)]
pub struct Service(Arc<CompiledService>);

/// Configures and builds a [`Service`]. Created by [`Service::builder`].
#[derive(Debug)]
pub struct ServiceBuilder {
    name: &'static str,
    app: Arc<App>,
    endpoints: Vec<Endpoint>,
    mounts: Vec<Mount>,
    identify: Arc<dyn Identify>,
    proxies: TrustedProxies,
    cors: Option<CorsPolicy>,
    better_auth: Option<&'static str>,
    purpose: &'static str,
    tags: Vec<Tag>,
    session_cookie: Option<&'static str>,
    error_pages: Option<Arc<dyn ErrorPages>>,
}

impl ServiceBuilder {
    /// Sets the purpose of the service for the OpenAPI document: one or two sentences of Markdown. Default: none.
    #[must_use]
    pub const fn purpose(mut self, purpose: &'static str) -> Self {
        self.purpose = purpose;
        self
    }

    /// Describes a tag of [`with_tag`](crate::kernel::with_tag) in one sentence for the OpenAPI document.
    #[must_use]
    pub fn tag(mut self, name: &'static str, description: &'static str) -> Self {
        self.tags.push(Tag { name, description });
        self
    }

    /// Makes documented paths that start with `from` also available with `to` in its place. This is the spelling that
    /// remains after a gateway has removed its prefix. Of several mounts, the first one that matches a path applies.
    #[must_use]
    pub fn mount(mut self, from: &'static str, to: &'static str) -> Self {
        self.mounts.push(Mount { from, to });
        self
    }

    /// Sets how callers are authenticated. Default: [`ServiceKeyOnly`].
    #[must_use]
    pub fn identify(mut self, identify: Arc<dyn Identify>) -> Self {
        self.identify = identify;
        self
    }

    /// Sets the proxies whose forwarding headers, such as `X-Forwarded-For`, are trusted. Default: those of
    /// [`ServiceOptions`](crate::kernel::ServiceOptions).
    #[must_use]
    pub fn behind(mut self, proxies: TrustedProxies) -> Self {
        self.proxies = proxies;
        self
    }

    /// Sets the origins whose pages may call the service with cookies, as browsers write them:
    /// `https://app.example.org`. Default: none. A gateway in front of the service has a separate CORS policy.
    #[must_use]
    pub fn allowed_origins(mut self, origins: Vec<String>) -> Self {
        self.cors = CorsPolicy::of_service(origins);
        self
    }

    /// Adds top-level `code` and `message` fields to errors of all paths below `path`, also of unknown paths.
    #[must_use]
    pub fn better_auth_errors_below(mut self, path: &'static str) -> Self {
        self.better_auth = Some(path);
        self
    }

    /// Sets the name of the session cookie for the OpenAPI document. Default: none.
    #[must_use]
    pub const fn session_cookie(mut self, name: &'static str) -> Self {
        self.session_cookie = Some(name);
        self
    }

    /// Sets the HTML pages that browsers get on errors of unknown paths and of rows with
    /// [`ErrorStyle::Page`](crate::kernel::ErrorStyle::Page). Default:
    /// errors are always JSON.
    #[must_use]
    pub fn error_pages(mut self, pages: Arc<dyn ErrorPages>) -> Self {
        self.error_pages = Some(pages);
        self
    }

    /// Validates and compiles the table. [`Service::openapi`] finds two more mistakes in a table, when it describes it.
    ///
    /// # Errors
    /// Returns a [`ServiceError`] that names the inconsistent row.
    pub fn build(self) -> Result<Service, ServiceError> {
        let mut operations = BTreeSet::new();
        for endpoint in &self.endpoints {
            let operation = endpoint.operation();
            if !operations.insert(operation) {
                return Err(ServiceError::Operation(operation));
            }
            let params = endpoint.shapes()?.params;
            let mut paths = endpoint.paths();
            if paths.any(|path| path.matches('{').count() != params) {
                return Err(ServiceError::Params(operation));
            }
        }
        let router = Router::of(&self.endpoints, &self.mounts)?;
        let about = OpenApi {
            service: self.name,
            purpose: self.purpose,
            tags: self.tags,
            session_cookie: self.session_cookie,
        };
        let rates = RateLimits::of(&self.app, self.name);
        let metrics = ServiceMetrics::new(&self.app.metrics, self.name, &self.endpoints);
        Ok(Service(Arc::new(CompiledService {
            name: self.name,
            app: self.app,
            endpoints: self.endpoints,
            router,
            identify: self.identify,
            proxies: self.proxies,
            cors: self.cors,
            rates,
            metrics,
            better_auth: self.better_auth,
            error_pages: self.error_pages,
            about,
            openapi: OnceLock::new(),
        })))
    }
}

impl Service {
    /// Starts building a service with these endpoints. The name appears in health checks and the OpenAPI document, and
    /// is the audience of service tokens.
    #[must_use]
    pub fn builder(name: &'static str, app: Arc<App>, endpoints: Vec<Endpoint>) -> ServiceBuilder {
        ServiceBuilder {
            name,
            proxies: app.options.trusted_proxies.clone(),
            app,
            endpoints,
            mounts: Vec::new(),
            identify: Arc::new(ServiceKeyOnly),
            cors: None,
            better_auth: None,
            purpose: "",
            tags: Vec::new(),
            session_cookie: None,
            error_pages: None,
        }
    }

    /// Returns the name of the service.
    #[must_use]
    pub fn name(&self) -> &'static str {
        self.0.name
    }

    /// Returns the endpoint table.
    #[must_use]
    pub fn endpoints(&self) -> &[Endpoint] {
        &self.0.endpoints
    }

    /// Finds the endpoint of a method and path; `prefix` is what a gateway has removed from the path.
    #[must_use]
    pub fn find(&self, method: &Method, path: &str, prefix: Option<&str>) -> Option<&Endpoint> {
        let row = self.0.router.find(path, prefix)?.row(method)?;
        self.0.endpoints.get(row)
    }

    /// Returns whether every service responds to this method and path without a row.
    pub(crate) fn is_built_in(method: &Method, path: &str) -> bool {
        matches!(*method, Method::GET | Method::HEAD) && health::is_path(path)
    }

    /// Returns the OpenAPI 3.1 document, as JSON text. The first call creates it, also that of a request.
    ///
    /// # Errors
    /// - [`ServiceError::Component`] if two types of the table have the same schema name.
    /// - [`ServiceError::Schema`] if a schema cannot be compiled.
    pub fn openapi(&self) -> Result<Bytes, ServiceError> {
        self.0.openapi()
    }

    /// Returns the response to a request. Every failure is a response.
    pub async fn answer(&self, request: Request<Body>) -> Response<Body> {
        policy::answer(&self.0, request).await
    }

    /// Returns the response as a boxed future. Not generic, so that the pipeline is compiled in this crate and not in
    /// every crate that calls a service.
    fn answer_boxed(
        self,
        request: Request<Body>,
    ) -> BoxFuture<'static, Result<Response<Body>, Infallible>> {
        Box::pin(async move { Ok(self.answer(request).await) })
    }
}

impl<B> tower::Service<Request<B>> for Service
where
    B: http_body::Body + Send + 'static,
    B::Data: Send,
    B::Error: Into<BoxError>,
{
    type Response = Response<Body>;
    type Error = Infallible;
    type Future = BoxFuture<'static, Result<Response<Body>, Infallible>>;

    fn poll_ready(&mut self, _: &mut TaskContext<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<B>) -> Self::Future {
        let request = request.map(|body| match Body::try_from_own(body) {
            Ok(body) => body,
            Err(body) => Body::unless_empty(body.map_frame(|frame| frame.map_data(into_bytes))),
        });
        self.clone().answer_boxed(request)
    }
}

fn into_bytes(mut data: impl Buf) -> Bytes {
    data.copy_to_bytes(data.remaining())
}
