//! The spans of requests and jobs, from the gateway to the worker.

use std::sync::Arc;
use std::time::Duration;

use core_domain::gateway::{SpanId, TraceId};
use core_domain::port::{AttributeValue, Span, SpanKind};
use core_domain::testing::{MemoryInfrastructure, MemorySpans};
use core_http::kernel::testing::Answer;
use core_otel::testing::TestCollector;
use core_suite::{OtlpConfig, ServeOptions, Suite, SuiteService, serve};
use http::Request;
use serde_json::{Value, json};
use tokio::net::TcpListener;
use tokio::sync::oneshot;

use crate::world::{SERVICE_KEY, World, builder, in_time, json_body, request, send};

const TRACE: &str = "4bf92f3577b34da6a3ce929d0e0e4736";
const PARENT: &str = "00f067aa0ba902b7";
const PLATFORM: &str = "/api/v1/platforms/{platformId}";

/// Returns a traceparent of a client with these flags.
fn traceparent(flags: &str) -> String {
    format!("00-{TRACE}-{PARENT}-{flags}")
}

/// Starts a suite whose spans are kept. `ratio` is the share of sampled traces.
async fn tracing_world(ratio: f64) -> (World, Arc<MemorySpans>) {
    let spans = Arc::<MemorySpans>::default();
    let sink = Arc::clone(&spans);
    let world = World::with(|builder| {
        builder
            .infrastructure(Arc::new(MemoryInfrastructure::default()))
            .settings(|settings| settings.traces.ratio = ratio)
            .span_sink(sink)
    });
    (world.await, spans)
}

fn with_traceparent(builder: http::request::Builder, flags: &str) -> http::request::Builder {
    builder.header("traceparent", traceparent(flags))
}

fn text(value: &str) -> Option<AttributeValue> {
    Some(AttributeValue::from(value))
}

/// Returns the single span with this name.
fn span<'s>(spans: &'s [Span], kind: SpanKind, name: &str) -> &'s Span {
    let mut found = spans
        .iter()
        .filter(|span| span.kind == kind && span.name == name);
    let first = found
        .next()
        .unwrap_or_else(|| panic!("{name} in {spans:#?}"));
    assert!(found.next().is_none(), "{name} twice in {spans:#?}");
    first
}

/// Waits for a job.
async fn wait_for_job(world: &World, id: &str) {
    let path = format!("/api/v1/provision/jobs/{id}?wait=5");
    in_time(async {
        loop {
            let asked = json_body(request("GET", &path, SERVICE_KEY), &Value::Null);
            let job = send(world.suite.provisioning(), asked).await.expect(200);
            match job.text("status") {
                "COMPLETED" => return,
                "FAILED" => panic!("{}", job.json),
                _ => {}
            }
        }
    })
    .await;
}

#[tokio::test]
async fn a_request_its_service_and_its_job_are_one_trace() {
    let (world, kept) = tracing_world(1.0).await;
    let platform = world.platform("shop").await;
    let before = kept.spans().len();
    let body =
        json!({ "platformId": platform, "planTier": "starter", "billingEmail": "ada@example.org" });
    let path = "/api/v1/provisioning/platform?secret=1";
    let asked = with_traceparent(request("POST", path, SERVICE_KEY), "01");
    let queued = send(world.suite.gateway(), json_body(asked, &body)).await;
    let queued = queued.expect(202);
    assert_eq!(queued.header("x-core-trace-id"), TRACE);
    let request_id = queued.header("x-request-id").to_owned();
    wait_for_job(&world, queued.text("jobId")).await;

    let trace = TraceId::parse(TRACE).unwrap();
    let spans = kept.spans().split_off(before);
    let spans: Vec<_> = spans
        .into_iter()
        .filter(|span| span.trace_id == trace)
        .collect();
    let servers: Vec<_> = spans
        .iter()
        .filter(|span| span.kind == SpanKind::Server)
        .collect();
    let [service, gateway] = servers[..] else {
        panic!("{spans:#?}");
    };
    let name = "POST /api/v1/provision/platform";
    for (span, parent, by) in [
        (gateway, SpanId::parse(PARENT), "gateway"),
        (service, Some(gateway.span_id), "provisioning"),
    ] {
        assert_eq!((span.name.as_str(), span.parent_id), (name, parent));
        assert_eq!(span.attribute("core.service"), text(by).as_ref());
        assert_eq!(span.attribute("http.request.method"), text("POST").as_ref());
        let status = AttributeValue::from(202);
        assert_eq!(span.attribute("http.response.status_code"), Some(&status));
        assert_eq!(
            span.attribute("core.request_id"),
            text(&request_id).as_ref()
        );
        assert_eq!(span.attribute("error.type"), None);
        assert!(!span.is_error && span.start <= span.end);
    }
    assert_eq!(
        gateway.attribute("url.path"),
        text("/api/v1/provisioning/platform").as_ref()
    );
    assert!(gateway.start <= service.start && service.end <= gateway.end);

    let attempts: Vec<_> = spans
        .iter()
        .filter(|span| span.kind == SpanKind::Consumer)
        .collect();
    assert!(attempts.len() > 1, "{spans:#?}");
    for attempt in attempts {
        assert!(attempt.name.starts_with("job platform"), "{attempt:#?}");
        assert_eq!(attempt.parent_id, None);
        assert_eq!(
            attempt.attribute("core.platform_id"),
            text(&platform).as_ref()
        );
        assert_eq!(
            attempt.attribute("core.request_id"),
            text(&request_id).as_ref()
        );
        assert_eq!(
            attempt.attribute("core.job_id"),
            text(queued.text("jobId")).as_ref()
        );
        assert!(attempt.attribute("core.job_step").is_some() && !attempt.is_error);
    }
    assert!(!format!("{spans:?}").contains("secret"));
}

