//! The price of metered usage (contract: "Usage" and "Ledger and arithmetic"). An event has no price of its own: the
//! price is that of the total.

use super::calendar::start_of_day;
use super::period::BilledMetric;
use super::rollup::Quantities;
use crate::billing::{
    Aggregation, Currency, Metric, MetricTerms, Money, MoneyError, Period, PlanTerms, UnitPrice,
    divide_rounded,
};
use crate::kernel::Timestamp;

const DAY_SECONDS: i64 = 24 * 60 * 60;

/// The terms of a plan, from an instant of a usage period on.
#[derive(Clone, Copy, Debug)]
pub struct IncludedTerms<'p> {
    /// When the plan begins to apply.
    pub from: Timestamp,
    /// The terms of the plan.
    pub plan: &'p PlanTerms,
}

/// The price of one metric in a usage period.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MetricPrice {
    /// The metered quantity that the price is for.
    pub metric: Metric,
    /// The quantity that costs nothing.
    pub included: u64,
    /// The price of each further unit.
    pub unit_price: UnitPrice,
}

/// The usage of one metric with its price.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PricedUsage {
    /// The metric with its price.
    pub price: MetricPrice,
    /// The quantity in units of the metric.
    pub quantity: u64,
    /// The price of the quantity above the included one, whether it is charged or not.
    pub amount: Money,
}

/// The prices of all metrics in a usage period.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PriceList {
    period: Period,
    currency: Currency,
    metrics: Vec<MetricPrice>,
}

