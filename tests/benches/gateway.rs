//! Requests per second of `GET /api/v1/platforms/{id}` through the gateway with a session, over real sockets, against a
//! bare hyper answer of the same bytes in the same run: `cargo bench -p core-tests`.
//!
//! Run by a test runner (without `--bench`) it asks a few times only, to see that it works.

#![expect(
    clippy::unwrap_used,
    clippy::print_stdout,
    reason = "a program for people; it ends by panicking when something is wrong"
)]

use std::convert::Infallible;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use bytes::Bytes;
use core_domain::gateway::RateKind;
use core_suite::{IncomingBody, ServeOptions, Suite, SuiteBuilder, bytes_body};
use http::{Request, Response};
use http_body_util::{BodyExt, Empty, Full};
use hyper::client::conn::http1::SendRequest;
use hyper_util::rt::TokioIo;
use serde_json::{Value, json};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tower::{ServiceExt, service_fn};

const CONNECTIONS: usize = 16;
const ROUNDS: usize = 3;
const IAM: &str = "http://iam.bench.test";

struct Measure {
    warm_up: Duration,
    duration: Duration,
}

/// A signed-up person with a platform.
struct Person {
    token: String,
    platform: String,
}

#[tokio::main]
async fn main() {
    let asked_for = std::env::args().any(|argument| argument == "--bench");
    let measure = if asked_for {
        Measure {
            warm_up: Duration::from_secs(1),
            duration: Duration::from_secs(4),
        }
    } else {
        Measure {
            warm_up: Duration::ZERO,
            duration: Duration::from_millis(50),
        }
    };
    let folder = tempfile::tempdir().unwrap();
    let memory = suite(Suite::builder().in_memory()).await;
    let sqlite = suite(Suite::builder().sqlite(folder.path().join("bench.sqlite"))).await;
    let in_memory = person(&memory).await;
    let in_sqlite = person(&sqlite).await;
    let same_bytes = ask_in_process(&memory, &in_memory).await;

    let (stop, stopped) = watch::channel(false);
    let bare = service_fn(move |_: Request<IncomingBody>| {
        let bytes = same_bytes.clone();
        async move { Ok::<_, Infallible>(Response::new(bytes_body(bytes))) }
    });
    let bare = listen(bare, &stopped).await;
    let memory_address = listen(memory.gateway(), &stopped).await;
    let sqlite_address = listen(sqlite.gateway(), &stopped).await;

    println!(
        "{:8} {:>12} {:>12} {:>12}",
        "round", "bare hyper", "memory", "SQLite"
    );
    for round in 1..=ROUNDS {
        let hyper = requests_per_second(bare, &in_memory, &measure).await;
        let memory = requests_per_second(memory_address, &in_memory, &measure).await;
        let sqlite = requests_per_second(sqlite_address, &in_sqlite, &measure).await;
        println!(
            "{round:<8} {hyper:>12.0} {memory:>12.0} {sqlite:>12.0}   {:.2} and {:.2} of bare hyper",
            memory / hyper,
            sqlite / hyper
        );
        if !asked_for {
            break;
        }
    }
    let _ = stop.send(true);
    memory.shutdown().await;
    sqlite.shutdown().await;
}

async fn suite(builder: SuiteBuilder) -> Suite {
    builder
        .iam_url(IAM)
        .service_key("bench-service-key")
        .settings(|settings| {
            for kind in [RateKind::Default, RateKind::Client] {
                let minute = Duration::from_secs(60);
                let rates = &mut settings.gateway.rates;
                rates.set(kind, u32::MAX, minute).unwrap();
            }
        })
        .build()
        .await
        .unwrap()
}

