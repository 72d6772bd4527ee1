//! Failures of services over HTTP: repeated requests, the circuit breaker, the pool of connections, and the limit of
//! requests in flight.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use core_domain::kernel::{Secret, SuiteService};
use core_domain::testing::SeededEntropy;
use core_http::gateway::{
    Gateway, HttpAuthority, HttpUpstream, InProcess, Ports, ServiceTokens, Upstream, UpstreamError,
    Upstreams,
};
use core_http::kernel::metrics::Metrics;
use core_http::kernel::{Body, MemoryRateLimiter, bytes_body, empty_body};
use http::{Method, Request, Response};
use http_body_util::BodyExt;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

use super::over_http::{gateway_with, session_request_text};
use super::world::config;
use crate::world::server::{Server, options, status};
use crate::world::{SERVICE_KEY, manual_clock};

/// What a service does with a connection after it has read the head of a request.
#[derive(Clone, Copy, Debug)]
enum Behaviour {
    /// Closes the connection without a response.
    Close,
    /// Responds with this status, and keeps the connection.
    Respond(u16),
    /// Sends the head and a part of the body of its response, and no more.
    Stall,
    /// Never responds.
    Hang,
}

/// A service on a socket that treats its requests as scripted.
struct ScriptedService {
    address: SocketAddr,
    connections: Arc<AtomicUsize>,
    requests: Arc<AtomicUsize>,
}

impl ScriptedService {
    /// Starts a service. The last behaviour applies to all further requests.
    async fn start(script: &[Behaviour]) -> Self {
        let script: Arc<[Behaviour]> = script.into();
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let (connections, requests) = (Arc::<AtomicUsize>::default(), Arc::default());
        let service = Self {
            address,
            connections: Arc::clone(&connections),
            requests: Arc::clone(&requests),
        };
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                connections.fetch_add(1, Ordering::SeqCst);
                tokio::spawn(Self::serve(
                    stream,
                    Arc::clone(&script),
                    Arc::clone(&requests),
                ));
            }
        });
        service
    }

    async fn serve(mut stream: TcpStream, script: Arc<[Behaviour]>, requests: Arc<AtomicUsize>) {
        while read_head(&mut stream).await {
            let at = requests
                .fetch_add(1, Ordering::SeqCst)
                .min(script.len() - 1);
            let response = match script[at] {
                Behaviour::Close => return,
                Behaviour::Hang => std::future::pending().await,
                Behaviour::Respond(status) => {
                    format!("HTTP/1.1 {status} Any\r\nContent-Length: 2\r\n\r\nok")
                }
                Behaviour::Stall => "HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nok".to_owned(),
            };
            stream.write_all(response.as_bytes()).await.unwrap();
            if matches!(script[at], Behaviour::Stall) {
                std::future::pending::<()>().await;
            }
        }
    }

    fn upstream(&self) -> HttpUpstream {
        HttpUpstream::new(&format!("http://{}", self.address)).unwrap()
    }

    fn connection_count(&self) -> usize {
        self.connections.load(Ordering::SeqCst)
    }

    fn request_count(&self) -> usize {
        self.requests.load(Ordering::SeqCst)
    }
}

/// Reads until the end of a request head. Returns `false` if the connection was closed before it.
async fn read_head(stream: &mut TcpStream) -> bool {
    let mut head = Vec::new();
    let mut byte = [0_u8; 1];
    while !head.ends_with(b"\r\n\r\n") {
        match stream.read(&mut byte).await {
            Ok(1) => head.push(byte[0]),
            _ => return false,
        }
    }
    true
}

async fn send(
    upstream: &HttpUpstream,
    method: Method,
    body: Body,
) -> Result<Response<Body>, UpstreamError> {
    let request = Request::builder().method(method).uri("/");
    upstream.send(request.body(body).unwrap()).await
}

/// Sends a `GET`, reads the response and returns its status.
async fn get(upstream: &HttpUpstream) -> Result<u16, UpstreamError> {
    let response = send(upstream, Method::GET, empty_body()).await?;
    let status = response.status().as_u16();
    response.into_body().collect().await.unwrap();
    Ok(status)
}