#[tokio::test]
async fn the_ratio_decides_for_clients_and_the_flag_for_trusted_proxies() {
    for (ratio, trusted, flags, expected) in [
        (0.0, false, "01", 0),
        (1.0, false, "00", 2),
        (0.0, true, "01", 2),
        (1.0, true, "00", 0),
    ] {
        let kept = Arc::<MemorySpans>::default();
        let sink = Arc::clone(&kept);
        let world = World::with(|builder| {
            let proxies = if trusted {
                vec!["192.0.2.0/24".to_owned()]
            } else {
                Vec::new()
            };
            builder
                .trusted_proxies(proxies)
                .settings(|settings| settings.traces.ratio = ratio)
                .span_sink(sink)
        });
        let world = world.await;
        let asked = with_traceparent(request("GET", "/api/v1/platforms", SERVICE_KEY), flags);
        let answer = send(world.suite.gateway(), json_body(asked, &Value::Null)).await;
        let _ = answer.expect(200);
        let case = format!("{ratio} {trusted} {flags}");
        assert_eq!(kept.spans().len(), expected, "{case}: {:#?}", kept.spans());
    }
}

#[tokio::test]
async fn spans_show_neither_secrets_nor_paths_that_do_not_exist_nor_health_checks() {
    let (world, kept) = tracing_world(1.0).await;
    let call = async |service: &str, path: &str, key: &str| {
        let asked = json_body(request("GET", path, key), &Value::Null);
        match service {
            "gateway" => send(world.suite.gateway(), asked).await,
            "iam" => send(world.suite.iam(), asked).await,
            _ => send(world.suite.billing(), asked).await,
        }
    };
    let _: Answer = call("gateway", "/health", SERVICE_KEY).await.expect(200);
    let _ = call("iam", "/readyz", SERVICE_KEY).await;
    assert_eq!(kept.spans(), []);
    let _ = call("billing", "/pay/a-secret-token", "none").await;
    let _ = call("iam", "/api/auth/reset-password/a-secret-token", "none").await;
    let _ = call("gateway", "/api/v1/a-secret-token", SERVICE_KEY)
        .await
        .expect(404);
    let refused = call("gateway", "/api/v1/platforms/p-1", "a-secret-token").await;
    let _ = refused.expect(401);
    let spans = kept.spans();
    assert_eq!(spans.len(), 4, "{spans:#?}");
    assert!(
        !format!("{spans:?}").contains("a-secret-token"),
        "{spans:#?}"
    );
    let refused = span(&spans, SpanKind::Server, &format!("GET {PLATFORM}"));
    assert!(!refused.is_error && refused.attribute("error.type").is_none());
}

#[tokio::test]
async fn a_failure_of_the_service_is_an_error_with_its_code() {
    let kept = Arc::<MemorySpans>::default();
    let sink = Arc::clone(&kept);
    let closed = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}", closed.local_addr().unwrap());
    drop(closed);
    let world = World::with(|builder| {
        builder
            .remote_service(SuiteService::Stacks, url)
            .span_sink(sink)
    });
    let world = world.await;
    let answer = world
        .call("GET", "/api/v1/stacks", SERVICE_KEY, Value::Null)
        .await;
    let _ = answer.expect(502);
    let spans = kept.spans();
    let client = span(&spans, SpanKind::Client, "GET");
    let gateway = spans
        .iter()
        .find(|span| span.attribute("core.service") == text("gateway").as_ref());
    let gateway = gateway.unwrap();
    assert!(client.is_error && gateway.is_error, "{spans:#?}");
    assert_eq!(client.attribute("error.type"), text("broken").as_ref());
    assert_eq!(
        gateway.attribute("error.type"),
        text("UPSTREAM_ERROR").as_ref()
    );
    assert_eq!(client.parent_id, Some(gateway.span_id));
}

/// A suite whose services listen on sockets.
struct ListeningSuite {
    suite: Suite,
    urls: Vec<(SuiteService, String)>,
    stop: Vec<oneshot::Sender<()>>,
}

