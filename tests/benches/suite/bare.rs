//! The reference for all requests: a hyper server that responds `ok`.

use std::convert::Infallible;

use bytes::Bytes;
use http::{Request, Response};
use http_body_util::Full;
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use serde_json::json;
use tokio::net::TcpListener;

use crate::harness::cpu::Cores;
use crate::harness::http::request;
use crate::harness::load::{Target, always};
use crate::harness::process::{Process, address, print_message, wait_for_end};

/// Starts the server in its own process.
pub(crate) fn start() -> (Process, Target) {
    let mut process = Process::in_role("bare", &json!({}), Cores::Server);
    let target = Target {
        address: address(&process.wait_for("ready")),
        process: process.id(),
        requests: always(request("GET", "/", &[], &[])),
    };
    (process, target)
}

/// The role of that process.
pub(crate) async fn serve() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    print_message("ready", &json!(url));
    tokio::spawn(async move {
        loop {
            let (stream, _) = listener.accept().await.unwrap();
            stream.set_nodelay(true).unwrap();
            let connection = http1::Builder::new();
            let answer = service_fn(ok);
            // A client that disconnects ends only its own connection.
            tokio::spawn(connection.serve_connection(TokioIo::new(stream), answer));
        }
    });
    wait_for_end().await;
}

async fn ok(_: Request<Incoming>) -> Result<Response<Full<Bytes>>, Infallible> {
    Ok(Response::new(Full::new(Bytes::from_static(b"ok"))))
}
