//! A gateway with a fake IAM and fake services that record their requests.

use std::collections::HashMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;
use core_domain::gateway::Credential;
use core_domain::kernel::Secret;
use core_domain::kernel::{Caller, SuiteService};
use core_domain::port::{RateLimiter, Store};
use core_domain::testing::{ManualClock, SeededEntropy};
use core_http::gateway::{
    Authority, AuthorityError, Gateway, GatewayConfig, Ports, ResolvedCredential, RouteClasses,
    Upstream, UpstreamError, Upstreams, UsageMeter,
};
use core_http::kernel::metrics::Metrics;
use core_http::kernel::{Body, MemoryRateLimiter, PeerAddr, StoreCheck, bytes_body, empty_body};
use futures_util::future::BoxFuture;
use http::{Extensions, HeaderMap, HeaderValue, Method, Request, Response};
use http_body_util::BodyExt;
use tower::ServiceExt;

use super::captured;
use crate::world::{Answer, manual_clock};

pub(super) const KEY: &str = "service-key-for-tests";
pub(super) const SESSION: &str = "a-session-token";
pub(super) const API_KEY: &str = "core_an-api-key";

/// A request as a service received it.
#[derive(Clone, Debug)]
pub(super) struct ReceivedRequest {
    pub(super) service: SuiteService,
    pub(super) method: Method,
    pub(super) uri: String,
    pub(super) headers: HeaderMap,
    pub(super) extensions: Extensions,
    pub(super) body: Bytes,
}

impl ReceivedRequest {
    /// Returns a header, or an empty string if it is missing.
    pub(super) fn header(&self, name: &str) -> &str {
        let value = self.headers.get(name);
        value.map_or("", |value| value.to_str().unwrap())
    }

    pub(super) fn caller(&self) -> &Caller {
        self.extensions.get::<Arc<Caller>>().unwrap()
    }
}

pub(super) type Reply =
    Arc<dyn Fn() -> BoxFuture<'static, Result<Response<Body>, UpstreamError>> + Send + Sync>;

/// A service that records its requests.
pub(super) struct FakeService {
    name: SuiteService,
    routes: Option<Arc<dyn RouteClasses>>,
    seen: Arc<Mutex<Vec<ReceivedRequest>>>,
    reply: Arc<Mutex<Reply>>,
}

impl std::fmt::Debug for FakeService {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("FakeService")
    }
}

#[async_trait]
impl Upstream for FakeService {
    async fn send(&self, request: Request<Body>) -> Result<Response<Body>, UpstreamError> {
        let (parts, body) = request.into_parts();
        let body = body
            .collect()
            .await
            .map_err(|error| UpstreamError::Broken(error.to_string()))?;
        self.seen.lock().unwrap().push(ReceivedRequest {
            service: self.name,
            method: parts.method,
            uri: parts.uri.to_string(),
            headers: parts.headers,
            extensions: parts.extensions,
            body: body.to_bytes(),
        });
        let reply = Arc::clone(&self.reply.lock().unwrap());
        reply().await
    }

    fn routes(&self) -> Option<&dyn RouteClasses> {
        self.routes.as_deref()
    }
}

/// The reply of the fake IAM to the lookup of a credential.
#[derive(Clone, Debug)]
pub(super) enum FakeReply {
    Resolved(Box<ResolvedCredential>),
    Unavailable,
    Never,
}

/// A fake of the part of IAM that the gateway uses. It refuses unknown credentials.
#[derive(Debug, Default)]
pub(super) struct FakeIam {
    replies: Mutex<HashMap<String, FakeReply>>,
    asked: AtomicUsize,
}

impl FakeIam {
    pub(super) fn reply_to(&self, secret: &str, reply: FakeReply) {
        self.replies
            .lock()
            .unwrap()
            .insert(secret.to_owned(), reply);
    }

    pub(super) fn forget(&self, secret: &str) {
        self.replies.lock().unwrap().remove(secret);
    }

    pub(super) fn lookups(&self) -> usize {
        self.asked.load(Ordering::SeqCst)
    }
}

#[async_trait]
impl Authority for FakeIam {
    async fn resolve(&self, credential: &Credential) -> Result<ResolvedCredential, AuthorityError> {
        self.asked.fetch_add(1, Ordering::SeqCst);
        let (Credential::Bearer(secret) | Credential::ApiKey(secret)) = credential;
        let reply = self.replies.lock().unwrap().get(secret.expose()).cloned();
        // Yields so that another request can run in between, as with a real store.
        tokio::task::yield_now().await;
        match reply {
            Some(FakeReply::Resolved(resolved)) => Ok(*resolved),
            Some(FakeReply::Unavailable) => {
                Err(AuthorityError::Unavailable("the store is away".to_owned()))
            }
            Some(FakeReply::Never) => std::future::pending().await,
            None => Err(AuthorityError::Refused),
        }
    }
}