#[tokio::test]
async fn line_52_only_an_idempotent_request_without_a_body_is_sent_again_and_only_once() {
    for (method, body, requests) in [
        (Method::GET, "", 2),
        (Method::HEAD, "", 2),
        (Method::OPTIONS, "", 2),
        (Method::PUT, "", 2),
        (Method::DELETE, "", 2),
        (Method::PUT, "body", 1),
        (Method::POST, "", 1),
        (Method::POST, "body", 1),
        (Method::PATCH, "", 1),
    ] {
        let service = ScriptedService::start(&[Behaviour::Close]).await;
        let failed = send(&service.upstream(), method.clone(), bytes_body(body)).await;
        assert!(matches!(failed, Err(UpstreamError::Broken(_))), "{method}");
        assert_eq!(service.request_count(), requests, "{method} {body:?}");
    }
    let service = ScriptedService::start(&[Behaviour::Close, Behaviour::Respond(200)]).await;
    assert_eq!(get(&service.upstream()).await.unwrap(), 200);
}

#[tokio::test]
async fn line_52_a_response_of_any_status_is_not_requested_again() {
    for status in [429, 500, 502, 503] {
        let service = ScriptedService::start(&[Behaviour::Respond(status)]).await;
        assert_eq!(get(&service.upstream()).await.unwrap(), status);
        assert_eq!(service.request_count(), 1);
    }
}

#[tokio::test]
async fn line_53_after_five_failures_requests_are_refused_without_a_connection_until_a_probe_succeeds()
 {
    let script = [
        Behaviour::Close,
        Behaviour::Close,
        Behaviour::Close,
        Behaviour::Close,
        Behaviour::Close,
        Behaviour::Respond(503),
    ];
    let service = ScriptedService::start(&script).await;
    let upstream = service.upstream();
    for _ in 0..5 {
        let failed = send(&upstream, Method::POST, empty_body()).await;
        assert!(matches!(failed, Err(UpstreamError::Broken(_))));
    }
    let refused = send(&upstream, Method::POST, empty_body()).await;
    assert!(matches!(refused, Err(UpstreamError::Unavailable(_))));
    assert_eq!(service.connection_count(), 5);
    tokio::time::pause();
    tokio::time::advance(Duration::from_secs(1)).await;
    tokio::time::resume();
    // A response of any status shows that the service can be reached.
    for _ in 0..10 {
        assert_eq!(get(&upstream).await.unwrap(), 503);
    }
}

#[tokio::test]
async fn line_53_responses_that_are_errors_never_open_the_breaker() {
    for status in [400, 429, 500, 503] {
        let service = ScriptedService::start(&[Behaviour::Respond(status)]).await;
        let upstream = service.upstream();
        for _ in 0..20 {
            assert_eq!(get(&upstream).await.unwrap(), status);
        }
    }
}

#[tokio::test]
async fn line_53_too_many_requests_in_flight_are_refused_until_a_response_has_ended() {
    let service = ScriptedService::start(&[Behaviour::Stall, Behaviour::Respond(200)]).await;
    let upstream = service.upstream().with_max_in_flight(1);
    let first = send(&upstream, Method::GET, empty_body()).await.unwrap();
    let refused = get(&upstream).await;
    assert!(matches!(refused, Err(UpstreamError::Unavailable(_))));
    assert_eq!(service.request_count(), 1);
    drop(first);
    for _ in 0..3 {
        assert_eq!(get(&upstream).await.unwrap(), 200);
    }
}

#[tokio::test]
async fn line_57_retries_refusals_an_open_breaker_and_requests_in_flight_are_measured() {
    let metrics = Metrics::new();
    let has = |line: &str| metrics.render().lines().any(|own| own == line);
    let service = ScriptedService::start(&[Behaviour::Stall, Behaviour::Close]).await;
    let upstream = service.upstream().with_max_in_flight(1);
    let upstream = upstream.with_metrics(&metrics, SuiteService::Registry, "proxy");
    let first = send(&upstream, Method::GET, empty_body()).await.unwrap();
    let in_flight =
        r#"core_gateway_upstream_requests_in_flight{service="registry",client="proxy"}"#;
    assert!(has(&format!("{in_flight} 1")), "{}", metrics.render());
    get(&upstream).await.unwrap_err();
    drop(first);
    assert!(has(&format!("{in_flight} 0")));
    for _ in 0..3 {
        get(&upstream).await.unwrap_err();
    }
    get(&upstream).await.unwrap_err();
    for line in [
        r#"core_gateway_upstream_retries_total{service="registry",client="proxy"} 3"#,
        r#"core_gateway_upstream_refusals_total{service="registry",client="proxy",reason="in_flight"} 1"#,
        r#"core_gateway_upstream_refusals_total{service="registry",client="proxy",reason="breaker"} 1"#,
        r#"core_gateway_upstream_breaker_open{service="registry",client="proxy"} 1"#,
    ] {
        assert!(has(line), "{line}\n{}", metrics.render());
    }
}

