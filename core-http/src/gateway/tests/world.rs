//! A gateway with a fake IAM and fake services, and what they saw.

use std::collections::HashMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;
use core_domain::gateway::{Credential, Secret, ServiceName};
use core_domain::kernel::{
    Caller, ManualClock, Membership, OrganizationId, PlatformId, Role, SeededEntropy, SessionId,
    Timestamp, UserId,
};
use futures_util::future::BoxFuture;
use http::{Extensions, HeaderMap, HeaderValue, Method, Request, Response};
use http_body_util::BodyExt;
use tower::ServiceExt;

use crate::gateway::{
    Authority, AuthorityError, Gateway, GatewayConfig, Limiter, MemoryLimiter, Ports, Resolved,
    Upstream, UpstreamError, Upstreams,
};
use crate::kernel::{Body, PeerAddr, bytes_body, empty_body};

pub(super) const KEY: &str = "service-key-for-tests";
pub(super) const SESSION: &str = "a-session-token";
pub(super) const API_KEY: &str = "core_an-api-key";

/// A request as a service got it.
#[derive(Clone, Debug)]
pub(super) struct Seen {
    pub(super) service: ServiceName,
    pub(super) method: Method,
    pub(super) uri: String,
    pub(super) headers: HeaderMap,
    pub(super) extensions: Extensions,
    pub(super) body: Bytes,
}

impl Seen {
    pub(super) fn header(&self, name: &str) -> Option<&str> {
        self.headers.get(name).map(|value| value.to_str().unwrap())
    }

    pub(super) fn caller(&self) -> &Caller {
        self.extensions.get().unwrap()
    }
}

pub(super) type Reply =
    Arc<dyn Fn() -> BoxFuture<'static, Result<Response<Body>, UpstreamError>> + Send + Sync>;

