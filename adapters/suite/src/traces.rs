//! Chooses where the spans of a suite go: the sink set on the builder, or a collector.

use std::sync::Arc;

use core_domain::gateway::Sampling;
use core_domain::port::SpanSink;
use core_http::gateway::ConfigError;
use core_http::kernel::Tracer;

use crate::SuiteBuilder;
use crate::secret::InstallationSecret;
#[cfg(feature = "otel")]
use crate::trace_options::refused_by_otel;

/// Returns the sink set on the builder, or else one that exports spans to its collector. `None` if spans go nowhere.
pub(crate) fn span_sink(builder: &SuiteBuilder) -> Result<Option<Arc<dyn SpanSink>>, ConfigError> {
    match &builder.span_sink {
        Some(sink) => Ok(Some(Arc::clone(sink))),
        None => collector(builder),
    }
}

#[cfg(feature = "otel")]
fn collector(builder: &SuiteBuilder) -> Result<Option<Arc<dyn SpanSink>>, ConfigError> {
    let Some(config) = otlp_config(builder) else {
        return Ok(None);
    };
    tracing::info!(endpoint = config.endpoint, "traces are exported");
    let sink = core_otel::OtlpSink::start(&config).map_err(refused_by_otel)?;
    Ok(Some(Arc::new(sink)))
}

#[cfg(not(feature = "otel"))]
#[expect(clippy::unnecessary_wraps, reason = "with the feature it can fail")]
fn collector(_: &SuiteBuilder) -> Result<Option<Arc<dyn SpanSink>>, ConfigError> {
    Ok(None)
}

/// Returns the configuration of the exporter, without a collector `None`.
#[cfg(feature = "otel")]
pub(crate) fn otlp_config(builder: &SuiteBuilder) -> Option<core_otel::OtlpConfig> {
    let mut config = builder.otlp.clone()?;
    config.options.clone_from(&builder.settings.otlp);
    Some(config)
}

/// Checks the URL, the headers and the certificates of the collector, without a request.
#[cfg(feature = "otel")]
pub(crate) fn check_otlp(builder: &SuiteBuilder) -> Result<(), ConfigError> {
    let checked = otlp_config(builder).map(|config| config.check());
    checked.transpose().map(drop).map_err(refused_by_otel)
}

/// Does nothing: without the feature `otel` there is no collector.
#[cfg(not(feature = "otel"))]
#[expect(clippy::unnecessary_wraps, reason = "with the feature it can fail")]
pub(crate) const fn check_otlp(_: &SuiteBuilder) -> Result<(), ConfigError> {
    Ok(())
}

/// Returns the tracer of a suite. Its sampling key follows from the installation's secret, so that all nodes decide the
/// same for a trace.
pub(crate) fn tracer(
    builder: &SuiteBuilder,
    sink: &Arc<dyn SpanSink>,
    secret: &InstallationSecret,
) -> Arc<Tracer> {
    Arc::new(Tracer::new(
        Arc::clone(sink),
        Sampling::new(builder.settings.traces.ratio, secret.key("traces")),
        builder.clock_or_system(),
        Arc::clone(&builder.entropy),
    ))
}