#[tokio::test]
async fn line_53_an_iam_that_hangs_is_no_longer_asked_once_five_credentials_were_not_resolved() {
    let iam = ScriptedService::start(&[Behaviour::Hang]).await;
    let metrics = Metrics::new();
    let issuer = crate::world::World::new();
    let tokens = ServiceTokens::new(
        InProcess::service(issuer.iam.0.clone()),
        &Secret::new(SERVICE_KEY),
        issuer.clock.clone(),
    );
    let upstream = iam.upstream();
    let upstream = upstream.with_metrics(&metrics, SuiteService::Iam, "authentication");
    let mut config = config();
    config.authority_timeout = Duration::from_millis(50);
    let ports = Ports {
        authority: Arc::new(HttpAuthority::new(upstream, Arc::new(tokens.unwrap()))),
        upstreams: Upstreams::new(),
        limiter: Arc::new(MemoryRateLimiter::new()),
        clock: manual_clock(),
        entropy: Arc::new(SeededEntropy::new(1)),
        meter: None,
        store_check: None,
        metrics: metrics.clone(),
        tracer: None,
    };
    let gateway = Server::start(Gateway::new(config, ports).unwrap(), options()).await;
    let request = session_request_text("GET /api/v1/platforms", "Connection: close\r\n", "");
    let breaker = |state| {
        format!(
            r#"core_gateway_upstream_breaker_open{{service="iam",client="authentication"}} {state}"#
        )
    };
    for _ in 0..5 {
        assert!(!metrics.render().contains(&breaker(1)));
        let late = gateway.send_raw(&request).await;
        assert_eq!(status(&late), "503", "{late}");
    }
    assert!(
        metrics.render().contains(&breaker(1)),
        "{}",
        metrics.render()
    );
    assert_eq!(status(&gateway.send_raw(&request).await), "503");
    // A slow machine can be too late to receive a request, but the refused one is never sent.
    assert!(iam.request_count() <= 5);
}

#[tokio::test]
async fn line_51_idle_connections_are_reused_for_four_seconds() {
    let service = ScriptedService::start(&[Behaviour::Respond(200)]).await;
    let upstream = service.upstream();
    for _ in 0..3 {
        get(&upstream).await.unwrap();
    }
    let opened = service.connection_count();
    assert!(opened < 3, "{opened}");
    tokio::time::pause();
    tokio::time::advance(Duration::from_millis(4_100)).await;
    tokio::time::resume();
    get(&upstream).await.unwrap();
    assert_eq!(service.connection_count(), opened + 1);
}

#[tokio::test]
async fn line_50_a_hanging_service_is_504_and_503_once_the_breaker_is_open() {
    let service = ScriptedService::start(&[Behaviour::Hang]).await;
    let mut config = config();
    config.response_timeout = Duration::from_millis(20);
    let gateway = Server::start(gateway_with(service.address, config), options()).await;
    let request = session_request_text(
        "POST /api/v1/platforms",
        "Content-Length: 0\r\nConnection: close\r\n",
        "",
    );
    for _ in 0..5 {
        let late = gateway.send_raw(&request).await;
        assert_eq!(status(&late), "504", "{late}");
        assert!(late.contains("UPSTREAM_TIMEOUT"), "{late}");
    }
    let refused = gateway.send_raw(&request).await;
    assert_eq!(status(&refused), "503", "{refused}");
    assert!(refused.contains("SERVICE_UNAVAILABLE"), "{refused}");
    assert!(
        refused.to_ascii_lowercase().contains("retry-after: 1"),
        "{refused}"
    );
    // A slow machine can be too late to receive a request, but the refused one is never sent.
    assert!(service.request_count() <= 5);
    // The gateway itself stays healthy.
    let health = gateway.send_raw("GET /health HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n");
    assert_eq!(status(&health.await), "200");
}
