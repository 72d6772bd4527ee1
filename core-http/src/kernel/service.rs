//! A service: its table of endpoints as a `tower::Service`.

use std::collections::BTreeSet;
use std::convert::Infallible;
use std::sync::Arc;
use std::task::{Context as TaskContext, Poll};

use bytes::{Buf, Bytes};
use core_domain::gateway::TrustedProxies;
use futures_util::future::BoxFuture;
use http::{Method, Request, Response};
use http_body_util::BodyExt;

use super::app::App;
use super::body::Body;
use super::body_error::BoxError;
use super::cors::CorsPolicy;
use super::endpoint::Endpoint;
use super::error_page::ErrorPages;
use super::identify::{Identify, ServiceKeyOnly};
use super::inner::Inner;
use super::openapi::{self, OpenApi};
use super::rate_limit::RateLimits;
use super::router::{Mount, Router};
use super::service_error::ServiceError;
use super::{admission, health};

/// A service, ready to be called: in process, or behind any server that takes tower services. Cheap to clone.
#[derive(Clone, Debug)]
pub struct Service(Arc<Inner>);

/// A service being put together.
#[derive(Debug)]
pub struct ServiceBuilder {
    name: &'static str,
    app: Arc<App>,
    endpoints: Vec<Endpoint>,
    mounts: Vec<Mount>,
    identify: Arc<dyn Identify>,
    proxies: TrustedProxies,
    cors: CorsPolicy,
    better_auth: Option<&'static str>,
    session_cookie: Option<&'static str>,
    error_pages: Option<Arc<dyn ErrorPages>>,
}

impl ServiceBuilder {
    /// Answers documented paths that begin with `from` also with `to` in its place: the spelling that remains when a
    /// gateway took its prefix off. Of several mounts the first that fits a path is used.
    #[must_use]
    pub fn mount(mut self, from: &'static str, to: &'static str) -> Self {
        self.mounts.push(Mount { from, to });
        self
    }

    /// Finds out in another way who calls.
    #[must_use]
    pub fn identify(mut self, identify: Arc<dyn Identify>) -> Self {
        self.identify = identify;
        self
    }

    /// Believes what these proxies say about the client's address in `X-Forwarded-For`. Those of
    /// [`ServiceOptions`](super::ServiceOptions), when not said.
    #[must_use]
    pub fn behind(mut self, proxies: TrustedProxies) -> Self {
        self.proxies = proxies;
        self
    }

    /// Lets pages of these origins call, with their cookies: exactly as browsers write them, `https://app.example.org`.
    /// None, when not said; a gateway before the service speaks for itself.
    #[must_use]
    pub fn allowed_origins(mut self, origins: Vec<String>) -> Self {
        self.cors = CorsPolicy(origins);
        self
    }

    /// Puts `code` and `message` beside the envelope below this path, unknown routes included.
    #[must_use]
    pub fn better_auth_errors_below(mut self, path: &'static str) -> Self {
        self.better_auth = Some(path);
        self
    }

    /// Says in the description by which cookie sessions are known; none when not said.
    #[must_use]
    pub const fn session_cookie(mut self, name: &'static str) -> Self {
        self.session_cookie = Some(name);
        self
    }

    /// Shows browsers pages of errors: of rows with [`ErrorStyle::Page`](super::ErrorStyle::Page), and of paths that no row
    /// answers.
    #[must_use]
    pub fn error_pages(mut self, pages: Arc<dyn ErrorPages>) -> Self {
        self.error_pages = Some(pages);
        self
    }

    /// Checks the table and compiles it.
    ///
    /// # Errors
    /// [`ServiceError`] says which row is wrong.
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
        let openapi = OpenApi {
            service: self.name,
            session_cookie: self.session_cookie,
        };
        let openapi = openapi::document(&openapi, &self.endpoints)?.to_string();
        let rates = RateLimits::of(&self.app);
        Ok(Service(Arc::new(Inner {
            name: self.name,
            app: self.app,
            endpoints: self.endpoints,
            router,
            identify: self.identify,
            proxies: self.proxies,
            cors: self.cors,
            rates,
            better_auth: self.better_auth,
            error_pages: self.error_pages,
            openapi,
        })))
    }
}

impl Service {
    /// Begins a service of these rows.
    #[must_use]
    pub fn builder(name: &'static str, app: Arc<App>, endpoints: Vec<Endpoint>) -> ServiceBuilder {
        ServiceBuilder {
            name,
            proxies: app.options.trusted_proxies.clone(),
            app,
            endpoints,
            mounts: Vec::new(),
            identify: Arc::new(ServiceKeyOnly),
            cors: CorsPolicy::default(),
            better_auth: None,
            session_cookie: None,
            error_pages: None,
        }
    }

    /// The name of the service.
    #[must_use]
    pub fn name(&self) -> &'static str {
        self.0.name
    }

    /// The table.
    #[must_use]
    pub fn endpoints(&self) -> &[Endpoint] {
        &self.0.endpoints
    }

    /// The row that answers a method and path; `prefix` is what a gateway took off before.
    #[must_use]
    pub fn find(&self, method: &Method, path: &str, prefix: Option<&str>) -> Option<&Endpoint> {
        let row = self.0.router.find(path, prefix)?.row(method)?;
        self.0.endpoints.get(row)
    }

    /// Tells whether every service answers the path by itself, without a row.
    pub(crate) fn is_built_in(method: &Method, path: &str) -> bool {
        matches!(*method, Method::GET | Method::HEAD) && health::is_path(path)
    }

    /// The OpenAPI 3.1 description, as JSON text.
    #[must_use]
    pub fn openapi(&self) -> &str {
        &self.0.openapi
    }

    /// Answers a request.
    pub async fn answer(&self, request: Request<Body>) -> Response<Body> {
        admission::answer(&self.0, request).await
    }

    /// Not generic, so that the way of a request is compiled here, and not again in every crate that calls a service.
    fn answered(
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
        self.clone().answered(request)
    }
}

fn into_bytes(mut data: impl Buf) -> Bytes {
    data.copy_to_bytes(data.remaining())
}
