//! The suite inside a program that has a hyper server of its own: `/api/*` is the suite's gateway, the rest is the host's.
//!
//! `cargo run -p core-embed` serves on 127.0.0.1:3000; `cargo run -p core-embed -- --check` answers two requests to
//! itself and ends, so that a test can run it.

use std::convert::Infallible;
use std::net::SocketAddr;

use core_suite::{Suite, bytes_body};
use http::{Request, Response};
use http_body_util::BodyExt;
use hyper::body::Incoming;
use hyper_util::rt::{TokioExecutor, TokioIo};
use hyper_util::server::conn::auto;
use hyper_util::service::TowerToHyperService;
use tokio::net::TcpListener;
use tower::{ServiceExt, service_fn};

type Failure = Box<dyn std::error::Error + Send + Sync>;

#[tokio::main]
async fn main() -> Result<(), Failure> {
    let suite = Suite::builder().in_memory().build().await?;
    let gateway = suite.gateway();

    let host = service_fn(move |request: Request<Incoming>| {
        let gateway = gateway.clone();
        async move {
            if request.uri().path().starts_with("/api/") {
                return gateway.oneshot(request).await;
            }
            Ok::<_, Infallible>(Response::new(bytes_body("the host program's own page\n")))
        }
    });

    let check = std::env::args().any(|argument| argument == "--check");
    let listener = TcpListener::bind(("127.0.0.1", if check { 0 } else { 3000 })).await?;
    let address = listener.local_addr()?;
    let server = tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            let service = TowerToHyperService::new(host.clone());
            tokio::spawn(async move {
                let _ = auto::Builder::new(TokioExecutor::new())
                    .serve_connection(TokioIo::new(stream), service)
                    .await;
            });
        }
    });
    say(&format!(
        "listening on http://{address}; try /api/v1/platforms"
    ));
    if check {
        check_itself(address).await?;
    } else {
        server.await?;
    }
    suite.shutdown().await;
    Ok(())
}

/// Asks for the host's page and for one of the suite's.
async fn check_itself(address: SocketAddr) -> Result<(), Failure> {
    let client = hyper_util::client::legacy::Client::builder(TokioExecutor::new())
        .build_http::<http_body_util::Empty<&[u8]>>();
    for path in ["/", "/api/v1/platforms"] {
        let answer = client
            .get(format!("http://{address}{path}").parse()?)
            .await?;
        let status = answer.status();
        let body = answer.into_body().collect().await?.to_bytes();
        say(&format!(
            "GET {path} -> {status} {}",
            String::from_utf8_lossy(&body).trim_end()
        ));
        if !status.is_success() {
            return Err(format!("{path} answered {status}").into());
        }
    }
    Ok(())
}

#[expect(clippy::print_stdout, reason = "a program for people")]
fn say(line: &str) {
    println!("{line}");
}
