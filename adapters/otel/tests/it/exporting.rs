//! The export over a plain connection: the protocol, failures of the collector, and the limits.

use std::time::{Duration, Instant};

use core_domain::kernel::Secret;
use core_domain::port::{SpanCounts, SpanKind, SpanSink};
use core_otel::testing::TestCollector;
use core_otel::{OtlpOptions, OtlpSink};
use http::StatusCode;

use crate::world::{PARENT, TRACE, config, counts_after, options, span};

#[tokio::test]
async fn a_collector_receives_spans_with_their_ids_times_and_attributes() {
    let collector = TestCollector::start().await.unwrap();
    let mut config = config(&collector.url());
    config.service_name = "core-test".to_owned();
    config.headers = Some(Secret::new(
        "authorization=Bearer%20open%20sesame, x-tenant=a",
    ));
    let sink = OtlpSink::start(&config).unwrap();
    let mut failed = span("job x", 2);
    failed.kind = SpanKind::Consumer;
    failed.parent_id = None;
    failed.is_error = true;
    sink.record(span("GET /a/{id}", 1));
    sink.record(failed);
    sink.flush().await;
    let expected = SpanCounts {
        exported: 2,
        ..SpanCounts::default()
    };
    assert_eq!(sink.counts(), expected);

    let batch = &collector.batches()[0];
    assert_eq!(batch.path, "/v1/traces");
    assert_eq!(batch.headers["content-type"], "application/x-protobuf");
    assert_eq!(batch.headers["authorization"], "Bearer open sesame");
    assert_eq!(batch.headers["x-tenant"], "a");
    let spans = collector.spans();
    assert_eq!((spans.len(), spans[0].kind, spans[1].kind), (2, 2, 5));
    let first = &spans[0];
    assert_eq!(
        (first.name.as_str(), first.trace_id.as_str()),
        ("GET /a/{id}", TRACE)
    );
    assert_eq!(first.parent_id, PARENT);
    assert_eq!(first.span_id, span("", 1).span_id.to_string());
    assert_eq!(first.start, 1_800_000_000_000_001_000);
    assert_eq!(first.end - first.start, 2_002_000);
    assert_eq!(first.attributes["http.request.method"], "GET");
    assert_eq!(first.attributes["http.response.status_code"], "200");
    assert_eq!(first.resource["service.name"], "core-test");
    assert!(!first.is_error && spans[1].is_error && spans[1].parent_id.is_empty());
}

#[tokio::test]
async fn spans_are_dropped_and_counted_while_the_collector_is_away_and_it_comes_back_by_itself() {
    let collector = TestCollector::start().await.unwrap();
    let (address, url) = (collector.address(), collector.url());
    collector.stop().await;
    let sink = OtlpSink::start(&config(&url)).unwrap();
    sink.record(span("lost", 1));
    let counts = counts_after(&sink, 1).await;
    assert_eq!((counts.exported, counts.dropped_by_receiver), (0, 1));

    let collector = TestCollector::start_at(address, None).await.unwrap();
    sink.record(span("received", 2));
    let counts = counts_after(&sink, 2).await;
    assert_eq!((counts.exported, counts.dropped_by_receiver), (1, 1));
    assert_eq!(collector.spans()[0].name, "received");
}

#[tokio::test]
async fn a_batch_is_sent_again_until_the_collector_is_no_longer_overloaded() {
    let collector = TestCollector::start().await.unwrap();
    collector.set_status(StatusCode::SERVICE_UNAVAILABLE);
    let mut config = config(&collector.url());
    config.options.retry = Duration::from_secs(60);
    let sink = OtlpSink::start(&config).unwrap();
    sink.record(span("late", 1));
    collector.wait_for_batches(1).await;
    collector.set_status(StatusCode::OK);
    collector.wait_for_batches(2).await;
    let counts = counts_after(&sink, 1).await;
    assert_eq!((counts.exported, counts.dropped_by_receiver), (1, 0));
    let spans = collector.spans();
    assert_eq!(spans[0], spans[1]);
}

#[tokio::test]
async fn a_batch_that_the_collector_refuses_is_dropped_at_once() {
    let collector = TestCollector::start().await.unwrap();
    collector.set_status(StatusCode::BAD_REQUEST);
    let mut config = config(&collector.url());
    config.options.retry = Duration::from_secs(60);
    let sink = OtlpSink::start(&config).unwrap();
    sink.record(span("refused", 1));
    let counts = counts_after(&sink, 1).await;
    assert_eq!((counts.exported, counts.dropped_by_receiver), (0, 1));
    assert_eq!(collector.batches().len(), 1);

    collector.set_status(StatusCode::OK);
    collector.set_rejected(1);
    sink.record(span("a", 2));
    let counts = counts_after(&sink, 2).await;
    assert_eq!((counts.exported, counts.dropped_by_receiver), (0, 2));
}

#[tokio::test]
async fn a_silent_collector_delays_neither_spans_nor_the_end_beyond_its_limit() {
    // Connections are accepted by the system, and nothing responds.
    let silent = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let mut config = config(&format!("http://{}", silent.local_addr().unwrap()));
    config.options = OtlpOptions {
        queue: 10,
        batch: 5,
        timeout: Duration::from_secs(600),
        flush: Duration::from_millis(50),
        ..options()
    };
    let sink = OtlpSink::start(&config).unwrap();
    let began = Instant::now();
    for number in 0..1_000 {
        sink.record(span("GET", number));
    }
    sink.flush().await;
    assert!(began.elapsed() < Duration::from_secs(30));
    let counts = sink.counts();
    // At most a batch is being sent, and a queue is waiting.
    assert!(counts.dropped_by_queue >= 1_000 - 15, "{counts:?}");
    assert_eq!(counts.exported, 0);
}

#[tokio::test]
async fn no_batch_has_more_spans_than_its_limit() {
    let collector = TestCollector::start().await.unwrap();
    let mut config = config(&collector.url());
    config.options.batch = 4;
    let sink = OtlpSink::start(&config).unwrap();
    for number in 0..10 {
        sink.record(span("GET", number));
    }
    let counts = counts_after(&sink, 10).await;
    assert_eq!(counts.exported, 10);
    assert!(
        collector
            .batches()
            .iter()
            .all(|batch| batch.spans.len() <= 4)
    );
    assert_eq!(collector.spans().len(), 10);
}
