//! The check of the collector of traces.

#[cfg(feature = "otel")]
use std::time::Instant;

#[cfg(feature = "otel")]
use super::CHECK_TIMEOUT;
use super::Finding;
use crate::SuiteBuilder;

impl SuiteBuilder {
    /// Sends a request without spans to the collector of traces.
    #[cfg(feature = "otel")]
    pub(super) async fn trace_finding(&self) -> Option<Finding> {
        let subject = "traces";
        let mut config = crate::traces::otlp_config(self)?;
        config.options.timeout = config.options.timeout.min(CHECK_TIMEOUT);
        let began = Instant::now();
        Some(match core_otel::OtlpSink::check_collector(&config).await {
            Ok(()) if config.is_plain() => {
                let text = format!(
                    "{} accepts traces, but connections to it are not encrypted; use an https endpoint",
                    config.endpoint
                );
                Finding::warning(subject, text)
            }
            Ok(()) => {
                let took = began.elapsed();
                let text = format!("{} accepts traces ({took:.0?})", config.endpoint);
                Finding::fine(subject, text)
            }
            Err(problem) => {
                let text = format!(
                    "{}: {problem}; requests go on, but traces are lost: check that the collector runs and receives \
                     OTLP over HTTP (port 4318, not 4317), and the headers",
                    config.endpoint
                );
                Finding::failure(subject, text)
            }
        })
    }

    #[cfg(not(feature = "otel"))]
    #[expect(clippy::unused_async, reason = "with the feature it connects")]
    pub(super) async fn trace_finding(&self) -> Option<Finding> {
        None
    }
}
