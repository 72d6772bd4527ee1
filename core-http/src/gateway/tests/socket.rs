//! Over real connections: what hyper lets through and we refuse, and services behind HTTP.

use std::convert::Infallible;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use bytes::Bytes;
use core_domain::gateway::{Secret, ServiceName};
use core_domain::kernel::{ManualClock, SeededEntropy, Timestamp};
use http::{HeaderMap, Request, Response};
use http_body_util::BodyExt;
use hyper::body::Incoming;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{Notify, oneshot};
use tokio::task::JoinHandle;

use super::world::{FakeIam, KEY, SESSION, World, config, owner, yes};
use crate::gateway::{Gateway, HttpUpstream, MemoryLimiter, Ports, Upstreams};
use crate::kernel::{Body, bytes_body};
use crate::serve;

const DRAIN: Duration = Duration::from_secs(5);

/// A server of its own, and how to end it.
struct Server {
    address: SocketAddr,
    stop: oneshot::Sender<()>,
    running: JoinHandle<std::io::Result<()>>,
}

impl Server {
    async fn start<S>(service: S) -> Self
    where
        S: tower::Service<Request<Incoming>, Response = Response<Body>, Error = Infallible>
            + Clone
            + Send
            + 'static,
        S::Future: Send,
    {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let (stop, stopped) = oneshot::channel::<()>();
        let shutdown = async move {
            let _ = stopped.await;
        };
        let running = tokio::spawn(serve(listener, service, shutdown, DRAIN));
        Self {
            address,
            stop,
            running,
        }
    }

    /// Sends bytes and reads until the server closes.
    async fn raw(&self, bytes: &str) -> String {
        let mut stream = TcpStream::connect(self.address).await.unwrap();
        stream.write_all(bytes.as_bytes()).await.unwrap();
        read_all(stream).await
    }
}

async fn read_all(mut stream: TcpStream) -> String {
    let mut answer = Vec::new();
    let read = tokio::time::timeout(Duration::from_secs(10), stream.read_to_end(&mut answer));
    // A reset after the answer is an end as well.
    let _ = read.await.expect("the server must close the connection");
    String::from_utf8(answer).unwrap()
}

fn status(answer: &str) -> &str {
    answer.split(' ').nth(1).unwrap_or("closed")
}

#[derive(Clone, Debug)]
struct Arrived {
    target: String,
    headers: HeaderMap,
    body: Result<Bytes, String>,
}

impl Arrived {
    fn header(&self, name: &str) -> Option<&str> {
        self.headers.get(name).map(|value| value.to_str().unwrap())
    }
}

/// A service behind HTTP that remembers what arrived.
async fn remembering() -> (Server, Arc<Mutex<Vec<Arrived>>>) {
    let arrived = Arc::new(Mutex::new(Vec::new()));
    let memory = Arc::clone(&arrived);
    let service = tower::service_fn(move |request: Request<Incoming>| {
        let memory = Arc::clone(&memory);
        async move {
            let (parts, body) = request.into_parts();
            let body = body.collect().await;
            memory.lock().unwrap().push(Arrived {
                target: parts.uri.to_string(),
                headers: parts.headers,
                body: body
                    .map(http_body_util::Collected::to_bytes)
                    .map_err(|error| error.to_string()),
            });
            Ok::<_, Infallible>(Response::new(bytes_body("from the service")))
        }
    });
    (Server::start(service).await, arrived)
}

fn gateway_to(address: SocketAddr) -> Gateway {
    super::captured::start();
    let iam = FakeIam::default();
    iam.say(SESSION, yes(owner()));
    let key = Secret::new(KEY);
    let upstream = || HttpUpstream::new(&format!("http://{address}"), Some(&key)).unwrap();
    let ports = Ports {
        authority: Arc::new(iam),
        upstreams: Upstreams::new()
            .with(ServiceName::Registry, upstream())
            .with(ServiceName::Iam, upstream()),
        limiter: Arc::new(MemoryLimiter::new()),
        clock: Arc::new(ManualClock::at(Timestamp::from_seconds(1_800_000_000))),
        entropy: Arc::new(SeededEntropy::new(1)),
    };
    Gateway::new(config(), ports).unwrap()
}

