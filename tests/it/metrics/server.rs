//! The metrics of a real process.

use http::Method;

use super::exposition::{Exposition, promtool};
use crate::world::{Call, Installation, SERVICE_KEY, Server};

const OPEN_METRICS: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";

#[tokio::test]
async fn a_server_shows_its_metrics_on_a_port_of_their_own() {
    let data = tempfile::tempdir().unwrap();
    let server = Server::start(data.path(), &[]).await;
    for _ in 0..2 {
        let _ = server
            .get(SERVICE_KEY, "/api/v1/platforms")
            .await
            .expect(200);
    }
    let _ = server
        .send("gateway", Call::get("/api/v1/platforms"))
        .await
        .expect(401);
    let scraped = server
        .send("metrics", Call::get("/metrics"))
        .await
        .expect(200);
    assert_eq!(scraped.header("content-type"), OPEN_METRICS);
    let text = std::str::from_utf8(&scraped.bytes).unwrap();
    assert!(text.ends_with("# EOF\n"));
    let seen = Exposition::parse(text);
    let route = ("route", "/api/v1/platforms");
    for (status, expected) in [("2xx", 2.0), ("4xx", 1.0)] {
        let labels = [route, ("status", status)];
        assert_eq!(seen.sum("core_gateway_requests_total", &labels), expected);
    }
    assert_eq!(
        seen.sum("core_build_info", &[("version", env!("CARGO_PKG_VERSION"))]),
        1.0
    );
    if cfg!(target_os = "linux") {
        for name in [
            "cpu_seconds_total",
            "resident_memory_bytes",
            "open_fds",
            "max_fds",
            "threads",
            "start_time_seconds",
        ] {
            let name = format!("process_{name}");
            assert!(seen.sum(&name, &[]) > 0.0, "{name}");
        }
    }
    for (path, status) in [
        ("/livez", 200),
        ("/readyz", 200),
        ("/health", 404),
        ("/", 404),
        ("/metrics/x", 404),
    ] {
        let _ = server.send("metrics", Call::get(path)).await.expect(status);
    }
    let post = Call::get("/metrics").by(&Method::POST);
    let _ = server.send("metrics", post).await.expect(405);
    let head = server.send("metrics", Call::get("/metrics").by(&Method::HEAD));
    assert!(head.await.expect(200).bytes.is_empty());
    for service in ["gateway", "registry"] {
        let hidden = Call::get("/metrics").bearer(SERVICE_KEY);
        let _ = server.send(service, hidden).await.expect(404);
    }
    assert!(server.terminate().await.success());
}

#[tokio::test]
async fn promtool_accepts_what_a_server_shows() {
    let data = tempfile::tempdir().unwrap();
    let server = Server::start(data.path(), &[]).await;
    let _ = server
        .get(SERVICE_KEY, "/api/v1/platforms")
        .await
        .expect(200);
    let classic =
        Call::get("/metrics").header("accept", "text/plain;version=0.0.4;q=0.5,*/*;q=0.1");
    let scraped = server.send("metrics", classic).await.expect(200);
    assert_eq!(
        scraped.header("content-type"),
        "text/plain; version=0.0.4; charset=utf-8"
    );
    let text = std::str::from_utf8(&scraped.bytes).unwrap();
    promtool(data.path(), &["check", "metrics"], text);
    assert!(server.terminate().await.success());
}

#[tokio::test]
async fn metrics_are_bound_to_loopback_unless_another_address_is_chosen() {
    let data = tempfile::tempdir().unwrap();
    let bind = ["--bind", "127.0.0.2", "--metrics-bind", "127.0.0.3"];
    let server = Server::start(data.path(), &bind).await;
    assert!(server.url("gateway").starts_with("http://127.0.0.2:"));
    assert!(server.url("metrics").starts_with("http://127.0.0.3:"));
    assert!(server.terminate().await.success());
    let server = Server::start(data.path(), &["--bind", "127.0.0.2"]).await;
    assert!(server.url("metrics").starts_with("http://127.0.0.1:"));
    assert!(server.terminate().await.success());
}

#[tokio::test]
async fn slow_units_of_work_are_logged_with_the_id_of_their_request() {
    let data = tempfile::tempdir().unwrap();
    let arguments = ["--set", "settings.metrics.slow_unit=0s"];
    let environment = [
        ("AUTH_API_KEY", SERVICE_KEY.to_owned()),
        ("RUST_LOG", "warn,core::gateway=info".to_owned()),
    ];
    let server = Server::start_with(data.path(), &arguments, &environment).await;
    let call = Call::get("/api/v1/platforms").bearer(SERVICE_KEY);
    let call = call.header("x-request-id", "the-slow-request");
    let _ = server.send("gateway", call).await.expect(200);
    let (status, log) = server.terminate_with_log().await;
    assert!(status.success());
    let is_logged = |line: &str| {
        line.contains("a unit of work took long")
            && line.contains("\"mode\":")
            && line.contains("\"duration_ms\":")
            && line.contains("\"statements\":\"")
            && line.contains("SELECT")
            && line.contains("the-slow-request")
    };
    assert!(log.lines().any(is_logged), "{log}");
}
