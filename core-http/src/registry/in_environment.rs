//! The query parameter that selects an environment.

use core_domain::kernel::Environment;
use schemars::JsonSchema;
use serde::Deserialize;

/// The query of endpoints that return something that exists once per environment.
#[derive(Clone, Copy, Debug, Deserialize, JsonSchema)]
pub(super) struct InEnvironment {
    /// The environment to look in. Default: `prod`.
    #[serde(default = "Environment::prod")]
    pub(super) env: Environment,
}
