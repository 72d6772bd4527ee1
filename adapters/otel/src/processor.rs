//! Gives spans to an OpenTelemetry pipeline of the host program.

use core_domain::port::{Span, SpanSink};
use opentelemetry::InstrumentationScope;
use opentelemetry_sdk::trace::SpanProcessor;

use crate::convert::{scope, span_data};

/// Gives spans to a span processor of the OpenTelemetry SDK, such as its `BatchSpanProcessor` with any exporter.
///
/// The processor queues, exports and flushes the spans. Its resource is not set: do that before it is passed here.
#[derive(Debug)]
pub struct ProcessorSink<P> {
    processor: P,
    scope: InstrumentationScope,
}

impl<P: SpanProcessor> ProcessorSink<P> {
    /// Gives spans to this processor. Its `on_end` must return at once.
    #[must_use]
    pub fn new(processor: P) -> Self {
        Self {
            processor,
            scope: scope(),
        }
    }

    /// Returns the processor.
    pub const fn processor(&self) -> &P {
        &self.processor
    }
}

impl<P: SpanProcessor> SpanSink for ProcessorSink<P> {
    fn record(&self, span: Span) {
        self.processor.on_end(span_data(span, &self.scope));
    }
}
