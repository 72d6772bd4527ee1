//! A span processor of the OpenTelemetry SDK, as a host program has it.

use std::sync::Mutex;
use std::time::Duration;

use core_domain::port::SpanSink;
use core_otel::ProcessorSink;
use core_otel::opentelemetry_sdk::error::OTelSdkResult;
use core_otel::opentelemetry_sdk::trace::{Span, SpanData, SpanProcessor};
use opentelemetry::Context;

use crate::world::{PARENT, TRACE, span};

/// A processor that keeps the spans.
#[derive(Debug, Default)]
struct Processor(Mutex<Vec<SpanData>>);

impl SpanProcessor for Processor {
    fn on_start(&self, _: &mut Span, _: &Context) {}

    fn on_end(&self, span: SpanData) {
        self.0.lock().unwrap().push(span);
    }

    fn force_flush(&self) -> OTelSdkResult {
        Ok(())
    }

    fn shutdown_with_timeout(&self, _: Duration) -> OTelSdkResult {
        Ok(())
    }
}

#[test]
fn a_processor_of_the_host_program_receives_the_spans() {
    let sink = ProcessorSink::new(Processor::default());
    sink.record(span("GET /a", 1));
    let spans = sink.processor().0.lock().unwrap();
    assert_eq!((spans.len(), spans[0].name.as_ref()), (1, "GET /a"));
    assert_eq!(spans[0].span_context.trace_id().to_string(), TRACE);
    assert_eq!(spans[0].parent_span_id.to_string(), PARENT);
    assert_eq!(spans[0].instrumentation_scope.name(), "core-suite");
}