#[tokio::test]
async fn messages_that_could_be_cut_in_two_ways_are_400_and_the_connection_is_closed() {
    let world = World::new();
    let server = Server::start(world.gateway.clone()).await;
    let auth = format!("Authorization: Bearer {SESSION}");
    for (claim, head) in [
        (
            "no Host",
            format!("POST /api/v1/platforms HTTP/1.1\r\n{auth}\r\n\r\n"),
        ),
        (
            "two Hosts",
            format!("GET /api/v1/platforms HTTP/1.1\r\nHost: a\r\nHost: b\r\n{auth}\r\n\r\n"),
        ),
        (
            "another coding",
            format!(
                "POST /api/v1/platforms HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: gzip, chunked\r\n{auth}\r\n\r\n0\r\n\r\n"
            ),
        ),
        (
            "chunked twice",
            format!(
                "POST /api/v1/platforms HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n{auth}\r\n\r\n0\r\n\r\n"
            ),
        ),
        (
            "two lengths",
            format!(
                "POST /api/v1/platforms HTTP/1.1\r\nHost: a\r\nContent-Length: 4\r\nContent-Length: 5\r\n{auth}\r\n\r\nabcde"
            ),
        ),
        (
            "another host",
            format!("GET http://b/api/v1/platforms HTTP/1.1\r\nHost: a\r\n{auth}\r\n\r\n"),
        ),
        (
            "space before colon",
            "GET /health HTTP/1.1\r\nHost : a\r\n\r\n".to_owned(),
        ),
    ] {
        let answer = server.raw(&head).await;
        assert_eq!(status(&answer), "400", "{claim}: {answer}");
    }
    assert!(world.seen().is_empty());
}

#[tokio::test]
async fn what_follows_a_request_with_both_length_and_chunks_is_no_request() {
    let world = World::new();
    let server = Server::start(world.gateway.clone()).await;
    let answer = server
        .raw(&format!(
            "POST /api/v1/platforms HTTP/1.1\r\nHost: a\r\nContent-Length: 60\r\nTransfer-Encoding: chunked\r\nAuthorization: Bearer {SESSION}\r\n\r\n0\r\n\r\nGET /health HTTP/1.1\r\nHost: a\r\n\r\n"
        ))
        .await;
    assert_eq!(answer.matches("HTTP/1.1 ").count(), 1, "{answer}");
    let seen = world.only();
    assert_eq!(seen.header("content-length"), None);
    assert_eq!(seen.header("transfer-encoding"), None);
}

#[tokio::test]
async fn connect_is_refused_at_the_door() {
    let world = World::new();
    let server = Server::start(world.gateway.clone()).await;
    let answer = server
        .raw("CONNECT evil.test:443 HTTP/1.1\r\nHost: evil.test:443\r\n\r\n")
        .await;
    assert_eq!(status(&answer), "405", "{answer}");
}

#[tokio::test]
async fn heads_that_are_too_large_are_431() {
    let server = Server::start(World::new().gateway.clone()).await;
    let large = format!(
        "GET /health HTTP/1.1\r\nHost: a\r\nX: {}\r\n\r\n",
        "x".repeat(40_000)
    );
    let many = format!(
        "GET /health HTTP/1.1\r\nHost: a\r\n{}\r\n",
        "X: y\r\n".repeat(120)
    );
    for head in [large, many] {
        assert_eq!(status(&server.raw(&head).await), "431");
    }
}

#[tokio::test]
async fn a_service_behind_http_learns_who_calls_from_us_alone() {
    let (service, arrived) = remembering().await;
    let gateway = Server::start(gateway_to(service.address)).await;
    let answer = gateway
        .raw(&format!(
            "PUT /api/v1/platforms/p-1?a=%2F HTTP/1.1\r\nHost: api.example.org\r\nAuthorization: Bearer {SESSION}\r\nX-Core-User-Id: forged\r\nX_Core_User_Id: forged\r\nCookie: a=b\r\nTransfer-Encoding: chunked\r\nConnection: close\r\n\r\n5\r\nhello\r\n0\r\n\r\n"
        ))
        .await;
    assert_eq!(status(&answer), "200", "{answer}");
    assert!(answer.ends_with("from the service"), "{answer}");
    let arrived = arrived.lock().unwrap().clone();
    let seen = &arrived[0];
    assert_eq!(seen.target, "/p-1?a=%2F");
    assert_eq!(seen.body.as_ref().unwrap(), "hello");
    let service_host = service.address.to_string();
    for (name, value) in [
        ("authorization", Some(format!("Bearer {KEY}").as_str())),
        ("x-core-user-id", Some("u-1")),
        ("x-core-role", Some("owner")),
        ("x-core-platform-id", Some("p-1")),
        ("x-core-organization-id", Some("o-1")),
        ("x-core-operator", None),
        ("x-core-client-ip", Some("127.0.0.1")),
        ("x-forwarded-for", Some("127.0.0.1")),
        ("x-forwarded-host", Some("api.example.org")),
        ("x-forwarded-prefix", Some("/api/v1/platforms")),
        ("host", Some(service_host.as_str())),
        ("x_core_user_id", None),
        ("cookie", None),
    ] {
        assert_eq!(seen.header(name), value, "{name}");
    }
}

