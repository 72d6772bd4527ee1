//! A service: its table of endpoints as a `tower::Service`.

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
use crate::kernel::endpoint::openapi::OpenApi;
use crate::kernel::request::body::Body;
use crate::kernel::request::body::BoxError;
use crate::kernel::request::client::forwarded_prefix;

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
        policy::answer(&self.0, request).await
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

/// Why a table of endpoints is no service.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ServiceError {
    /// Two rows answer the same method and path.
    #[error("two rows answer {0}")]
    Duplicate(String),
    /// Two rows have the same operation id.
    #[error("two rows have the operation id {0}")]
    Operation(&'static str),
    /// A path the router cannot take.
    #[error("bad path {0}")]
    Path(String),
    /// A handler takes another number of path parameters than its path has.
    #[error("{0} takes another number of parameters than its path has")]
    Params(&'static str),
    /// The schema of a shape cannot be compiled.
    #[error("schema of {0}: {1}")]
    Schema(&'static str, String),
    /// Two types of its shapes have the same name, or one looks different coming in and going out.
    #[error("two schemas are named {0}")]
    Component(String),
}

/// A service, compiled.
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
    /// The route of a request, in whatever spelling.
    pub(crate) fn route<'r>(&'r self, parts: &'r Parts) -> Option<Route<'r>> {
        let prefix = forwarded_prefix(&self.app, &self.proxies, parts);
        self.router.find(parts.uri.path(), prefix)
    }

    /// The cookies of a request for the authentication library, whose clients want those of a dead session taken away.
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

    /// The row of a route for a method.
    pub(crate) fn endpoint(&self, route: &Route<'_>, method: &Method) -> Option<&Endpoint> {
        self.endpoints.get(route.row(method)?)
    }
}

/// The largest body that is no upload, unless something else is set: 1 MiB.
pub const MAX_BODY_BYTES: usize = 1024 * 1024;

/// The settings that hold for every service of a process.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct ServiceOptions {
    /// The rate limits of clients that reach a service without a gateway. See [`RatePlan`] for the defaults.
    #[serde(skip)]
    pub rates: RatePlan,
    /// How long the rate limiter may take before the in-memory limiter is used instead. 100 milliseconds unless set.
    #[serde(skip)]
    pub limiter_timeout: Duration,
    /// The largest body that is no upload, in bytes. [`MAX_BODY_BYTES`] unless set.
    pub max_body_bytes: usize,
    /// The time limits of request bodies other than uploads: pauses of 10 seconds, 30 seconds in all, unless set.
    pub body_times: BodyTimes,
    /// Maximum number of event streams that one caller has open at this process. The API keys of a person count with the
    /// person, those of an organization with the organization. Above it, 429 `RATE_LIMITED`. Default: 16.
    pub streams_per_caller: usize,
    /// Proxies whose `X-Forwarded-For`, `X-Forwarded-Host` and `X-Forwarded-Prefix` are trusted. None unless set.
    #[serde(skip)]
    pub trusted_proxies: TrustedProxies,
    /// Origins whose pages may call when no service key is configured. None unless set.
    #[serde(skip)]
    pub allowed_origins: Origins,
    /// Which receivers webhooks are created for: those of the public internet with TLS, unless set.
    #[serde(skip)]
    pub webhooks: WebhookTargets,
    /// How much callers may create. See [`Limits`] for the defaults.
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

/// The ports and settings the services work with. One value serves all of them.
#[derive(Clone, Debug)]
pub struct App {
    /// Where records are kept. What follows from a commit is announced by the store, see
    /// [`AnnouncingStore`](core_domain::port::AnnouncingStore).
    pub store: Arc<dyn Store>,
    /// The time outside of units of work.
    pub clock: Arc<dyn Clock>,
    /// Where ids and secrets come from.
    pub entropy: Arc<dyn Entropy>,
    /// The kinds of jobs there are.
    pub kinds: Arc<Kinds>,
    /// Makes and checks password hashes.
    pub hasher: Arc<dyn PasswordHasher>,
    /// Keeps uploads until a job has used them.
    pub blobs: Arc<dyn Blobs>,
    /// Counts the requests of clients that reach a service without a gateway; share it with the gateway of the process.
    pub limiter: Arc<dyn RateLimiter>,
    /// The key of trusted callers. `None`: every call is let in as `Caller::Service` (local development).
    pub service_key: Option<ServiceKey>,
    /// Who issues service tokens: the address people reach IAM at.
    pub issuer: String,
    /// Encrypts what is stored and must be read again: answers that hold secrets, mails with links.
    pub cipher: Cipher,
    /// Signs the checkpoints of the audit.
    pub audit_key: Ed25519Private,
    /// Told when entries of the audit were sealed; whoever seals in this process announces it.
    pub sealed: SealSignal,
    /// Told when what somebody may do has changed; whoever listens to the commits of this process announces it.
    pub access: AccessSignal,
    /// The settings of every service.
    pub options: ServiceOptions,
    /// The writes with an idempotency key that run at the moment; share it between services of one process.
    pub in_flight: InFlight,
    /// The open event streams by caller; share it between services of one process.
    pub streams: OpenStreams,
    /// The last health check of the store; share it between services of one process.
    pub store_check: StoreCheck,
}

impl App {
    /// Returns whether the store works, as of a second ago at most. Completes within two seconds.
    pub(crate) async fn is_store_healthy(&self) -> bool {
        self.store_check.is_healthy(&self.store).await
    }
}