/// Returns the identity of a signed-in owner of the platform `p-1`.
pub(super) fn owner() -> ResolvedCredential {
    ResolvedCredential {
        caller: Arc::new(crate::world::owner("p-1")),
        suspended: false,
        expires_at: None,
        requests_per_minute: None,
    }
}

/// Returns the identity of the API key `k-1` of the platform `p-1`, with this limit of requests per minute.
pub(super) fn api_key_identity(requests_per_minute: u32) -> ResolvedCredential {
    ResolvedCredential {
        caller: Arc::new(crate::world::api_key_named("k-1", "p-1")),
        requests_per_minute: Some(requests_per_minute),
        ..owner()
    }
}

pub(super) fn resolves_to(resolved: ResolvedCredential) -> FakeReply {
    FakeReply::Resolved(Box::new(resolved))
}

/// A gateway with its fake IAM, its fake services and its clock.
pub(super) struct World {
    pub(super) gateway: Gateway,
    pub(super) clock: Arc<ManualClock>,
    pub(super) iam: Arc<FakeIam>,
    seen: Arc<Mutex<Vec<ReceivedRequest>>>,
    reply: Arc<Mutex<Reply>>,
}

pub(super) fn config() -> GatewayConfig {
    GatewayConfig {
        service_key: Some(Secret::new(KEY)),
        ..GatewayConfig::default()
    }
}

impl World {
    pub(super) fn new() -> Self {
        Self::with(config())
    }

    pub(super) fn with(config: GatewayConfig) -> Self {
        Self::with_ports(config, Arc::new(MemoryRateLimiter::new()), None)
    }

    pub(super) fn with_limiter(config: GatewayConfig, limiter: Arc<dyn RateLimiter>) -> Self {
        Self::with_ports(config, limiter, None)
    }

    /// Creates a gateway in front of services that all have these routes.
    pub(super) fn with_routes(config: GatewayConfig, routes: impl RouteClasses + 'static) -> Self {
        let limiter = Arc::new(MemoryRateLimiter::new());
        Self::with_ports(config, limiter, Some(Arc::new(routes)))
    }

    pub(super) fn with_ports(
        config: GatewayConfig,
        limiter: Arc<dyn RateLimiter>,
        routes: Option<Arc<dyn RouteClasses>>,
    ) -> Self {
        Self::with_all_ports(config, limiter, routes, None, None)
    }

    /// Creates a gateway that meters requests.
    pub(super) fn with_meter(meter: Arc<dyn UsageMeter>) -> Self {
        let limiter = Arc::new(MemoryRateLimiter::new());
        Self::with_all_ports(config(), limiter, None, Some(meter), None)
    }

    /// Creates a gateway that uses this store, or whose services use it in the same process.
    pub(super) fn with_store(store: Arc<dyn Store>) -> Self {
        let limiter = Arc::new(MemoryRateLimiter::new());
        let check = Some(StoreCheck::new(store));
        Self::with_all_ports(config(), limiter, None, None, check)
    }

    fn with_all_ports(
        config: GatewayConfig,
        limiter: Arc<dyn RateLimiter>,
        routes: Option<Arc<dyn RouteClasses>>,
        meter: Option<Arc<dyn UsageMeter>>,
        store_check: Option<StoreCheck>,
    ) -> Self {
        captured::start();
        let clock = manual_clock();
        let iam = Arc::new(FakeIam::default());
        iam.reply_to(SESSION, resolves_to(owner()));
        iam.reply_to(API_KEY, resolves_to(owner()));
        let seen = Arc::new(Mutex::new(Vec::new()));
        let reply: Arc<Mutex<Reply>> =
            Arc::new(Mutex::new(reply_with(|| Response::new(bytes_body("fine")))));
        let upstreams = SuiteService::ALL
            .iter()
            .filter(|name| **name != SuiteService::Billing)
            .fold(Upstreams::new(), |upstreams, name| {
                upstreams.with(
                    *name,
                    FakeService {
                        name: *name,
                        routes: routes.clone(),
                        seen: Arc::clone(&seen),
                        reply: Arc::clone(&reply),
                    },
                )
            });
        let ports = Ports {
            authority: Arc::clone(&iam) as Arc<dyn Authority>,
            upstreams,
            limiter,
            clock: Arc::clone(&clock) as _,
            entropy: Arc::new(SeededEntropy::new(1)),
            meter,
            store_check,
            metrics: Metrics::new(),
            tracer: None,
        };
        Self {
            gateway: Gateway::new(config, ports).unwrap(),
            clock,
            iam,
            seen,
            reply,
        }
    }

