//! Plans: what a subscription costs and includes (contract: "Plans").
//!
//! The configuration has one set of terms for each tier. Terms have a version. A subscription keeps the version that it
//! was created with, so a changed price needs a new version, and changes no existing subscription.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use super::calendar::Interval;
use super::metric::{Aggregation, Metric};
use super::money::{Currency, Money, MoneyError};
use super::unit_price::UnitPrice;
use crate::kernel::{Name, hex, text_enum};
use crate::registry::Tier;

text_enum! {
    /// The tier of a plan.
    pub enum PlanTier {
        /// Without a price and with the smallest limits. It applies to a platform without a live subscription.
        Free = "free",
        /// The entry tier.
        Starter = "starter",
        /// The middle tier.
        Growth = "growth",
        /// The highest tier.
        Scale = "scale",
    }
}

impl PlanTier {
    /// Returns the tier that the registry shows for the platform.
    #[must_use]
    pub const fn of_platform(self) -> Tier {
        match self {
            Self::Free | Self::Starter => Tier::Starter,
            Self::Growth => Tier::Growth,
            Self::Scale => Tier::Scale,
        }
    }
}

/// The numbers of objects that a platform may have.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct PlanLimits {
    /// Maximum number of stacks.
    pub stacks: u32,
    /// Maximum number of custom domains.
    pub custom_domains: u32,
    /// Maximum number of entities.
    pub entities: u32,
}

/// The price of one metric and the quantity that a plan includes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct MetricTerms {
    /// The metric.
    pub metric: Metric,
    /// The quantity of a usage period that costs nothing more.
    pub included: u64,
    /// The price of each further unit, in minor units of the currency.
    pub unit_amount_decimal: UnitPrice,
}

impl MetricTerms {
    /// Returns the part of a quantity that is above the included one.
    #[must_use]
    pub const fn overage(self, quantity: u64) -> u64 {
        quantity.saturating_sub(self.included)
    }

    /// Returns the price of a quantity, rounded once.
    ///
    /// # Errors
    /// [`MoneyError::TooLarge`] if the amount is too large.
    pub fn price(self, quantity: u64, currency: Currency) -> Result<Money, MoneyError> {
        self.unit_amount_decimal
            .of(self.overage(quantity), currency)
    }
}

/// The terms of a tier in one version. They never change.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct PlanTerms {
    /// The tier.
    pub tier: PlanTier,
    /// The version of the terms, from 1.
    pub version: u32,
    /// The name of the plan for people.
    pub name: Name,
    /// The position among the plans. A higher plan has a higher rank.
    pub rank: u32,
    /// `true` if customers can choose the plan.
    pub selectable: bool,
    /// The length of the trial of a platform's first subscription, in days. 0 for none.
    pub trial_days: u32,
    /// The currency of all amounts.
    pub currency: Currency,
    /// The price of a month in minor units.
    pub month_amount: u32,
    /// The price of a year in minor units.
    pub year_amount: u32,
    /// The numbers of objects that a platform may have.
    pub limits: PlanLimits,
    /// The metrics, in the order in which they are shown. Each occurs once.
    pub metrics: Vec<MetricTerms>,
}

impl PlanTerms {
    /// Returns the price of one period.
    #[must_use]
    pub fn amount(&self, interval: Interval) -> Money {
        let minor = match interval {
            Interval::Month => self.month_amount,
            Interval::Year => self.year_amount,
        };
        Money::of_price(minor, self.currency)
    }

    /// Returns the id of the plan, for example `growth` or `growth_year`.
    #[must_use]
    pub fn plan_id(&self, interval: Interval) -> String {
        match interval {
            Interval::Month => self.tier.to_string(),
            Interval::Year => format!("{}_{interval}", self.tier),
        }
    }

