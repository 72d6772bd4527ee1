//! Errors of a configuration.

/// Why a configuration is refused. The texts never show a secret.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ConfigError {
    /// A source cannot be read, has an unknown key, or a value of the wrong type.
    #[error(transparent)]
    Source(#[from] Box<figment::Error>),
    /// A setting is invalid.
    #[error("settings: {0}")]
    Setting(core_suite::ConfigError),
    /// An option has an invalid value.
    #[error("{option}: {problem}")]
    Option {
        /// The name of the option.
        option: &'static str,
        /// The reason for the refusal.
        problem: String,
    },
}

pub(super) fn option_error(option: &'static str, problem: impl Into<String>) -> ConfigError {
    ConfigError::Option {
        option,
        problem: problem.into(),
    }
}
