//! The port that receives the spans of traces.

use std::time::Duration;

use async_trait::async_trait;

use crate::gateway::{SpanId, TraceId};

/// The role of a span in its trace.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SpanKind {
    /// The processing of a request.
    Server,
    /// A request to another process.
    Client,
    /// The processing of a job that a request has queued.
    Consumer,
}

/// The value of an attribute.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum AttributeValue {
    /// A value that is text.
    Text(String),
    /// A whole number.
    Integer(i64),
}

impl From<&str> for AttributeValue {
    fn from(text: &str) -> Self {
        Self::Text(text.to_owned())
    }
}

impl From<String> for AttributeValue {
    fn from(text: String) -> Self {
        Self::Text(text)
    }
}

impl From<i64> for AttributeValue {
    fn from(number: i64) -> Self {
        Self::Integer(number)
    }
}

/// A span that has ended.
#[derive(Clone, Debug, PartialEq)]
pub struct Span {
    /// The trace of the span.
    pub trace_id: TraceId,
    /// The id of the span, which its children have as parent.
    pub span_id: SpanId,
    /// The parent; `None` if the span has none, or its id is not known.
    pub parent_id: Option<SpanId>,
    /// Whether the parent is a span of another process.
    pub is_parent_remote: bool,
    /// The role of the span.
    pub kind: SpanKind,
    /// The name: few different values, without ids.
    pub name: String,
    /// The start, as time since 1970-01-01 00:00 UTC.
    pub start: Duration,
    /// The end, as time since 1970-01-01 00:00 UTC. Not before the start.
    pub end: Duration,
    /// The attributes. Their names are those of the semantic conventions of OpenTelemetry, or begin with `core.`.
    pub attributes: Vec<(&'static str, AttributeValue)>,
    /// Whether the work failed by a fault of the suite or of an upstream.
    pub is_error: bool,
}

impl Span {
    /// Returns the value of an attribute; `None` if the span does not have it.
    #[must_use]
    pub fn attribute(&self, name: &str) -> Option<&AttributeValue> {
        let mut attributes = self.attributes.iter();
        attributes.find_map(|(known, value)| (*known == name).then_some(value))
    }
}

/// Numbers of spans since the start of a sink.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SpanCounts {
    /// Spans that the receiver has accepted.
    pub exported: u64,
    /// Spans that were dropped because too many were waiting.
    pub dropped_by_queue: u64,
    /// Spans that were dropped because the receiver refused them or could not be reached.
    pub dropped_by_receiver: u64,
}

/// Receives the sampled spans of a process.
#[async_trait]
pub trait SpanSink: Send + Sync + std::fmt::Debug {
    /// Takes a span. Must return at once: it is called while requests are processed. If the sink is busy, it drops and
    /// counts the span.
    fn record(&self, span: Span);

    /// Returns the numbers of spans for the metrics. The default returns zeros.
    fn counts(&self) -> SpanCounts {
        SpanCounts::default()
    }

    /// Exports the spans that are waiting, for a bounded time. Called when a suite stops. The default does nothing.
    async fn flush(&self) {}
}
