//! Sums of usage: by day and stack, and by usage period (contract: "Usage").

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::billing::Metric;
#[cfg(any(test, feature = "proptest"))]
use crate::kernel::strategy::count;
use crate::kernel::{PlatformId, StackId, Timestamp, record};

/// Quantities by metric. Metrics that are missing have the quantity 0.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Quantities(BTreeMap<Metric, i64>);

impl Quantities {
    /// Returns the quantity of a metric. It is never negative, although corrections can make a sum so.
    #[must_use]
    pub fn get(&self, metric: Metric) -> u64 {
        let quantity = self.0.get(&metric).copied().unwrap_or_default();
        u64::try_from(quantity).unwrap_or_default()
    }

    /// Returns the sum of a metric, which corrections can make negative.
    #[must_use]
    pub fn sum(&self, metric: Metric) -> i64 {
        self.0.get(&metric).copied().unwrap_or_default()
    }

    /// Adds to the sum of a metric. Returns `None` without a change if the sum does not fit.
    #[must_use]
    pub fn add(&mut self, metric: Metric, quantity: i128) -> Option<()> {
        let sum = i128::from(self.sum(metric)).checked_add(quantity)?;
        self.0.insert(metric, i64::try_from(sum).ok()?);
        Some(())
    }

    /// Raises the quantity of a metric to at least this value.
    pub fn raise(&mut self, metric: Metric, quantity: i64) {
        let known = self.0.entry(metric).or_default();
        *known = quantity.max(*known);
    }

    /// Returns the quantities of all metrics, in their order.
    #[must_use]
    pub fn list(&self) -> Vec<MetricQuantity> {
        let quantity = |metric: &Metric| MetricQuantity {
            metric: *metric,
            quantity: self.get(*metric),
        };
        Metric::ALL.iter().map(quantity).collect()
    }
}

/// Adds up quantities by metric.
impl FromIterator<(Metric, i64)> for Quantities {
    fn from_iter<I: IntoIterator<Item = (Metric, i64)>>(quantities: I) -> Self {
        let mut sums = Self::default();
        for (metric, quantity) in quantities {
            let known = sums.0.entry(metric).or_default();
            // Stored totals are checked, so a sum of their parts fits.
            *known = known.saturating_add(quantity);
        }
        sums
    }
}

#[cfg(any(test, feature = "proptest"))]
impl proptest::arbitrary::Arbitrary for Quantities {
    type Parameters = ();
    type Strategy = proptest::strategy::BoxedStrategy<Self>;

    fn arbitrary_with((): ()) -> Self::Strategy {
        use proptest::strategy::Strategy;
        let entries = (proptest::arbitrary::any::<Metric>(), count());
        proptest::collection::btree_map(entries.0, entries.1, 0..4)
            .prop_map(Self)
            .boxed()
    }
}

/// The quantity of one metric.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct MetricQuantity {
    /// The metered quantity.
    pub metric: Metric,
    /// The quantity in units of the metric.
    pub quantity: u64,
}

/// The quantity of a metric that a platform and one of its stacks used in a part of a UTC day.
///
/// The part begins with the day or, if a usage period begins later on that day, with the period. Rollups of a usage
/// period therefore never contain usage of another one. `storage_bytes` has one rollup a day and stack, which is its
/// greatest quantity; all other metrics are sums.
#[derive(Clone, Debug, PartialEq, Eq)]
#[cfg_attr(any(test, feature = "proptest"), derive(proptest_derive::Arbitrary))]
pub struct UsageRollup {
    /// The platform, the start in seconds, the metric and the stack, separated by `/`.
    #[cfg_attr(any(test, feature = "proptest"), proptest(regex = "[a-z]{1,12}"))]
    pub id: String,
    /// The platform that used something.
    pub platform_id: PlatformId,
    /// The metered quantity.
    pub metric: Metric,
    /// The stack. `None` for usage of no stack.
    pub stack_id: Option<StackId>,
    /// When the part of the day begins.
    pub start: Timestamp,
    /// The quantity in units of the metric.
    #[cfg_attr(any(test, feature = "proptest"), proptest(strategy = "count()"))]
    pub quantity: i64,
}

record! {
    UsageRollup as "usage rollup" by id, asked UsageRollupQuery;
}

impl UsageRollup {
    /// Creates a rollup without usage.
    #[must_use]
    pub fn new(
        platform: &PlatformId,
        start: Timestamp,
        metric: Metric,
        stack: Option<&StackId>,
    ) -> Self {
        let stack_text = stack.map_or("", |stack| stack.as_str());
        Self {
            id: format!("{platform}/{:011}/{metric}/{stack_text}", start.seconds()),
            platform_id: platform.clone(),
            metric,
            stack_id: stack.cloned(),
            start,
            quantity: 0,
        }
    }
}

/// Queries for rollups, ordered by their start.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum UsageRollupQuery {
    /// The rollups of a platform that begin in a span of time, which does not contain its end.
    Of(PlatformId, Timestamp, Timestamp),
    /// The rollups of a stack of a platform that begin in such a span.
    OfStack(PlatformId, StackId, Timestamp, Timestamp),
}

/// The sums of a platform in one usage period.
#[derive(Clone, Debug, PartialEq, Eq)]
#[cfg_attr(any(test, feature = "proptest"), derive(proptest_derive::Arbitrary))]
pub struct UsageTotal {
    /// The platform and the start of the period in seconds, separated by `/`.
    #[cfg_attr(any(test, feature = "proptest"), proptest(regex = "[a-z]{1,12}"))]
    pub id: String,
    /// The platform that the sums belong to.
    pub platform_id: PlatformId,
    /// When the period begins.
    pub period_start: Timestamp,
    /// The sums of all rollups of the period. That of `storage_bytes` adds up the days; see
    /// [`PriceList`](super::PriceList).
    pub sums: Quantities,
}

record! {
    UsageTotal as "usage total" by id, asked UsageTotalQuery;
}

impl UsageTotal {
    /// Creates a total without usage.
    #[must_use]
    pub fn new(platform: &PlatformId, period_start: Timestamp) -> Self {
        Self {
            id: Self::id_of(platform, period_start),
            platform_id: platform.clone(),
            period_start,
            sums: Quantities::default(),
        }
    }

    /// Returns the key of the total of a period.
    #[must_use]
    pub fn id_of(platform: &PlatformId, period_start: Timestamp) -> String {
        format!("{platform}/{:011}", period_start.seconds())
    }
}

/// Queries for totals.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum UsageTotalQuery {
    /// The totals of a platform, newest first.
    Of(PlatformId),
}
