//! The response of better-auth routes that return no data.

use schemars::JsonSchema;
use serde::Serialize;

/// The response of an operation that returns no data.
#[derive(Clone, Copy, Debug, Serialize, JsonSchema)]
pub(super) struct Status {
    /// Always `true` in this response.
    status: bool,
}

impl Status {
    pub(super) const OK: Self = Self { status: true };
}