async fn post(suite: &Suite, path: &str, cookie: &str, body: &Value) -> (Value, String) {
    let request = Request::post(path)
        .header("content-type", "application/json")
        .header("origin", IAM)
        .header("cookie", cookie)
        .body(Full::new(Bytes::from(body.to_string())))
        .unwrap();
    let answer = suite.iam().oneshot(request).await.unwrap();
    assert!(answer.status().is_success(), "{path}: {}", answer.status());
    let cookie = answer.headers().get("set-cookie").map(|cookie| {
        let cookie = cookie.to_str().unwrap();
        cookie.split(';').next().unwrap().to_owned()
    });
    let body = answer.into_body().collect().await.unwrap().to_bytes();
    (
        serde_json::from_slice(&body).unwrap(),
        cookie.unwrap_or_default(),
    )
}

async fn person(suite: &Suite) -> Person {
    let sign_up =
        json!({ "name": "Ada", "email": "ada@example.org", "password": "correct horse battery" });
    let (signed_up, cookie) = post(suite, "/api/auth/sign-up/email", "", &sign_up).await;
    let setup = json!({ "name": "Engines", "slug": "engines" });
    let (organization, _) = post(suite, "/api/core/org-setup", &cookie, &setup).await;
    Person {
        token: signed_up["token"].as_str().unwrap().to_owned(),
        platform: organization["platformId"].as_str().unwrap().to_owned(),
    }
}

fn question(person: &Person) -> Request<Empty<Bytes>> {
    Request::get(format!("/api/v1/platforms/{}", person.platform))
        .header("host", "bench.test")
        .header("authorization", format!("Bearer {}", person.token))
        .body(Empty::new())
        .unwrap()
}

async fn ask_in_process(suite: &Suite, person: &Person) -> Bytes {
    let answer = suite.gateway().oneshot(question(person)).await.unwrap();
    assert_eq!(answer.status(), 200);
    answer.into_body().collect().await.unwrap().to_bytes()
}

async fn listen<S, B>(service: S, stopped: &watch::Receiver<bool>) -> SocketAddr
where
    S: tower::Service<Request<IncomingBody>, Response = Response<B>, Error = Infallible>
        + Clone
        + Send
        + 'static,
    S::Future: Send,
    B: http_body::Body<Data: Send, Error: Into<core_suite::BoxError>> + Send + 'static,
{
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let mut stopped = stopped.clone();
    let shutdown = async move {
        let _ = stopped.wait_for(|stopped| *stopped).await;
    };
    tokio::spawn(core_suite::serve(
        listener,
        service,
        shutdown,
        ServeOptions::default().with_drain(Duration::ZERO),
    ));
    address
}

async fn connect(address: SocketAddr) -> SendRequest<Empty<Bytes>> {
    let stream = TcpStream::connect(address).await.unwrap();
    stream.set_nodelay(true).unwrap();
    let (sender, connection) = hyper::client::conn::http1::handshake(TokioIo::new(stream))
        .await
        .unwrap();
    tokio::spawn(connection);
    sender
}

async fn requests_per_second(address: SocketAddr, person: &Person, measure: &Measure) -> f64 {
    let answered = Arc::new(AtomicU64::new(0));
    let over = Arc::new(AtomicBool::new(false));
    let mut clients = Vec::new();
    for _ in 0..CONNECTIONS {
        let mut connection = connect(address).await;
        let request = question(person);
        let (answered, over) = (Arc::clone(&answered), Arc::clone(&over));
        clients.push(tokio::spawn(async move {
            while !over.load(Ordering::Relaxed) {
                connection.ready().await.unwrap();
                let answer = connection.send_request(request.clone()).await.unwrap();
                assert_eq!(answer.status(), 200);
                answer.into_body().collect().await.unwrap();
                answered.fetch_add(1, Ordering::Relaxed);
            }
        }));
    }
    tokio::time::sleep(measure.warm_up).await;
    let before = answered.load(Ordering::Relaxed);
    let since = Instant::now();
    tokio::time::sleep(measure.duration).await;
    let count = answered.load(Ordering::Relaxed) - before;
    let seconds = since.elapsed().as_secs_f64();
    over.store(true, Ordering::Relaxed);
    for client in clients {
        client.await.unwrap();
    }
    f64::from(u32::try_from(count).unwrap()) / seconds
}
