//! The settings of traces.

use core_http::gateway::ConfigError;
use serde::{Deserialize, Serialize};

/// Which traces are sampled.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct TraceOptions {
    /// The share of the traces that are sampled, from 0 to 1. Traces of a trusted proxy are sampled if their
    /// `traceparent` states it. The same on every node. Default: 1.
    pub ratio: f64,
}

impl Default for TraceOptions {
    fn default() -> Self {
        Self { ratio: 1.0 }
    }
}

impl TraceOptions {
    /// Checks that the ratio is a share.
    ///
    /// # Errors
    /// [`ConfigError`] names the invalid option.
    pub fn check(&self) -> Result<(), ConfigError> {
        if (0.0..=1.0).contains(&self.ratio) {
            return Ok(());
        }
        Err(ConfigError {
            setting: "traces.ratio",
            problem: "must be between 0 and 1".to_owned(),
        })
    }
}

/// Converts a refusal of the options of the collector.
#[cfg(feature = "otel")]
pub(crate) fn refused_by_otel(error: core_otel::OtlpError) -> ConfigError {
    ConfigError {
        setting: error.setting,
        problem: error.problem,
    }
}
