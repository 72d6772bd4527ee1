//! The answer of routes of the library that have nothing to say.

use schemars::JsonSchema;
use serde::Serialize;

/// The answer of routes that have nothing to say.
#[derive(Clone, Copy, Debug, Serialize, JsonSchema)]
pub(super) struct Status {
    /// Always true.
    status: bool,
}

impl Status {
    pub(super) const OK: Self = Self { status: true };
}