    /// Returns the id of the price, for example `price_growth_month`. From version 2 on, it ends in the version:
    /// `price_growth_month_v2`.
    #[must_use]
    pub fn price_id(&self, interval: Interval) -> String {
        let id = format!("price_{}_{interval}", self.tier);
        match self.version {
            0 | 1 => id,
            version => format!("{id}_v{version}"),
        }
    }

    /// Returns the terms of a metric.
    #[must_use]
    pub fn metric(&self, metric: Metric) -> Option<&MetricTerms> {
        self.metrics.iter().find(|terms| terms.metric == metric)
    }

    /// Returns the SHA-256 digest of everything that a new version is needed for: prices, limits, included quantities
    /// and the trial. The name, the rank and whether the plan can be chosen may change in a version.
    #[must_use]
    pub fn digest(&self) -> String {
        let content = serde_json::json!([
            self.currency,
            self.month_amount,
            self.year_amount,
            self.trial_days,
            self.limits,
            self.metrics,
        ]);
        hex(&Sha256::digest(content.to_string()))
    }

    /// Returns the plan as the interface shows it.
    #[must_use]
    pub fn to_plan(&self, interval: Interval) -> Plan {
        let metrics = self.metrics.iter().map(|terms| PlanMetric {
            metric: terms.metric,
            unit: terms.metric.unit(),
            aggregation: terms.metric.aggregation(),
            included: terms.included,
            unit_amount_decimal: terms.unit_amount_decimal,
        });
        Plan {
            id: self.plan_id(interval),
            tier: self.tier,
            name: self.name.clone(),
            rank: self.rank,
            price_id: self.price_id(interval),
            amount: self.amount(interval).minor(),
            currency: self.currency,
            interval,
            trial_days: self.trial_days,
            selectable: self.selectable,
            limits: self.limits,
            metrics: metrics.collect(),
        }
    }
}

/// A plan that a customer can subscribe to, for one interval (interface: "Plans").
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Plan {
    /// The id of the plan.
    pub id: String,
    /// The tier.
    pub tier: PlanTier,
    /// The name of the plan for people.
    pub name: Name,
    /// The position among the plans. A higher plan has a higher rank.
    pub rank: u32,
    /// The id of the price.
    pub price_id: String,
    /// The price of one period in minor units.
    pub amount: i64,
    /// The currency of all amounts.
    pub currency: Currency,
    /// The length of a period.
    pub interval: Interval,
    /// The length of the trial of a platform's first subscription, in days.
    pub trial_days: u32,
    /// `true` if customers can choose the plan.
    pub selectable: bool,
    /// The numbers of objects that a platform may have.
    pub limits: PlanLimits,
    /// The metered quantities, with what the plan includes.
    pub metrics: Vec<PlanMetric>,
}

/// A metric of a plan.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct PlanMetric {
    /// The metric.
    pub metric: Metric,
    /// The name of one unit.
    pub unit: &'static str,
    /// How the events of a period become one quantity.
    pub aggregation: Aggregation,
    /// The quantity of a usage period that costs nothing more.
    pub included: u64,
    /// The price of each further unit, in minor units of the currency.
    pub unit_amount_decimal: UnitPrice,
}

/// The reasons why configured plans are refused.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum PlanError {
    /// A tier has no plan.
    #[error("there must be a plan for each of the tiers free, starter, growth and scale")]
    MissingTier,
    /// Two plans have the same tier, or the same rank.
    #[error("the {0} of the plan {1} is that of another plan")]
    Duplicate(&'static str, PlanTier),
    /// A value of a plan breaks a rule.
    #[error("the plan {0}: {1}")]
    Invalid(PlanTier, &'static str),
    /// The terms have changed, but not their version.
    #[error("the terms of the plan {0} have changed; a change needs a new version, {1} or higher")]
    Changed(PlanTier, u32),
}

/// The newest terms of all tiers, as they are configured.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PlanCatalog {
    plans: BTreeMap<PlanTier, PlanTerms>,
}

