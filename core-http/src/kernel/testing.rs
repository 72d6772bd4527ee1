//! Drives a service in tests: no sockets, no real clock, no real randomness.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::sync::Arc;

use bytes::Bytes;
use core_domain::kernel::{
    Caller, Cipher, Clock, Ed25519Private, Membership, OrganizationId, PlatformId, Role, SessionId,
    UserId,
};
use core_domain::port::{HashForm, PasswordHasher, Store};
use core_domain::testing::{MemoryBlobs, MemoryDns, MockPasswordHasher, SeededEntropy};
use core_domain::use_case::provisioning::Kinds;
use core_domain::use_case::registry::register_kinds;
use http::{HeaderMap, Request, Response, StatusCode};
use serde_json::Value;

use super::admission::idempotency::InFlight;
use super::admission::limiter::MemoryRateLimiter;
use super::admission::service_key::ServiceKey;
use super::answer::feed::AccessSignal;
use super::answer::feed::OpenStreams;
use super::answer::feed::SealSignal;
use super::endpoint::health::StoreCheck;
use super::endpoint::service::App;
use super::endpoint::service::Service;
use super::endpoint::service::ServiceOptions;
use super::request::body::{Body, bytes_body, empty_body, read_body};
use super::request::client::{PeerAddr, ViaGateway};

/// The address that calls come from.
pub const PEER: SocketAddr = SocketAddr::new(IpAddr::V4(Ipv4Addr::new(192, 0, 2, 7)), 50_000);

/// The service key of [`app`].
pub const SERVICE_KEY: &str = "a-service-key-for-tests";

/// The issuer of service tokens of [`app`].
pub const ISSUER: &str = "http://iam.test";

/// An app over the store: seeded entropy, blobs and a DNS in memory, hashing that is fast and worthless, [`SERVICE_KEY`].
#[must_use]
pub fn app(store: Arc<dyn Store>, clock: Arc<dyn Clock>) -> App {
    let entropy = Arc::new(SeededEntropy::new(42));
    App {
        store,
        clock,
        cipher: Cipher::new([9; 32], entropy.clone()),
        audit_key: Ed25519Private::from_seed([8; 32]),
        sealed: SealSignal::default(),
        access: AccessSignal::default(),
        entropy,
        hasher: worthless_hasher(),
        blobs: Arc::new(MemoryBlobs::default()),
        kinds: Arc::new(
            register_kinds(Kinds::new(), Arc::new(MemoryDns::default()), ISSUER)
                .unwrap_or_default(),
        ),
        limiter: Arc::new(MemoryRateLimiter::new()),
        service_key: ServiceKey::new(SERVICE_KEY).ok(),
        issuer: ISSUER.to_owned(),
        options: ServiceOptions::default(),
        in_flight: InFlight::default(),
        streams: OpenStreams::default(),
        store_check: StoreCheck::default(),
    }
}

/// Marks a password instead of hashing it.
#[must_use]
pub fn worthless_hasher() -> Arc<dyn PasswordHasher> {
    let mut hasher = MockPasswordHasher::new();
    hasher
        .expect_hash()
        .returning(|password| Ok(format!("$worthless${password}")));
    hasher.expect_verify().returning(|password, hash| {
        let known = hash.and_then(|hash| hash.strip_prefix("$worthless$"));
        Ok(known == Some(password))
    });
    hasher.expect_form().return_const(HashForm::Current);
    Arc::new(hasher)
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
        service: None,
        membership: Some(Membership {
            organization_id: OrganizationId::parse(&format!("organization-of-{platform}"))?,
            platform_id: Some(PlatformId::parse(platform)?),
            permissions: role.permissions(),
            role: role.into(),
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
    /// Tells whether the request was answered as it wanted to be: with a success, or sent on.
    #[must_use]
    pub fn is_good(&self) -> bool {
        self.status.is_success() || self.status.is_redirection()
    }

    /// Reads a response to its end; a body that breaks off is empty.
    pub async fn of(response: Response<Body>) -> Self {
        let (parts, body) = response.into_parts();
        let bytes = read_body(body, usize::MAX).await.unwrap_or_default();
        Self {
            status: parts.status,
            headers: parts.headers,
            json: serde_json::from_slice(&bytes).unwrap_or(Value::Null),
            bytes,
        }
    }

    /// The error code, or an empty text.
    #[must_use]
    pub fn code(&self) -> &str {
        self.json["error"]["code"].as_str().unwrap_or_default()
    }

    /// The answer, provided it has this status.
    ///
    /// # Panics
    /// When it has another one.
    #[must_use]
    #[track_caller]
    pub fn expect(self, status: u16) -> Self {
        assert_eq!(self.status.as_u16(), status, "{}", self.json);
        self
    }

    /// The answer, provided it refuses like this.
    ///
    /// # Panics
    /// When it does not.
    #[track_caller]
    pub fn refused(self, status: u16, code: &str) -> Self {
        let refusal = (self.status.as_u16(), self.code());
        assert_eq!(refusal, (status, code), "{}", self.json);
        self
    }

    /// The id of the record.
    ///
    /// # Panics
    /// When it has none.
    #[must_use]
    #[track_caller]
    pub fn id(&self) -> String {
        self.text("id").to_owned()
    }

    /// A field of the body that is text.
    ///
    /// # Panics
    /// When it is not.
    #[must_use]
    #[track_caller]
    pub fn text(&self, field: &str) -> &str {
        match self.json[field].as_str() {
            Some(text) => text,
            None => panic!("{field} is no text: {}", self.json),
        }
    }

    /// A field of every record of the list.
    ///
    /// # Panics
    /// When one has none.
    #[must_use]
    #[track_caller]
    pub fn each(&self, field: &str) -> Vec<&str> {
        let data = self.json["data"].as_array();
        let texts = data
            .into_iter()
            .flatten()
            .map(|record| record[field].as_str());
        match texts.collect() {
            Some(texts) => texts,
            None => panic!("a record has no {field}: {}", self.json),
        }
    }

    /// How many records match in all.
    #[must_use]
    pub fn total(&self) -> Option<u64> {
        self.json["pagination"]["total"].as_u64()
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

/// Sends a JSON request as a gateway in this process passes it on for this caller; [`Caller::Anonymous`] for nobody.
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
        .extension(PeerAddr(PEER))
        .extension(ViaGateway);
    for (name, value) in headers {
        request = request.header(*name, *value);
    }
    let body = if body.is_null() {
        empty_body()
    } else {
        request = request.header("content-type", "application/json");
        bytes_body(body.to_string())
    };
    match request.extension(Arc::new(caller.clone())).body(body) {
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
    Answer::of(service.answer(request).await).await
}
