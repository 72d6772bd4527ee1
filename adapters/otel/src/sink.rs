//! The sink that exports spans to a collector.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use async_trait::async_trait;
use core_domain::port::{Cause, Span, SpanCounts, SpanSink};
use tokio::sync::mpsc::{self, Receiver, Sender};
use tokio::sync::oneshot;
use tokio::time::{Instant, sleep, timeout, timeout_at};

use crate::collector::{Collector, SendError};
use crate::config::{OtlpConfig, OtlpOptions};
use crate::error::{OtlpError, otlp_error};

/// The first pause before a batch is sent again. Every further pause is twice as long.
const FIRST_PAUSE: Duration = Duration::from_millis(500);

/// Maximum pause before a batch is sent again.
const MAX_PAUSE: Duration = Duration::from_secs(10);

/// Exports spans to a collector over OTLP. They are sent by a thread of its own, which ends after the sink was dropped.
#[derive(Debug)]
pub struct OtlpSink {
    messages: Sender<Message>,
    counts: Arc<Counts>,
    flush: Duration,
}

/// A message to the exporting thread.
#[derive(Debug)]
enum Message {
    Span(Box<Span>),
    /// Asks to send all spans before it, and to report when that is done.
    Flush(oneshot::Sender<()>),
}

#[derive(Debug, Default)]
struct Counts {
    exported: AtomicU64,
    dropped_by_queue: AtomicU64,
    dropped_by_receiver: AtomicU64,
}

impl OtlpSink {
    /// Starts the thread that exports spans. No connection is opened before the first span.
    ///
    /// # Errors
    /// [`OtlpError`] names the invalid setting, or says that the thread cannot be started.
    pub fn start(config: &OtlpConfig) -> Result<Self, OtlpError> {
        config.options.check()?;
        let collector = Collector::new(config)?;
        let (sender, receiver) = mpsc::channel(config.options.queue);
        let counts = Arc::<Counts>::default();
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .map_err(|error| otlp_error("otlp", format!("no runtime: {error}")))?;
        let exporter = Exporter {
            collector,
            messages: receiver,
            counts: Arc::clone(&counts),
            options: config.options.clone(),
            is_failing: false,
        };
        std::thread::Builder::new()
            .name("core-otel".to_owned())
            .spawn(move || runtime.block_on(exporter.run()))
            .map_err(|error| otlp_error("otlp", format!("no thread: {error}")))?;
        Ok(Self {
            messages: sender,
            counts,
            flush: config.options.flush,
        })
    }

    /// Sends a request without spans, to check whether the collector accepts requests.
    ///
    /// # Errors
    /// The reason why it does not, for an operator.
    pub async fn check_collector(config: &OtlpConfig) -> Result<(), Cause> {
        let collector = Collector::new(config).map_err(Cause::new)?;
        let sent = collector.send(Collector::empty()).await;
        sent.map(drop).map_err(Cause::new)
    }
}

#[async_trait]
impl SpanSink for OtlpSink {
    fn record(&self, span: Span) {
        if self
            .messages
            .try_send(Message::Span(Box::new(span)))
            .is_err()
        {
            self.counts.dropped_by_queue.fetch_add(1, Ordering::Relaxed);
        }
    }

    fn counts(&self) -> SpanCounts {
        let load = |count: &AtomicU64| count.load(Ordering::Relaxed);
        SpanCounts {
            exported: load(&self.counts.exported),
            dropped_by_queue: load(&self.counts.dropped_by_queue),
            dropped_by_receiver: load(&self.counts.dropped_by_receiver),
        }
    }

    async fn flush(&self) {
        let (done, flushed) = oneshot::channel();
        let flush = async {
            if self.messages.send(Message::Flush(done)).await.is_ok() {
                // An error means that the thread has ended.
                let _ = flushed.await;
            }
        };
        if timeout(self.flush, flush).await.is_err() {
            tracing::warn!("the last spans could not be exported in time");
        }
    }
}

/// The thread that exports spans.
struct Exporter {
    collector: Collector,
    messages: Receiver<Message>,
    counts: Arc<Counts>,
    options: OtlpOptions,
    /// Whether the last batch was not accepted. Only changes are logged.
    is_failing: bool,
}

impl Exporter {
    /// Exports spans until the sink was dropped.
    async fn run(mut self) {
        while let Some(first) = self.messages.recv().await {
            let (spans, flushes) = self.gather(first).await;
            if !spans.is_empty() {
                self.export(spans).await;
            }
            for flush in flushes {
                // The sink no longer waits after its time limit.
                let _ = flush.send(());
            }
        }
    }

    /// Collects the spans of a batch, until it is full, its delay has passed, or a flush is requested.
    async fn gather(&mut self, first: Message) -> (Vec<Span>, Vec<oneshot::Sender<()>>) {
        let until = Instant::now() + self.options.delay;
        let (mut spans, mut flushes) = (Vec::new(), Vec::new());
        let mut next = Some(first);
        while let Some(message) = next {
            match message {
                Message::Span(span) => spans.push(*span),
                Message::Flush(done) => flushes.push(done),
            }
            if spans.len() >= self.options.batch || !flushes.is_empty() {
                break;
            }
            next = timeout_at(until, self.messages.recv()).await.ok().flatten();
        }
        (spans, flushes)
    }

    /// Sends a batch, and repeats it for a limited time while the collector is not available.
    async fn export(&mut self, spans: Vec<Span>) {
        let count = u64::try_from(spans.len()).unwrap_or(u64::MAX);
        let body = self.collector.encode(spans);
        let until = Instant::now() + self.options.retry;
        let mut pause = FIRST_PAUSE;
        loop {
            let error = match self.collector.send(body.clone()).await {
                Ok(refused) => return self.count_accepted(count, refused),
                Err(error) => error,
            };
            let wait = match &error {
                SendError::Unavailable { retry_after, .. } => retry_after.unwrap_or(pause),
                SendError::Refused(_) => return self.count_dropped(count, error),
            };
            let wait = wait.min(MAX_PAUSE);
            // Without the sink, no one waits for a later attempt.
            if self.messages.is_closed() || Instant::now() + wait > until {
                return self.count_dropped(count, error);
            }
            self.log_failure(error);
            sleep(wait).await;
            pause *= 2;
        }
    }

    fn count_accepted(&mut self, count: u64, refused: u64) {
        let refused = refused.min(count);
        let accepted = count - refused;
        self.counts.exported.fetch_add(accepted, Ordering::Relaxed);
        let dropped = &self.counts.dropped_by_receiver;
        dropped.fetch_add(refused, Ordering::Relaxed);
        if std::mem::take(&mut self.is_failing) {
            tracing::info!("the collector accepts spans again");
        }
    }

    fn count_dropped(&mut self, count: u64, error: SendError) {
        let dropped = &self.counts.dropped_by_receiver;
        dropped.fetch_add(count, Ordering::Relaxed);
        self.log_failure(error);
    }

    fn log_failure(&mut self, error: SendError) {
        if !std::mem::replace(&mut self.is_failing, true) {
            let error = Cause::new(error);
            tracing::warn!(%error, "spans cannot be exported; some may be lost");
        }
    }
}