/// A service that remembers what it was asked.
pub(super) struct FakeService {
    name: ServiceName,
    seen: Arc<Mutex<Vec<Seen>>>,
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
        self.seen.lock().unwrap().push(Seen {
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
}

/// What the fake IAM says about a credential.
#[derive(Clone, Debug)]
pub(super) enum Says {
    Yes(Box<Resolved>),
    Down,
    Nothing,
}

/// IAM, as far as the gateway knows it. Unknown credentials are refused.
#[derive(Debug, Default)]
pub(super) struct FakeIam {
    says: Mutex<HashMap<String, Says>>,
    asked: AtomicUsize,
}

impl FakeIam {
    pub(super) fn say(&self, secret: &str, says: Says) {
        self.says.lock().unwrap().insert(secret.to_owned(), says);
    }

    pub(super) fn forget(&self, secret: &str) {
        self.says.lock().unwrap().remove(secret);
    }

    pub(super) fn asked(&self) -> usize {
        self.asked.load(Ordering::SeqCst)
    }
}

#[async_trait]
impl Authority for FakeIam {
    async fn resolve(&self, credential: &Credential) -> Result<Resolved, AuthorityError> {
        self.asked.fetch_add(1, Ordering::SeqCst);
        let (Credential::Bearer(secret) | Credential::ApiKey(secret)) = credential;
        let says = self.says.lock().unwrap().get(secret.expose()).cloned();
        // Another request may run in between, as it would with a real store.
        tokio::task::yield_now().await;
        match says {
            Some(Says::Yes(resolved)) => Ok(*resolved),
            Some(Says::Down) => Err(AuthorityError::Unavailable("the store is away".to_owned())),
            Some(Says::Nothing) => std::future::pending().await,
            None => Err(AuthorityError::Refused),
        }
    }
}

/// A signed-in owner of the platform `p-1`.
pub(super) fn owner() -> Resolved {
    Resolved {
        caller: Caller::User {
            user_id: UserId::parse("u-1").unwrap(),
            session_id: SessionId::parse("s-1"),
            membership: Some(Membership {
                organization_id: OrganizationId::parse("o-1").unwrap(),
                platform_id: PlatformId::parse("p-1"),
                role: Role::Owner,
                permissions: Role::Owner.permissions(),
                operates: false,
            }),
        },
        suspended: false,
        expires_at: None,
    }
}

pub(super) fn yes(resolved: Resolved) -> Says {
    Says::Yes(Box::new(resolved))
}

/// A gateway and everything around it.
pub(super) struct World {
    pub(super) gateway: Gateway,
    pub(super) clock: Arc<ManualClock>,
    pub(super) iam: Arc<FakeIam>,
    seen: Arc<Mutex<Vec<Seen>>>,
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
        Self::with_limiter(config, Arc::new(MemoryLimiter::new()))
    }

    pub(super) fn with_limiter(config: GatewayConfig, limiter: Arc<dyn Limiter>) -> Self {
        super::captured::start();
        let clock = Arc::new(ManualClock::at(Timestamp::from_seconds(1_800_000_000)));
        let iam = Arc::new(FakeIam::default());
        iam.say(SESSION, yes(owner()));
        iam.say(API_KEY, yes(owner()));
        let seen = Arc::new(Mutex::new(Vec::new()));
        let reply: Arc<Mutex<Reply>> =
            Arc::new(Mutex::new(answer(|| Response::new(bytes_body("fine")))));
        let upstreams = ServiceName::ALL
            .iter()
            .filter(|name| **name != ServiceName::Billing)
            .fold(Upstreams::new(), |upstreams, name| {
                upstreams.with(
                    *name,
                    FakeService {
                        name: *name,
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
        };
        Self {
            gateway: Gateway::new(config, ports).unwrap(),
            clock,
            iam,
            seen,
            reply,
        }
    }

    /// What services answer from now on.
    pub(super) fn reply(&self, reply: Reply) {
        *self.reply.lock().unwrap() = reply;
    }

    pub(super) async fn send(&self, request: Request<Body>) -> Answer {
        let response = self.gateway.clone().oneshot(request).await.unwrap();
        Answer::read(response).await
    }

    /// A GET with the session.
    pub(super) async fn get(&self, path: &str) -> Answer {
        self.send(signed(path).build()).await
    }

    pub(super) fn seen(&self) -> Vec<Seen> {
        self.seen.lock().unwrap().clone()
    }

    /// The one request that reached a service.
    pub(super) fn only(&self) -> Seen {
        let seen = self.seen();
        assert_eq!(seen.len(), 1, "{seen:?}");
        seen.into_iter().next().unwrap()
    }
}

pub(super) fn answer(make: impl Fn() -> Response<Body> + Send + Sync + 'static) -> Reply {
    Arc::new(move || Box::pin(std::future::ready(Ok(make()))))
}

pub(super) fn fails(make: impl Fn() -> UpstreamError + Send + Sync + 'static) -> Reply {
    Arc::new(move || Box::pin(std::future::ready(Err(make()))))
}

pub(super) fn after(delay: Duration) -> Reply {
    Arc::new(move || {
        Box::pin(async move {
            tokio::time::sleep(delay).await;
            Ok(Response::new(bytes_body("late")))
        })
    })
}

/// An answer, read to its end.
#[derive(Debug)]
pub(super) struct Answer {
    pub(super) status: u16,
    pub(super) headers: HeaderMap,
    pub(super) body: Bytes,
}

impl Answer {
    async fn read(response: Response<Body>) -> Self {
        let (parts, body) = response.into_parts();
        Self {
            status: parts.status.as_u16(),
            headers: parts.headers,
            body: body.collect().await.unwrap().to_bytes(),
        }
    }

    pub(super) fn header(&self, name: &str) -> Option<&str> {
        let mut lines = self.headers.get_all(name).iter();
        let line = lines.next()?;
        assert!(lines.next().is_none(), "{name} is there twice");
        Some(line.to_str().unwrap())
    }

    /// The code of the envelope, which is checked whole.
    pub(super) fn code(&self) -> String {
        assert_eq!(self.header("content-type"), Some("application/json"));
        let body: serde_json::Value = serde_json::from_slice(&self.body).unwrap();
        let error = &body["error"];
        assert_eq!(error["requestId"].as_str(), self.header("x-request-id"));
        assert!(error["details"].is_object(), "{body}");
        assert!(!error["message"].as_str().unwrap().is_empty());
        error["code"].as_str().unwrap().to_owned()
    }
}

/// Makes requests.
#[derive(Debug)]
pub(super) struct Req(Request<Body>);

pub(super) fn anonymous(path: &str) -> Req {
    let mut request = Request::new(empty_body());
    *request.uri_mut() = path.parse().unwrap();
    Req(request)
        .peer("203.0.113.9:4711")
        .header("host", "api.example.org")
}

pub(super) fn signed(path: &str) -> Req {
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

    pub(super) fn extension<T: Clone + Send + Sync + 'static>(mut self, value: T) -> Self {
        self.0.extensions_mut().insert(value);
        self
    }

    /// Adds a line.
    pub(super) fn header(mut self, name: &str, value: &str) -> Self {
        let name = http::HeaderName::from_bytes(name.as_bytes()).unwrap();
        let value = HeaderValue::from_bytes(value.as_bytes()).unwrap();
        self.0.headers_mut().append(name, value);
        self
    }

    pub(super) fn without(mut self, name: &str) -> Self {
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
