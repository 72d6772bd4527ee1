//! Services: a table of endpoints, compiled into a `tower::Service`, with the ports and settings it runs with.
//!
//! [`ServiceBuilder`] checks and compiles the table. [`Service`] is the handle that is called. [`App`] and
//! [`ServiceOptions`] contain the ports and settings that all services of a process share.

use std::collections::BTreeSet;
use std::convert::Infallible;
use std::sync::Arc;
use std::task::{Context as TaskContext, Poll};
use std::time::Duration;

use bytes::{Buf, Bytes};
use core_domain::gateway::{Origins, RatePlan, TrustedProxies};
use core_domain::kernel::{Cipher, Clock, Ed25519Private, Entropy, Limits};
use core_domain::port::{Blobs, PasswordHasher, RateLimiter, Store};
use core_domain::shared::WebhookTargets;
use core_domain::use_case::provisioning::Kinds;
use futures_util::future::BoxFuture;
use http::header::COOKIE;
use http::request::Parts;
use http::{HeaderMap, HeaderValue, Method, Request, Response};
use http_body_util::BodyExt;
use serde::{Deserialize, Serialize};

use super::definition::Endpoint;
use super::health;
use super::health::StoreCheck;
use super::openapi;
use super::router::{Mount, Route, Router};
use crate::kernel::BodyTimes;
use crate::kernel::admission::cors::CorsPolicy;
use crate::kernel::admission::idempotency::InFlight;
use crate::kernel::admission::identify::{Identify, ServiceKeyOnly};
use crate::kernel::admission::policy;
use crate::kernel::admission::rate_limit::RateLimits;
use crate::kernel::admission::service_key::ServiceKey;
use crate::kernel::answer::envelope::ErrorPages;
use crate::kernel::answer::envelope::ErrorStyle;
use crate::kernel::answer::feed::AccessSignal;
use crate::kernel::answer::feed::OpenStreams;
use crate::kernel::answer::feed::SealSignal;
use crate::kernel::endpoint::openapi::{OpenApi, Tag};
use crate::kernel::request::body::Body;
use crate::kernel::request::body::BoxError;
use crate::kernel::request::client::forwarded_prefix;

/// A service. It can be called directly, or served by any server for tower services. Cheap to clone.
#[derive(Clone, Debug)]
pub struct Service(Arc<Inner>);

