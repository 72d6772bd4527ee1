//! The environment that a query asks about.

use core_domain::kernel::Environment;
use schemars::JsonSchema;
use serde::Deserialize;

/// Query of what there is once in an environment.
#[derive(Clone, Copy, Debug, Deserialize, JsonSchema)]
pub(super) struct InEnvironment {
    /// The environment.
    #[serde(default = "Environment::prod")]
    pub(super) env: Environment,
}
