//! What is wrong with a configuration.

/// Why a configuration is refused. Never shows a secret.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ConfigError {
    /// A source cannot be read, has a key nobody knows, or a value of another type.
    #[error(transparent)]
    Source(#[from] Box<figment::Error>),
    /// A setting is one that nothing could work with.
    #[error("settings: {0}")]
    Setting(core_suite::ConfigError),
    /// An option has a value that means nothing.
    #[error("{option}: {problem}")]
    Option {
        /// Which.
        option: &'static str,
        /// Why.
        problem: String,
    },
}

pub(super) fn wrong(option: &'static str, problem: impl Into<String>) -> ConfigError {
    ConfigError::Option {
        option,
        problem: problem.into(),
    }
}