impl PlanCatalog {
    /// Checks configured plans.
    ///
    /// # Errors
    /// [`PlanError`] names the first plan that breaks a rule.
    pub fn new(plans: Vec<PlanTerms>) -> Result<Self, PlanError> {
        let mut ranks = BTreeMap::new();
        let mut by_tier = BTreeMap::new();
        let mut currency = None;
        for plan in plans {
            let tier = plan.tier;
            check(&plan)?;
            if *currency.get_or_insert(plan.currency) != plan.currency {
                return Err(PlanError::Invalid(
                    tier,
                    "its currency differs from the others",
                ));
            }
            if ranks.insert(plan.rank, tier).is_some() {
                return Err(PlanError::Duplicate("rank", tier));
            }
            if by_tier.insert(tier, plan).is_some() {
                return Err(PlanError::Duplicate("tier", tier));
            }
        }
        if by_tier.len() != PlanTier::ALL.len() {
            return Err(PlanError::MissingTier);
        }
        Ok(Self { plans: by_tier })
    }

    /// Returns the newest terms of a tier. Every tier has some.
    #[must_use]
    pub fn terms(&self, tier: PlanTier) -> Option<&PlanTerms> {
        self.plans.get(&tier)
    }

    /// Returns the currency of all plans.
    #[must_use]
    pub fn currency(&self) -> Currency {
        let first = self.plans.values().next();
        first.map_or(Currency::USD, |terms| terms.currency)
    }

    /// Returns the newest terms of all tiers, by rank.
    #[must_use]
    pub fn by_rank(&self) -> Vec<&PlanTerms> {
        let mut plans: Vec<_> = self.plans.values().collect();
        plans.sort_by_key(|plan| plan.rank);
        plans
    }

    /// Returns the plans as the interface shows them: by rank, the month before the year.
    #[must_use]
    pub fn plans(&self) -> Vec<Plan> {
        let intervals = |terms| Interval::ALL.iter().map(move |interval| (terms, *interval));
        let plans = self.by_rank().into_iter().flat_map(intervals);
        plans
            .filter(|(terms, interval)| terms.selectable || *interval == Interval::Month)
            .map(|(terms, interval): (&PlanTerms, Interval)| terms.to_plan(interval))
            .collect()
    }
}

/// Refuses terms that differ from those that are stored under their version.
///
/// # Errors
/// [`PlanError::Changed`] if they differ.
pub fn ensure_unchanged(configured: &PlanTerms, stored_digest: &str) -> Result<(), PlanError> {
    if configured.digest() == stored_digest {
        return Ok(());
    }
    let next = configured.version.saturating_add(1);
    Err(PlanError::Changed(configured.tier, next))
}

fn check(plan: &PlanTerms) -> Result<(), PlanError> {
    let mut metrics: Vec<_> = plan.metrics.iter().map(|terms| terms.metric).collect();
    metrics.sort_unstable();
    metrics.dedup();
    let is_free = plan.tier == PlanTier::Free;
    let rules = [
        (plan.version == 0, "versions begin with 1"),
        (
            metrics.len() != plan.metrics.len(),
            "a metric occurs more than once",
        ),
        (
            plan.trial_days > MAX_TRIAL_DAYS,
            "a trial has at most 730 days",
        ),
        (
            is_free && (plan.month_amount, plan.year_amount) != (0, 0),
            "the tier free has no price",
        ),
        (
            is_free && plan.selectable,
            "the tier free cannot be chosen, it is that of platforms without a subscription",
        ),
    ];
    match rules.into_iter().find(|(is_broken, _)| *is_broken) {
        Some((_, rule)) => Err(PlanError::Invalid(plan.tier, rule)),
        None => Ok(()),
    }
}

/// The longest trial in days.
pub const MAX_TRIAL_DAYS: u32 = 730;

/// The standard plans.
impl Default for PlanCatalog {
    fn default() -> Self {
        let plans = STANDARD.iter().filter_map(StandardPlan::terms);
        Self {
            plans: plans.map(|terms| (terms.tier, terms)).collect(),
        }
    }
}

