//! Embeds the suite in a program with its own pages: the gateway serves `/api/*`, the host program serves all other
//! paths.
//!
//! `AUTH_API_KEY=$(openssl rand -hex 32) cargo run -p core-embed` serves on 127.0.0.1:3000 until Ctrl-C. `cargo run -p
//! core-embed -- --check` sends three requests to itself and exits, so that a test can run it.
//!
//! # Security
//! - **A service key.** Without one, every request is accepted unauthenticated. That is fine for a test, but not for a
//!   server that others can reach.
//! - **[`core_suite::serve`]** instead of an own accept loop. It passes the address of each client to the suite (the
//!   extension `PeerAddr`). Without it all clients share one rate limit, and one client can use it up. It disconnects
//!   clients that are slow to send a request or to read the response, and limits the number of connections.
//!
//! A host that must keep its own server does the same there: it inserts `PeerAddr`, sets a time limit for request
//! heads, and limits connections. With a proxy in front, name it with `SuiteBuilder::trusted_proxies`;
//! `X-Forwarded-For` of all other clients is ignored.

use std::convert::Infallible;
use std::net::SocketAddr;
use std::time::Duration;

use core_suite::{IncomingBody, ServeOptions, Suite, bytes_body};
use http::{Request, Response};
use http_body_util::{BodyExt, Empty};
use hyper_util::client::legacy::Client;
use hyper_util::rt::TokioExecutor;
use tokio::net::TcpListener;
use tower::{ServiceExt, service_fn};

type Failure = Box<dyn std::error::Error + Send + Sync>;

const KEY_OF_THE_CHECK: &str = "a-key-for-the-check-alone";

#[tokio::main]
async fn main() -> Result<(), Failure> {
    let check = std::env::args().any(|argument| argument == "--check");
    let key = if check {
        KEY_OF_THE_CHECK.to_owned()
    } else {
        let key = std::env::var_os("AUTH_API_KEY").and_then(|key| key.into_string().ok());
        key.ok_or("set AUTH_API_KEY to at least 16 characters; `openssl rand -hex 32` generates a good key")?
    };
    let suite = Suite::builder()
        .in_memory()
        .service_key(key)
        .build()
        .await?;
    let gateway = suite.gateway();
    let host = service_fn(move |request: Request<IncomingBody>| {
        let gateway = gateway.clone();
        async move {
            if request.uri().path().starts_with("/api/") {
                return gateway.oneshot(request).await;
            }
            Ok::<_, Infallible>(Response::new(bytes_body("the host program's own page\n")))
        }
    });

    let listener = TcpListener::bind(("127.0.0.1", if check { 0 } else { 3000 })).await?;
    let address = listener.local_addr()?;
    print_line(&format!(
        "listening on http://{address}; try /api/v1/platforms"
    ));
    let limits = ServeOptions {
        max_connections: 256,
        header_timeout: Duration::from_secs(5),
        ..ServeOptions::default()
    };
    let mut checked = Ok(());
    let until = async {
        if check {
            checked = check_itself(address).await;
        } else if let Err(error) = tokio::signal::ctrl_c().await {
            checked = Err(error.into());
        }
    };
    core_suite::serve(listener, host, until, limits).await?;
    suite.shutdown().await;
    checked
}

/// Requests the host's page, and a page of the suite without and with the key.
async fn check_itself(address: SocketAddr) -> Result<(), Failure> {
    let client = Client::builder(TokioExecutor::new()).build_http::<Empty<&[u8]>>();
    let platforms = "/api/v1/platforms";
    for (path, key, expected) in [
        ("/", "", 200),
        (platforms, "", 401),
        (platforms, KEY_OF_THE_CHECK, 200),
    ] {
        let mut request = Request::get(format!("http://{address}{path}"));
        if !key.is_empty() {
            request = request.header("authorization", format!("Bearer {key}"));
        }
        let answer = client.request(request.body(Empty::new())?).await?;
        let status = answer.status();
        let body = answer.into_body().collect().await?.to_bytes();
        let body = String::from_utf8_lossy(&body);
        print_line(&format!("GET {path} -> {status} {}", body.trim_end()));
        if status != expected {
            return Err(format!("{path} returned {status}, expected {expected}").into());
        }
    }
    Ok(())
}

#[expect(clippy::print_stdout, reason = "the output of this program")]
fn print_line(line: &str) {
    println!("{line}");
}