#[tokio::test]
async fn iam_behind_http_gets_the_clients_own_session() {
    let (service, arrived) = remembering().await;
    let gateway = Server::start(gateway_to(service.address)).await;
    gateway
        .raw(&format!("GET /api/v1/iam/api/auth/get-session HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer {SESSION}\r\nConnection: close\r\n\r\n"))
        .await;
    let arrived = arrived.lock().unwrap().clone();
    let own = format!("Bearer {SESSION}");
    assert_eq!(arrived[0].header("authorization"), Some(own.as_str()));
    assert_eq!(arrived[0].header("x-core-user-id"), None);
}

#[tokio::test]
async fn head_through_http_has_the_length_and_no_body() {
    let (service, _) = remembering().await;
    let gateway = Server::start(gateway_to(service.address)).await;
    for path in ["/api/v1/platforms", "/api/v1/nothing"] {
        let answer = gateway
            .raw(&format!("HEAD {path} HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer {SESSION}\r\nConnection: close\r\n\r\n"))
            .await;
        let (head, body) = answer.split_once("\r\n\r\n").unwrap();
        assert_eq!(body, "", "{answer}");
        assert!(
            !head.to_ascii_lowercase().contains("content-length: 0"),
            "{head}"
        );
    }
}

#[tokio::test]
async fn a_service_that_cannot_be_reached_or_breaks_off_is_502() {
    let gone = TcpListener::bind("127.0.0.1:0")
        .await
        .unwrap()
        .local_addr()
        .unwrap();
    let breaking = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let breaking_at = breaking.local_addr().unwrap();
    tokio::spawn(async move {
        while let Ok((mut stream, _)) = breaking.accept().await {
            let _ = stream.read(&mut [0_u8; 16]).await;
        }
    });
    for address in [gone, breaking_at] {
        let gateway = Server::start(gateway_to(address)).await;
        let answer = gateway
            .raw(&format!("POST /api/v1/platforms HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer {SESSION}\r\nConnection: close\r\nContent-Length: 0\r\n\r\n"))
            .await;
        assert_eq!(status(&answer), "502", "{answer}");
        assert!(answer.contains("UPSTREAM_ERROR") && !answer.contains(&address.to_string()));
    }
}

#[tokio::test]
async fn a_body_that_ends_before_its_length_is_never_completed() {
    let (service, arrived) = remembering().await;
    let gateway = Server::start(gateway_to(service.address)).await;
    let mut stream = TcpStream::connect(gateway.address).await.unwrap();
    let head = format!(
        "POST /api/v1/platforms HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer {SESSION}\r\nContent-Length: 100\r\n\r\nonly this"
    );
    stream.write_all(head.as_bytes()).await.unwrap();
    stream.shutdown().await.unwrap();
    read_all(stream).await;
    // The service is asked again, so that whatever it got of the first request has been dealt with.
    gateway
        .raw(&format!("GET /api/v1/platforms/second HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer {SESSION}\r\nConnection: close\r\n\r\n"))
        .await;
    let whole: Vec<String> = arrived
        .lock()
        .unwrap()
        .iter()
        .filter(|seen| seen.body.is_ok())
        .map(|seen| seen.target.clone())
        .collect();
    assert_eq!(whole, ["/second"]);
}

#[tokio::test]
async fn a_shutdown_lets_running_requests_finish_and_takes_no_more() {
    let (entered, leave) = (Arc::new(Notify::new()), Arc::new(Notify::new()));
    let (inside, may_leave) = (Arc::clone(&entered), Arc::clone(&leave));
    let service = tower::service_fn(move |_: Request<Incoming>| {
        let (inside, may_leave) = (Arc::clone(&inside), Arc::clone(&may_leave));
        async move {
            inside.notify_one();
            may_leave.notified().await;
            Ok::<_, Infallible>(Response::new(bytes_body("finished")))
        }
    });
    let server = Server::start(service).await;
    let address = server.address;
    let mut stream = TcpStream::connect(address).await.unwrap();
    stream
        .write_all(b"GET / HTTP/1.1\r\nHost: a\r\n\r\n")
        .await
        .unwrap();
    entered.notified().await;
    server.stop.send(()).unwrap();
    while TcpStream::connect(address).await.is_ok() {
        tokio::task::yield_now().await;
    }
    leave.notify_one();
    assert!(read_all(stream).await.ends_with("finished"));
    server.running.await.unwrap().unwrap();
}

#[test]
fn an_upstream_address_is_plain_http_without_a_path() {
    for bad in [
        "",
        "127.0.0.1:80",
        "https://a",
        "http://a/path",
        "http://",
        "http://a?x",
    ] {
        assert!(HttpUpstream::new(bad, None).is_err(), "{bad}");
    }
    assert!(HttpUpstream::new("http://127.0.0.1:8082", None).is_ok());
    assert!(HttpUpstream::new("http://registry.internal", None).is_ok());
}
