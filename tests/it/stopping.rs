//! A server that is asked to stop: readiness fails first, then everything drains at the same time, and no more jobs are
//! claimed.

use std::time::{Duration, Instant};

use core_domain::kernel::{JobId, TextValue};
use core_domain::port::Mode;
use core_domain::provisioning::{Job, JobStatus};
use core_storage::sqlite;
use core_suite::SystemClock;
use serde_json::json;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use crate::world::{
    ALL_JOBS, Call, Installation, PlatformMember, SERVICE_KEY, Server, list, sign_up,
};

/// Long enough for some requests, even on a busy machine.
const DELAY: [&str; 2] = ["--set", "settings.listener.drain_delay=8s"];

/// Waits until a service reports that it is not ready.
async fn assert_not_ready(server: &Server, service: &str) {
    loop {
        let answer = server.send(service, Call::get("/readyz")).await;
        if answer.status == 503 {
            return;
        }
        let _ = answer.expect(200);
    }
}

/// Opens an event stream through the gateway, and reads until its first comment or event.
async fn open_event_stream(server: &Server, person: &PlatformMember) -> TcpStream {
    let url = server.url("gateway");
    let mut stream = TcpStream::connect(url.strip_prefix("http://").unwrap())
        .await
        .unwrap();
    let token = &person.token;
    let request = format!(
        "GET /api/v1/platforms/events HTTP/1.1\r\nhost: a\r\nauthorization: Bearer {token}\r\n\r\n"
    );
    stream.write_all(request.as_bytes()).await.unwrap();
    let mut read = Vec::new();
    while !read.ends_with(b"\r\n\r\n") {
        read.push(stream.read_u8().await.unwrap());
    }
    assert!(read.starts_with(b"HTTP/1.1 200 "));
    stream
}

/// Reads until the end of a response. Returns whether it ended properly and was not cut off.
async fn ends(mut stream: TcpStream) -> bool {
    let mut rest = Vec::new();
    stream.read_to_end(&mut rest).await.is_ok() && rest.ends_with(b"0\r\n\r\n")
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn line_55_readiness_fails_on_every_listener_before_any_closes_and_followers_are_ended() {
    let data = tempfile::tempdir().unwrap();
    let server = Server::start(data.path(), &DELAY).await;
    let person = sign_up(&server, "engines", "Engines").await;
    let follower = open_event_stream(&server, &person).await;
    server.signal("TERM").await;
    for service in [
        "gateway",
        "iam",
        "registry",
        "provisioning",
        "cli",
        "stacks",
    ] {
        assert_not_ready(&server, service).await;
        let alive = server.send(service, Call::get("/livez")).await;
        let alive = alive.expect(200);
        assert_eq!(alive.header("connection"), "close");
    }
    // Requests are served until the load balancer has noticed.
    let _ = server.get(&person.token, &person.at("")).await.expect(200);
    assert!(ends(follower).await, "the follower was cut off");
    assert!(server.wait_for_exit().await.success());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_job_is_claimed_after_sigterm() {
    let data = tempfile::tempdir().unwrap();
    let database = data.path().join("core.sqlite");
    let server = Server::start(data.path(), &DELAY).await;
    let platform = PlatformMember::operating(&server, "engines").await;
    server.signal("TERM").await;
    assert_not_ready(&server, "provisioning").await;
    let body = json!({
        "platformId": platform.platform,
        "planTier": "starter",
        "billingEmail": "ada@example.org",
    });
    let call = Call::post("/api/v1/provision/platform", &body).bearer(SERVICE_KEY);
    let queued = server.send("provisioning", call).await.expect(202);
    let id = JobId::from_text(queued.text("jobId")).unwrap();
    assert!(server.wait_for_exit().await.success());

    let config = sqlite::SqliteConfig::new(database, std::sync::Arc::new(SystemClock), [7; 32]);
    let store = sqlite::open(config).await.unwrap();
    let mut uow = store.begin(Mode::Read).await.unwrap();
    let jobs: Vec<Job> = list(uow.as_mut(), ALL_JOBS).await;
    uow.rollback().await;
    let job = jobs.iter().find(|job| job.id == id).unwrap();
    assert_eq!((job.status, job.fence), (JobStatus::Queued, 0));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn listeners_and_the_worker_drain_at_the_same_time() {
    const DRAIN: Duration = Duration::from_secs(8);
    let data = tempfile::tempdir().unwrap();
    let slow = ["--local-latency-ms", "60000"];
    let drains = [
        "--set",
        "settings.listener.drain=8s",
        "--set",
        "settings.worker.drain=8s",
    ];
    let server = Server::start(data.path(), &[&slow[..], &drains].concat()).await;
    let person = sign_up(&server, "engines", "Engines").await;
    let job = person.job(&server).await;
    // A step takes a minute, and a request waits for it.
    let url = server.url("provisioning");
    let mut waiting = TcpStream::connect(url.strip_prefix("http://").unwrap())
        .await
        .unwrap();
    let request = format!(
        "GET /api/v1/provision/jobs/{job}?wait=24 HTTP/1.1\r\nhost: a\r\nauthorization: Bearer {SERVICE_KEY}\r\n\r\n"
    );
    waiting.write_all(request.as_bytes()).await.unwrap();
    let path = format!("/api/v1/provision/jobs/{job}");
    loop {
        let shown = Call::get(path.clone()).bearer(SERVICE_KEY);
        let shown = server.send("provisioning", shown).await.expect(200);
        if shown.text("status") == "RUNNING" {
            break;
        }
    }
    let began = Instant::now();
    assert!(server.terminate().await.success());
    let took = began.elapsed();
    assert!(took >= DRAIN, "{took:?}");
    assert!(took < DRAIN * 2, "drained one after the other: {took:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn line_55_a_second_signal_ends_the_process_at_once() {
    for second in ["TERM", "INT"] {
        let data = tempfile::tempdir().unwrap();
        let server = Server::start(data.path(), &DELAY).await;
        server.signal("TERM").await;
        assert_not_ready(&server, "gateway").await;
        server.signal(second).await;
        // A process that drains exits with 0.
        assert_eq!(server.wait_for_exit().await.code(), Some(1));
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn line_55_the_log_is_written_to_its_end_before_the_process_exits() {
    let data = tempfile::tempdir().unwrap();
    let environment = [
        ("AUTH_API_KEY", SERVICE_KEY.to_owned()),
        ("RUST_LOG", "info".to_owned()),
    ];
    let server = Server::start_with(data.path(), &[], &environment).await;
    for _ in 0..50 {
        let _ = server
            .send("gateway", Call::get("/health"))
            .await
            .expect(200);
    }
    let (status, log) = server.terminate_with_log().await;
    assert!(status.success());
    let logged = |text: &str| log.matches(text).count();
    assert_eq!(logged("\"route\":\"/health\""), 50, "{log}");
    assert_eq!(logged("\"draining\""), 1, "{log}");
}
