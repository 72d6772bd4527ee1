//! A sink that keeps spans in memory.

use std::sync::{Mutex, PoisonError};

use crate::port::{Span, SpanSink};

/// A sink that keeps all spans.
#[derive(Debug, Default)]
pub struct MemorySpans(Mutex<Vec<Span>>);

impl MemorySpans {
    /// Returns the spans in the order in which they ended.
    #[must_use]
    pub fn spans(&self) -> Vec<Span> {
        self.0
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .clone()
    }
}

impl SpanSink for MemorySpans {
    fn record(&self, span: Span) {
        let mut spans = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        spans.push(span);
    }
}