/// A row of the table of standard plans.
struct StandardPlan {
    tier: PlanTier,
    name: &'static str,
    month_amount: u32,
    /// Stacks, custom domains and entities.
    limits: [u32; 3],
    /// The included quantities, in the order of [`Metric`].
    included: [u64; 6],
}

/// The prices of units, in the order of [`Metric`]. They are the same for all tiers.
const UNIT_PRICES: [&str; 6] = [
    "0.00005",
    "0.000002",
    "0.000000008",
    "1",
    "0.000000002",
    "5",
];

/// A year costs as much as ten months.
const MONTHS_OF_A_YEAR: u32 = 10;

const TRIAL_DAYS: u32 = 14;

const STANDARD: [StandardPlan; 4] = [
    StandardPlan {
        tier: PlanTier::Free,
        name: "Free",
        month_amount: 0,
        limits: [1, 0, 3],
        included: [50_000, 100_000, 1_000_000_000, 30, 1_000_000_000, 3],
    },
    StandardPlan {
        tier: PlanTier::Starter,
        name: "Starter",
        month_amount: 2_900,
        limits: [3, 1, 20],
        included: [250_000, 1_000_000, 10_000_000_000, 300, 10_000_000_000, 20],
    },
    StandardPlan {
        tier: PlanTier::Growth,
        name: "Growth",
        month_amount: 9_900,
        limits: [10, 5, 100],
        included: [
            1_000_000,
            10_000_000,
            100_000_000_000,
            1_000,
            50_000_000_000,
            100,
        ],
    },
    StandardPlan {
        tier: PlanTier::Scale,
        name: "Scale",
        month_amount: 49_900,
        limits: [50, 50, 1_000],
        included: [
            10_000_000,
            100_000_000,
            1_000_000_000_000,
            10_000,
            500_000_000_000,
            1_000,
        ],
    },
];

