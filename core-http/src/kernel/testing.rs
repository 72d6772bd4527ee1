//! Drives a service in tests: no sockets, no real clock, no real randomness.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::sync::Arc;

use async_trait::async_trait;
use bytes::Bytes;
use core_domain::kernel::{
    Caller, Clock, Membership, OrganizationId, PlatformId, Role, SeededEntropy, SessionId, UserId,
};
use core_domain::port::{MemoryBlobs, NoWake, PasswordError, PasswordHasher, Store};
use http::{HeaderMap, Request, Response, StatusCode};
use serde_json::Value;

use super::{
    App, Body, InFlight, PeerAddr, Service, ServiceKey, bytes_body, empty_body, read_body,
};

/// The address that calls come from.
pub const PEER: SocketAddr = SocketAddr::new(IpAddr::V4(Ipv4Addr::new(192, 0, 2, 7)), 50_000);

/// The service key of [`app`].
pub const SERVICE_KEY: &str = "a-service-key-for-tests";

/// An app over the store: seeded entropy, blobs in memory, hashing that is fast and worthless, [`SERVICE_KEY`].
#[must_use]
pub fn app(store: Arc<dyn Store>, clock: Arc<dyn Clock>) -> Arc<App> {
    Arc::new(App {
        store,
        clock,
        entropy: Arc::new(SeededEntropy::new(42)),
        wake: Arc::new(NoWake),
        hasher: Arc::new(WorthlessHasher),
        blobs: Arc::new(MemoryBlobs::default()),
        service_key: Some(ServiceKey::new(SERVICE_KEY)),
        in_flight: InFlight::default(),
    })
}

/// Marks a password instead of hashing it.
#[derive(Clone, Copy, Debug, Default)]
pub struct WorthlessHasher;

#[async_trait]
impl PasswordHasher for WorthlessHasher {
    async fn hash(&self, password: &str) -> Result<String, PasswordError> {
        Ok(format!("$worthless${password}"))
    }

    async fn verify(&self, password: &str, hash: Option<&str>) -> Result<bool, PasswordError> {
        Ok(hash.is_some_and(|hash| hash.strip_prefix("$worthless$") == Some(password)))
    }
}

/// The holder of the service key.
#[must_use]
pub fn operator() -> Caller {
    Caller::Service {
        name: "service-key".to_owned(),
    }
}

/// A signed-in person with a role in the organization of a platform; `None` when an id is none.
#[must_use]
pub fn member(user: &str, platform: &str, role: Role) -> Option<Caller> {
    Some(Caller::User {
        user_id: UserId::parse(user)?,
        session_id: SessionId::parse(&format!("session-of-{user}")),
        membership: Some(Membership {
            organization_id: OrganizationId::parse(&format!("organization-of-{platform}"))?,
            platform_id: Some(PlatformId::parse(platform)?),
            role,
            permissions: role.permissions(),
            operates: false,
        }),
    })
}

/// An answer, read to its end.
#[derive(Clone, Debug)]
pub struct Answer {
    /// The status.
    pub status: StatusCode,
    /// The headers.
    pub headers: HeaderMap,
    /// The bytes of the body.
    pub bytes: Bytes,
    /// The body as JSON; `null` when it is none.
    pub json: Value,
}

impl Answer {
    /// The error code, or an empty text.
    #[must_use]
    pub fn code(&self) -> &str {
        self.json["error"]["code"].as_str().unwrap_or_default()
    }

    /// A header, or an empty text.
    #[must_use]
    pub fn header(&self, name: &str) -> &str {
        let value = self.headers.get(name).and_then(|v| v.to_str().ok());
        value.unwrap_or_default()
    }

    /// The issues of a validation error as `path: code`, sorted.
    #[must_use]
    pub fn issues(&self) -> Vec<String> {
        let issues = self.json["error"]["details"]["issues"].as_array();
        let mut found: Vec<String> = issues
            .into_iter()
            .flatten()
            .map(|issue| {
                let path = issue["path"].as_array().into_iter().flatten();
                let path: Vec<&str> = path.filter_map(Value::as_str).collect();
                format!(
                    "{}: {}",
                    path.join("."),
                    issue["code"].as_str().unwrap_or_default()
                )
            })
            .collect();
        found.sort();
        found
    }
}

/// Sends a JSON request as this caller; [`Caller::Anonymous`] for nobody.
pub async fn call(
    service: &Service,
    method: &str,
    path: &str,
    caller: &Caller,
    body: Value,
) -> Answer {
    call_with(service, method, path, caller, &[], body).await
}

/// As [`call`], with headers. A body of `null` is no body.
pub async fn call_with(
    service: &Service,
    method: &str,
    path: &str,
    caller: &Caller,
    headers: &[(&str, &str)],
    body: Value,
) -> Answer {
    let mut request = Request::builder()
        .method(method)
        .uri(path)
        .extension(PeerAddr(PEER));
    for (name, value) in headers {
        request = request.header(*name, *value);
    }
    let body = if body.is_null() {
        empty_body()
    } else {
        request = request.header("content-type", "application/json");
        bytes_body(body.to_string())
    };
    match request.extension(caller.clone()).body(body) {
        Ok(request) => send(service, request).await,
        Err(error) => Answer {
            status: StatusCode::IM_A_TEAPOT,
            headers: HeaderMap::new(),
            bytes: Bytes::from(error.to_string()),
            json: Value::Null,
        },
    }
}

/// Sends any request; who calls is found out from its headers.
pub async fn send(service: &Service, request: Request<Body>) -> Answer {
    let response: Response<Body> = service.answer(request).await;
    let (parts, body) = response.into_parts();
    let bytes = read_body(body, usize::MAX).await.unwrap_or_default();
    Answer {
        status: parts.status,
        headers: parts.headers,
        json: serde_json::from_slice(&bytes).unwrap_or(Value::Null),
        bytes,
    }
}