impl PriceList {
    /// Computes the prices of a usage period from the plans that apply in it, oldest first. Unit prices are those of the
    /// last plan. The included quantity of each plan counts in proportion to its time, rounded so that the parts of
    /// plans with equal quantities add up to that quantity. One plan counts whole, however short the period is.
    ///
    /// # Errors
    /// [`MoneyError::TooLarge`] if there is no plan.
    pub fn new(period: Period, terms: &[IncludedTerms<'_>]) -> Result<Self, MoneyError> {
        let last = terms.last().ok_or(MoneyError::TooLarge)?.plan;
        let metric = |metric: &MetricTerms| {
            Ok(MetricPrice {
                metric: metric.metric,
                included: weighted_included(period, terms, metric.metric)?,
                unit_price: metric.unit_amount_decimal,
            })
        };
        Ok(Self {
            period,
            currency: last.currency,
            metrics: last.metrics.iter().map(metric).collect::<Result<_, _>>()?,
        })
    }

    /// Returns the currency of the prices.
    #[must_use]
    pub const fn currency(&self) -> Currency {
        self.currency
    }

    /// Returns the prices of the metrics, in the order of the plan.
    #[must_use]
    pub fn metrics(&self) -> &[MetricPrice] {
        &self.metrics
    }

    /// Returns the price of a metric. Returns `None` if the plan has no such metric.
    #[must_use]
    pub fn metric(&self, metric: Metric) -> Option<&MetricPrice> {
        self.metrics.iter().find(|price| price.metric == metric)
    }

    /// Returns the billable quantity of a metric: the average over the days of the period if it is an average, else the
    /// sum.
    ///
    /// # Errors
    /// [`MoneyError::TooLarge`] does not occur for sums of stored quantities.
    pub fn quantity(&self, metric: Metric, sums: &Quantities) -> Result<u64, MoneyError> {
        quantity_in(self.period, metric, sums)
    }

    /// Prices the sums of the period.
    ///
    /// # Errors
    /// [`MoneyError::TooLarge`] if an amount is too large.
    pub fn price(&self, sums: &Quantities) -> Result<Vec<PricedUsage>, MoneyError> {
        let priced = |price: &MetricPrice| {
            let quantity = self.quantity(price.metric, sums)?;
            let amount = price.amount_of(quantity, self.currency)?;
            Ok(PricedUsage {
                price: *price,
                quantity,
                amount,
            })
        };
        self.metrics.iter().map(priced).collect()
    }

    /// Returns the price of all usage above the included quantities, in minor units.
    ///
    /// # Errors
    /// [`MoneyError::TooLarge`] if an amount is too large.
    pub fn spend(&self, sums: &Quantities) -> Result<u64, MoneyError> {
        let priced = self.price(sums)?;
        let minor = priced.iter().map(|usage| usage.amount.minor());
        Ok(minor
            .map(|minor| u64::try_from(minor).unwrap_or_default())
            .sum())
    }
}

/// Returns the billable quantity of a metric in a period.
fn quantity_in(period: Period, metric: Metric, sums: &Quantities) -> Result<u64, MoneyError> {
    let sum = sums.get(metric);
    if metric.aggregation() != Aggregation::DailyAverage {
        return Ok(sum);
    }
    match days_of(period) {
        0 => Ok(0),
        days => {
            let average = divide_rounded(sum.into(), days.into())?;
            u64::try_from(average).map_err(|_| MoneyError::TooLarge)
        }
    }
}

/// Returns the number of UTC days whose first second is in the period.
fn days_of(period: Period) -> u64 {
    let first_day = |at: Timestamp| {
        let day = start_of_day(at).seconds() / DAY_SECONDS;
        day + i64::from(start_of_day(at) < at)
    };
    first_day(period.end()).abs_diff(first_day(period.start()))
}

/// Returns the included quantity of a metric: each plan's in proportion to its time in the period.
fn weighted_included(
    period: Period,
    terms: &[IncludedTerms<'_>],
    metric: Metric,
) -> Result<u64, MoneyError> {
    let mut sum = 0_i128;
    for (at, one) in terms.iter().enumerate() {
        let included = one.plan.metric(metric).map_or(0, |terms| terms.included);
        let rest = |from: Timestamp| {
            let seconds = i128::from(period.seconds_left(from));
            divide_rounded(i128::from(included) * seconds, period.seconds().into())
        };
        let start = if at == 0 { period.start() } else { one.from };
        let end = terms.get(at + 1).map_or(period.end(), |next| next.from);
        sum += rest(start)? - rest(end)?;
    }
    u64::try_from(sum).map_err(|_| MoneyError::TooLarge)
}

impl MetricPrice {
    /// Returns the part of a quantity that is above the included one.
    #[must_use]
    pub const fn overage(&self, quantity: u64) -> u64 {
        quantity.saturating_sub(self.included)
    }

    /// Returns the price of a quantity, rounded once.
    ///
    /// # Errors
    /// [`MoneyError::TooLarge`] if it is too large.
    pub fn amount_of(&self, quantity: u64, currency: Currency) -> Result<Money, MoneyError> {
        self.unit_price.of(self.overage(quantity), currency)
    }

    /// Returns the quantity in percent of the included one, rounded down. Returns `None` if nothing is included.
    #[must_use]
    pub fn percent_used(&self, quantity: u64) -> Option<u64> {
        percent_of(self.included, quantity)
    }
}

/// Returns a quantity in percent of a limit, rounded down. Returns `None` if the limit is 0.
pub(super) fn percent_of(limit: u64, quantity: u64) -> Option<u64> {
    let percent = (u128::from(quantity) * 100).checked_div(limit.into())?;
    Some(u64::try_from(percent).unwrap_or(u64::MAX))
}

impl PricedUsage {
    /// Returns the usage in the form that an invoice shows.
    #[must_use]
    pub const fn to_billed(&self) -> BilledMetric {
        BilledMetric {
            metric: self.price.metric,
            quantity: self.quantity,
            included: self.price.included,
            overage: self.price.overage(self.quantity),
            amount: self.amount.minor(),
        }
    }

    /// Returns the price of late usage: the price of all usage less the invoiced amount. Negative if a correction has
    /// reduced the usage.
    ///
    /// # Errors
    /// [`MoneyError::TooLarge`] does not occur for invoiced amounts.
    pub fn adjustment(&self, billed: &[BilledMetric]) -> Result<Money, MoneyError> {
        let invoiced = billed
            .iter()
            .find(|known| known.metric == self.price.metric);
        let invoiced = invoiced.map_or(0, |known| known.amount);
        self.amount
            .minus(Money::new(invoiced.into(), self.amount.currency())?)
    }
}

/// Divides a quantity in proportion to weights, such that the parts add up to it; see
/// [`split_by_largest_remainder`](crate::billing::split_by_largest_remainder). Without a positive weight, all parts are
/// zero.
#[must_use]
pub fn split_quantity(quantity: u64, weights: &[u64]) -> Vec<u64> {
    let total: u128 = weights.iter().map(|weight| u128::from(*weight)).sum();
    if total == 0 {
        return vec![0; weights.len()];
    }
    // Both factors have 64 bits, so a product fits into 128.
    let products = weights
        .iter()
        .map(|weight| u128::from(quantity) * u128::from(*weight));
    let mut parts: Vec<_> = products
        .map(|product| (product / total, product % total))
        .collect();
    let given: u128 = parts.iter().map(|(part, _)| part).sum();
    let mut by_remainder: Vec<usize> = (0..parts.len()).collect();
    by_remainder.sort_by_key(|&at| std::cmp::Reverse(parts[at].1));
    let left = usize::try_from(u128::from(quantity) - given).unwrap_or_default();
    for &at in by_remainder.iter().take(left) {
        parts[at].0 += 1;
    }
    let part = |(part, _)| u64::try_from(part).unwrap_or(u64::MAX);
    parts.into_iter().map(part).collect()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::billing::{PlanCatalog, PlanTier, split_by_largest_remainder};

    fn at(text: &str) -> Timestamp {
        Timestamp::parse_rfc3339(text).unwrap()
    }

    fn november() -> Period {
        Period::new(at("2026-11-01T00:00:00Z"), at("2026-12-01T00:00:00Z")).unwrap()
    }

    fn price_list(tiers: &[(&str, PlanTier)]) -> PriceList {
        let catalog = PlanCatalog::default();
        let terms: Vec<_> = tiers
            .iter()
            .map(|(from, tier)| IncludedTerms {
                from: at(from),
                plan: catalog.terms(*tier).unwrap(),
            })
            .collect();
        PriceList::new(november(), &terms).unwrap()
    }

    fn requests(quantity: i128) -> Quantities {
        let mut sums = Quantities::default();
        sums.add(Metric::Requests, quantity).unwrap();
        sums
    }

    fn usage_of(list: &PriceList, sums: &Quantities, metric: Metric) -> PricedUsage {
        let all = list.price(sums).unwrap();
        *all.iter()
            .find(|priced| priced.price.metric == metric)
            .unwrap()
    }

    #[test]
    fn worked_example_13_charges_what_is_above_the_included_quantity() {
        let list = price_list(&[("2026-11-01T00:00:00Z", PlanTier::Growth)]);
        let usage = usage_of(&list, &requests(5_000_000), Metric::Requests);
        assert_eq!(
            (usage.price.overage(usage.quantity), usage.amount.minor()),
            (4_000_000, 200)
        );
        assert_eq!(usage.price.percent_used(usage.quantity), Some(500));
    }

    #[test]
    fn worked_example_14_weights_included_quantities_by_time() {
        let list = price_list(&[
            ("2026-11-01T00:00:00Z", PlanTier::Starter),
            ("2026-11-16T00:00:00Z", PlanTier::Growth),
        ]);
        let usage = usage_of(&list, &requests(900_000), Metric::Requests);
        assert_eq!(usage.price.included, 625_000);
        assert_eq!(
            (usage.to_billed().overage, usage.amount.minor()),
            (275_000, 14)
        );
        let late = usage_of(&list, &requests(930_000), Metric::Requests);
        assert_eq!(late.amount.minor(), 15);
        assert_eq!(late.adjustment(&[usage.to_billed()]).unwrap().minor(), 1);
    }

    #[test]
    fn storage_is_the_average_over_the_days_that_begin_in_the_period() {
        let mut sums = Quantities::default();
        // 60 GB on each of ten days of November is an average of 20 GB.
        sums.add(Metric::StorageBytes, 600_000_000_000).unwrap();
        let list = price_list(&[("2026-11-01T00:00:00Z", PlanTier::Starter)]);
        let usage = usage_of(&list, &sums, Metric::StorageBytes);
        assert_eq!((usage.quantity, usage.amount.minor()), (20_000_000_000, 20));
        for (start, end, days) in [
            ("2026-11-01T00:00:00Z", "2026-12-01T00:00:00Z", 30),
            ("2026-11-01T00:00:01Z", "2026-12-01T00:00:00Z", 29),
            ("2026-11-01T00:00:01Z", "2026-12-01T00:00:01Z", 30),
            ("2026-11-01T00:00:01Z", "2026-11-01T23:59:59Z", 0),
        ] {
            assert_eq!(
                days_of(Period::new(at(start), at(end)).unwrap()),
                days,
                "{start} {end}"
            );
        }
    }

    #[test]
    fn nothing_is_included_without_a_percentage() {
        let price = MetricPrice {
            metric: Metric::Requests,
            included: 0,
            unit_price: UnitPrice::from_minor(1),
        };
        assert_eq!(price.percent_used(5), None);
    }

    proptest! {
        #[test]
        fn invoiced_and_late_usage_cost_as_much_as_all_at_once(
            parts in prop::collection::vec(-2_000_000_i128..9_000_000, 1..8),
        ) {
            let list = price_list(&[("2026-11-01T00:00:00Z", PlanTier::Starter)]);
            let (mut sums, mut billed, mut charged) = (Quantities::default(), Vec::new(), 0);
            for part in &parts {
                sums.add(Metric::Requests, *part).unwrap();
                let usage = usage_of(&list, &sums, Metric::Requests);
                charged += usage.adjustment(&billed).unwrap().minor();
                billed = vec![usage.to_billed()];
            }
            let all = usage_of(&list, &requests(parts.iter().sum()), Metric::Requests);
            prop_assert_eq!(charged, all.amount.minor());
        }

        #[test]
        fn any_number_of_changes_to_the_same_plan_includes_its_whole_quantity(
            mut seconds in prop::collection::vec(0_i64..2_592_000, 0..6),
        ) {
            seconds.sort_unstable();
            let catalog = PlanCatalog::default();
            let plan = catalog.terms(PlanTier::Growth).unwrap();
            let start = november().start();
            let from = |second: &i64| Timestamp::from_seconds(start.seconds() + second);
            let mut terms = vec![IncludedTerms { from: start, plan }];
            terms.extend(seconds.iter().map(|second| IncludedTerms { from: from(second), plan }));
            let list = PriceList::new(november(), &terms).unwrap();
            for metric in list.metrics() {
                prop_assert_eq!(metric.included, plan.metric(metric.metric).unwrap().included);
            }
        }

        #[test]
        fn stacks_share_quantity_and_price_without_a_remainder(
            quantities in prop::collection::vec(0_u64..5_000_000, 1..8),
        ) {
            let list = price_list(&[("2026-11-01T00:00:00Z", PlanTier::Starter)]);
            let total: u64 = quantities.iter().sum();
            let usage = usage_of(&list, &requests(total.into()), Metric::Requests);
            let shares = split_by_largest_remainder(usage.amount, &quantities).unwrap();
            let sum: i64 = shares.iter().map(|share| share.minor()).sum();
            prop_assert_eq!(sum, if total == 0 { 0 } else { usage.amount.minor() });
            let parts = split_quantity(total / 2, &quantities);
            prop_assert_eq!(parts.iter().sum::<u64>(), total / 2);
            prop_assert_eq!(split_quantity(total, &quantities), quantities);
        }
    }
}
