//! The options of billing: the plans, and whether simulated payments are allowed.

use std::time::Duration;

use core_domain::billing::{PlanCatalog, PlanTerms};
use core_domain::kernel::duration_text;
use core_domain::use_case::billing::clock::BillingClock;
use core_http::gateway::ConfigError;
use serde::{Deserialize, Serialize};

/// The options of billing.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct BillingOptions {
    /// Whether the embedded payment provider accepts test cards. Its money is simulated. Without it, and without
    /// another provider, every request that needs a charge is refused with `SERVICE_UNAVAILABLE`. Default: `false`.
    pub allow_simulated_payments: bool,
    /// The time between two looks for renewals, repeated charges and expiries that are due. Default: 10 seconds.
    #[serde(with = "duration_text")]
    pub tick_every: Duration,
    /// Whether an operator can move the clock of billing forward, so that a year of billing takes seconds. Only for
    /// tests; refused with a payment provider that moves real money. Default: `false`.
    pub test_clock: bool,
    /// The hosts that the customer portal may lead back to, for example `app.example.org`. Default: every host.
    pub portal_return_hosts: Vec<String>,
    /// The plans, one for each tier. A change of a price, a limit or an included quantity needs a higher `version`.
    /// Default: the standard plans.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub plans: Vec<PlanTerms>,
}

impl Default for BillingOptions {
    fn default() -> Self {
        Self {
            allow_simulated_payments: false,
            tick_every: Duration::from_secs(10),
            test_clock: false,
            portal_return_hosts: Vec::new(),
            plans: Vec::new(),
        }
    }
}

impl BillingOptions {
    /// Returns the clock.
    pub(crate) const fn clock(&self) -> BillingClock {
        match self.test_clock {
            true => BillingClock::Test,
            false => BillingClock::Store,
        }
    }

    /// Checks the plans and the interval.
    ///
    /// # Errors
    /// [`ConfigError`] names the first invalid option.
    pub fn check(&self) -> Result<(), ConfigError> {
        if self.tick_every.is_zero() {
            return Err(ConfigError {
                setting: "billing.tick_every",
                problem: "must be greater than 0".to_owned(),
            });
        }
        self.catalog().map(drop)
    }

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
