//! Tests of the site host on a real socket.

use std::net::SocketAddr;
use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::oneshot;

use crate::support::{World, world};

struct RunningHost {
    world: World,
    address: SocketAddr,
    /// The host stops when this is dropped.
    _stop: oneshot::Sender<()>,
}

async fn start_host() -> RunningHost {
    let world = world().await;
    world.project("acme-site").await;
    world
        .deploy(
            "acme-site",
            "d-1",
            &[("index.html", "front"), ("a.txt", "text")],
        )
        .await;
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let (stop, stopped) = oneshot::channel::<()>();
    let shutdown = async { drop(stopped.await) };
    let host = world.infra.site_host();
    let options = core_http::ServeOptions::default().with_drain(Duration::ZERO);
    tokio::spawn(core_http::serve(listener, host, shutdown, options));
    RunningHost {
        world,
        address,
        _stop: stop,
    }
}

/// Sends a raw request on a new connection and reads until the server closes it.
pub(crate) async fn exchange(address: SocketAddr, request: &str) -> String {
    let mut stream = TcpStream::connect(address).await.unwrap();
    stream.write_all(request.as_bytes()).await.unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).await.unwrap();
    answer
}

pub(crate) fn request(line: &str, host: &str) -> String {
    format!("{line} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n")
}

#[tokio::test]
async fn site_is_served_by_host_and_not_by_path() {
    let host = start_host().await;
    let by_host = request("GET /a.txt", "acme-site.localhost:8090");
    let answer = exchange(host.address, &by_host).await;
    assert!(answer.starts_with("HTTP/1.1 200 OK\r\n"), "{answer}");
    assert!(answer.ends_with("\r\n\r\ntext"), "{answer}");
    assert!(answer.contains("content-length: 4\r\n"), "{answer}");
    let by_path = request("GET /acme-site/a.txt", "127.0.0.1:8090");
    let answer = exchange(host.address, &by_path).await;
    assert!(answer.starts_with("HTTP/1.1 404 "), "{answer}");
}

#[tokio::test]
async fn raw_path_traversal_is_refused() {
    let host = start_host().await;
    for path in [
        "/../../secret",
        "/%2e%2e/%2e%2e/secret",
        "/..%2fsecret",
        "//etc/passwd",
        "/a.txt/../../x",
    ] {
        let line = format!("GET {path}");
        let answer = exchange(host.address, &request(&line, "acme-site.localhost")).await;
        let code = answer.split(' ').nth(1).unwrap();
        assert!(code == "404" || code == "400", "{path}: {answer}");
    }
}

#[tokio::test]
async fn next_request_on_a_connection_sees_the_new_deployment() {
    let host = start_host().await;
    let mut stream = TcpStream::connect(host.address).await.unwrap();
    let ask = "GET /a.txt HTTP/1.1\r\nHost: acme-site.localhost\r\n\r\n";
    for (key, text) in [("d-2", "next"), ("d-3", "last")] {
        host.world
            .deploy("acme-site", key, &[("a.txt", text)])
            .await;
        stream.write_all(ask.as_bytes()).await.unwrap();
        let mut answer = String::new();
        while !answer.ends_with(text) {
            let mut buffer = [0; 1024];
            let length = stream.read(&mut buffer).await.unwrap();
            assert_ne!(length, 0, "{answer}");
            answer.push_str(std::str::from_utf8(&buffer[..length]).unwrap());
        }
    }
}
