//! Warnings about settings.

use std::fmt;

/// A setting that is valid but probably a mistake.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConfigWarning {
    /// The setting, below `settings`.
    pub setting: &'static str,
    /// The problem, and how to fix it.
    pub problem: String,
}

impl fmt::Display for ConfigWarning {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.setting, self.problem)
    }
}
