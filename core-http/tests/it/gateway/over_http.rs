//! A gateway in front of services over HTTP, with real connections.

use core_http::kernel::testing::{organization_of, session_of};
use std::convert::Infallible;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use bytes::Bytes;
use core_domain::kernel::{
    Caller, Effect, Notice, PermissionSet, PlatformId, Secret, SessionId, SuiteService,
};
use core_domain::testing::SeededEntropy;
use core_http::gateway::{
    Gateway, GatewayConfig, HttpUpstream, InProcess, Ports, ResolvedCredential, ServiceTokens,
    Upstream, Upstreams,
};
use core_http::kernel::metrics::Metrics;
use core_http::kernel::{BodyTimes, MemoryRateLimiter, bytes_body, empty_body};
use core_http::{IncomingBody, ServeOptions};
use http::{HeaderMap, Request, Response};
use http_body_util::{BodyExt, Collected};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;

use super::captured;
use super::world::{API_KEY, FakeIam, KEY, SESSION, api_key_identity, config, owner, resolves_to};
use crate::world::server::{Server, options, status};
use crate::world::{SERVICE_KEY, manual_clock};

/// A request as the service received it.
#[derive(Clone, Debug)]
struct ReceivedRequest {
    target: String,
    headers: HeaderMap,
    body: Result<Bytes, String>,
}

impl ReceivedRequest {
    fn header(&self, name: &str) -> &str {
        let value = self.headers.get(name);
        value.map_or("", |value| value.to_str().unwrap())
    }
}

/// A gateway in front of an HTTP service that records its requests.
struct Remote {
    gateway: Server,
    service: SocketAddr,
    arrived: Arc<Mutex<Vec<ReceivedRequest>>>,
    _service: Server,
}

impl Remote {
    async fn new() -> Self {
        Self::with(options()).await
    }

    async fn with(options: ServeOptions) -> Self {
        let arrived = Arc::new(Mutex::new(Vec::new()));
        let memory = Arc::clone(&arrived);
        let service = tower::service_fn(move |request: Request<IncomingBody>| {
            record(request, Arc::clone(&memory))
        });
        let service = Server::start(service, crate::world::server::options()).await;
        Self {
            gateway: Server::start(gateway_to(service.address), options).await,
            service: service.address,
            arrived,
            _service: service,
        }
    }

    /// Sends a request with the session token: its request line, more header lines, and its body.
    async fn send(&self, line: &str, lines: &str, body: &str) -> String {
        self.gateway
            .send_raw(&session_request_text(line, lines, body))
            .await
    }

    fn received_requests(&self) -> Vec<ReceivedRequest> {
        self.arrived.lock().unwrap().clone()
    }

    /// Returns the targets of the requests that arrived with a complete body.
    fn complete_targets(&self) -> Vec<String> {
        let arrived = self.received_requests().into_iter();
        let whole = arrived.filter(|seen| seen.body.is_ok());
        whole.map(|seen| seen.target).collect()
    }
}

async fn record(
    request: Request<IncomingBody>,
    memory: Arc<Mutex<Vec<ReceivedRequest>>>,
) -> Result<Response<core_http::kernel::Body>, Infallible> {
    let (parts, body) = request.into_parts();
    let body = body.collect().await;
    memory.lock().unwrap().push(ReceivedRequest {
        target: parts.uri.to_string(),
        headers: parts.headers,
        body: body
            .map(Collected::to_bytes)
            .map_err(|error| error.to_string()),
    });
    Ok(Response::new(bytes_body("from the service")))
}

pub(super) fn gateway_to(address: SocketAddr) -> Gateway {
    gateway_with(address, config())
}

