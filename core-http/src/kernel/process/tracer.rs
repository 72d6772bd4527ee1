//! The spans of this process, and the trace that a task is working for.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use core_domain::gateway::{Sampling, TraceContext};
use core_domain::kernel::{Clock, Entropy};
use core_domain::port::{AttributeValue, Span, SpanKind, SpanSink};
use tokio::time::Instant;

/// The difference from the clock above which the monotonic time is set anew. It is larger than the resolution of the
/// clock, and small enough to follow its corrections.
const MAX_DRIFT: Duration = Duration::from_millis(20);

/// The value of `error.type` for work that was given up because its client or its process did not wait for it.
const CANCELED: &str = "canceled";

tokio::task_local! {
    /// The trace of the request that this task is processing; `None` without a tracer.
    static CURRENT: Option<CurrentTrace>;
}

/// The trace that a task is working for.
#[derive(Clone, Debug)]
pub(crate) struct CurrentTrace {
    tracer: Arc<Tracer>,
    context: TraceContext,
}

/// Creates the spans of a process, and reports them to a sink. Share one value between the services, the gateway and
/// the worker.
#[derive(Debug)]
pub struct Tracer {
    sink: Arc<dyn SpanSink>,
    sampling: Sampling,
    clock: Arc<dyn Clock>,
    entropy: Arc<dyn Entropy>,
    /// A time of the clock, and the same moment in monotonic time.
    anchor: Mutex<Option<(Duration, Instant)>>,
}

impl Tracer {
    /// Creates a tracer that reports the sampled spans to this sink.
    #[must_use]
    pub fn new(
        sink: Arc<dyn SpanSink>,
        sampling: Sampling,
        clock: Arc<dyn Clock>,
        entropy: Arc<dyn Entropy>,
    ) -> Self {
        Self {
            sink,
            sampling,
            clock,
            entropy,
            anchor: Mutex::new(None),
        }
    }

    /// Sets whether the trace of a request is sampled. The flag of its `traceparent` decides if the sender is trusted.
    #[must_use]
    pub fn sample(&self, context: TraceContext, trusts_sender: bool) -> TraceContext {
        let is_sampled = self.sampling.is_sampled(&context, trusts_sender);
        context.with_sampling(is_sampled)
    }

    /// Starts a span. Returns `None` if its trace is not sampled.
    #[must_use]
    pub fn start(
        self: &Arc<Self>,
        context: &TraceContext,
        kind: SpanKind,
        name: impl Into<String>,
    ) -> Option<OpenSpan> {
        if !context.is_sampled() {
            return None;
        }
        let start = self.now();
        Some(OpenSpan {
            tracer: Arc::clone(self),
            is_finished: false,
            span: Some(Span {
                trace_id: context.trace(),
                span_id: context.span(),
                parent_id: context.parent(),
                is_parent_remote: context.is_continued,
                kind,
                name: name.into(),
                start,
                end: start,
                attributes: Vec::new(),
                is_error: false,
            }),
        })
    }

    /// Returns the source of randomness for ids.
    #[must_use]
    pub fn entropy(&self) -> &dyn Entropy {
        self.entropy.as_ref()
    }

    /// Returns the time of the clock with the resolution of the monotonic time, so that short spans can be told apart.
    fn now(&self) -> Duration {
        let before = Instant::now();
        let clock = self.clock.now().millis();
        let clock = Duration::from_millis(u64::try_from(clock).unwrap_or(0));
        // This thread may not have run for a while since the clock was read, which is no drift.
        let after = Instant::now();
        let mut anchor = self.anchor.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((time, anchored)) = *anchor {
            let at = |moment: Instant| time + moment.saturating_duration_since(anchored);
            let now = at(after);
            if at(before) < clock + MAX_DRIFT && clock < now + MAX_DRIFT {
                return now;
            }
        }
        *anchor = Some((clock, after));
        clock
    }
}

/// A span that has started. It ends when it is dropped. Unless [`Self::finish`] was called before, its work counts as
/// canceled.
#[derive(Debug)]
pub struct OpenSpan {
    tracer: Arc<Tracer>,
    /// `None` after the span was reported.
    span: Option<Span>,
    is_finished: bool,
}

