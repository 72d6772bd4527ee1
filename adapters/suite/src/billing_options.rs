//! The options of billing: the plans, and whether simulated payments are allowed.

use core_domain::billing::{PlanCatalog, PlanTerms};
use core_http::gateway::ConfigError;
use serde::{Deserialize, Serialize};

/// The options of billing.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct BillingOptions {
    /// Whether the embedded payment provider accepts test cards. Its money is simulated. Without it, and without
    /// another provider, every request that needs a charge is refused with `SERVICE_UNAVAILABLE`. Default: `false`.
    pub allow_simulated_payments: bool,
    /// The plans, one for each tier. A change of a price, a limit or an included quantity needs a higher `version`.
    /// Default: the standard plans.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub plans: Vec<PlanTerms>,
}

impl BillingOptions {
    /// Returns the plans.
    ///
    /// # Errors
    /// [`ConfigError`] names the first plan that breaks a rule.
    pub fn catalog(&self) -> Result<PlanCatalog, ConfigError> {
        if self.plans.is_empty() {
            return Ok(PlanCatalog::default());
        }
        let catalog = PlanCatalog::new(self.plans.clone());
        catalog.map_err(|error| ConfigError {
            setting: "billing.plans",
            problem: error.to_string(),
        })
    }
}