/// Returns a gateway with this configuration in front of the service at an address.
pub(super) fn gateway_with(address: SocketAddr, config: GatewayConfig) -> Gateway {
    captured::start();
    let iam = FakeIam::default();
    iam.reply_to(SESSION, resolves_to(owner()));
    iam.reply_to(API_KEY, resolves_to(api_key_identity(600)));
    iam.reply_to(ODD_SESSION, resolves_to(odd_owner()));
    let issuer = crate::world::World::new();
    let tokens = ServiceTokens::new(
        InProcess::service(issuer.iam.0),
        &Secret::new(SERVICE_KEY),
        issuer.clock,
    );
    let tokens = Arc::new(tokens.unwrap());
    let upstream = |target| {
        let upstream = HttpUpstream::new(&format!("http://{address}")).unwrap();
        upstream.with_service_tokens(Arc::clone(&tokens), target)
    };
    let ports = Ports {
        authority: Arc::new(iam),
        upstreams: Upstreams::new()
            .with(SuiteService::Registry, upstream(SuiteService::Registry))
            .with(SuiteService::Iam, upstream(SuiteService::Iam)),
        limiter: Arc::new(MemoryRateLimiter::new()),
        clock: manual_clock(),
        entropy: Arc::new(SeededEntropy::new(1)),
        meter: None,
        store_check: None,
        metrics: Metrics::new(),
        tracer: None,
    };
    Gateway::new(config, ports).unwrap()
}

/// A session whose identity contains text that is no header value.
const ODD_SESSION: &str = "a-session-with-an-odd-identity";

fn odd_owner() -> ResolvedCredential {
    let mut caller = crate::world::owner("p-1");
    if let Caller::User {
        membership: Some(membership),
        ..
    } = &mut caller
    {
        membership.permissions = PermissionSet::new(["entity:read\r\nX-Core-Operator: true"]);
    }
    ResolvedCredential {
        caller: Arc::new(caller),
        ..owner()
    }
}

pub(super) fn session_request_text(line: &str, lines: &str, body: &str) -> String {
    format!("{line} HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer {SESSION}\r\n{lines}\r\n{body}")
}

const CLOSE: &str = "Connection: close\r\n";

#[tokio::test]
async fn line_30_an_http_service_gets_identity_headers_only_from_the_gateway() {
    let remote = Remote::new().await;
    let forged = "X-Core-User-Id: forged\r\nX_Core_User_Id: forged\r\nCookie: a=b\r\n";
    let lines = format!("{forged}Transfer-Encoding: chunked\r\n{CLOSE}");
    let line = "PUT /api/v1/platforms/p-1?a=%2F";
    let answer = remote.send(line, &lines, "5\r\nhello\r\n0\r\n\r\n").await;
    assert_eq!(status(&answer), "200", "{answer}");
    assert!(answer.ends_with("from the service"), "{answer}");
    let seen = &remote.received_requests()[0];
    assert_eq!(seen.target, "/p-1?a=%2F");
    assert_eq!(seen.body.as_ref().unwrap(), "hello");
    for (name, value) in [
        ("x-core-user-id", "olga"),
        ("x-core-role", "owner"),
        ("x-core-platform-id", "p-1"),
        ("x-core-organization-id", organization_of("p-1").as_str()),
        ("x-core-operator", ""),
        ("x-core-client-ip", "127.0.0.1"),
        ("x-forwarded-for", "127.0.0.1"),
        ("x-forwarded-host", "a"),
        ("x-forwarded-prefix", "/api/v1/platforms"),
        ("host", &remote.service.to_string()),
        ("x_core_user_id", ""),
        ("cookie", ""),
    ] {
        assert_eq!(seen.header(name), value, "{name}");
    }
    let token = seen
        .header("authorization")
        .strip_prefix("Bearer ")
        .unwrap();
    let claims = claims_of(token);
    let said = (&claims["sub"], &claims["aud"], &claims["sid"]);
    let expected = (
        &"gateway".into(),
        &"registry".into(),
        &session_of("olga").as_str().into(),
    );
    assert_eq!(said, expected);
}