/// Configures and builds a [`Service`]. Created by [`Service::builder`].
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

    /// Describes a tag of [`tagged`](crate::kernel::tagged) in one sentence for the OpenAPI document.
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
    /// [`ServiceOptions`].
    #[must_use]
    pub fn behind(mut self, proxies: TrustedProxies) -> Self {
        self.proxies = proxies;
        self
    }

    /// Sets the origins whose pages may call the service with cookies, as browsers write them:
    /// `https://app.example.org`. Default: none. A gateway in front of the service has a separate CORS policy.
    #[must_use]
    pub fn allowed_origins(mut self, origins: Vec<String>) -> Self {
        self.cors = CorsPolicy(origins);
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

    /// Sets the HTML pages that browsers get on errors of unknown paths and of rows with [`ErrorStyle::Page`]. Default:
    /// errors are always JSON.
    #[must_use]
    pub fn error_pages(mut self, pages: Arc<dyn ErrorPages>) -> Self {
        self.error_pages = Some(pages);
        self
    }

    /// Validates and compiles the table.
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
        let openapi = OpenApi {
            service: self.name,
            purpose: self.purpose,
            tags: self.tags,
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
            cors: CorsPolicy::default(),
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

    /// Returns the OpenAPI 3.1 document, as JSON text.
    #[must_use]
    pub fn openapi(&self) -> &str {
        &self.0.openapi
    }

    /// Returns the response to a request. Every failure is a response.
    pub async fn answer(&self, request: Request<Body>) -> Response<Body> {
        policy::answer(&self.0, request).await
    }

    /// Returns the response as a boxed future. Not generic, so that the pipeline is compiled in this crate and not in
    /// every crate that calls a service.
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

/// The reason why a service cannot be built from its table.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ServiceError {
    /// Two rows have the same method and path.
    #[error("two rows have the method and path {0}")]
    Duplicate(String),
    /// Two rows have the same operation id.
    #[error("two rows have the operation id {0}")]
    Operation(&'static str),
    /// The path of a row is malformed.
    #[error("invalid path {0}")]
    Path(String),
    /// A handler has a different number of path parameters than its path.
    #[error("the handler of {0} and its path have different numbers of parameters")]
    Params(&'static str),
    /// The schema of an operation's input cannot be compiled.
    #[error("the schema of {0} cannot be compiled: {1}")]
    Schema(&'static str, String),
    /// Two types have the same schema name, or one type has different schemas as input and as output.
    #[error("two different schemas are named {0}")]
    Component(String),
}

/// The compiled service, which all clones of a [`Service`] share.
#[derive(Debug)]
pub(crate) struct Inner {
    pub(crate) name: &'static str,
    pub(crate) app: Arc<App>,
    pub(crate) endpoints: Vec<Endpoint>,
    pub(crate) router: Router,
    pub(crate) identify: Arc<dyn Identify>,
    pub(crate) proxies: TrustedProxies,
    pub(crate) cors: CorsPolicy,
    pub(crate) rates: RateLimits,
    pub(crate) better_auth: Option<&'static str>,
    pub(crate) error_pages: Option<Arc<dyn ErrorPages>>,
    pub(crate) openapi: String,
}

impl Inner {
    /// Finds the route of a request, in any spelling of its path.
    pub(crate) fn route<'r>(&'r self, parts: &'r Parts) -> Option<Route<'r>> {
        let prefix = forwarded_prefix(&self.app, &self.proxies, parts);
        self.router.find(parts.uri.path(), prefix)
    }

    /// Returns the cookies of a request to the routes of better-auth, so that an error response can clear those of an
    /// ended session. Empty for other routes.
    pub(crate) fn better_auth_cookies(
        &self,
        headers: &HeaderMap,
        style: ErrorStyle,
    ) -> Vec<HeaderValue> {
        match style {
            ErrorStyle::TopLevelCode => headers.get_all(COOKIE).iter().cloned().collect(),
            _ => Vec::new(),
        }
    }

    /// Returns the endpoint of a route and method, if there is one.
    pub(crate) fn endpoint(&self, route: &Route<'_>, method: &Method) -> Option<&Endpoint> {
        self.endpoints.get(route.row(method)?)
    }
}

/// The default maximum size of a request body that is not an upload: 1 MiB.
pub const MAX_BODY_BYTES: usize = 1024 * 1024;

/// The settings that all services of a process share.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct ServiceOptions {
    /// The rate limits of clients that reach a service without a gateway. See [`RatePlan`] for the defaults.
    #[serde(skip)]
    pub rates: RatePlan,
    /// Time limit of a call to the rate limiter, after which requests are counted in memory. Default: 100 milliseconds.
    #[serde(skip)]
    pub limiter_timeout: Duration,
    /// Maximum size of a request body that is not an upload, in bytes. Default: [`MAX_BODY_BYTES`].
    pub max_body_bytes: usize,
    /// Time limits of request bodies that are not uploads. Default: 10 seconds per pause and 30 seconds in total.
    pub body_times: BodyTimes,
    /// Maximum number of event streams that one caller can have open at this process. Further ones are refused with 429
    /// `RATE_LIMITED`. A person and their API keys share one limit, and so do all API keys of an organization. Default:
    /// 16.
    pub streams_per_caller: usize,
    /// Proxies whose `X-Forwarded-For`, `X-Forwarded-Host` and `X-Forwarded-Prefix` are trusted. Default: none.
    #[serde(skip)]
    pub trusted_proxies: TrustedProxies,
    /// Origins whose pages may call while no service key is configured. Default: none.
    #[serde(skip)]
    pub allowed_origins: Origins,
    /// The receivers for which webhooks can be created. Default: `https` URLs on the public internet.
    #[serde(skip)]
    pub webhooks: WebhookTargets,
    /// Limits on the number of records that callers create. See [`Limits`] for the defaults.
    #[serde(skip)]
    pub limits: Arc<Limits>,
}

impl Default for ServiceOptions {
    fn default() -> Self {
        Self {
            rates: RatePlan::default(),
            limiter_timeout: Duration::from_millis(100),
            max_body_bytes: MAX_BODY_BYTES,
            body_times: BodyTimes::default(),
            streams_per_caller: 16,
            trusted_proxies: TrustedProxies::default(),
            allowed_origins: Origins::default(),
            webhooks: WebhookTargets::default(),
            limits: Arc::default(),
        }
    }
}

/// The ports and settings of the services. All services of a process share one value.
#[derive(Clone, Debug)]
pub struct App {
    /// The store of all records. It announces the effects of a commit, see
    /// [`AnnouncingStore`](core_domain::port::AnnouncingStore).
    pub store: Arc<dyn Store>,
    /// The clock for code outside of units of work.
    pub clock: Arc<dyn Clock>,
    /// The source of random bytes for ids and secrets.
    pub entropy: Arc<dyn Entropy>,
    /// The registered kinds of jobs.
    pub kinds: Arc<Kinds>,
    /// Creates and verifies password hashes.
    pub hasher: Arc<dyn PasswordHasher>,
    /// Stores uploads until a job has used them.
    pub blobs: Arc<dyn Blobs>,
    /// Counts the requests of clients that do not come through a gateway. Share it with the gateway of the process.
    pub limiter: Arc<dyn RateLimiter>,
    /// The key of trusted callers. `None` accepts every request without a credential as `Caller::Service`, for local
    /// development.
    pub service_key: Option<ServiceKey>,
    /// The issuer of service tokens: the public URL of IAM.
    pub issuer: String,
    /// Encrypts stored data that must be read again: responses with secrets, mails with links.
    pub cipher: Cipher,
    /// Signs the checkpoints of the audit log.
    pub audit_key: Ed25519Private,
    /// Signals that this process has sealed audit entries.
    pub sealed: SealSignal,
    /// Signals changes of a caller's access that this process has committed.
    pub access: AccessSignal,
    /// The settings of all services.
    pub options: ServiceOptions,
    /// The idempotency keys of writes in progress. Share one value between the services of a process.
    pub in_flight: InFlight,
    /// The number of open event streams by caller. Share one value between the services of a process.
    pub streams: OpenStreams,
    /// The last health check of the store. Share one value between the services of a process.
    pub store_check: StoreCheck,
}

impl App {
    /// Returns whether the store is healthy, according to a check that is at most one second old. Completes within two
    /// seconds.
    pub(crate) async fn is_store_healthy(&self) -> bool {
        self.store_check.is_healthy(&self.store).await
    }
}
