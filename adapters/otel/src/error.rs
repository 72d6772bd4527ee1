//! The refusal of a configuration.

/// The reason why spans cannot be exported.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{setting}: {problem}")]
pub struct OtlpError {
    /// The setting: `otlp.` and the field of [`OtlpConfig`](crate::OtlpConfig) or [`OtlpOptions`](crate::OtlpOptions).
    pub setting: &'static str,
    /// The problem with the value; never contains a secret.
    pub problem: String,
}

pub(crate) fn otlp_error(setting: &'static str, problem: impl Into<String>) -> OtlpError {
    OtlpError {
        setting,
        problem: problem.into(),
    }
}