#[tokio::test]
async fn line_30_the_service_key_has_no_identity_headers_and_is_not_forwarded() {
    let remote = Remote::new().await;
    let forged = "X-Core-User-Id: forged\r\nX_Core_Role: owner\r\nX-Core-Platform-Id: p-1\r\n";
    let request = format!(
        "GET /api/v1/platforms/p-1 HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer {KEY}\r\n{forged}{CLOSE}\r\n"
    );
    let answer = remote.gateway.send_raw(&request).await;
    assert_eq!(status(&answer), "200", "{answer}");
    let seen = &remote.received_requests()[0];
    for name in [
        "x-core-user-id",
        "x-core-role",
        "x-core-platform-id",
        "x-core-api-key-id",
        "x-core-operator",
        "x_core_role",
    ] {
        assert_eq!(seen.header(name), "", "{name}");
    }
    assert!(!seen.header("authorization").contains(KEY));
}

#[tokio::test]
async fn line_31_an_identity_that_is_no_header_value_is_502_and_not_sent() {
    let remote = Remote::new().await;
    let request = format!(
        "GET /api/v1/platforms/p-1 HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer {ODD_SESSION}\r\n{CLOSE}\r\n"
    );
    let answer = remote.gateway.send_raw(&request).await;
    assert_eq!(status(&answer), "502", "{answer}");
    assert!(answer.contains("UPSTREAM_ERROR"), "{answer}");
    assert!(remote.received_requests().is_empty());
}

/// Returns the claims of a service token, without verifying it.
fn claims_of(token: &str) -> serde_json::Value {
    use base64::Engine;
    let payload = token.split('.').nth(1).unwrap();
    let engine = base64::engine::general_purpose::URL_SAFE_NO_PAD;
    serde_json::from_slice(&engine.decode(payload).unwrap()).unwrap()
}

#[tokio::test]
async fn an_http_service_gets_the_identity_of_the_calling_api_key() {
    let remote = Remote::new().await;
    let request = format!(
        "GET /api/v1/platforms/p-1 HTTP/1.1\r\nHost: a\r\nX-Api-Key: {API_KEY}\r\n{CLOSE}\r\n"
    );
    let answer = remote.gateway.send_raw(&request).await;
    assert_eq!(status(&answer), "200", "{answer}");
    let seen = &remote.received_requests()[0];
    for (name, value) in [
        ("x-core-api-key-id", "k-1"),
        ("x-core-user-id", ""),
        ("x-core-platform-id", "p-1"),
        ("x-core-permissions", "*:*"),
        ("x-api-key", ""),
    ] {
        assert_eq!(seen.header(name), value, "{name}");
    }
}

#[tokio::test]
async fn line_33_iam_over_http_gets_the_clients_session_and_a_service_token() {
    let remote = Remote::new().await;
    let lines = format!("X-Core-Service-Key: forged\r\n{CLOSE}");
    let line = "GET /api/v1/iam/api/auth/get-session";
    remote.send(line, &lines, "").await;
    let seen = &remote.received_requests()[0];
    assert_eq!(seen.header("authorization"), format!("Bearer {SESSION}"));
    assert_eq!(seen.header("x-core-user-id"), "");
    let claims = claims_of(seen.header("x-core-service-key"));
    assert_eq!((&claims["aud"], claims.get("sid")), (&"iam".into(), None));
    assert_eq!(seen.header("x-core-client-ip"), "127.0.0.1");
}

#[tokio::test]
async fn an_upload_to_an_http_service_that_pauses_too_long_is_400() {
    let remote = Remote::with(ServeOptions {
        body_times: BodyTimes {
            idle: Duration::from_millis(200),
            total: Duration::from_secs(10),
        },
        ..options()
    });
    let remote = remote.await;
    let answer = remote.send(
        "POST /api/v1/platforms",
        "Content-Length: 100\r\n",
        "only this",
    );
    let answer = answer.await;
    assert_eq!(status(&answer), "400", "{answer}");
    assert!(answer.contains("BAD_REQUEST"), "{answer}");
    assert!(
        remote.complete_targets().is_empty(),
        "a truncated body must not arrive as complete"
    );
}

#[tokio::test]
async fn line_43_a_body_that_ends_before_its_length_is_never_completed() {
    let remote = Remote::new().await;
    let mut client = remote.gateway.connect().await;
    let lines = "Content-Length: 100\r\n";
    let request = session_request_text("POST /api/v1/platforms", lines, "only this");
    client.write(&request).await;
    client.0.shutdown().await.unwrap();
    client.read_to_close().await;
    // A second request, so that the service has finished with the first one.
    let line = "GET /api/v1/platforms/second";
    remote.send(line, CLOSE, "").await;
    assert_eq!(remote.complete_targets(), ["/second"]);
}

