//! The options of billing: the plans, the issuer with its taxes, and whether simulated payments are allowed.

use std::collections::BTreeMap;
use std::time::Duration;

use core_domain::billing::{Country, Party, PlanCatalog, PlanTerms, TaxTable};
use core_domain::kernel::duration_text;
use core_domain::use_case::billing::clock::BillingClock;
use core_domain::use_case::shared::usage::MIN_EVENT_RETENTION;
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
    /// How long reported usage events are kept, at least 36 days. Their sums, from which usage is priced and shown, are kept
    /// for ever. Default: 100 days.
    #[serde(with = "duration_text")]
    pub keep_usage_events: Duration,
    /// Whether an operator can move the clock of billing forward, so that a year of billing takes seconds. Only for
    /// tests; refused with a payment provider that moves real money. Default: `false`.
    pub test_clock: bool,
    /// The hosts that the customer portal may lead back to, for example `app.example.org`. Default: every host.
    pub portal_return_hosts: Vec<String>,
    /// The issuer of invoices: `name`, `address` (`line1`, `line2`, `postalCode`, `city`, `state`, `country`), `email` and
    /// `taxId`. Invoices keep it as it is when they become final. Default: none, and invoices name no issuer.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub issuer: Option<Party>,
    /// The tax rates in basis points by the country of the customer, for example `DE = 1900`. Prices are net. A customer
    /// in another country of this list than the issuer's who has a tax id owes the tax (reverse charge), and a customer
    /// in a country outside of this list is not taxed. Needs an `issuer` with an address. Default: none, no taxes.
    pub tax_rates: BTreeMap<Country, u32>,
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
            keep_usage_events: Duration::from_secs(100 * 24 * 60 * 60),
            test_clock: false,
            portal_return_hosts: Vec::new(),
            issuer: None,
            tax_rates: BTreeMap::new(),
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

    /// Checks the plans, the taxes and the times.
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
        if self.keep_usage_events < MIN_EVENT_RETENTION {
            return Err(ConfigError {
                setting: "billing.keep_usage_events",
                problem: "must be at least 36 days, in which an event must not count twice"
                    .to_owned(),
            });
        }
        self.taxes()?;
        self.catalog().map(drop)
    }

    /// Returns the taxes.
    ///
    /// # Errors
    /// [`ConfigError`] if a rate is too high, or there are rates without an issuer's country.
    pub fn taxes(&self) -> Result<TaxTable, ConfigError> {
        let issuer = self.issuer.as_ref();
        if issuer.is_some_and(|issuer| issuer.name.is_none()) {
            return Err(ConfigError {
                setting: "billing.issuer.name",
                problem: "is required, because invoices show it".to_owned(),
            });
        }
        let home = issuer.and_then(Party::country).cloned();
        TaxTable::new(home, &self.tax_rates).map_err(|error| ConfigError {
            setting: "billing.tax_rates",
            problem: error.to_string(),
        })
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