impl OpenSpan {
    /// Replaces the name.
    pub fn rename(&mut self, name: impl Into<String>) {
        if let Some(span) = &mut self.span {
            span.name = name.into();
        }
    }

    /// Adds an attribute.
    pub fn add(&mut self, name: &'static str, value: impl Into<AttributeValue>) {
        if let Some(span) = &mut self.span {
            span.attributes.push((name, value.into()));
        }
    }

    /// Adds an attribute if there is a value.
    pub fn add_some(&mut self, name: &'static str, value: Option<impl Into<AttributeValue>>) {
        if let Some(value) = value {
            self.add(name, value);
        }
    }

    /// Marks the span as an error of this type: an error code or a status.
    pub fn set_error(&mut self, error: impl Into<String>) {
        self.add("error.type", error.into());
        if let Some(span) = &mut self.span {
            span.is_error = true;
        }
    }

    /// Ends the span without reporting it.
    pub fn discard(mut self) {
        self.span = None;
    }

    /// Marks the work as finished, with or without success.
    pub const fn finish(&mut self) {
        self.is_finished = true;
    }
}

impl Drop for OpenSpan {
    fn drop(&mut self) {
        if !self.is_finished {
            self.add("error.type", CANCELED);
        }
        let end = self.tracer.now();
        if let Some(mut span) = self.span.take() {
            span.end = end.max(span.start);
            self.tracer.sink.record(span);
        }
    }
}

impl CurrentTrace {
    /// Returns the trace that work for a request belongs to.
    pub(crate) fn new(tracer: &Arc<Tracer>, context: &TraceContext) -> Self {
        Self {
            tracer: Arc::clone(tracer),
            context: context.clone(),
        }
    }
}

/// Runs work that belongs to this trace: [`start_client_span`] creates children of its span. Without a trace there are
/// none.
pub(crate) async fn with_trace<F: Future>(current: Option<CurrentTrace>, work: F) -> F::Output {
    CURRENT.scope(current, work).await
}

/// Starts the span of a request to another process, as a child of the span that this task is working for. Returns its
/// context, which the other process continues, and the span if the trace is sampled. `None` without a trace.
pub(crate) fn start_client_span(name: &str) -> Option<(TraceContext, Option<OpenSpan>)> {
    let current = CURRENT.try_with(Clone::clone).ok().flatten()?;
    let context = current.context.child(current.tracer.entropy());
    let span = current.tracer.start(&context, SpanKind::Client, name);
    Some((context, span))
}

#[cfg(test)]
mod tests {
    use core_domain::kernel::Timestamp;
    use core_domain::testing::{MemorySpans, SeededEntropy};

    use super::*;

    /// A clock whose third reading takes long to arrive.
    #[derive(Debug)]
    struct SlowClock {
        started: Instant,
        readings: Mutex<u32>,
    }

    impl Clock for SlowClock {
        fn now(&self) -> Timestamp {
            let mut readings = self.readings.lock().unwrap();
            *readings += 1;
            let millis = 1_000_000 + self.started.elapsed().as_millis();
            let until = Instant::now() + 2 * MAX_DRIFT;
            while *readings == 3 && Instant::now() < until {
                std::hint::spin_loop();
            }
            Timestamp::from_millis(i64::try_from(millis).unwrap())
        }
    }

    #[test]
    fn time_does_not_go_back_while_a_thread_that_has_read_the_clock_does_not_run() {
        let clock = Arc::new(SlowClock {
            started: Instant::now(),
            readings: Mutex::new(0),
        });
        let sampling = Sampling::new(1.0, [1; 32]);
        let sink = Arc::new(MemorySpans::default());
        let tracer = Tracer::new(sink, sampling, clock, Arc::new(SeededEntropy::new(1)));
        let times = [(); 4].map(|()| tracer.now());
        assert!(times.is_sorted(), "{times:?}");
        assert!(times[2] >= times[1] + 2 * MAX_DRIFT, "{times:?}");
    }
}