#[tokio::test]
async fn line_34_head_over_http_has_a_content_length_and_no_body() {
    let remote = Remote::new().await;
    for path in ["/api/v1/platforms", "/api/v1/nothing"] {
        let answer = remote.send(&format!("HEAD {path}"), CLOSE, "").await;
        let (head, body) = answer.split_once("\r\n\r\n").unwrap();
        assert_eq!(body, "", "{answer}");
        let head = head.to_ascii_lowercase();
        assert!(head.contains("content-length: "), "{head}");
        assert!(!head.contains("content-length: 0"), "{head}");
    }
}

#[tokio::test]
async fn a_service_that_cannot_be_reached_or_disconnects_is_502() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let gone = listener.local_addr().unwrap();
    drop(listener);
    let breaking = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let breaking_at = breaking.local_addr().unwrap();
    tokio::spawn(async move {
        while let Ok((mut stream, _)) = breaking.accept().await {
            let _ = stream.read(&mut [0_u8; 16]).await;
        }
    });
    for address in [gone, breaking_at] {
        let gateway = Server::start(gateway_to(address), options()).await;
        let lines = format!("Content-Length: 0\r\n{CLOSE}");
        let request = session_request_text("POST /api/v1/platforms", &lines, "");
        let answer = gateway.send_raw(&request).await;
        assert_eq!(status(&answer), "502", "{answer}");
        assert!(answer.contains("UPSTREAM_ERROR") && !answer.contains(&address.to_string()));
    }
}

#[tokio::test]
async fn notices_of_an_http_service_are_passed_on_before_the_response_and_removed_from_it() {
    let service = tower::service_fn(|request: Request<IncomingBody>| async move {
        let mut response = Response::new(bytes_body("from the service"));
        let value = match request.uri().path() {
            "/ended" => Some("session:s-1 platform:p-1"),
            "/newer" => Some("something-of-a-newer-version"),
            _ => None,
        };
        if let Some(value) = value {
            let headers = response.headers_mut();
            headers.insert("x-core-notices", value.parse().unwrap());
        }
        Ok::<_, Infallible>(response)
    });
    let service = Server::start(service, options()).await;
    let received = Arc::new(Mutex::new(Vec::new()));
    let recorder = Arc::clone(&received);
    let upstream = HttpUpstream::new(&format!("http://{}", service.address)).unwrap();
    let upstream = upstream.with_notices(move |notice| {
        recorder.lock().unwrap().push(notice.clone());
    });
    let effects = [
        Effect::SessionChanged(SessionId::parse("s-1").unwrap()),
        Effect::PlatformAccessChanged(PlatformId::parse("p-1").unwrap()),
    ];
    for (path, expected) in [
        ("/ended", effects.map(Notice::Effect).to_vec()),
        ("/newer", vec![Notice::Missed]),
        ("/other", vec![]),
    ] {
        let request = Request::get(path).body(empty_body()).unwrap();
        let response = upstream.send(request).await.unwrap();
        assert!(!response.headers().contains_key("x-core-notices"), "{path}");
        assert_eq!(std::mem::take(&mut *received.lock().unwrap()), expected);
    }
}

#[test]
fn line_56_an_upstream_address_is_plain_http_without_a_path_and_its_error_shows_no_password() {
    for bad in [
        "",
        "127.0.0.1:80",
        "https://a",
        "http://a/path",
        "http://",
        "http://a?x",
        "http://ada:open-sesame@a",
        "https://ada:open-sesame@a",
        "http://ada:open-sesame@a:port",
    ] {
        let refused = HttpUpstream::new(bad).unwrap_err().to_string();
        assert!(!refused.contains("sesame"), "{refused}");
    }
    for good in ["http://127.0.0.1:8082", "http://registry.internal"] {
        assert!(HttpUpstream::new(good).is_ok(), "{good}");
    }
}
