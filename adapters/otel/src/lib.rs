//! Exports the traces of the Platform Control API Suite to OpenTelemetry.
//!
//! - [`OtlpSink`] sends spans to a collector over OTLP (HTTP with protobuf).
//! - [`ProcessorSink`] gives them to a span processor of the OpenTelemetry SDK, for a host program that already has an
//!   OpenTelemetry pipeline.
//!
//! ```no_run
//! # fn start() -> Result<(), core_otel::OtlpError> {
//! use core_otel::{OtlpConfig, OtlpSink};
//!
//! let config = OtlpConfig::new("http://127.0.0.1:4318/v1/traces");
//! let sink = OtlpSink::start(&config)?;
//! # drop(sink);
//! # Ok(()) }
//! ```
//!
//! # Spans are dropped rather than waited for
//! A span is put into a queue of limited size, which never waits. A thread with a runtime of its own takes batches from the
//! queue, converts and sends them. If the collector is slow or away, the queue fills, and further spans are dropped and
//! counted. A batch that the collector does not accept for a moment is repeated for a limited time.
//!
//! # Environment
//! The crate reads no environment variables. `core-server` reads those that OpenTelemetry defines.

mod collector;
mod config;
mod convert;
mod error;
mod processor;
mod sink;
#[cfg(feature = "testing")]
pub mod testing;
mod tls;

pub use config::{OtlpConfig, OtlpOptions};
pub use error::OtlpError;
pub use opentelemetry_sdk;
pub use processor::ProcessorSink;
pub use sink::OtlpSink;