impl ListeningSuite {
    async fn new(suite: Suite) -> Self {
        let mut listening = Self {
            urls: Vec::new(),
            stop: Vec::new(),
            suite,
        };
        for (name, service) in [
            (SuiteService::Iam, listening.suite.iam()),
            (SuiteService::Registry, listening.suite.registry()),
        ] {
            let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
            let url = format!("http://{}", listener.local_addr().unwrap());
            let (stop, stopped) = oneshot::channel::<()>();
            let stopped = async move { drop(stopped.await) };
            tokio::spawn(serve(listener, service, stopped, ServeOptions::default()));
            listening.urls.push((name, url));
            listening.stop.push(stop);
        }
        listening
    }
}

#[tokio::test]
async fn a_request_over_two_processes_is_one_trace_with_the_client_span_between_them() {
    let [behind, before] = [Arc::<MemorySpans>::default(), Arc::<MemorySpans>::default()];
    let folders = [tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap()];
    let secret = [3; 32];
    let services = builder(folders[0].path())
        .secret(secret)
        .span_sink(behind.clone());
    let services = ListeningSuite::new(services.build().await.unwrap()).await;
    let mut gateway = builder(folders[1].path())
        .secret(secret)
        .span_sink(before.clone());
    for (name, url) in &services.urls {
        gateway = gateway.remote_service(*name, url);
    }
    // The processes make different ids.
    let entropy = core_domain::testing::SeededEntropy::new(8);
    let gateway = gateway.entropy(Arc::new(entropy)).build().await.unwrap();

    let asked = with_traceparent(request("GET", "/api/v1/platforms", SERVICE_KEY), "01");
    let asked: Request<_> = json_body(asked, &Value::Null);
    let answer = send(gateway.gateway(), asked).await.expect(200);
    assert_eq!(answer.header("x-core-trace-id"), TRACE);

    let (before, behind) = (before.spans(), behind.spans());
    let trace = TraceId::parse(TRACE).unwrap();
    let all = before.iter().chain(&behind);
    assert!(
        all.clone().all(|span| span.trace_id == trace),
        "{before:#?} {behind:#?}"
    );
    let server = span(&before, SpanKind::Server, "GET /api/v1/platforms");
    assert_eq!(server.parent_id, SpanId::parse(PARENT));
    let clients: Vec<_> = before
        .iter()
        .filter(|span| span.kind == SpanKind::Client)
        .collect();
    // The gateway also gets a service token from IAM.
    assert_eq!(clients.len(), 2, "{before:#?}");
    assert!(
        clients
            .iter()
            .all(|client| client.parent_id == Some(server.span_id))
    );
    assert_eq!(behind.len(), 2, "{behind:#?}");
    for span in &behind {
        let parent = clients
            .iter()
            .find(|client| Some(client.span_id) == span.parent_id);
        assert!(
            parent.is_some() && span.is_parent_remote,
            "{before:#?} {behind:#?}"
        );
    }
    let registry = span(&behind, SpanKind::Server, "GET /api/v1/platforms");
    assert_eq!(
        registry.attribute("core.service"),
        text("registry").as_ref()
    );
    let mut ids: Vec<_> = all.map(|span| span.span_id.to_string()).collect();
    ids.sort();
    ids.dedup();
    assert_eq!(ids.len(), 5);
    drop(services.stop);
    gateway.shutdown().await;
    services.suite.shutdown().await;
}

#[tokio::test]
async fn a_collector_receives_the_spans_of_a_suite_before_it_has_stopped() {
    let collector = TestCollector::start().await.unwrap();
    let config = OtlpConfig::of_collector(&collector.url());
    let world = World::with(|builder| {
        // Without the flush at the end, the spans would wait for others.
        builder
            .settings(|settings| settings.otlp.delay = Duration::from_secs(3_600))
            .otlp(config)
    });
    let world = world.await;
    let asked = with_traceparent(request("GET", "/api/v1/platforms", SERVICE_KEY), "01");
    let asked = json_body(asked, &Value::Null);
    let _ = send(world.suite.gateway(), asked).await.expect(200);
    let metrics = world.suite.metrics();
    world.suite.shutdown().await;
    let spans = collector.spans();
    let servers: Vec<_> = spans.iter().filter(|span| span.trace_id == TRACE).collect();
    let [service, gateway] = servers[..] else {
        panic!("{spans:#?}");
    };
    assert_eq!(gateway.parent_id, PARENT);
    assert_eq!(service.parent_id, gateway.span_id);
    assert_eq!(gateway.resource["service.name"], "core-suite");
    let text = metrics.render();
    let exported = format!("core_trace_spans_exported_total {}", spans.len());
    assert!(text.contains(&exported), "{text}");
    assert!(
        text.contains(r#"core_trace_spans_dropped_total{reason="receiver"} 0"#),
        "{text}"
    );
}