impl StandardPlan {
    /// Returns the terms. They are always valid, which a test proves.
    fn terms(&self) -> Option<PlanTerms> {
        let [stacks, custom_domains, entities] = self.limits;
        let prices = UNIT_PRICES.iter().zip(self.included);
        let metrics = Metric::ALL.iter().zip(prices);
        let metrics = metrics.filter_map(|(metric, (price, included))| {
            Some(MetricTerms {
                metric: *metric,
                included,
                unit_amount_decimal: UnitPrice::parse(price).ok()?,
            })
        });
        let is_free = self.tier == PlanTier::Free;
        Some(PlanTerms {
            tier: self.tier,
            version: 1,
            name: Name::parse(self.name).ok()?,
            rank: self.tier as u32,
            selectable: !is_free,
            trial_days: if is_free { 0 } else { TRIAL_DAYS },
            currency: Currency::USD,
            month_amount: self.month_amount,
            year_amount: self.month_amount * MONTHS_OF_A_YEAR,
            limits: PlanLimits {
                stacks,
                custom_domains,
                entities,
            },
            metrics: metrics.collect(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn standard() -> Vec<PlanTerms> {
        PlanCatalog::default()
            .by_rank()
            .into_iter()
            .cloned()
            .collect()
    }

    /// Returns the error of the standard plans after a change of the plan `starter`.
    fn refusal(change: impl FnOnce(&mut PlanTerms)) -> PlanError {
        let mut plans = standard();
        change(&mut plans[1]);
        PlanCatalog::new(plans).unwrap_err()
    }

    #[test]
    fn the_standard_plans_are_valid_and_complete() {
        let catalog = PlanCatalog::new(standard()).unwrap();
        assert_eq!(catalog, PlanCatalog::default());
        let plans = catalog.plans();
        let shown: Vec<_> = plans
            .iter()
            .map(|plan| (plan.id.as_str(), plan.price_id.as_str(), plan.amount))
            .collect();
        assert_eq!(
            shown,
            [
                ("free", "price_free_month", 0),
                ("starter", "price_starter_month", 2_900),
                ("starter_year", "price_starter_year", 29_000),
                ("growth", "price_growth_month", 9_900),
                ("growth_year", "price_growth_year", 99_000),
                ("scale", "price_scale_month", 49_900),
                ("scale_year", "price_scale_year", 499_000),
            ]
        );
        for plan in plans {
            let metrics: Vec<_> = plan.metrics.iter().map(|terms| terms.metric).collect();
            assert_eq!(metrics, Metric::ALL);
        }
    }

    #[test]
    fn a_quantity_costs_only_what_is_not_included() {
        let catalog = PlanCatalog::default();
        let growth = catalog.terms(PlanTier::Growth).unwrap();
        let requests = growth.metric(Metric::Requests).unwrap();
        let price = |quantity| requests.price(quantity, Currency::USD).unwrap().minor();
        assert_eq!(price(0), 0);
        assert_eq!(price(1_000_000), 0);
        assert_eq!(price(5_000_000), 200);
    }

    #[test]
    fn a_price_of_a_later_version_has_an_id_of_its_own() {
        let mut terms = standard().remove(2);
        terms.version = 2;
        assert_eq!(terms.price_id(Interval::Month), "price_growth_month_v2");
        assert_eq!(terms.plan_id(Interval::Year), "growth_year");
    }

    #[test]
    fn changed_terms_need_a_new_version() {
        let terms = standard().remove(1);
        let stored = terms.digest();
        let changed = |change: fn(&mut PlanTerms)| {
            let mut next = terms.clone();
            change(&mut next);
            ensure_unchanged(&next, &stored)
        };
        assert_eq!(changed(|_| ()), Ok(()));
        assert_eq!(changed(|terms| terms.selectable = false), Ok(()));
        assert_eq!(changed(|terms| terms.rank = 9), Ok(()));
        let refused = Err(PlanError::Changed(PlanTier::Starter, 2));
        for change in [
            (|terms| terms.month_amount += 1) as fn(&mut PlanTerms),
            |terms| terms.year_amount += 1,
            |terms| terms.trial_days += 1,
            |terms| terms.limits.stacks += 1,
            |terms| terms.metrics[0].included += 1,
            |terms| terms.metrics[0].unit_amount_decimal = UnitPrice::from_minor(1),
            |terms| terms.currency = Currency::parse("eur").unwrap(),
        ] {
            assert_eq!(changed(change), refused);
        }
    }

    #[test]
    fn invalid_plans_are_refused() {
        let starter = PlanTier::Starter;
        let euro = Currency::parse("eur").unwrap();
        assert_eq!(
            refusal(|terms| terms.tier = PlanTier::Growth),
            PlanError::Duplicate("tier", PlanTier::Growth)
        );
        assert_eq!(
            refusal(|terms| terms.rank = 2),
            PlanError::Duplicate("rank", PlanTier::Growth)
        );
        for change in [
            (|terms, _| terms.version = 0) as fn(&mut PlanTerms, Currency),
            |terms, _| terms.trial_days = MAX_TRIAL_DAYS + 1,
            |terms, _| terms.metrics[1] = terms.metrics[0],
            |terms, euro| terms.currency = euro,
        ] {
            let refused = refusal(|terms| change(terms, euro));
            assert!(
                matches!(refused, PlanError::Invalid(tier, _) if tier == starter),
                "{refused:?}"
            );
        }
        let mut plans = standard();
        plans[0].month_amount = 1;
        assert!(PlanCatalog::new(plans).is_err());
        let mut plans = standard();
        plans.pop();
        assert_eq!(PlanCatalog::new(plans), Err(PlanError::MissingTier));
    }

    #[test]
    fn the_registry_shows_starter_for_the_free_tier() {
        for tier in PlanTier::ALL {
            let shown = tier.of_platform().as_str();
            let expected = if *tier == PlanTier::Free {
                "starter"
            } else {
                tier.as_str()
            };
            assert_eq!(shown, expected);
        }
    }
}