    /// Sets the reply of all services.
    pub(super) fn set_reply(&self, reply: Reply) {
        *self.reply.lock().unwrap() = reply;
    }

    pub(super) async fn send(&self, request: Request<Body>) -> Answer {
        let response = self.gateway.clone().oneshot(request).await.unwrap();
        assert_valid_response(Answer::of(response).await)
    }

    /// Returns the error with which the gateway refuses the configuration. It starts with the name of the setting.
    pub(super) fn refused_setting(config: GatewayConfig) -> String {
        let world = Self::new();
        let ports = Ports {
            authority: Arc::clone(&world.iam) as Arc<dyn Authority>,
            upstreams: Upstreams::new(),
            limiter: Arc::new(MemoryRateLimiter::new()),
            clock: Arc::clone(&world.clock) as _,
            entropy: Arc::new(SeededEntropy::new(1)),
            meter: None,
            store_check: None,
            metrics: Metrics::new(),
            tracer: None,
        };
        Gateway::new(config, ports).unwrap_err().to_string()
    }

    /// Sends a GET request with the session token.
    pub(super) async fn get(&self, path: &str) -> Answer {
        self.send(session_request(path).build()).await
    }

    pub(super) fn received_requests(&self) -> Vec<ReceivedRequest> {
        self.seen.lock().unwrap().clone()
    }

    /// Returns the single request that reached a service.
    pub(super) fn single_request(&self) -> ReceivedRequest {
        let seen = self.received_requests();
        assert_eq!(seen.len(), 1, "{seen:?}");
        seen.into_iter().next().unwrap()
    }
}

pub(super) fn reply_with(make: impl Fn() -> Response<Body> + Send + Sync + 'static) -> Reply {
    Arc::new(move || Box::pin(std::future::ready(Ok(make()))))
}

pub(super) fn failing_reply(make: impl Fn() -> UpstreamError + Send + Sync + 'static) -> Reply {
    Arc::new(move || Box::pin(std::future::ready(Err(make()))))
}

pub(super) fn delayed_reply(delay: Duration) -> Reply {
    Arc::new(move || {
        Box::pin(async move {
            tokio::time::sleep(delay).await;
            Ok(Response::new(bytes_body("late")))
        })
    })
}

/// Asserts the rules for every response: only `set-cookie` may be repeated, and an error has a complete envelope.
fn assert_valid_response(answer: Answer) -> Answer {
    for name in answer.headers.keys() {
        let lines = answer.headers.get_all(name).iter().count();
        assert!(lines == 1 || name == "set-cookie", "{name} is repeated");
    }
    let error = &answer.json["error"];
    if !error.is_null() {
        assert_eq!(answer.header("content-type"), "application/json");
        assert_eq!(error["requestId"], answer.header("x-request-id"));
        assert!(error["details"].is_object(), "{error}");
        assert_ne!(error["message"].as_str(), Some(""));
    }
    answer
}

/// A builder of requests to the gateway.
#[derive(Debug)]
pub(super) struct Req(Request<Body>);

pub(super) fn anonymous(path: &str) -> Req {
    let mut request = Request::new(empty_body());
    *request.uri_mut() = path.parse().unwrap();
    Req(request)
        .peer("203.0.113.9:4711")
        .header("host", "api.example.org")
}

pub(super) fn session_request(path: &str) -> Req {
    anonymous(path).header("authorization", &format!("Bearer {SESSION}"))
}

impl Req {
    pub(super) fn method(mut self, method: Method) -> Self {
        *self.0.method_mut() = method;
        self
    }

    pub(super) fn peer(mut self, peer: &str) -> Self {
        self.0
            .extensions_mut()
            .insert(PeerAddr(peer.parse().unwrap()));
        self
    }

    /// Removes the peer address, as in a request made within the process.
    pub(super) fn without_peer(mut self) -> Self {
        self.0.extensions_mut().remove::<PeerAddr>();
        self
    }

    pub(super) fn extension<T: Clone + Send + Sync + 'static>(mut self, value: T) -> Self {
        self.0.extensions_mut().insert(value);
        self
    }

    /// Appends a header line.
    pub(super) fn header(mut self, name: &str, value: &str) -> Self {
        let name = http::HeaderName::from_bytes(name.as_bytes()).unwrap();
        let value = HeaderValue::from_bytes(value.as_bytes()).unwrap();
        self.0.headers_mut().append(name, value);
        self
    }

    pub(super) fn without_header(mut self, name: &str) -> Self {
        self.0.headers_mut().remove(name);
        self
    }

    pub(super) fn body(self, body: Body) -> Self {
        Self(self.0.map(|_| body))
    }

    pub(super) fn build(self) -> Request<Body> {
        self.0
    }
}
