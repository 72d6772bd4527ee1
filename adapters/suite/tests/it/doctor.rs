//! The checks of other services and of the collector of traces.

use std::convert::Infallible;

use core_otel::testing::TestCollector;
use core_suite::doctor::{Finding, Severity, check_service};
use core_suite::{OtlpConfig, ServeOptions, Suite, serve};
use http::{Request, Response, StatusCode};
use tokio::net::TcpListener;

/// Serves this service on a free port. Returns its URL.
async fn serve_at_free_port<S>(service: S) -> String
where
    S: tower::Service<
            Request<core_suite::IncomingBody>,
            Response = Response<core_suite::Body>,
            Error = Infallible,
        > + Clone
        + Send
        + 'static,
    S::Future: Send,
{
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    let stop = std::future::pending();
    tokio::spawn(serve(listener, service, stop, ServeOptions::default()));
    url
}

/// Serves a fixed response.
async fn serve_response(status: StatusCode, body: &'static str) -> String {
    let service = tower::service_fn(move |_: Request<core_suite::IncomingBody>| async move {
        let mut response = Response::new(core_suite::bytes_body(body));
        *response.status_mut() = status;
        Ok::<_, Infallible>(response)
    });
    serve_at_free_port(service).await
}

#[tokio::test]
async fn a_service_is_fine_only_if_it_is_ready_and_each_failure_says_what_to_do() {
    let suite = Suite::builder().in_memory().build().await.unwrap();
    let billing = serve_at_free_port(suite.billing()).await;
    let fine = check_service("billing", &billing).await;
    assert_eq!(fine.severity, Severity::Fine, "{fine}");
    let closed = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let closed_url = format!("http://{}", closed.local_addr().unwrap());
    drop(closed);
    let unavailable = StatusCode::SERVICE_UNAVAILABLE;
    for (url, advice) in [
        (closed_url, "start it"),
        (serve_at_free_port(suite.iam()).await, "correct its URL"),
        (
            serve_response(StatusCode::OK, "hello").await,
            "correct its URL",
        ),
        (
            serve_response(StatusCode::NOT_FOUND, "").await,
            "correct its URL",
        ),
        (
            serve_response(unavailable, r#"{"status":"stopping"}"#).await,
            "wait",
        ),
        (
            serve_response(unavailable, r#"{"status":"degraded"}"#).await,
            "run doctor",
        ),
        (serve_response(unavailable, "").await, "look at its log"),
        ("not a url".to_owned(), "valid URL"),
    ] {
        let found = check_service("billing", &url).await;
        assert_eq!(found.severity, Severity::Failure, "{found}");
        assert!(found.text.contains(advice), "{advice}: {found}");
    }
    suite.shutdown().await;
}

#[tokio::test(start_paused = true)]
async fn a_service_that_accepts_connections_and_does_not_respond_is_a_failure() {
    // The system accepts connections to it.
    let silent = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}", silent.local_addr().unwrap());
    let found = check_service("iam", &url).await;
    assert!(found.text.contains("does not respond"), "{found}");
}

async fn trace_finding(config: OtlpConfig) -> Option<Finding> {
    let found = Suite::builder().in_memory().otlp(config).diagnose().await;
    found
        .into_iter()
        .find(|finding| finding.subject == "traces")
}

#[tokio::test]
async fn the_collector_of_traces_is_asked_whether_it_accepts_requests() {
    let collector = TestCollector::start().await.unwrap();
    let config = OtlpConfig::of_collector(&collector.url());
    let found = trace_finding(config.clone()).await.unwrap();
    assert_eq!(found.severity, Severity::Fine, "{found}");
    collector.set_status(StatusCode::UNAUTHORIZED);
    let found = trace_finding(config.clone()).await.unwrap();
    assert!(
        found.severity == Severity::Failure && found.text.contains("401"),
        "{found}"
    );
    collector.stop().await;
    let found = trace_finding(config).await.unwrap();
    assert!(
        found.severity == Severity::Failure && found.text.contains("4318"),
        "{found}"
    );
    let without = Suite::builder().in_memory().diagnose().await;
    assert!(without.iter().all(|finding| finding.subject != "traces"));
}
