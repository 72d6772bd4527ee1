//! Spans, and a sink without delays.

use std::time::Duration;

use core_domain::gateway::{SpanId, TraceId};
use core_domain::port::{Span, SpanCounts, SpanKind, SpanSink};
use core_domain::testing::SeededEntropy;
use core_otel::{OtlpConfig, OtlpOptions, OtlpSink};

pub(crate) const TRACE: &str = "4bf92f3577b34da6a3ce929d0e0e4736";
pub(crate) const PARENT: &str = "00f067aa0ba902b7";

/// Returns a span with this name, and ids that follow from the seed.
pub(crate) fn span(name: &str, seed: u64) -> Span {
    Span {
        trace_id: TraceId::parse(TRACE).unwrap(),
        span_id: SpanId::generate(&SeededEntropy::new(seed)),
        parent_id: SpanId::parse(PARENT),
        is_parent_remote: true,
        kind: SpanKind::Server,
        name: name.to_owned(),
        start: Duration::from_nanos(1_800_000_000_000_001_000),
        end: Duration::from_nanos(1_800_000_000_002_003_000),
        attributes: vec![
            ("http.request.method", "GET".into()),
            ("http.response.status_code", 200.into()),
        ],
        is_error: false,
    }
}

/// Returns options with short pauses.
pub(crate) fn options() -> OtlpOptions {
    OtlpOptions {
        delay: Duration::from_millis(1),
        retry: Duration::ZERO,
        ..OtlpOptions::default()
    }
}

/// Returns the configuration for a collector at a base URL.
pub(crate) fn config(base: &str) -> OtlpConfig {
    OtlpConfig {
        options: options(),
        ..OtlpConfig::of_collector(base)
    }
}

/// Waits until a sink has exported or dropped this number of spans.
pub(crate) async fn counts_after(sink: &OtlpSink, spans: u64) -> SpanCounts {
    let settled = async {
        loop {
            sink.flush().await;
            let counts = sink.counts();
            if counts.exported + counts.dropped_by_receiver + counts.dropped_by_queue >= spans {
                return counts;
            }
        }
    };
    let settled = tokio::time::timeout(Duration::from_secs(60), settled).await;
    settled.unwrap()
}
