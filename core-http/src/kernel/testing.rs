//! Calls services in tests, without sockets, a real clock or real randomness.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::sync::Arc;

use bytes::Bytes;
use core_domain::kernel::{
    Caller, Cipher, Clock, Ed25519Private, Membership, OrganizationId, PlatformId, Role, SessionId,
    UserId,
};
use core_domain::port::{HashForm, PasswordHasher, Store};
use core_domain::testing::{MemoryBlobs, MemoryDns, MockPasswordHasher, SeededEntropy, named_uuid};
use core_domain::use_case::provisioning::Kinds;
use core_domain::use_case::registry::register_kinds;
use http::{HeaderMap, Request, Response, StatusCode};
use serde_json::Value;

use super::admission::limiter::MemoryRateLimiter;
use super::endpoint::service::Service;
use super::metrics::Metrics;
use super::process::app::App;
use super::process::in_flight::InFlight;
use super::process::open_streams::OpenStreams;
use super::process::options::ServiceOptions;
use super::process::service_key::ServiceKey;
use super::process::signals::{AccessSignal, JobSignal, SealSignal};
use super::process::store_check::StoreCheck;
use super::request::body::{Body, bytes_body, empty_body, read_body};
use super::request::client::{PeerAddr, ViaGateway};

/// The peer address of the requests.
pub const PEER: SocketAddr = SocketAddr::new(IpAddr::V4(Ipv4Addr::new(192, 0, 2, 7)), 50_000);

/// The service key that [`app`] configures.
pub const SERVICE_KEY: &str = "a-service-key-for-tests";

/// The issuer of service tokens that [`app`] configures.
pub const ISSUER: &str = "http://iam.test";

/// Creates an app for this store and clock. It has seeded entropy, blobs and DNS in memory, the hasher of
/// [`worthless_hasher`], and the service key [`SERVICE_KEY`].
#[must_use]
pub fn app(store: Arc<dyn Store>, clock: Arc<dyn Clock>) -> App {
    let entropy = Arc::new(SeededEntropy::new(42));
    App {
        store_check: StoreCheck::new(Arc::clone(&store)),
        store,
        clock,
        cipher: Cipher::new([9; 32], entropy.clone()),
        audit_key: Ed25519Private::from_seed([8; 32]),
        sealed: SealSignal::default(),
        jobs: JobSignal::default(),
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
        metrics: Metrics::new(),
        tracer: None,
    }
}

/// Creates a hasher for tests that only adds a prefix to a password, because real hashing is slow.
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

/// Returns the caller with the service key, who is an operator.
#[must_use]
pub fn operator() -> Caller {
    Caller::Service {
        name: "service-key".to_owned(),
    }
}

/// Returns a person with a session and a role in the organization of a platform; `None` if an id is invalid.
#[must_use]
pub fn member(user: &str, platform: &str, role: Role) -> Option<Caller> {
    Some(Caller::User {
        user_id: UserId::parse(user)?,
        session_id: Some(session_of(user)),
        service: None,
        membership: Some(Membership {
            organization_id: organization_of(platform),
            platform_id: Some(PlatformId::parse(platform)?),
            permissions: role.permissions(),
            roles: role.into(),
            is_operator: false,
        }),
    })
}

/// Returns the session of the person that [`member`] returns for this user.
#[must_use]
pub fn session_of(user: &str) -> SessionId {
    id_of(&format!("session-of-{user}"), SessionId::parse)
}

/// Returns the organization of the person that [`member`] returns for this platform.
#[must_use]
pub fn organization_of(platform: &str) -> OrganizationId {
    id_of(
        &format!("organization-of-{platform}"),
        OrganizationId::parse,
    )
}

#[expect(clippy::panic, reason = "every UUID is an id")]
fn id_of<T>(name: &str, parse: fn(&str) -> Option<T>) -> T {
    match parse(&named_uuid(name)) {
        Some(id) => id,
        None => panic!("{name} has no id"),
    }
}

/// A response whose body has been read.
#[derive(Clone, Debug)]
pub struct Answer {
    /// The status of the response.
    pub status: StatusCode,
    /// The headers of the response.
    pub headers: HeaderMap,
    /// The bytes of the body.
    pub bytes: Bytes,
    /// The body as JSON; `null` if it is not JSON.
    pub json: Value,
}

impl Answer {
    /// Returns whether the response is a success or a redirect.
    #[must_use]
    pub fn is_success(&self) -> bool {
        self.status.is_success() || self.status.is_redirection()
    }

    /// Reads a response. A body that fails is treated as empty.
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

    /// Returns the error code of the envelope; empty if there is none.
    #[must_use]
    pub fn code(&self) -> &str {
        self.json["error"]["code"].as_str().unwrap_or_default()
    }

    /// Asserts the status and returns the response.
    ///
    /// # Panics
    /// If the response has another status.
    #[must_use]
    #[track_caller]
    pub fn expect(self, status: u16) -> Self {
        assert_eq!(self.status.as_u16(), status, "{}", self.json);
        self
    }

    /// Asserts the status and the error code, and returns the response.
    ///
    /// # Panics
    /// If the response has another status or code.
    #[track_caller]
    pub fn expect_error(self, status: u16, code: &str) -> Self {
        let refusal = (self.status.as_u16(), self.code());
        assert_eq!(refusal, (status, code), "{}", self.json);
        self
    }

    /// Returns the field `id` of the body.
    ///
    /// # Panics
    /// If the body has no such text field.
    #[must_use]
    #[track_caller]
    pub fn id(&self) -> String {
        self.text("id").to_owned()
    }

    /// Returns a text field of the body.
    ///
    /// # Panics
    /// If the field is missing or is not text.
    #[must_use]
    #[track_caller]
    pub fn text(&self, field: &str) -> &str {
        match self.json[field].as_str() {
            Some(text) => text,
            None => panic!("{field} is not a text field: {}", self.json),
        }
    }

    /// Returns a text field of every record of a list.
    ///
    /// # Panics
    /// If a record does not have the field.
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

    /// Returns the total of a list, `pagination.total`.
    #[must_use]
    pub fn total(&self) -> Option<u64> {
        self.json["pagination"]["total"].as_u64()
    }

    /// Returns the value of a header; empty if it is missing.
    #[must_use]
    pub fn header(&self, name: &str) -> &str {
        let value = self.headers.get(name).and_then(|v| v.to_str().ok());
        value.unwrap_or_default()
    }

    /// Returns the issues of a validation error as `path: code`, sorted.
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

/// Sends a JSON request for this caller, as a gateway in the same process does. [`Caller::Anonymous`] stands for a
/// request without a credential, and a body of `null` for no body.
pub async fn call(
    service: &Service,
    method: &str,
    path: &str,
    caller: &Caller,
    body: Value,
) -> Answer {
    call_with(service, method, path, caller, &[], body).await
}

/// Like [`call`], with additional headers.
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

/// Sends a request without the extensions of a gateway. The service authenticates the caller by the headers.
pub async fn send(service: &Service, request: Request<Body>) -> Answer {
    Answer::of(service.answer(request).await).await
}
