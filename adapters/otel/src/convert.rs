//! Converts spans of the suite to those of OpenTelemetry.

use std::time::SystemTime;

use core_domain::port::{AttributeValue, Span, SpanKind};
use opentelemetry::trace::{
    SpanContext, SpanId, SpanKind as OtelKind, Status, TraceFlags, TraceId, TraceState,
};
use opentelemetry::{InstrumentationScope, KeyValue, Value};
use opentelemetry_sdk::trace::{SpanData, SpanEvents, SpanLinks};

/// Returns the name and the version under which spans are reported.
pub(crate) fn scope() -> InstrumentationScope {
    InstrumentationScope::builder("core-suite")
        .with_version(env!("CARGO_PKG_VERSION"))
        .build()
}

/// Converts a span.
pub(crate) fn span_data(span: Span, scope: &InstrumentationScope) -> SpanData {
    let context = SpanContext::new(
        TraceId::from_bytes(span.trace_id.to_bytes()),
        SpanId::from_bytes(span.span_id.to_bytes()),
        TraceFlags::SAMPLED,
        false,
        TraceState::NONE,
    );
    let parent = span.parent_id.map(|id| SpanId::from_bytes(id.to_bytes()));
    let attributes = span.attributes.into_iter();
    SpanData {
        span_context: context,
        parent_span_id: parent.unwrap_or(SpanId::INVALID),
        parent_span_is_remote: span.is_parent_remote,
        span_kind: kind(span.kind),
        name: span.name.into(),
        start_time: SystemTime::UNIX_EPOCH + span.start,
        end_time: SystemTime::UNIX_EPOCH + span.end,
        attributes: attributes
            .map(|(name, value)| KeyValue::new(name, attribute(value)))
            .collect(),
        dropped_attributes_count: 0,
        events: SpanEvents::default(),
        links: SpanLinks::default(),
        status: if span.is_error {
            Status::error("")
        } else {
            Status::Unset
        },
        instrumentation_scope: scope.clone(),
    }
}

const fn kind(kind: SpanKind) -> OtelKind {
    match kind {
        SpanKind::Server => OtelKind::Server,
        SpanKind::Client => OtelKind::Client,
        SpanKind::Consumer => OtelKind::Consumer,
    }
}

fn attribute(value: AttributeValue) -> Value {
    match value {
        AttributeValue::Text(text) => Value::from(text),
        AttributeValue::Integer(number) => Value::from(number),
    }
}
